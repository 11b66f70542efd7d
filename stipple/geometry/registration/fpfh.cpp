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

/// Which of eleven parts of -1 to 1. What is no number, in lanes that do not count, is in the first.
inline int32_t bin_of(float share) {
    constexpr float kLast = kBins - 1;
    const float bin = (share + 1) * (0.5f * kBins);
    return static_cast<int32_t>(bin > 0 ? (bin < kLast ? bin : kLast) : 0);
}

/// Directions between the eleven parts of a full turn from -pi on: five below the x axis and five above it.
struct TurnBorders {
    float x[2][5], y[2][5];

    TurnBorders() {
        for (int above = 0; above < 2; ++above)
            for (int i = 0; i < 5; ++i) {
                const double angle = -M_PI + 2 * M_PI * (i + 1 + 5 * above) / kBins;
                x[above][i] = static_cast<float>(std::cos(angle));
                y[above][i] = static_cast<float>(std::sin(angle));
            }
    }
    /// The part in which atan2(b, a) lies: how many borders come before it.
    int32_t bin_of(float a, float b) const {
        int32_t below = 0, above = 5;
        for (int i = 0; i < 5; ++i) {
            below += x[0][i] * b - y[0][i] * a >= 0;
            above += x[1][i] * b - y[1][i] * a >= 0;
        }
        return b < 0 ? below : above;
    }
};

constexpr int kPairLanes = 16;

/// Points around one, number by number, so that pairs with it are made in vectors.
struct PairBlock {
    float place[3][kPairLanes], normal[3][kPairLanes];
    int32_t bins[3][kPairLanes];
    bool has_frame[kPairLanes];
};

/// The three angles of each pair with a point p of normal n, as bins.
void angles_of(const float* p, const float* n, const TurnBorders& borders, PairBlock& block) {
    const auto &place = block.place, &normal = block.normal;
    float side[kPairLanes], along[kPairLanes], up[kPairLanes], ahead[kPairLanes], across[kPairLanes];
    for (int k = 0; k < kPairLanes; ++k) {
        float l[3] = {place[0][k] - p[0], place[1][k] - p[1], place[2][k] - p[2]};
        const float over = 1 / std::sqrt(l[0] * l[0] + l[1] * l[1] + l[2] * l[2]);
        for (float& number : l) number *= over;
        const float m[3] = {normal[0][k], normal[1][k], normal[2][k]};
        const float own = n[0] * l[0] + n[1] * l[1] + n[2] * l[2], theirs = m[0] * l[0] + m[1] * l[1] + m[2] * l[2];
        // The frame is at the point whose normal lies nearer to the line; sizes only, so that signs of normals do not
        // choose.
        const bool is_theirs = std::abs(own) < std::abs(theirs);
        float u[3], other[3];
        for (int axis = 0; axis < 3; ++axis) {
            u[axis] = is_theirs ? m[axis] : n[axis];
            other[axis] = is_theirs ? n[axis] : m[axis];
            l[axis] = is_theirs ? -l[axis] : l[axis];
        }
        const float v[3] = {l[1] * u[2] - l[2] * u[1], l[2] * u[0] - l[0] * u[2], l[0] * u[1] - l[1] * u[0]};
        across[k] = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        const float w[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        side[k] = (v[0] * other[0] + v[1] * other[1] + v[2] * other[2]) / across[k];
        along[k] = is_theirs ? -theirs : own;
        up[k] = (w[0] * other[0] + w[1] * other[1] + w[2] * other[2]) / across[k];
        ahead[k] = u[0] * other[0] + u[1] * other[1] + u[2] * other[2];
    }
    for (int k = 0; k < kPairLanes; ++k) {
        block.has_frame[k] = across[k] > 1e-6f;  // else the line is the normal
        block.bins[0][k] = bin_of(side[k]);
        block.bins[1][k] = bin_of(along[k]);
        block.bins[2][k] = borders.bin_of(ahead[k], up[k]);
    }
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
    std::vector<uint8_t> has_normal(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) has_normal[i] = has_direction(normals.data() + 3 * i);
    const auto for_neighbours = [&](int64_t i, const auto& call) {
        if (!has_normal[i]) return;
        for (int64_t at = offsets.data()[i]; at < offsets.data()[i + 1]; ++at) {
            const int64_t j = neighbours.data()[at];
            if (distances_sq.data()[at] > 0 && has_normal[j]) call(j, distances_sq.data()[at]);
        }
    };
    std::vector<float> simple(static_cast<size_t>(n * kFpfhSize), 0.0f);
    const TurnBorders borders;
    parallel_for(n, kFpfhChunk, [&](int64_t begin, int64_t end) {
        PairBlock block = {};
        for (int64_t i = begin; i < end; ++i) {
            float* histogram = simple.data() + i * kFpfhSize;
            int lanes = 0;
            const auto add = [&] {
                angles_of(points.data() + 3 * i, normals.data() + 3 * i, borders, block);
                for (int k = 0; k < lanes; ++k)
                    for (int64_t part = 0; part < 3 && block.has_frame[k]; ++part)
                        ++histogram[part * kBins + block.bins[part][k]];
                lanes = 0;
            };
            for_neighbours(i, [&](int64_t j, float) {
                for (int axis = 0; axis < 3; ++axis) {
                    block.place[axis][lanes] = points.data()[3 * j + axis];
                    block.normal[axis][lanes] = normals.data()[3 * j + axis];
                }
                if (++lanes == kPairLanes) add();
            });
            add();
            normalise(histogram);
        }
    });
    parallel_for(n, kFpfhChunk, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* histogram = found.data() + i * kFpfhSize;
            float weights = 0;
            for_neighbours(i, [&](int64_t j, float distance_sq) {
                const float* theirs = simple.data() + j * kFpfhSize;
                const float weight = 1 / std::sqrt(distance_sq);
                for (int64_t bin = 0; bin < kFpfhSize; ++bin) histogram[bin] += theirs[bin] * weight;
                weights += weight;
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
