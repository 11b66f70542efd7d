#pragma once
// Sets, options and the oracle of the tests of augment_batch.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/data/augment_batch.h"
#include "tests/data/augment_clouds.h"
#include "tests/support/not_finite.h"

namespace stipple::data {

/// A data set and an order of its clouds, on one device.
struct BatchSet {
    Array<float, 2> points;
    Array<int64_t, 1> offsets;
    Array<int32_t, 1> labels, order;
    int64_t largest = 0;

    StoredClouds view() const { return {points.view(), offsets.view(), labels.view(), largest}; }
    BatchSet to(Device device) const {
        return {points.to(device), offsets.to(device), labels.to(device), order.to(device), largest};
    }
};

/// Clouds of these sizes, some points not finite or negative zeros; the order is every cloud from the last to the
/// first, twice.
inline BatchSet stored_set(const std::vector<int64_t>& sizes) {
    BatchSet set;
    set.offsets = Array<int64_t, 1>({static_cast<int64_t>(sizes.size()) + 1});
    set.offsets.data()[0] = 0;
    for (size_t i = 0; i < sizes.size(); ++i) set.offsets.data()[i + 1] = set.offsets.data()[i] + sizes[i];
    const int64_t total = set.offsets.data()[sizes.size()];
    set.points = Array<float, 2>({total, 3});
    set.labels = Array<int32_t, 1>({total});
    const Rng rng(91);
    for (int64_t i = 0; i < 3 * total; ++i) set.points.data()[i] = 2 * rng.uniform(i) - 1;
    for (int64_t i = 0; i < total; ++i) {
        set.labels.data()[i] = static_cast<int32_t>(10 + i % 1000);
        if (i % 97 == 5) set.points.data()[3 * i + i % 3] = i % 2 == 0 ? test::kNan : -test::kInfinity;
        if (i % 31 == 3) set.points.data()[3 * i + 1] = -0.0f;
    }
    const auto clouds = static_cast<int64_t>(sizes.size());
    set.order = Array<int32_t, 1>({2 * clouds});
    for (int64_t i = 0; i < 2 * clouds; ++i) set.order.data()[i] = static_cast<int32_t>(clouds - 1 - i % clouds);
    set.largest = *std::max_element(sizes.begin(), sizes.end());
    return set;
}

struct NamedAugmentation {
    std::string name;
    int64_t points = 0, used = 0;  // as AugmentBatch has them
    AugmentOptions options;

    /// What may differ in the last bit between machines.
    bool has_rounding() const {
        return options.rotation_angle > 0 || options.tilt_sigma > 0 || options.jitter_sigma > 0;
    }
};

/// Those of recipes/*.toml: data.subset = "random" chooses data.points of them, "first" uses the first ones.
inline std::vector<NamedAugmentation> recipe_augmentations() {
    AugmentOptions axes, drops, thins, plain;
    axes.axis_scale_min = 0.67, axes.axis_scale_max = 1.5, axes.shift = {0.2, 0.2, 0.2};
    drops = axes;
    drops.dropout_form = DropoutForm::repeat, drops.dropout_share = 0.25, drops.dropout_ratio = 0.97;
    thins = axes;
    thins.dropout_form = DropoutForm::repeat;
    thins.thin_share = 1, thins.thin_min = 16, thins.thin_max = 256;
    plain.scale_min = 0.8, plain.scale_max = 1.25, plain.shift = {0.1, 0.1, 0.1};
    const auto choosing = [](AugmentOptions options, int64_t count) {
        options.choose = count;
        return options;
    };
    AugmentOptions half_first = thins;
    half_first.thin_first = 0.5;
    return {
        {"pointnet-cls", 1024, 1024, drops},
        {"pointnet-cls, view", 256, 1024, half_first},
        {"pointnet-cls-shapenet", 1024, 0, choosing(drops, 1024)},
        {"pointnet-cls-shapenet, view", 256, 0, choosing(thins, 1024)},
        {"pointnet-parts-shapenet", 2048, 0, choosing(plain, 2048)},
        {"pointnet-parts", 2048, 0, choosing(axes, 2048)},
    };
}

/// One of many, each operation on or off.
inline NamedAugmentation random_augmentation(uint64_t number, int64_t largest) {
    const Rng rng(number, 0x424154);
    uint64_t at = 0;
    const auto coin = [&] { return rng.uniform(at++) < 0.5f; };
    const auto number_to = [&](int64_t most) {
        return 1 + static_cast<int64_t>(rng.below(at++, static_cast<uint32_t>(most)));
    };
    NamedAugmentation made = {"random " + std::to_string(number), number_to(700), coin() ? number_to(largest) : 0, {}};
    AugmentOptions& options = made.options;
    if (coin()) options.choose = number_to(largest);
    options.shuffle = coin();
    options.dropout_form = static_cast<DropoutForm>(rng.below(at++, 3));
    if (coin()) options.dropout_ratio = rng.uniform(at++), options.dropout_share = coin() ? 1 : 0.5;
    if (coin()) {
        options.thin_share = coin() ? 1 : 0.5, options.thin_first = coin() ? 0 : 0.5;
        options.thin_min = number_to(40);
        if (coin()) options.thin_max = options.thin_min + number_to(largest) - 1;
    }
    options.mirror = {coin(), coin(), coin()};
    if (coin()) options.scale_min = 0.8, options.scale_max = 1.25;
    if (coin()) options.axis_scale_min = 0.67, options.axis_scale_max = 1.5;
    if (coin()) options.shift = {0.1, 0, 0.3};
    if (!coin()) return made;
    if (coin()) options.rotation_angle = kHalfTurn, options.rotation_axis = {1, 2, -1};
    if (coin()) options.tilt_sigma = 0.06, options.tilt_clip = 0.18;
    if (coin()) options.jitter_sigma = 0.01, options.jitter_clip = 0.05;
    return made;
}

struct BatchRows {
    std::vector<float> points;
    std::vector<int64_t> labels;
};

/// Each place by augment() alone, with everything that the header says written out.
inline BatchRows expected_batch(const BatchSet& host, const NamedAugmentation& how, int64_t clouds, int64_t first,
                                uint64_t seed, int64_t epoch, int64_t first_label) {
    BatchRows rows;
    for (int64_t place = 0; place < clouds; ++place) {
        const int64_t item = host.order.data()[first + place], begin = host.offsets.data()[item];
        int64_t n = host.offsets.data()[item + 1] - begin;
        if (how.used > 0) n = std::min(n, how.used);
        AugmentedCloud cloud;
        cloud.points.assign(host.points.data() + 3 * begin, host.points.data() + 3 * (begin + n));
        cloud.normals.assign(cloud.points.size(), 0);
        cloud.labels.assign(host.labels.data() + begin, host.labels.data() + begin + n);
        AugmentOptions options = how.options;
        if (options.choose >= n) options.choose = 0;
        const AugmentedCloud made = augmented_cloud(cloud, options, seed, epoch, item);
        for (int64_t i = 0; i < how.points; ++i) {
            const int64_t row = i % made.size();
            for (int axis = 0; axis < 3; ++axis) rows.points.push_back(made.points[3 * row + axis]);
            rows.labels.push_back(made.labels[row] - first_label);
        }
    }
    return rows;
}

}  // namespace stipple::data
