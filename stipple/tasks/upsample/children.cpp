#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/engine/program.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/tasks/upsample/candidates.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

// Patches as published for PU-Flow: four times as many as would just cover the cloud.
constexpr int64_t kOverlap = 4;

/// Their mean at the origin, the farthest at distance 1.
Frame sphere_of(View<const float, 2> cloud, std::span<const int32_t> points) {
    Frame frame;
    for (const int32_t i : points)
        for (int c = 0; c < 3; ++c) frame.centre[c] += cloud(i, c) / static_cast<double>(points.size());
    double radius = 0;
    for (const int32_t i : points)
        radius = std::max(radius, std::hypot(cloud(i, 0) - frame.centre[0], cloud(i, 1) - frame.centre[1],
                                             cloud(i, 2) - frame.centre[2]));
    if (radius > 0) frame.unit = radius;
    return frame;
}

/// The points around that are nearest to each seed, nearest first: [seeds, as many as a patch has].
std::vector<std::vector<int32_t>> cut_patches(const CandidateRequest& request, std::span<const int32_t> seeds) {
    const auto size = std::min<size_t>(kPatchPoints, request.around.size());
    std::vector<std::vector<int32_t>> patches(seeds.size());
    parallel_for(static_cast<int64_t>(seeds.size()), 1, [&](int64_t begin, int64_t end) {
        std::vector<std::pair<float, int32_t>> near(request.around.size());
        for (int64_t s = begin; s < end; ++s) {
            const float* seed = request.region.cloud.data() + 3 * int64_t{seeds[static_cast<size_t>(s)]};
            for (size_t i = 0; i < near.size(); ++i)
                near[i] = {distance_sq(request.region.cloud.data() + 3 * int64_t{request.around[i]}, seed),
                           request.around[i]};
            std::partial_sort(near.begin(), near.begin() + static_cast<int64_t>(size), near.end());
            for (size_t i = 0; i < size; ++i) patches[static_cast<size_t>(s)].push_back(near[i].second);
        }
    });
    return patches;
}

/// Seeds far from each other, then as many more as it takes to have every wanted point in a patch.
std::vector<std::vector<int32_t>> patches_of(const CandidateRequest& request) {
    const auto n = static_cast<int64_t>(request.region.points.size());
    const Array<float, 2> rows = rows_of(request.region.cloud, request.region.points);
    const int64_t count = std::clamp<int64_t>(n * kOverlap / kPatchPoints, 1, n);
    Array<int32_t, 1> chosen({count});
    ops::farthest_point_sample(rows.view(), ops::Batch::single(count), chosen.view());
    std::vector<int32_t> seeds;
    for (const int32_t i : chosen.span()) seeds.push_back(request.region.points[static_cast<size_t>(i)]);

    std::vector<std::vector<int32_t>> patches;
    std::vector<char> is_covered(static_cast<size_t>(request.region.cloud.size(0)), 0);
    while (!seeds.empty()) {
        for (std::vector<int32_t>& patch : cut_patches(request, seeds)) {
            for (const int32_t i : patch) is_covered[static_cast<size_t>(i)] = 1;
            patches.push_back(std::move(patch));
        }
        seeds.clear();
        for (const int32_t i : request.region.points)
            if (request.is_wanted[static_cast<size_t>(i)] && !is_covered[static_cast<size_t>(i)]) {
                seeds.push_back(i);
                break;
            }
    }
    return patches;
}

/// For the children of all patches, [rows, channels]. Numbers of a patch depend on the seed and on the point that it
/// is around alone.
Array<float, 2> noise_of(const CandidateRequest& request, std::span<const std::vector<int32_t>> patches,
                         int64_t children, int64_t channels) {
    const auto count = static_cast<int64_t>(patches.size()), size = static_cast<int64_t>(patches[0].size());
    const int64_t of_patch = size * children * channels;
    Array<float, 2> noise({count * size * children, channels});
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const Rng rng(request.seed, static_cast<uint64_t>(patches[static_cast<size_t>(p)][0]));
            for (int64_t i = 0; i < of_patch; ++i)
                noise.data()[p * of_patch + i] =
                    static_cast<float>(request.temperature * rng.normal(static_cast<uint64_t>(i)));
        }
    });
    return noise;
}

class ChildMaker : public CandidateMaker {
public:
    explicit ChildMaker(NetworkRunner runner) : runner_(std::move(runner)) {
        const engine::Program& program = runner_.program();
        children_ = find_type(program, program.outputs, "upsampled")->width;
        const network::TensorType *noise = find_type(program, program.inputs, "noise"),
                                  *weights = find_type(program, program.outputs, "weights"),
                                  *neighbours = find_type(program, program.outputs, "neighbours");
        noise_channels_ = noise ? noise->channels : 0;
        if (weights && neighbours && neighbours->is_index) sources_ = neighbours->width;
    }

