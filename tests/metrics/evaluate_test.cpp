#include "stipple/metrics/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/metrics/noise_floor.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::EvaluateOptions;
using metrics::Evaluation;
using metrics::Extra;
using metrics::NonFinite;
using metrics::Protocol;
using metrics::Score;

class MetricsEvaluate : public OnDevice {
protected:
    EvaluateOptions here() const {
        EvaluateOptions options;
        options.device = GetParam();
        return options;
    }
};
STIPPLE_ON_EVERY_DEVICE(MetricsEvaluate);
class MetricsEvaluateOfTwoDevices : public MetricsEvaluate {};
STIPPLE_ON_EVERY_GPU(MetricsEvaluateOfTwoDevices);

double value(const std::vector<Score>& scores, std::string_view name) {
    const Score* score = metrics::find(scores, name);
    EXPECT_NE(score, nullptr) << name;
    return score ? score->value : NAN;
}

void expect_close(const std::vector<Score>& scores, std::string_view name, double expected) {
    EXPECT_NEAR(value(scores, name), expected, 1e-6 * expected) << name;
}

/// Off the sphere a little, larger and elsewhere: normalisation matters.
PointCloud prediction_of(int64_t n) {
    PointCloud cloud = sphere_cloud(n, 8);
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            float& x = cloud.positions.data()[3 * i + axis];
            x = x * (1.02f + 0.01f * static_cast<float>(i % 5)) + 0.01f * static_cast<float>(axis);
        }
    return cloud;
}

TEST_P(MetricsEvaluate, ProtocolsAreThoseOfBruteForce) {
    const PointCloud prediction = prediction_of(900), truth = sphere_cloud(1000, 9);
    const Mesh mesh = sphere_mesh(2);
    const std::vector<Double3> p = world_of(prediction), t = world_of(truth);
    const auto both = [](const std::vector<Double3>& a, const std::vector<Double3>& b) {
        return std::pair{brute_nearest(a, b), brute_nearest(b, a)};
    };
    const auto [raw_p, raw_t] = both(p, t);
    const auto [own_p, own_t] = both(brute_unit_sphere(p), brute_unit_sphere(t));
    std::vector<double> to_mesh;
    for (const Double3& point : p) to_mesh.push_back(brute_to_mesh(point, mesh));

    const Evaluation pu_gan = metrics::evaluate(prediction, truth, &mesh, Protocol::pu_gan, here());
    expect_close(pu_gan.scores, "cd", brute_mean(own_p) + brute_mean(own_t));
    expect_close(pu_gan.scores, "hd", brute_max(own_p) + brute_max(own_t));
    expect_close(pu_gan.scores, "p2f", brute_mean(to_mesh));
    expect_close(pu_gan.scores, "cd_raw", brute_mean(raw_p) + brute_mean(raw_t));
    expect_close(pu_gan.scores, "hd_raw", brute_max(raw_p) + brute_max(raw_t));
    EXPECT_EQ(pu_gan.scores.size(), 5u);

    const Evaluation pudm = metrics::evaluate(prediction, truth, &mesh, Protocol::pudm, here());
    expect_close(pudm.scores, "cd", (brute_mean(raw_p) + brute_mean(raw_t)) / 2);
    expect_close(pudm.scores, "hd", (brute_max(raw_p) + brute_max(raw_t)) / 2);
    expect_close(pudm.scores, "p2f", brute_mean(to_mesh));
    EXPECT_EQ(pudm.scores.size(), 3u);

    const Evaluation raw = metrics::evaluate(prediction, truth, &mesh, Protocol::raw, here());
    expect_close(raw.scores, "chamfer_squared_sum", brute_mean(raw_p) + brute_mean(raw_t));
    expect_close(raw.scores, "hausdorff", std::sqrt(std::max(brute_max(raw_p), brute_max(raw_t))));
    expect_close(raw.scores, "p2f_mean", brute_mean(to_mesh));
    expect_close(raw.scores, "p2f_max", brute_max(to_mesh));
}

