#include "stipple/metrics/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/box.h"
#include "stipple/metrics/cloud_distance.h"
#include "stipple/metrics/density.h"
#include "stipple/metrics/jsd.h"
#include "stipple/metrics/noise_floor.h"
#include "stipple/metrics/point_to_face.h"
#include "stipple/metrics/transport.h"
#include "stipple/metrics/uniformity.h"

namespace stipple::metrics {
namespace {

constexpr std::string_view kOwnSphere = "each cloud by its own mean and largest radius";
constexpr std::string_view kAsGiven = "none";
constexpr std::string_view kMeshUnits = "none, in units of the mesh";

/// The finite points of a cloud, on the CPU, with their normals.
struct FiniteCloud {
    PointCloud cloud;
    std::vector<int32_t> rows;  // which points these were

    explicit FiniteCloud(const PointCloud& whole) {
        cloud.positions = whole.positions.to(Device{});
        cloud.origin = whole.origin;
        if (const Attribute* normal = find(whole.attributes, "normal")) {
            Attribute here(normal->name(), normal->dtype(), normal->rows(), normal->components());
            copy_bytes(here.data(), Device{}, normal->data(), normal->device(), normal->rows() * normal->row_bytes());
            cloud.attributes.push_back(std::move(here));
        }
        for (int64_t i = 0; i < whole.size(); ++i) {
            const float* p = cloud.positions.data() + 3 * i;
            if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]))
                rows.push_back(static_cast<int32_t>(i));
        }
        if (static_cast<int64_t>(rows.size()) < whole.size())
            cloud = select(cloud, {rows.data(), {static_cast<int64_t>(rows.size())}});
    }
};

/// How many points are not finite.
int64_t left_out_of(const char* which, const FiniteCloud& finite, int64_t size, NonFinite rule) {
    STIPPLE_REQUIRE(size > 0, "evaluate: the {} has no points", which);
    const int64_t left_out = size - finite.cloud.size();
    STIPPLE_REQUIRE(left_out < size, "evaluate: none of the {} points of the {} is finite", size, which);
    if (rule == NonFinite::refuse && left_out > 0)
        throw Error(ErrorCode::bad_argument,
                    fmt::format("evaluate: {} of {} points of the {} are not finite", left_out, size, which),
                    "ask to leave them out");
    return left_out;
}

double diagonal_of(const Points& points) {
    auto box = Box<double>::none();
    for (int64_t i = 0; i < points.size(); ++i) box.add(points.exact.data() + 3 * i);
    double square = 0;
    for (int axis = 0; axis < 3; ++axis) square += box.extent(axis) * box.extent(axis);
    return std::sqrt(square);
}

/// Both clouds in the frame of a protocol and their nearest points, found once.
struct Compared {
    Points prediction, truth;
    NearestBoth nearest;
    CloudDistances distances;
    std::string_view normalisation;

    Compared(Points p, Points t, std::string_view how, Device device)
        : prediction(std::move(p)),
          truth(std::move(t)),
          nearest(nearest_between(prediction, truth, device)),
          distances(cloud_distances(nearest)),
          normalisation(how) {}
};

/// One evaluation in the making.
class Ruler {
public:
    Ruler(const PointCloud& prediction, const PointCloud& truth, const Mesh* mesh, Protocol protocol,
          const EvaluateOptions& options)
        : options_(options),
          protocol_(protocol),
          device_(options.device.value_or(prediction.positions.device())),
          finite_(prediction),
          prediction_(finite_.cloud),
          finite_truth_(truth),
          truth_(finite_truth_.cloud) {
        result_.prediction_left_out = left_out_of("prediction", finite_, prediction.size(), options.nonfinite);
        result_.truth_left_out = left_out_of("truth", finite_truth_, truth.size(), options.nonfinite);
        result_.prediction_points = prediction_.size();
        result_.truth_points = truth_.size();
        if (mesh) mesh_.emplace(*mesh, device_);
        tell_counts();
    }