    Candidates make(const CandidateRequest& request) override {
        Candidates candidates;
        candidates.width = request.has_sources ? sources_ : 0;
        const std::vector<std::vector<int32_t>> patches = patches_of(request);
        const auto batch = static_cast<size_t>(runner_.max_batch());
        for (size_t begin = 0; begin < patches.size(); begin += batch) {
            check_interrupted();
            add_children(request, std::span(patches).subspan(begin, std::min(batch, patches.size() - begin)),
                         candidates);
        }
        for (const int32_t i : request.region.points) {
            if (!request.has_inputs || !request.is_wanted[static_cast<size_t>(i)]) continue;
            add_candidate(candidates, request.region.cloud.data() + 3 * int64_t{i}, i);
            if (candidates.width > 0) {
                const size_t first = candidates.sources.size() - static_cast<size_t>(candidates.width);
                candidates.sources[first] = i;
                candidates.weights[first] = 1;
            }
        }
        return candidates;
    }
    double largest_ratio() const override { return static_cast<double>(children_); }
    int64_t sources() const override { return sources_; }
    int64_t noise_channels() const override { return noise_channels_; }
    const NetworkRunner* runner() const override { return &runner_; }
    int64_t memory_bytes() const override { return runner_.memory_bytes(); }

private:
    void add_children(const CandidateRequest& request, std::span<const std::vector<int32_t>> patches,
                      Candidates& candidates) {
        const View<const float, 2> cloud = request.region.cloud;
        const auto count = static_cast<int64_t>(patches.size()), size = static_cast<int64_t>(patches[0].size());
        const int64_t ratio = children_, k = candidates.width;
        std::vector<Frame> frames;
        Array<float, 2> points({count * size, 3});
        for (int64_t p = 0; p < count; ++p) {
            frames.push_back(sphere_of(cloud, patches[p]));
            for (int64_t i = 0; i < size; ++i)
                frames.back().into(cloud.data() + 3 * int64_t{patches[p][i]}, points.data() + 3 * (p * size + i));
        }
        engine::Context& context = runner_.reserve(count * size);
        const Device device = runner_.device();
        const Array<float, 2> on_device = points.to(device);
        Array<float, 2> made({count * size * ratio, 3}, device), weights;
        Array<int32_t, 2> neighbours;
        std::vector<engine::Output> outputs = {{"upsampled", made.view()}};
        if (k > 0) {
            weights = Array<float, 2>({count * size * k, ratio}, device);
            neighbours = Array<int32_t, 2>({count * size, k}, device);
            outputs.push_back({"weights", weights.view()});
            outputs.push_back({"neighbours", {}, neighbours.view()});
        }
        std::vector<engine::Input> inputs = {{"points", on_device.view()}};
        Array<float, 2> noise;
        if (noise_channels_ > 0) {
            noise = noise_of(request, patches, ratio, noise_channels_).to(device);
            inputs.push_back({"noise", noise.view()});
        }
        context.run(ops::Batch::dense(count, size), inputs, outputs);
        made = made.to(Device{});
        if (k > 0) weights = weights.to(Device{}), neighbours = neighbours.to(Device{});
        for (int64_t p = 0; p < count; ++p)
            for (int64_t i = 0; i < size; ++i) {
                const int64_t row = p * size + i;
                const int32_t parent = patches[p][i];
                if (!request.is_wanted[static_cast<size_t>(parent)]) continue;
                for (int64_t r = 0; r < ratio; ++r) {
                    float point[3];
                    frames[p].out_of(made.data() + 3 * (row * ratio + r), point);
                    const int64_t before = candidates.size();
                    add_candidate(candidates, point, parent);
                    if (candidates.size() == before) continue;
                    for (int64_t j = 0; j < k; ++j) {
                        candidates.sources[static_cast<size_t>(before * k + j)] =
                            patches[p][static_cast<size_t>(neighbours.data()[row * k + j])];
                        candidates.weights[static_cast<size_t>(before * k + j)] =
                            weights.data()[(row * k + j) * ratio + r];
                    }
                }
            }
    }

    NetworkRunner runner_;
    int64_t children_ = 0, sources_ = 0, noise_channels_ = 0;
};

}  // namespace

std::unique_ptr<CandidateMaker> child_maker(NetworkRunner runner) {
    return std::make_unique<ChildMaker>(std::move(runner));
}

}  // namespace stipple::tasks
