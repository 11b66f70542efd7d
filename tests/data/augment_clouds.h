#pragma once
// Clouds, options and random numbers of the tests of augmentation.

#include <bit>
#include <cmath>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/data/augment.h"

namespace stipple::data {

struct AugmentedCloud {
    std::vector<float> points, normals;
    std::vector<int32_t> labels, source;
    bool operator==(const AugmentedCloud& other) const {
        const auto bits = [](const std::vector<float>& values) {
            std::vector<uint32_t> words;
            for (float value : values) words.push_back(std::bit_cast<uint32_t>(value));
            return words;
        };
        return bits(points) == bits(other.points) && bits(normals) == bits(other.normals) && labels == other.labels &&
               source == other.source;
    }
    int64_t size() const { return static_cast<int64_t>(points.size()) / 3; }
};

/// Points in a cube about 0, unit normals, the index as label.
inline AugmentedCloud stored_cloud(int64_t n) {
    const Rng rng(77);
    AugmentedCloud cloud;
    for (int64_t i = 0; i < n; ++i) {
        double normal[3], length_sq = 0;
        for (int axis = 0; axis < 3; ++axis) {
            cloud.points.push_back(2 * rng.uniform(6 * i + axis) - 1);
            normal[axis] = rng.uniform(6 * i + 3 + axis) - 0.5;
            length_sq += normal[axis] * normal[axis];
        }
        for (double part : normal) cloud.normals.push_back(static_cast<float>(part / std::sqrt(length_sq)));
        cloud.labels.push_back(static_cast<int32_t>(i));
    }
    return cloud;
}

inline AugmentedCloud augmented_cloud(AugmentedCloud cloud, const AugmentOptions& options, uint64_t seed, int64_t epoch,
                                      int64_t item) {
    AugmentScratch scratch;
    const int64_t n = cloud.size();
    const int64_t m =
        augment({View<float, 2>(cloud.points.data(), {n, 3}), View<float, 2>(cloud.normals.data(), {n, 3}),
                 View<int32_t, 1>(cloud.labels.data(), {n})},
                options, seed, epoch, item, scratch);
    cloud.points.resize(3 * m), cloud.normals.resize(3 * m), cloud.labels.resize(m);
    cloud.source = scratch.source;
    return cloud;
}

/// Everything on, with numbers that differ.
inline AugmentOptions all_augmentations() {
    AugmentOptions options;
    options.choose = 700, options.shuffle = true;
    options.dropout_ratio = 0.9, options.dropout_form = DropoutForm::remove, options.dropout_share = 0.8;
    options.mirror = {true, false, true};
    options.rotation_angle = kHalfTurn, options.rotation_axis = {1, 2, -1};
    options.tilt_sigma = 0.06, options.tilt_clip = 0.18;
    options.scale_min = 0.8, options.scale_max = 1.25, options.axis_scale_min = 0.67, options.axis_scale_max = 1.5;
    options.shift = {0.1, 0.2, 0.3};
    options.jitter_sigma = 0.01, options.jitter_clip = 0.05;
    return options;
}

/// The random numbers of the contract, written from the header.
inline Rng numbers_of(uint64_t seed, int64_t epoch, int64_t item, int operation) {
    const RandomBlock block = Rng(seed, uint64_t{0x4155474D} << 32).block(epoch);
    return Rng(uint64_t{block.word[1]} << 32 | block.word[0], 16 * item + operation);
}

}  // namespace stipple::data
