#include "stipple/tasks/upsample/candidates.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/frame.h"
#include "stipple/tasks/upsample/queries.h"

namespace stipple::tasks {
namespace {

// Patches as published for PU-Flow: of 256 points, four times as many as would just cover the cloud.
constexpr int64_t kPatchPoints = 256, kOverlap = 4;
// Neighbours that ops::knn finds at most.
constexpr int64_t kMostNeighbours = 128;

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
std::vector<std::vector<int32_t>> cut_patches(const Region& region, std::span<const int32_t> seeds) {
    const auto size = std::min<size_t>(kPatchPoints, region.around.size());
    std::vector<std::vector<int32_t>> patches(seeds.size());
    parallel_for(static_cast<int64_t>(seeds.size()), 1, [&](int64_t begin, int64_t end) {
        std::vector<std::pair<float, int32_t>> near(region.around.size());
        for (int64_t s = begin; s < end; ++s) {
            const float* seed = region.cloud.data() + 3 * int64_t{seeds[static_cast<size_t>(s)]};
            for (size_t i = 0; i < near.size(); ++i)
                near[i] = {distance_sq(region.cloud.data() + 3 * int64_t{region.around[i]}, seed), region.around[i]};
            std::partial_sort(near.begin(), near.begin() + static_cast<int64_t>(size), near.end());
            for (size_t i = 0; i < size; ++i) patches[static_cast<size_t>(s)].push_back(near[i].second);
        }
    });
    return patches;
}

/// Seeds far from each other, then as many more as it takes to have every wanted point in a patch.
std::vector<std::vector<int32_t>> patches_of(const Region& region) {
    const auto n = static_cast<int64_t>(region.points.size());
    const Array<float, 2> rows = rows_of(region.cloud, region.points);
    const int64_t count = std::clamp<int64_t>(n * kOverlap / kPatchPoints, 1, n);
    Array<int32_t, 1> chosen({count});
    ops::farthest_point_sample(rows.view(), ops::Batch::single(count), chosen.view());
    std::vector<int32_t> seeds;
    for (const int32_t i : chosen.span()) seeds.push_back(region.points[static_cast<size_t>(i)]);

    std::vector<std::vector<int32_t>> patches;
    std::vector<char> is_covered(static_cast<size_t>(region.cloud.size(0)), 0);
    while (!seeds.empty()) {
        for (std::vector<int32_t>& patch : cut_patches(region, seeds)) {
            for (const int32_t i : patch) is_covered[static_cast<size_t>(i)] = 1;
            patches.push_back(std::move(patch));
        }
        seeds.clear();
        for (const int32_t i : region.points)
            if (region.is_wanted[static_cast<size_t>(i)] && !is_covered[static_cast<size_t>(i)]) {
                seeds.push_back(i);
                break;
            }
    }
    return patches;
}

/// For the children of all patches, [rows, channels]. Numbers of a patch depend on the seed and on the point that it
/// is around alone.
Array<float, 2> noise_of(const Region& region, std::span<const std::vector<int32_t>> patches, int64_t children,
                         int64_t channels) {
    const auto count = static_cast<int64_t>(patches.size()), size = static_cast<int64_t>(patches[0].size());
    const int64_t of_patch = size * children * channels;
    Array<float, 2> noise({count * size * children, channels});
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const Rng rng(region.seed, static_cast<uint64_t>(patches[static_cast<size_t>(p)][0]));
            for (int64_t i = 0; i < of_patch; ++i)
                noise.data()[p * of_patch + i] =
                    static_cast<float>(region.temperature * rng.normal(static_cast<uint64_t>(i)));
        }
    });
    return noise;
}

void add_children(Upsampler& upsampler, const Region& region, std::span<const std::vector<int32_t>> patches,
                  Candidates& candidates) {
    const auto count = static_cast<int64_t>(patches.size()), size = static_cast<int64_t>(patches[0].size());
    const int64_t ratio = upsampler.children(), k = candidates.width;
    NetworkRunner& runner = upsampler.runner();
    std::vector<Frame> frames;
    Array<float, 2> points({count * size, 3});
    for (int64_t p = 0; p < count; ++p) {
        frames.push_back(sphere_of(region.cloud, patches[p]));
        for (int64_t i = 0; i < size; ++i)
            frames.back().into(region.cloud.data() + 3 * int64_t{patches[p][i]}, points.data() + 3 * (p * size + i));
    }
    engine::Context& context = runner.reserve(count * size);
    const Device device = runner.device();
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
    if (upsampler.noise_channels() > 0) {
        noise = noise_of(region, patches, ratio, upsampler.noise_channels()).to(device);
        inputs.push_back({"noise", noise.view()});
    }
    context.run(ops::Batch::dense(count, size), inputs, outputs);
    made = made.to(Device{});
    if (k > 0) weights = weights.to(Device{}), neighbours = neighbours.to(Device{});
    for (int64_t p = 0; p < count; ++p)
        for (int64_t i = 0; i < size; ++i) {
            const int64_t row = p * size + i;
            const int32_t parent = patches[p][i];
            if (!region.is_wanted[static_cast<size_t>(parent)]) continue;
            for (int64_t r = 0; r < ratio; ++r) {
                float point[3];
                frames[p].out_of(made.data() + 3 * (row * ratio + r), point);
                const int64_t before = candidates.size();
                add_candidate(candidates, point, parent);
                if (candidates.size() == before) continue;
                for (int64_t j = 0; j < k; ++j) {
                    candidates.sources[static_cast<size_t>(before * k + j)] =
                        patches[p][static_cast<size_t>(neighbours.data()[row * k + j])];
                    candidates.weights[static_cast<size_t>(before * k + j)] = weights.data()[(row * k + j) * ratio + r];
                }
            }
        }
}

