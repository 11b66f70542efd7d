// The PU-GAN test shapes: the same numbers as a plain implementation, and as tables made by another program. Needs the
// data sets.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "stipple/io/format.h"
#include "stipple/metrics/evaluate.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::EvaluateOptions;
using metrics::Evaluation;
using metrics::Protocol;

struct Shape {
    std::string name;
    PointCloud input, truth;
    Mesh mesh;
};

class MetricsUpsampleDev : public testing::Test {
protected:
    void SetUp() override {
        STIPPLE_NEEDS_DATA("upsample_dev");
        const std::string folder = *data_file("upsample_dev");
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder + "/meshes"))
            names.push_back(entry.path().stem().string());
        std::sort(names.begin(), names.end());
        io::Warnings warnings;
        for (const std::string& name : names)
            shapes_.push_back({name, io::load_cloud(folder + "/input_2048/" + name + ".xyz", {}, warnings),
                               io::load_cloud(folder + "/gt_8192/" + name + ".xyz", {}, warnings),
                               io::load_mesh(folder + "/meshes/" + name + ".off", {}, warnings)});
        ASSERT_EQ(shapes_.size(), 14u);
    }

    std::vector<Evaluation> evaluate_all(const EvaluateOptions& options = {}) const {
        std::vector<Evaluation> results;
        for (const Shape& shape : shapes_)
            results.push_back(metrics::evaluate(shape.input, shape.truth, &shape.mesh, Protocol::pu_gan, options));
        return results;
    }

    std::vector<Shape> shapes_;
};

double thousandths(const std::vector<metrics::Score>& scores, std::string_view name) {
    return metrics::find(scores, name)->value * 1000;
}

TEST_F(MetricsUpsampleDev, TheInputItselfScoresWhatTheTableSays) {
    const std::vector<metrics::Score> scores = metrics::over_shapes(evaluate_all());
    EXPECT_NEAR(thousandths(scores, "cd"), 0.4184, 5e-5);
    EXPECT_NEAR(thousandths(scores, "hd"), 1.33, 5e-3);
    EXPECT_NEAR(thousandths(scores, "cd_raw"), 0.3546, 5e-5);
    EXPECT_NEAR(thousandths(scores, "hd_raw"), 0.90, 5e-3);
    EXPECT_NEAR(thousandths(scores, "p2f"), 0.00, 5e-3);
}

TEST_F(MetricsUpsampleDev, TheFloorIsThatOfAnIndependentProgram) {
    // Another program's draws of 8192 points scored 0.1963 / 0.92 (farthest) and 0.3101 / 2.25 (uniform) as means of 14
    // shapes; other draws of it differ by about 1 % in cd and 10 % in hd.
    EvaluateOptions options;
    options.floor = true;
    std::vector<Evaluation> even, random;
    for (const Shape& shape : shapes_) {
        options.floor_sampling = metrics::FloorSampling::farthest;
        even.push_back(metrics::evaluate(shape.truth, shape.truth, &shape.mesh, Protocol::pu_gan, options));
        options.floor_sampling = metrics::FloorSampling::uniform;
        random.push_back(metrics::evaluate(shape.truth, shape.truth, &shape.mesh, Protocol::pu_gan, options));
    }
    EXPECT_NEAR(thousandths(metrics::floor_over_shapes(even), "cd"), 0.1963, 0.004);
    EXPECT_NEAR(thousandths(metrics::floor_over_shapes(even), "hd"), 0.92, 0.12);
    EXPECT_NEAR(thousandths(metrics::floor_over_shapes(even), "cd_raw"), 0.1766, 0.002);
    EXPECT_NEAR(thousandths(metrics::floor_over_shapes(random), "cd"), 0.3101, 0.01);
    EXPECT_NEAR(thousandths(metrics::floor_over_shapes(random), "cd_raw"), 0.2406, 0.005);
}

TEST_F(MetricsUpsampleDev, EqualsAllPairsAndAllFaces) {
    for (const size_t i : {size_t{0}, size_t{7}, size_t{12}}) {
        const Shape& shape = shapes_[i];
        // A prediction of 8192 points off the surface: the truth moved by a wave.
        PointCloud prediction = shape.truth.clone();
        for (int64_t j = 0; j < prediction.size(); ++j)
            for (int axis = 0; axis < 3; ++axis) {
                float& x = prediction.positions.data()[3 * j + axis];
                x += 0.004f * std::sin(static_cast<float>(7 * j + axis));
            }
        const std::vector<metrics::Score> scores =
            metrics::evaluate(prediction, shape.truth, &shape.mesh, Protocol::pu_gan).scores;
        const std::vector<Double3> p = brute_unit_sphere(world_of(prediction)),
                                   t = brute_unit_sphere(world_of(shape.truth));
        const std::vector<double> forward = brute_nearest(p, t), backward = brute_nearest(t, p);
        const double cd = brute_mean(forward) + brute_mean(backward), hd = brute_max(forward) + brute_max(backward);
        EXPECT_NEAR(metrics::find(scores, "cd")->value, cd, 1e-6 * cd) << shape.name;
        EXPECT_NEAR(metrics::find(scores, "hd")->value, hd, 1e-6 * hd) << shape.name;

        PointCloud some(1500);  // all faces are slow
        std::copy_n(prediction.positions.data(), 3 * some.size(), some.positions.data());
        std::vector<double> to_mesh;
        for (const Double3& point : world_of(some)) to_mesh.push_back(brute_to_mesh(point, shape.mesh));
        const double p2f = brute_mean(to_mesh);
        EXPECT_NEAR(
            metrics::find(metrics::evaluate(some, shape.truth, &shape.mesh, Protocol::pu_gan).scores, "p2f")->value,
            p2f, 1e-6 * p2f)
            << shape.name;
    }
}

}  // namespace
}  // namespace stipple::test