TEST_P(MetricsEvaluateOfTwoDevices, CloudsOnTheDeviceAreTheSame) {
    const PointCloud prediction = prediction_of(500), truth = sphere_cloud(500, 9);
    PointCloud there, truth_there;
    there.positions = prediction.positions.to(GetParam());
    truth_there.positions = truth.positions.to(GetParam());
    const Mesh mesh = sphere_mesh(2);
    const std::vector<Score> on_cpu = metrics::evaluate(prediction, truth, &mesh, Protocol::raw).scores,
                             on_device = metrics::evaluate(there, truth_there, &mesh, Protocol::raw).scores;
    ASSERT_EQ(on_cpu.size(), on_device.size());
    for (size_t i = 0; i < on_cpu.size(); ++i) {
        EXPECT_EQ(on_cpu[i].name, on_device[i].name);
        EXPECT_NEAR(on_cpu[i].value, on_device[i].value, 1e-6 * std::abs(on_cpu[i].value)) << on_cpu[i].name;
    }
}

TEST(MetricsEvaluateScores, EachSaysWhatItIs) {
    const Mesh mesh = sphere_mesh(2);
    const PointCloud cloud = prediction_of(400), truth = sphere_cloud(400, 9);
    EvaluateOptions options;
    options.extras = {Extra::emd, Extra::emd_exact};
    std::set<std::string> names;
    for (const Score& score : metrics::evaluate(cloud, truth, &mesh, Protocol::raw, options).scores) {
        EXPECT_TRUE(names.insert(score.name).second) << score.name << " is there twice";
        EXPECT_NE(score.unit, "");
        EXPECT_NE(score.convention, "");
        EXPECT_NE(score.normalisation, "");
        EXPECT_EQ(score.unit, metrics::info_of(score.metric).unit);
        EXPECT_TRUE(std::isfinite(score.value)) << score.name;
    }
    for (const char* name : {"chamfer_l1_half", "f_score", "jsd", "emd_exact", "emd_auction", "f2p_mean",
                             "uniformity_0.4", "nuc_1.2", "spacing_variation", "density_mean"})
        EXPECT_EQ(names.count(name), 1u) << name;
    const Evaluation pu_gan = metrics::evaluate(cloud, truth, &mesh, Protocol::pu_gan);
    const Score& cd = pu_gan.scores[0];
    EXPECT_EQ(cd.name, "cd");
    EXPECT_EQ(cd.metric, "chamfer_squared_sum");
    EXPECT_EQ(cd.convention, "mean_p d^2 + mean_t d^2");
    EXPECT_EQ(cd.normalisation, "each cloud by its own mean and largest radius");
    EXPECT_EQ(cd.unit, "length^2");
    EXPECT_EQ(metrics::find(pu_gan.scores, "cd_raw")->normalisation, "none");
    EXPECT_EQ(metrics::find(pu_gan.scores, "p2f")->normalisation, "none, in units of the mesh");
}

TEST(MetricsEvaluateScores, RawWithoutMeshOrNormalsTellsWhatIsLeftOut) {
    const PointCloud cloud = sphere_cloud(50, 1);
    const Evaluation raw = metrics::evaluate(cloud, cloud, nullptr, Protocol::raw);
    EXPECT_EQ(raw.notes,
              (std::vector<std::string>{
                  "surface is left out: it needs a mesh", "normals is left out: it needs normals of both clouds",
                  "uniformity is left out: it needs a mesh", "nuc is left out: it needs a mesh"}));
    EXPECT_EQ(value(raw.scores, "chamfer_l1_sum"), 0);
    EXPECT_EQ(value(raw.scores, "f_score"), 1);
    EvaluateOptions options;
    options.extras = {Extra::nuc};
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(cloud, cloud, nullptr, Protocol::raw, options); }),
              "evaluate: nuc needs a mesh");
    options.extras = {Extra::normals};
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(cloud, cloud, nullptr, Protocol::pudm, options); }),
              "evaluate: normals needs normals of both clouds");
}

/// With normals: of a sphere, the place itself.
PointCloud sphere_with_normals(int64_t n, uint64_t seed) {
    PointCloud cloud = sphere_cloud(n, seed);
    Attribute normal("normal", DType::f32, n, 3);
    std::memcpy(normal.data(), cloud.positions.data(), sizeof(float) * 3 * n);
    cloud.attributes.push_back(std::move(normal));
    return cloud;
}

TEST(MetricsEvaluateScores, EveryExtraComputesTheMetricsThatTheRegistrySays) {
    const PointCloud a = sphere_with_normals(300, 1), b = sphere_with_normals(300, 2);
    const Mesh mesh = sphere_mesh(2);
    EvaluateOptions options;
    options.only_extras = true;
    std::set<std::string> computed, registered;
    for (const Extra extra : metrics::all_extras()) {
        options.extras = {extra};
        for (const Score& score : metrics::evaluate(a, b, &mesh, Protocol::raw, options).scores) {
            EXPECT_EQ(metrics::info_of(score.metric).extra, extra) << score.name;
            computed.insert(score.metric);
        }
    }
    for (const metrics::MetricInfo& info : metrics::registry())
        if (info.extra) registered.insert(info.name);
    EXPECT_EQ(computed, registered);
}

