#include "tests/support/puflow_cloud.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stipple/core/numeric.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/knn.h"

namespace stipple::test {
namespace {

struct Frame {
    double centre[3] = {};
    double radius = 0;
};

Frame frame_of(const float* points, int64_t n) {
    Frame frame;
    for (int64_t i = 0; i < n; ++i)
        for (int c = 0; c < 3; ++c) frame.centre[c] += points[3 * i + c] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
        frame.radius =
            std::max(frame.radius, std::hypot(points[3 * i] - frame.centre[0], points[3 * i + 1] - frame.centre[1],
                                              points[3 * i + 2] - frame.centre[2]));
    return frame;
}

void into_frame(const Frame& frame, const float* from, int64_t n, float* to) {
    for (int64_t i = 0; i < 3 * n; ++i) to[i] = static_cast<float>((from[i] - frame.centre[i % 3]) / frame.radius);
}

void out_of_frame(const Frame& frame, const float* from, int64_t n, float* to) {
    for (int64_t i = 0; i < 3 * n; ++i) to[i] = static_cast<float>(from[i] * frame.radius + frame.centre[i % 3]);
}

std::vector<int32_t> farthest(const Array<float, 2>& points, int64_t count) {
    Array<int32_t, 1> indices({count});
    ops::farthest_point_sample(points.view(), ops::Batch::single(count), indices.view());
    return {indices.span().begin(), indices.span().end()};
}

Array<float, 1> distances_to(View<const float, 2> queries, View<const float, 2> points) {
    Array<int32_t, 2> indices({queries.size(0), 1});
    Array<float, 2> distances_sq({queries.size(0), 1});
    ops::knn(ops::PointIndex(points), queries, indices.view(), distances_sq.view());
    Array<float, 1> distances({queries.size(0)});
    for (int64_t i = 0; i < queries.size(0); ++i) distances.data()[i] = std::sqrt(distances_sq.data()[i]);
    return distances;
}

/// The 256 nearest points of each seed, nearest first.
Array<float, 2> cut_patches(const Array<float, 2>& points, const std::vector<int32_t>& seeds) {
    const int64_t n = points.size(0);
    Array<float, 2> patches({static_cast<int64_t>(seeds.size()) * kPatchPoints, 3});
    float* to = patches.data();
    for (const int32_t seed : seeds) {
        std::vector<std::pair<float, int64_t>> near;
        for (int64_t i = 0; i < n; ++i)
            near.emplace_back(distance_sq(points.data() + 3 * i, points.data() + 3 * seed), i);
        std::partial_sort(near.begin(), near.begin() + kPatchPoints, near.end());
        for (int64_t i = 0; i < kPatchPoints; ++i) to = std::copy_n(points.data() + 3 * near[i].second, 3, to);
    }
    return patches;
}

}  // namespace

UpsampledCloud upsample_cloud(const Array<float, 2>& points, int64_t ratio, const UpsamplePatches& upsample) {
    const int64_t n = points.size(0), patches = n * 4 / kPatchPoints, children = kPatchPoints * ratio;
    const Frame whole = frame_of(points.data(), n);
    Array<float, 2> unit({n, 3});
    into_frame(whole, points.data(), n, unit.data());

    const Array<float, 2> cut = cut_patches(unit, farthest(unit, patches));
    Array<float, 2> normalised(cut.shape());
    std::vector<Frame> frames;
    for (int64_t p = 0; p < patches; ++p) {
        const float* patch = cut.data() + 3 * p * kPatchPoints;
        frames.push_back(frame_of(patch, kPatchPoints));
        into_frame(frames.back(), patch, kPatchPoints, normalised.data() + 3 * p * kPatchPoints);
    }
    const Array<float, 2> upsampled = upsample(normalised);

    UpsampledCloud result{Array<float, 2>({patches * (children + kPatchPoints), 3}), Array<float, 2>({n * ratio, 3})};
    for (int64_t p = 0; p < patches; ++p) {
        float* to = result.candidates.data() + 3 * p * (children + kPatchPoints);
        out_of_frame(frames[p], upsampled.data() + 3 * p * children, children, to);
        std::copy_n(cut.data() + 3 * p * kPatchPoints, 3 * kPatchPoints, to + 3 * children);
    }

    Array<float, 2> eligible = result.candidates.clone();
    for (int64_t i = 0; i < eligible.size(0); ++i) {  // the published sampler passes over points near the origin
        float* point = eligible.data() + 3 * i;
        const float origin[3] = {};
        if (distance_sq(point, origin) <= 1e-3f) std::fill_n(point, 3, std::numeric_limits<float>::quiet_NaN());
    }
    const std::vector<int32_t> chosen = farthest(eligible, n * ratio + kOutliers);
    Array<float, 2> merged({static_cast<int64_t>(chosen.size()), 3});
    for (size_t i = 0; i < chosen.size(); ++i)
        std::copy_n(result.candidates.data() + 3 * chosen[i], 3, merged.data() + 3 * i);

    const Array<float, 1> distances = distances_to(merged.view(), unit.view());
    std::vector<size_t> order(chosen.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return distances.data()[a] < distances.data()[b]; });
    order.resize(static_cast<size_t>(n * ratio));
    for (size_t i = 0; i < order.size(); ++i)
        out_of_frame(whole, merged.data() + 3 * order[i], 1, result.points.data() + 3 * i);
    return result;
}

double largest_nearest_distance(View<const float, 2> a, View<const float, 2> b) {
    const Array<float, 1> distances = distances_to(a, b);
    return *std::max_element(distances.span().begin(), distances.span().end());
}

}  // namespace stipple::test