void add_children(Upsampler& upsampler, const Region& region, bool has_inputs, Candidates& candidates) {
    const std::vector<std::vector<int32_t>> patches = patches_of(region);
    const auto batch = static_cast<size_t>(upsampler.runner().max_batch());
    for (size_t begin = 0; begin < patches.size(); begin += batch) {
        check_interrupted();
        const size_t count = std::min(batch, patches.size() - begin);
        add_children(upsampler, region, std::span(patches).subspan(begin, count), candidates);
    }
    for (const int32_t i : region.points) {
        if (!has_inputs || !region.is_wanted[static_cast<size_t>(i)]) continue;
        add_candidate(candidates, region.cloud.data() + 3 * int64_t{i}, i);
        if (candidates.width > 0) {
            const size_t first = candidates.sources.size() - static_cast<size_t>(candidates.width);
            candidates.sources[first] = i;
            candidates.weights[first] = 1;
        }
    }
}

/// Two points of a region, by their places in it, between which a candidate lies; equal for a point itself.
struct Pair {
    int32_t point = 0, other = 0;
};

/// Of each wanted point itself, where asked for, and the pairs with its nearest neighbours, twice as many as the ratio:
/// at least `ratio` of each, as no pair comes twice.
std::vector<Pair> nearest_pairs(const Region& region, View<const float, 2> rows, double ratio, bool has_inputs) {
    const int64_t n = rows.size(0), k = std::min({static_cast<int64_t>(std::ceil(2 * ratio)) + 1, n, kMostNeighbours});
    Array<int32_t, 2> near({n, k});
    ops::knn(ops::PointIndex(rows), rows, near.view(), {});
    const auto is_wanted = [&](int64_t i) {
        return region.is_wanted[static_cast<size_t>(region.points[static_cast<size_t>(i)])] != 0;
    };
    const auto has_neighbour = [&](int64_t i, int32_t j) {
        const int32_t* row = near.data() + i * k;
        return std::find(row, row + k, j) != row + k;
    };
    std::vector<Pair> pairs;
    for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) {
        if (!is_wanted(i)) continue;
        if (has_inputs) pairs.push_back({i, i});
        for (int64_t j = 0; j < k; ++j) {
            const int32_t other = near.data()[i * k + j];
            const bool is_again = other < i && is_wanted(other) && has_neighbour(other, i);
            if (other != i && !is_again) pairs.push_back({i, other});
        }
    }
    return pairs;
}

void middle_of(View<const float, 2> rows, const Pair& pair, float* middle) {
    for (int c = 0; c < 3; ++c) middle[c] = 0.5f * (rows(pair.point, c) + rows(pair.other, c));
}

/// [Grad-PU] without its learned part.
void add_midpoints(const Region& region, double ratio, bool has_inputs, Candidates& candidates) {
    const Array<float, 2> rows = rows_of(region.cloud, region.points);
    for (const Pair& pair : nearest_pairs(region, rows.view(), ratio, has_inputs)) {
        float middle[3];
        middle_of(rows.view(), pair, middle);
        add_candidate(candidates, middle, region.points[static_cast<size_t>(pair.point)]);
        if (candidates.width == 0) continue;
        const size_t first = candidates.sources.size() - 2;
        candidates.sources[first] = region.points[static_cast<size_t>(pair.point)];
        candidates.sources[first + 1] = region.points[static_cast<size_t>(pair.other)];
        candidates.weights[first] = candidates.weights[first + 1] = 0.5f;
    }
}

}  // namespace

void add_candidate(Candidates& candidates, const float* point, int32_t parent) {
    if (!(std::isfinite(point[0]) && std::isfinite(point[1]) && std::isfinite(point[2]))) return;
    candidates.points.insert(candidates.points.end(), point, point + 3);
    candidates.parents.push_back(parent);
    candidates.sources.resize(candidates.sources.size() + static_cast<size_t>(candidates.width), -1);
    candidates.weights.resize(candidates.weights.size() + static_cast<size_t>(candidates.width), 0);
}

Candidates make_candidates(Upsampler& upsampler, const Region& region, double ratio, bool has_inputs) {
    Candidates candidates;
    candidates.width = region.has_sources ? upsampler.sources() : 0;
    if (!upsampler.has_network())
        add_midpoints(region, ratio, has_inputs, candidates);
    else if (upsampler.takes_queries())
        move_queries(upsampler, region, make_queries(region, ratio, has_inputs), false, candidates);
    else
        add_children(upsampler, region, has_inputs, candidates);
    return candidates;
}

float patch_radius(const ops::PointIndex& index, View<const float, 2> cloud, std::span<const int32_t> points) {
    const int64_t asked = std::min<int64_t>(64, static_cast<int64_t>(points.size()));
    std::vector<int32_t> some;
    for (int64_t i = 0; i < asked; ++i)
        some.push_back(points[static_cast<size_t>(i * static_cast<int64_t>(points.size()) / asked)]);
    // Of a surface: twice as far for four times as many.
    const int64_t size = std::min(kPatchPoints / 4, cloud.size(0));
    Array<int32_t, 2> found({asked, size});
    Array<float, 2> distances_sq({asked, size});
    ops::knn(index, rows_of(cloud, some).view(), found.view(), distances_sq.view());
    std::vector<float> radii;
    for (int64_t i = 0; i < asked; ++i) radii.push_back(2 * std::sqrt(distances_sq.data()[i * size + size - 1]));
    std::sort(radii.begin(), radii.end());
    return radii[radii.size() * 9 / 10];
}

}  // namespace stipple::tasks