TEST(MetricsEvaluateScores, NormalsOfBothAreCompared) {
    const PointCloud a = sphere_with_normals(300, 1), b = sphere_with_normals(300, 2);
    EvaluateOptions options;
    options.extras = {Extra::normals};
    const double consistency =
        value(metrics::evaluate(a, b, nullptr, Protocol::pu_gan, options).scores, "normal_consistency");
    EXPECT_GT(consistency, 0.98);
    EXPECT_LT(consistency, 1);
}

TEST(MetricsEvaluateScores, OriginsAreBroughtTogether) {
    // The same shapes in a national grid: the same scores, though float32 there has steps of half a metre.
    const PointCloud prediction = prediction_of(400), truth = sphere_cloud(500, 9);
    PointCloud far = prediction.clone(), far_truth = truth.clone();
    Mesh mesh = sphere_mesh(2), far_mesh = mesh.clone();
    // The clouds' origins differ: what is taken from the one is added to its positions.
    far.origin = {500000.25, 5.25e6, 12};
    far_truth.origin = {500000.25 - 4, 5.25e6 + 8, 12};
    for (int64_t i = 0; i < far_truth.size(); ++i) {
        far_truth.positions.data()[3 * i] += 4;
        far_truth.positions.data()[3 * i + 1] -= 8;
    }
    far_mesh.vertices.origin = far.origin;
    for (const Protocol protocol : {Protocol::pu_gan, Protocol::pudm}) {
        const Evaluation near = metrics::evaluate(prediction, truth, &mesh, protocol),
                         there = metrics::evaluate(far, far_truth, &far_mesh, protocol);
        for (const Score& score : near.scores)  // adding 8 rounds positions by 2^-21
            EXPECT_NEAR(value(there.scores, score.name), score.value, 2e-5 * score.value) << score.name;
    }
}

TEST(MetricsEvaluateScores, ErrorsOfPointsAreInUnitsOfTheInput) {
    const Mesh mesh = sphere_mesh(2);
    PointCloud prediction = prediction_of(200);
    const PointCloud truth = sphere_cloud(300, 9);
    prediction.positions.data()[3 * 7] = NAN;
    EvaluateOptions options;
    options.errors = true;
    options.nonfinite = NonFinite::leave_out;
    const Evaluation result = metrics::evaluate(prediction, truth, &mesh, Protocol::pu_gan, options);
    ASSERT_EQ(result.error_to_truth.size(0), 200);
    ASSERT_EQ(result.error_to_mesh.size(0), 200);
    const std::vector<Double3> p = world_of(prediction);
    for (int i = 0; i < 200; ++i) {
        if (i == 7) {
            EXPECT_TRUE(std::isnan(result.error_to_truth.data()[i]) && std::isnan(result.error_to_mesh.data()[i]));
            continue;
        }
        const double expected = std::sqrt(brute_nearest({p[i]}, world_of(truth))[0]);
        EXPECT_NEAR(result.error_to_truth.data()[i], expected, 1e-6 * expected);
        EXPECT_NEAR(result.error_to_mesh.data()[i], brute_to_mesh(p[i], mesh), 1e-7);
    }
    EXPECT_EQ(metrics::evaluate(truth, truth, nullptr, Protocol::raw).error_to_truth.elements(), 0);
}

