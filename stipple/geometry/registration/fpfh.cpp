#include "stipple/geometry/fpfh.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/radius_search.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kBins = 11;
constexpr int64_t kFpfhChunk = 64;

bool has_direction(const float* v) {
    const float length_sq = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    return length_sq > 0.5f && std::isfinite(length_sq);
}

float dot3(const float* a, const float* b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

int64_t bin_of(double value, double least, double most) {
    const auto bin = static_cast<int64_t>(std::floor((value - least) / (most - least) * kBins));
    return std::clamp<int64_t>(bin, 0, kBins - 1);
}

/// Adds the pair of two points, neither at the other's place.
void add_pair(const float* p, const float* np, const float* q, const float* nq, float* histogram) {
    float line[3] = {q[0] - p[0], q[1] - p[1], q[2] - p[2]};
    const float length = std::sqrt(dot3(line, line));
    for (float& number : line) number /= length;
    // The frame is at the point whose normal lies nearer to the line; sizes only, so that signs of normals do not
    // choose.
    const float *u = np, *other = nq;
    if (std::abs(dot3(np, line)) < std::abs(dot3(nq, line))) {
        std::swap(u, other);
        for (float& number : line) number = -number;
    }
    float v[3] = {line[1] * u[2] - line[2] * u[1], line[2] * u[0] - line[0] * u[2], line[0] * u[1] - line[1] * u[0]};
    const float across = std::sqrt(dot3(v, v));
    if (!(across > 1e-6f)) return;  // the line is the normal: no frame
    for (float& number : v) number /= across;
    const float w[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
    ++histogram[bin_of(dot3(v, other), -1, 1)];
    ++histogram[kBins + bin_of(dot3(u, line), -1, 1)];
    ++histogram[2 * kBins + bin_of(std::atan2(dot3(w, other), dot3(u, other)), -M_PI, M_PI)];
}

/// Each of the three to the sum 1, or zeros.
void normalise(float* histogram) {
    for (int64_t part = 0; part < 3; ++part) {
        float sum = 0;
        for (int64_t bin = 0; bin < kBins; ++bin) sum += histogram[part * kBins + bin];
        if (sum > 0)
            for (int64_t bin = 0; bin < kBins; ++bin) histogram[part * kBins + bin] /= sum;
    }
}

}  // namespace

Array<float, 2> fpfh(View<const float, 2> points, View<const float, 2> normals, double radius) {
    ops::require_clouds("fpfh", "points", points);
    ops::require_clouds("fpfh", "normals", normals);
    const int64_t n = points.size(0);
    STIPPLE_REQUIRE(normals.size(0) == n, "fpfh: {} normals for {} points", normals.size(0), n);
    STIPPLE_REQUIRE(points.device() == Device{} && normals.device() == Device{}, "fpfh: arrays must be on the CPU");
    STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius), "fpfh: the radius must be above 0, got {}", radius);
    Array<float, 2> found({n, kFpfhSize});
    std::fill_n(found.data(), n * kFpfhSize, 0.0f);
    if (n == 0) return found;
    const ops::PointIndex index{ops::Clouds(points)};
    Array<int32_t, 1> counts({n});
    Array<int64_t, 1> offsets({n + 1});
    ops::radius_count(index, ops::Clouds(points), static_cast<float>(radius), counts.view());
    const int64_t total = ops::radius_offsets(counts.view(), offsets.view());
    Array<int32_t, 1> neighbours({total});
    Array<float, 1> distances_sq({total});
    ops::radius_search(index, ops::Clouds(points), static_cast<float>(radius), offsets.view(), neighbours.view(),
                       distances_sq.view());
    const auto for_neighbours = [&](int64_t i, const auto& call) {
        if (!has_direction(normals.data() + 3 * i)) return;
        for (int64_t at = offsets.data()[i]; at < offsets.data()[i + 1]; ++at) {
            const int64_t j = neighbours.data()[at];
            if (distances_sq.data()[at] > 0 && has_direction(normals.data() + 3 * j))
                call(j, std::sqrt(distances_sq.data()[at]));
        }
    };
    std::vector<float> simple(static_cast<size_t>(n * kFpfhSize), 0.0f);
    parallel_for(n, kFpfhChunk, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* histogram = simple.data() + i * kFpfhSize;
            for_neighbours(i, [&](int64_t j, float) {
                add_pair(points.data() + 3 * i, normals.data() + 3 * i, points.data() + 3 * j, normals.data() + 3 * j,
                         histogram);
            });
            normalise(histogram);
        }
    });
    parallel_for(n, kFpfhChunk, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* histogram = found.data() + i * kFpfhSize;
            float weights = 0;
            for_neighbours(i, [&](int64_t j, float distance) {
                const float* theirs = simple.data() + j * kFpfhSize;
                for (int64_t bin = 0; bin < kFpfhSize; ++bin) histogram[bin] += theirs[bin] / distance;
                weights += 1 / distance;
            });
            if (weights == 0) continue;
            const float* own = simple.data() + i * kFpfhSize;
            for (int64_t bin = 0; bin < kFpfhSize; ++bin) histogram[bin] = own[bin] + histogram[bin] / weights;
            normalise(histogram);
        }
    });
    return found;
}

Array<float, 2> fpfh_reversed(View<const float, 2> descriptors) {
    STIPPLE_REQUIRE(descriptors.size(1) == kFpfhSize && descriptors.device() == Device{},
                    "fpfh_reversed: descriptors must be [n, {}] on the CPU", kFpfhSize);
    const int64_t n = descriptors.size(0);
    Array<float, 2> reversed({n, kFpfhSize});
    for (int64_t i = 0; i < n; ++i)
        for (int64_t bin = 0; bin < kFpfhSize; ++bin) {
            const int64_t part = bin / kBins, at = bin % kBins;
            reversed.data()[i * kFpfhSize + bin] = descriptors(i, part == 0 ? bin : part * kBins + (kBins - 1 - at));
        }
    return reversed;
}

}  // namespace stipple::geometry