    Evaluation run() {
        const Compared& own = protocol_ == Protocol::pu_gan ? in_spheres() : as_given();
        add_cloud_scores(own);
        if (mesh_) measure_surface();
        if (mesh_ && protocol_ != Protocol::raw) add("p2f_mean", result_.to_mesh.mean, kMeshUnits, "p2f");
        if (protocol_ == Protocol::pu_gan && options_.raw_too) {
            add(ChamferKind::squared_sum, as_given(), "cd_raw");
            add(HausdorffKind::squared_sum, as_given(), "hd_raw");
        }
        add_extras(own);
        if (options_.errors) fill_errors();
        if (options_.floor) add_floor();
        return std::move(result_);
    }

private:
    /// Computed when first asked for.
    const Compared& as_given() {
        if (!given_) {
            const Frame frame{truth_.origin, 1};
            given_.emplace(in_frame(prediction_, frame), in_frame(truth_, frame), kAsGiven, device_);
        }
        return *given_;
    }
    const Compared& in_spheres() {
        if (!spheres_)
            spheres_.emplace(in_frame(prediction_, unit_sphere(prediction_)), in_frame(truth_, unit_sphere(truth_)),
                             kOwnSphere, device_);
        return *spheres_;
    }

    void tell_counts() {
        const auto tell = [&](const char* which, int64_t count) {
            if (count > 0) note("{} points of the {} are not finite and were left out", count, which);
        };
        tell("prediction", result_.prediction_left_out);
        tell("truth", result_.truth_left_out);
        if (prediction_.size() == truth_.size()) return;
        STIPPLE_REQUIRE(!options_.equal_counts, "evaluate: a prediction of {} points against a truth of {}",
                        prediction_.size(), truth_.size());
        note("{} points against {}: the papers' programs demand equal counts, means here are over each cloud's own",
             prediction_.size(), truth_.size());
    }

