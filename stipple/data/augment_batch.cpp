#include "stipple/data/augment_batch.h"

#include <algorithm>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/data/augmentation/item_random.h"

namespace stipple::data {
namespace {

constexpr int64_t kCloudsAtATime = 4;

struct PlaceScratch {
    AugmentScratch augment;
    std::vector<float> points;
    std::vector<int32_t> labels;
};

void augment_place(const StoredClouds& set, const AugmentBatch& batch, int64_t place, View<float, 2> points,
                   View<int64_t, 1> labels, PlaceScratch& scratch) {
    const int64_t at = *batch.first + place;
    STIPPLE_REQUIRE(at >= 0 && at < batch.order.size(0), "augment_batch: place {} of an order of {}", at,
                    batch.order.size(0));
    const int64_t item = batch.order(at);
    STIPPLE_REQUIRE(item >= 0 && item + 1 < set.offsets.size(0), "augment_batch: item {} of {}", item,
                    set.offsets.size(0) - 1);
    const int64_t begin = set.offsets(item), size = set.offsets(item + 1) - begin;
    STIPPLE_REQUIRE(begin >= 0 && size > 0 && size <= set.largest && begin <= set.points.size(0) - size,
                    "augment_batch: item {} has the points {} to {} of {}, at most {}", item, begin, begin + size,
                    set.points.size(0), set.largest);
    const int64_t n = batch.used > 0 ? std::min(size, batch.used) : size;
    scratch.points.assign(set.points.data() + 3 * begin, set.points.data() + 3 * (begin + n));
    AugmentCloud cloud{{scratch.points.data(), {n, 3}}};
    const bool has_labels = labels.size(0) > 0;
    if (has_labels) {
        scratch.labels.assign(set.labels.data() + begin, set.labels.data() + begin + n);
        cloud.labels = {scratch.labels.data(), {n}};
    }
    AugmentOptions options = batch.options;
    if (options.choose >= n) options.choose = 0;
    const int64_t rows = augment(cloud, options, batch.seed, *batch.epoch, item, scratch.augment);
    for (int64_t i = 0; i < batch.points; ++i) {
        const int64_t to = place * batch.points + i;
        std::copy_n(scratch.points.data() + 3 * (i % rows), 3, points.data() + 3 * to);
        if (has_labels) labels(to) = scratch.labels[static_cast<size_t>(i % rows)] - batch.first_label;
    }
}

template <class T, int Rank>
void require_view(const char* name, const View<T, Rank>& view, std::array<int64_t, Rank> shape, Device device) {
    STIPPLE_REQUIRE(view.shape() == shape, "augment_batch: {} must be {}, got {}", name, shape_text(shape.data(), Rank),
                    shape_text(view.shape().data(), Rank));
    STIPPLE_REQUIRE(view.is_contiguous(), "augment_batch: {} must be contiguous", name);
    STIPPLE_REQUIRE(view.device() == device, "augment_batch: points on {}, {} on {}", device, name, view.device());
}

}  // namespace

bool can_augment_on_device(const AugmentOptions& options, int64_t largest) {
    return largest <= (changes_rows(options) ? kMostDevicePoints : std::numeric_limits<int32_t>::max());
}

void augment_batch(const StoredClouds& set, const AugmentBatch& batch, View<float, 2> points, View<int64_t, 1> labels,
                   [[maybe_unused]] Stream stream) {
    validate(batch.options);
    const Device device = set.points.device();
    const int64_t total = set.points.size(0);
    require_view("the set", set.points, {total, 3}, device);
    STIPPLE_REQUIRE(set.offsets.size(0) > 0, "augment_batch: a set without offsets");
    require_view("offsets", set.offsets, {set.offsets.size(0)}, device);
    require_view("order", batch.order, {batch.order.size(0)}, device);
    STIPPLE_REQUIRE(batch.first && batch.epoch, "augment_batch: first and epoch must be given");
    STIPPLE_REQUIRE(batch.clouds >= 0 && batch.clouds <= std::numeric_limits<int32_t>::max() && batch.points > 0 &&
                        batch.points <= std::numeric_limits<int32_t>::max(),
                    "augment_batch: {} clouds of {} points", batch.clouds, batch.points);
    STIPPLE_REQUIRE(batch.used >= 0, "augment_batch: used must be 0 (all) or more, got {}", batch.used);
    STIPPLE_REQUIRE(set.largest >= 0, "augment_batch: the largest cloud has {} points", set.largest);
    const int64_t rows = batch.clouds * batch.points;
    require_view("points", points, {rows, 3}, device);
    if (labels.size(0) > 0) {
        require_view("labels", labels, {rows}, device);
        require_view("labels of the set", set.labels, {total}, device);
    }
    const int64_t largest = batch.used > 0 ? std::min(set.largest, batch.used) : set.largest;
    if (device.type == DeviceType::cuda)
        STIPPLE_REQUIRE(can_augment_on_device(batch.options, largest),
                        "augment_batch: clouds of {} points; on CUDA the most is {}", largest, kMostDevicePoints);
    if (batch.clouds == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            parallel_for(batch.clouds, kCloudsAtATime, [&](int64_t begin, int64_t end) {
                PlaceScratch scratch;
                for (int64_t place = begin; place < end; ++place)
                    augment_place(set, batch, place, points, labels, scratch);
            });
            return;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::augment_batch, set, batch, points, labels, stream);
    }
}

}  // namespace stipple::data