TEST(MetricsEvaluateScores, CountsAndNonFinitePoints) {
    PointCloud small = sphere_cloud(100, 1);
    const PointCloud truth = sphere_cloud(120, 2), empty(0);
    EXPECT_EQ(
        metrics::evaluate(small, truth, nullptr, Protocol::pu_gan).notes,
        std::vector<std::string>{"100 points against 120: the papers' programs demand equal counts, means here are "
                                 "over each cloud's own"});
    EvaluateOptions options;
    options.equal_counts = true;
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(small, truth, nullptr, Protocol::pu_gan, options); }),
              "evaluate: a prediction of 100 points against a truth of 120");
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(empty, truth, nullptr, Protocol::raw); }),
              "evaluate: the prediction has no points");
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(truth, empty, nullptr, Protocol::raw); }),
              "evaluate: the truth has no points");

    const double before = value(metrics::evaluate(small, truth, nullptr, Protocol::pudm).scores, "cd");
    PointCloud holed(102);
    std::copy_n(small.positions.data(), 300, holed.positions.data() + 3);
    holed.positions.data()[0] = NAN;
    holed.positions.data()[3 * 101 + 1] = INFINITY;
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(holed, truth, nullptr, Protocol::pudm); }),
              "evaluate: 2 of 102 points of the prediction are not finite");
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::evaluate(cloud_of({NAN, 0, 0}), truth, nullptr, Protocol::pudm);
              }),
              "evaluate: none of the 1 points of the prediction is finite");
    options.equal_counts = false;
    options.nonfinite = NonFinite::leave_out;
    options.extras = {Extra::emd, Extra::density, Extra::jsd};
    const Evaluation without = metrics::evaluate(holed, truth, nullptr, Protocol::pudm, options);
    EXPECT_EQ(value(without.scores, "cd"), before);
    EXPECT_EQ(without.prediction_left_out, 2);
    EXPECT_EQ(without.prediction_points, 100);
    EXPECT_EQ(without.notes[0], "2 points of the prediction are not finite and were left out");
}

TEST(MetricsEvaluateScores, MeshesWithoutFacesAndWrongOptions) {
    const PointCloud cloud = sphere_cloud(20, 1);
    Mesh mesh = square_mesh(1);
    mesh.triangles = Array<int32_t, 2>({0, 3});
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(cloud, cloud, &mesh, Protocol::pu_gan); }),
              "IndexedMesh: the mesh has no faces");
    EvaluateOptions options;
    options.f_score_radius = -1;
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(cloud, cloud, nullptr, Protocol::raw, options); }),
              "evaluate: the radius of the f_score must be from 0, got -1");
    options.f_score_radius = 0;
    options.surface_samples = -1;
    EXPECT_EQ(bad_argument_of([&] { metrics::evaluate(cloud, cloud, nullptr, Protocol::raw, options); }),
              "evaluate: -1 samples of the mesh");
    EXPECT_EQ(bad_argument_of([] { metrics::protocol_by_name("pugan"); }),
              "protocol pugan: there are pu-gan, pudm, raw");
    for (const Extra extra : metrics::all_extras()) EXPECT_EQ(metrics::extra_by_name(metrics::name_of(extra)), extra);
    EXPECT_EQ(metrics::floor_sampling_by_name("uniform"), metrics::FloorSampling::uniform);
}

TEST(MetricsEvaluateScores, ThreadsDoNotMatter) {
    const PointCloud prediction = prediction_of(3000), truth = sphere_cloud(3000, 9);
    const Mesh mesh = sphere_mesh(3);
    EvaluateOptions options;
    options.floor = true;
    const int before = threads();
    set_threads(1);
    const Evaluation one = metrics::evaluate(prediction, truth, &mesh, Protocol::raw, options);
    set_threads(3);
    const Evaluation three = metrics::evaluate(prediction, truth, &mesh, Protocol::raw, options);
    set_threads(before);
    ASSERT_EQ(one.scores.size(), three.scores.size());
    for (size_t i = 0; i < one.scores.size(); ++i) EXPECT_EQ(one.scores[i].value, three.scores[i].value);
    ASSERT_EQ(one.floor.size(), three.floor.size());
    for (size_t i = 0; i < one.floor.size(); ++i) EXPECT_EQ(one.floor[i].value, three.floor[i].value);
}

TEST(MetricsFloor, IsWhatTheSurfaceItselfScores) {
    const Mesh mesh = sphere_mesh(3);
    const PointCloud truth = metrics::resampled(mesh, 2000, metrics::FloorSampling::farthest, 5);
    EvaluateOptions options;
    options.floor = true;
    options.extras = {Extra::chamfer};
    const Evaluation result = metrics::evaluate(prediction_of(2000), truth, &mesh, Protocol::pu_gan, options);
    EXPECT_EQ(result.floor_text, "2000 farthest points of the mesh, seed 1, in place of the prediction");
    EXPECT_EQ(result.floor.size(), result.scores.size());
    EXPECT_LT(value(result.floor, "cd"), value(result.scores, "cd"));
    EXPECT_LT(value(result.floor, "p2f"), 1e-6);
    // Squared distances from anywhere to n independent points of a surface of area A have the mean A / (pi n).
    const PointCloud random = metrics::resampled(mesh, 4000, metrics::FloorSampling::uniform, 6);
    options.floor_sampling = metrics::FloorSampling::uniform;
    const double expected = 2 * geometry::surface_area(mesh) / (3.14159265 * 4000);
    const Evaluation uniform = metrics::evaluate(random, random, &mesh, Protocol::pu_gan, options);
    EXPECT_NEAR(value(uniform.floor, "cd_raw"), expected, 0.06 * expected);
    options.floor_sampling = metrics::FloorSampling::farthest;
    EXPECT_LT(value(metrics::evaluate(random, random, &mesh, Protocol::pu_gan, options).floor, "cd_raw"),
              0.9 * expected);
}