    template <class... Arguments>
    void note(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        result_.notes.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void add(std::string_view metric, double value, std::string_view normalisation, std::string_view name = {},
             std::string_view parameters = {}) {
        result_.scores.push_back(make_score(metric, value, normalisation, name, parameters));
    }
    void add(ChamferKind kind, const Compared& clouds, std::string_view name = {}) {
        add(metric_of(kind), chamfer(clouds.distances, kind), clouds.normalisation, name);
    }
    void add(HausdorffKind kind, const Compared& clouds, std::string_view name = {}) {
        add(metric_of(kind), hausdorff(clouds.distances, kind), clouds.normalisation, name);
    }

    void add_cloud_scores(const Compared& own) {
        switch (protocol_) {
            case Protocol::pu_gan:
                add(ChamferKind::squared_sum, own, "cd");
                add(HausdorffKind::squared_sum, own, "hd");
                break;
            case Protocol::pudm:
                add(ChamferKind::squared_half, own, "cd");
                add(HausdorffKind::squared_half, own, "hd");
                break;
            case Protocol::raw: break;  // its extras hold every convention
        }
    }

    void measure_surface() {
        on_mesh_ = in_frame(prediction_, mesh_->frame());
        surface_ = point_to_face(*mesh_, on_mesh_);
        result_.to_mesh = distances_of(surface_.distance.span());
    }

    /// Whether a group is asked for and possible. What raw brings by itself is left out with a note when an input is
    /// missing; what was asked for by name must be possible.
    bool wants(Extra extra) {
        const bool asked = std::find(options_.extras.begin(), options_.extras.end(), extra) != options_.extras.end();
        const bool implied =
            protocol_ == Protocol::raw && !options_.only_extras && extra != Extra::emd && extra != Extra::emd_exact;
        if (!asked && !implied) return false;
        const char* missing = nullptr;
        if ((extra == Extra::surface || extra == Extra::uniformity || extra == Extra::nuc) && !mesh_)
            missing = "a mesh";
        if (extra == Extra::normals && !(normals_of(prediction_) && normals_of(truth_)))
            missing = "normals of both clouds";
        if (!missing) return true;
        STIPPLE_REQUIRE(!asked, "evaluate: {} needs {}", name_of(extra), missing);
        note("{} is left out: it needs {}", name_of(extra), missing);
        return false;
    }

    static const Attribute* normals_of(const PointCloud& cloud) {
        const Attribute* normal = find(cloud.attributes, "normal");
        return normal && normal->dtype() == DType::f32 && normal->components() == 3 ? normal : nullptr;
    }

    void add_extras(const Compared& own) {
        if (wants(Extra::chamfer)) add_chamfer(own);
        if (wants(Extra::hausdorff)) add_hausdorff(own);
        if (wants(Extra::f_score)) add_f_score(own);
        if (wants(Extra::jsd)) add_jsd();
        for (const bool exact : {false, true}) {
            if (!wants(exact ? Extra::emd_exact : Extra::emd)) continue;
            const Emd emd =
                earth_mover(own.prediction, own.truth, exact ? EmdMethod::exact : EmdMethod::auction, device_);
            add(exact ? "emd_exact" : "emd_auction", emd.value, own.normalisation, {},
                exact ? "" : fmt::format("not below {:.6g}", emd.lower_bound));
        }
        if (wants(Extra::surface)) add_surface_extras();
        if (wants(Extra::normals))
            add("normal_consistency",
                normal_consistency(own.nearest, normals_of(prediction_)->as<float>(), normals_of(truth_)->as<float>())
                    .mean,
                own.normalisation);
        if (wants(Extra::density)) add_density();
        if (wants(Extra::uniformity)) {
            DiskOptions disks;
            disks.seed = options_.seed;
            for (const DiskUniformity& one : disk_uniformity(*mesh_, on_mesh_, disks))
                add("uniformity", one.value, kMeshUnits, fmt::format("uniformity_{:.1f}", 100 * one.share),
                    fmt::format(
                        "{} disks of {:.1f} % of the area, Euclidean balls, {} with fewer than 5 points passed over",
                        disks.disks, 100 * one.share, one.skipped));
        }
        if (wants(Extra::nuc)) {
            DiskOptions disks = nuc_defaults();
            disks.seed = options_.seed;
            for (const Nuc& one : normalised_uniformity(*mesh_, on_mesh_, disks))
                add("nuc", one.value, kAsGiven, fmt::format("nuc_{:.1f}", 100 * one.share),
                    fmt::format("{} disks of {:.1f} % of the area, Euclidean balls", disks.disks, 100 * one.share));
        }
    }

    void add_chamfer(const Compared& own) {
        for (const ChamferKind kind : {ChamferKind::squared_sum, ChamferKind::squared_half, ChamferKind::l1_sum,
                                       ChamferKind::l1_half, ChamferKind::l1_max})
            add(kind, own);
        add("chamfer_squared_to_truth", own.distances.to_truth.mean_squared, own.normalisation);
        add("chamfer_squared_from_truth", own.distances.from_truth.mean_squared, own.normalisation);
        add("chamfer_l1_to_truth", own.distances.to_truth.mean, own.normalisation);
        add("chamfer_l1_from_truth", own.distances.from_truth.mean, own.normalisation);
    }

    void add_hausdorff(const Compared& own) {
        for (const HausdorffKind kind : {HausdorffKind::symmetric, HausdorffKind::to_truth, HausdorffKind::from_truth,
                                         HausdorffKind::squared_sum, HausdorffKind::squared_half})
            add(kind, own);
    }

    void add_f_score(const Compared& own) {
        const bool chosen = options_.f_score_radius > 0;
        const double radius = chosen ? options_.f_score_radius : 0.01 * diagonal_of(own.truth);
        const FScore score = f_score(own.nearest, radius);
        const std::string parameters =
            fmt::format("r = {:.6g}{}", radius, chosen ? "" : ", 1 % of the diagonal of the truth's box");
        add("f_score", score.f, own.normalisation, {}, parameters);
        add("precision", score.precision, own.normalisation, {}, parameters);
        add("recall", score.recall, own.normalisation, {}, parameters);
    }

    void add_jsd() {
        const Points prediction = in_frame(prediction_, unit_sphere(prediction_)),
                     truth = in_frame(truth_, unit_sphere(truth_));
        const JsdOptions options;
        add("jsd", jensen_shannon(prediction, truth, options).value, kOwnSphere, {},
            fmt::format("{}^3 lattice over [-1, 1]^3, within the unit sphere", options.resolution));
    }

    void add_surface_extras() {
        const int64_t samples = options_.surface_samples > 0 ? options_.surface_samples : prediction_.size();
        result_.from_mesh = face_to_point(*mesh_, on_mesh_, samples, options_.seed, device_);
        const std::string drawn = fmt::format("{} uniform samples, seed {}", samples, options_.seed);
        if (protocol_ == Protocol::raw) add("p2f_mean", result_.to_mesh.mean, kMeshUnits);
        add("p2f_deviation", result_.to_mesh.deviation(), kMeshUnits);
        add("p2f_max", result_.to_mesh.max, kMeshUnits);
        add("f2p_mean", result_.from_mesh.mean, kMeshUnits, {}, drawn);
        add("f2p_deviation", result_.from_mesh.deviation(), kMeshUnits, {}, drawn);
        add("f2p_max", result_.from_mesh.max, kMeshUnits, {}, drawn);
    }

    void add_density() {
        constexpr int kNeighbours = 8;
        const Density density = density_of(as_given().prediction, kNeighbours, device_);
        add("spacing_mean", density.spacing_mean, kAsGiven);
        add("spacing_deviation", density.spacing_deviation, kAsGiven);
        add("spacing_min", density.spacing_min, kAsGiven);
        add("spacing_max", density.spacing_max, kAsGiven);
        add("spacing_variation", density.spacing_variation, kAsGiven);
        const std::string k = fmt::format("k = {}", kNeighbours);
        add("density_mean", density.density_mean, kAsGiven, {}, k);
        add("density_variation", density.density_variation, kAsGiven, {}, k);
    }

    void fill_errors() {
        const int64_t size = result_.prediction_points + result_.prediction_left_out;
        const auto spread = [&](const auto& value_of) {
            Array<float, 1> errors({size});
            std::fill(errors.span().begin(), errors.span().end(), std::numeric_limits<float>::quiet_NaN());
            for (size_t i = 0; i < finite_.rows.size(); ++i)
                errors.data()[finite_.rows[i]] = static_cast<float>(value_of(i));
            return errors;
        };
        const Nearest& nearest = as_given().nearest.of_a;
        result_.error_to_truth = spread([&](size_t i) { return std::sqrt(nearest.squared.data()[i]); });
        if (mesh_) result_.error_to_mesh = spread([&](size_t i) { return surface_.distance.data()[i]; });
    }

    void add_floor() {
        EvaluateOptions options = options_;
        options.floor = options.errors = options.equal_counts = false;
        std::erase(options.extras, Extra::normals);  // samples have none
        options.device = device_;
        if (mesh_) {
            const PointCloud drawn =
                resampled(mesh_->mesh(), prediction_.size(), options_.floor_sampling, options_.seed);
            result_.floor = evaluate(drawn, truth_, &mesh_->mesh(), protocol_, options).scores;
            result_.floor_text = fmt::format("{} {} points of the mesh, seed {}, in place of the prediction",
                                             prediction_.size(), name_of(options_.floor_sampling), options_.seed);
            return;
        }
        if (truth_.size() < 2) return note("no floor: the truth has one point and there is no mesh");
        if (options.only_extras)
            std::erase_if(options.extras, [](Extra extra) { return extra == Extra::emd || extra == Extra::emd_exact; });
        else
            options.extras.clear();
        const Halves halves = halves_of(truth_, options_.seed);
        for (Score score : evaluate(halves.a, halves.b, nullptr, protocol_, options).scores) {
            const bool squared = score.unit == "length^2";
            if ((!squared && score.unit != "length") || info_of(score.metric).group != std::string_view("clouds"))
                continue;
            score.value *= squared ? 0.5 : std::sqrt(0.5);
            result_.floor.push_back(std::move(score));
        }
        result_.floor_text = fmt::format(
            "an estimate, for want of a mesh: two random halves of the truth against each other, seed {}, squared "
            "distances times 1/2 and distances times 0.71 for the density of {} points",
            options_.seed, truth_.size());
    }

    const EvaluateOptions& options_;
    Protocol protocol_;
    Device device_;
    FiniteCloud finite_;
    const PointCloud& prediction_;
    FiniteCloud finite_truth_;
    const PointCloud& truth_;
    std::optional<IndexedMesh> mesh_;
    std::optional<Compared> given_, spheres_;
    Points on_mesh_;  // the prediction in the mesh's frame
    FaceDistances surface_;
    Evaluation result_;
};

}  // namespace

Evaluation evaluate(const PointCloud& prediction, const PointCloud& truth, const Mesh* mesh, Protocol protocol,
                    const EvaluateOptions& options) {
    STIPPLE_REQUIRE(options.f_score_radius >= 0 && std::isfinite(options.f_score_radius),
                    "evaluate: the radius of the f_score must be from 0, got {}", options.f_score_radius);
    STIPPLE_REQUIRE(options.surface_samples >= 0, "evaluate: {} samples of the mesh", options.surface_samples);
    return Ruler(prediction, truth, mesh, protocol, options).run();
}

}  // namespace stipple::metrics
