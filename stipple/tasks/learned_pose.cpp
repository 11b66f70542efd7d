#include "stipple/tasks/learned_pose.h"

#include <algorithm>
#include <cmath>

#include "stipple/metrics/normalise.h"
#include "stipple/models/pcrnet.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/nearest_pairs.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {
namespace {

constexpr double kFarthest = 1e6;  // radii: farther is no answer

/// Farthest points of the finite ones, without duplicates.
PointCloud farthest_points(const PointCloud& all, const char* which) {
    const PointCloud cloud = drop_nonfinite(all);
    STIPPLE_REQUIRE(cloud.size() > 0, "the {} has no finite points", which);
    const metrics::Points points = metrics::in_frame(cloud, metrics::unit_sphere(cloud));
    const int64_t most = std::min(kPosePoints, cloud.size());
    Array<int32_t, 1> indices({most});
    Array<float, 1> apart_sq({most});
    ops::farthest_point_sample(points.rounded.view(), ops::Batch::single(most), indices.view(), apart_sq.view());
    const auto distinct = std::count_if(apart_sq.data(), apart_sq.data() + most, [](float d) { return d > 0; });
    return select(cloud, View<const int32_t, 1>(indices.data(), {distinct}));
}

/// Points [n, 3] on the CPU.
Array<float, 2> moved_points(const Array<float, 2>& points, const geometry::RigidTransform& motion) {
    Array<float, 2> moved({points.size(0), 3});
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        const geometry::Vector3 q = motion({p[0], p[1], p[2]});
        for (int axis = 0; axis < 3; ++axis) moved.data()[3 * i + axis] = static_cast<float>(q[axis]);
    }
    return moved;
}

double mean_root(const Array<float, 1>& squared) {
    double sum = 0;
    for (int64_t i = 0; i < squared.elements(); ++i) sum += std::sqrt(squared.data()[i]);
    return sum / static_cast<double>(squared.elements());
}

/// Mean distance to the nearest point of the other cloud, both ways.
double apart(const Array<float, 2>& a, const Array<float, 2>& b) {
    const Device device = b.device();
    const Array<float, 2> there = a.to(device);
    Array<int32_t, 1> of_a({a.size(0)}, device), of_b({b.size(0)}, device);
    Array<float, 1> sq_of_a({a.size(0)}, device), sq_of_b({b.size(0)}, device);
    ops::nearest_pairs(there.view(), b.view(), of_a.view(), sq_of_a.view(), of_b.view(), sq_of_b.view());
    return mean_root(sq_of_a.to(Device{})) + mean_root(sq_of_b.to(Device{}));
}

network::Weights carried_by(const ModelOrEngine& source) {
    network::Weights carried;
    carried.metadata = source.metadata();
    return carried;
}

}  // namespace

PoseNetwork::PoseNetwork(ModelOrEngine source, const RunnerOptions& options)
    : runner_(
          [&]() -> ModelOrEngine&& {
              if (source.name() != "pcrnet")
                  throw Error(ErrorCode::bad_argument, Place{source.path},
                              fmt::format("{} finds no poses; pcrnet does", source.name()),
                              "stipple weights info shows what a file is");
              return std::move(source);
          }(),
          options) {
    per_run_ = models::pcrnet_options(network::config_of(carried_by(runner_.source()))).iterations;
    iterations_ = std::max(kPoseIterations / per_run_, int64_t{1}) * per_run_;
}

void PoseNetwork::sample_by(NetworkSampler sampler, int64_t sampled) {
    const int64_t least = sampler.is_progressive() ? 1 : sampler.count();
    STIPPLE_REQUIRE(sampled >= least && sampled <= kPosePoints, "{} sampled points: these weights choose {} to {}",
                    sampled, least, kPosePoints);
    sampler_.emplace(std::move(sampler));
    sampled_ = sampled;
}

PoseNetwork::Found PoseNetwork::find(const PointCloud& source, const PointCloud& target) {
    PointCloud from = farthest_points(source, "source"), to = farthest_points(target, "target");
    const metrics::Frame from_frame = metrics::unit_sphere(from), to_frame = metrics::unit_sphere(to);
    if (sampler_ && std::min(from.size(), to.size()) > sampled_) {
        from = sample_by_network(*sampler_, from, sampled_, 0).cloud;
        to = sample_by_network(*sampler_, to, sampled_, 0).cloud;
    }
    const double scale = std::max(from_frame.scale, to_frame.scale);
    const Array<float, 2> sources = metrics::in_frame(from, {from_frame.origin, scale}).rounded,
                          targets = metrics::in_frame(to, {to_frame.origin, scale}).rounded.to(runner_.device());
    // Looking again may lead away from what was found: the nearest of all looks counts.
    geometry::RigidTransform pose, best;
    double least = apart(sources, targets);
    for (int64_t done = 0; done < iterations_; done += per_run_) {
        const Array<float, 2> seen = moved_points(sources, pose);
        pose = look(seen, targets) * pose;
        pose.rotation = geometry::nearest_rotation(pose.rotation);
        const double now = apart(moved_points(sources, pose), targets);
        if (!(now < least)) continue;
        least = now;
        best = pose;
    }
    Found found{best, from.size(), to.size()};
    const geometry::Vector3 middle = best.rotate(from_frame.origin);
    for (int i = 0; i < 3; ++i)
        found.transform.translation[i] = scale * best.translation[i] + to_frame.origin[i] - middle[i];
    return found;
}

geometry::RigidTransform PoseNetwork::look(const Array<float, 2>& source, const Array<float, 2>& target) {
    const Device device = runner_.device();
    const int64_t n = source.size(0), m = target.size(0);
    const Array<float, 2> points = source.to(device);
    engine::Context& context = runner_.reserve(std::max(n, m));
    Array<float, 2> turned({1, 9}, device), shifted({1, 3}, device);
    context.run(std::vector<ops::Batch>{ops::Batch::single(n), ops::Batch::single(m)},
                {{"source", points.view()}, {"template", target.view()}},
                {{"rotation", turned.view()}, {"translation", shifted.view()}});
    const Array<float, 2> r = turned.to(Device{}), t = shifted.to(Device{});
    geometry::RigidTransform motion;
    bool is_finite = true;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            motion.rotation[i][j] = r.data()[3 * i + j];
            is_finite = is_finite && std::isfinite(motion.rotation[i][j]);
        }
        motion.translation[i] = t.data()[i];
        is_finite = is_finite && std::abs(motion.translation[i]) < kFarthest;
    }
    if (!is_finite)
        throw Error(ErrorCode::not_finite, Place{runner_.source().path}, "the network gave a pose that is not finite");
    return motion;
}

PoseNetwork load_pose_network(const std::string& model, int64_t sampled, const RunnerOptions& options) {
    const std::string path = model.empty() ? shipped_weights(kPoseWeights) : model;
    ModelOrEngine source = load_model_or_engine(path);
    if (source.model && source.name() == "pcrnet") source = load_model_or_engine(path, {{"iterations", "1"}});
    PoseNetwork network(std::move(source), options);
    if (sampled > 0)
        network.sample_by(load_sampler(SampleMethod::samplenet_reg, "", sampled, {.device = options.device}), sampled);
    return network;
}

}  // namespace stipple::tasks