TEST(MetricsFloor, WithoutAMeshIsAnEstimateFromHalves) {
    const Mesh mesh = sphere_mesh(3);
    const PointCloud truth = metrics::resampled(mesh, 4000, metrics::FloorSampling::uniform, 5);
    EvaluateOptions options;
    options.floor = true;
    options.floor_sampling = metrics::FloorSampling::uniform;
    const Evaluation with = metrics::evaluate(truth, truth, &mesh, Protocol::pudm, options),
                     without = metrics::evaluate(truth, truth, nullptr, Protocol::pudm, options);
    EXPECT_NEAR(value(without.floor, "cd"), value(with.floor, "cd"), 0.1 * value(with.floor, "cd"));
    EXPECT_EQ(metrics::find(without.floor, "p2f"), nullptr);
    EXPECT_NE(without.floor_text.find("two random halves of the truth"), std::string::npos);
    const PointCloud one = cloud_of({1, 2, 3});
    EXPECT_EQ(metrics::evaluate(one, one, nullptr, Protocol::pudm, options).notes,
              std::vector<std::string>{"no floor: the truth has one point and there is no mesh"});
    const metrics::Halves halves = metrics::halves_of(sphere_cloud(11, 1), 3);
    EXPECT_EQ(halves.a.size(), 5);
    EXPECT_EQ(halves.b.size(), 5);
    std::set<float> seen;
    for (const PointCloud* half : {&halves.a, &halves.b})
        for (int i = 0; i < 5; ++i) EXPECT_TRUE(seen.insert(half->positions.data()[3 * i]).second);
}

TEST(MetricsOverShapes, MeansOfShapesAndPointsPooled) {
    const Mesh mesh = sphere_mesh(2);
    const PointCloud truth = sphere_cloud(500, 9);
    EvaluateOptions options;
    options.extras = {Extra::surface};
    std::vector<Evaluation> shapes;
    shapes.push_back(metrics::evaluate(prediction_of(100), truth, &mesh, Protocol::pu_gan, options));
    shapes.push_back(metrics::evaluate(sphere_cloud(400, 3), truth, &mesh, Protocol::pu_gan, options));
    options.extras = {};
    shapes.push_back(metrics::evaluate(truth, truth, nullptr, Protocol::pu_gan, options));
    const std::vector<Score> scores = metrics::over_shapes(shapes);
    const double first = value(shapes[0].scores, "cd"), second = value(shapes[1].scores, "cd");
    EXPECT_NEAR(value(scores, "cd"), (first + second) / 3, 1e-15) << "the third is its own truth: 0";
    EXPECT_EQ(metrics::find(scores, "cd")->shapes, 3);
    EXPECT_EQ(metrics::find(scores, "p2f")->shapes, 2);
    EXPECT_NEAR(value(scores, "p2f"),
                (100 * value(shapes[0].scores, "p2f") + 400 * value(shapes[1].scores, "p2f")) / 500, 1e-15);
    EXPECT_EQ(value(scores, "p2f_max"),
              std::max(value(shapes[0].scores, "p2f_max"), value(shapes[1].scores, "p2f_max")));
    EXPECT_EQ(metrics::find(scores, "p2f")->convention,
              "mean_p of the distance to the mesh, over all points of all shapes");
    EXPECT_EQ(metrics::find(scores, "f2p_mean")->convention,
              "mean over samples of the mesh of the distance to p, over all points of all shapes")
        << "the counts of samples differ: none of them is named";
    EXPECT_TRUE(metrics::over_shapes({}).empty());
    EXPECT_TRUE(metrics::floor_over_shapes(shapes).empty());
}

}  // namespace
}  // namespace stipple::test
