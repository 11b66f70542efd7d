#include "stipple/learn/labels/device_batches.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/stream.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

int64_t largest_cloud(const data::DataSet& set) {
    int64_t largest = 0;
    for (int64_t i = 0; i < set.clouds.size(); ++i) largest = std::max(largest, set.clouds.size_of(i));
    return largest;
}

template <class T>
Tensor on_device(const std::vector<T>& values, torch::Dtype type, torch::Device device) {
    return torch::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())}, type).to(device);
}

}  // namespace

bool DeviceBatches::can_hold(const data::DataSet& set, const DeviceBatchOptions& options, int64_t bytes) {
    const int64_t largest = largest_cloud(set), used = options.used > 0 ? std::min(options.used, largest) : largest;
    for (const BatchView& view : options.views)
        if (!data::can_augment_on_device(view.augment, used)) return false;
    const auto points = static_cast<int64_t>(set.clouds.points.size()) / 3;
    return points * static_cast<int64_t>(3 * sizeof(float) + (options.has_parts ? sizeof(int32_t) : 0)) <= bytes;
}

DeviceBatches::DeviceBatches(const data::DataSet& set, DeviceBatchOptions options, torch::Device device)
    : options_(std::move(options)), largest_(largest_cloud(set)) {
    points_ = on_device(set.clouds.points, torch::kFloat32, device).reshape({-1, 3});
    offsets_ = on_device(set.clouds.offsets, torch::kInt64, device);
    if (!set.labels.empty()) labels_ = on_device(set.labels, torch::kInt32, device).to(torch::kInt64);
    if (options_.has_parts) parts_ = on_device(set.parts, torch::kInt32, device);
    places_ = torch::arange(options_.batch, torch::TensorOptions(device).dtype(torch::kInt64));
    int64_t rows = 0;
    for (const BatchView& view : options_.views) rows += options_.batch * view.points;
    made_ = {torch::empty({rows, 3}, points_.options()), torch::zeros({options_.batch}, places_.options()),
             torch::empty({options_.has_parts ? rows : 0}, places_.options())};
}

void DeviceBatches::set_order(std::span<const int64_t> clouds) {
    const auto n = static_cast<int64_t>(clouds.size());
    if (!order_.defined() || order_.size(0) != n) {
        order_ = torch::empty({n}, places_.options().dtype(torch::kInt32));
        order_in_host_ = torch::empty({n}, torch::kInt32);
    }
    std::copy(clouds.begin(), clouds.end(), order_in_host_.data_ptr<int32_t>());
    order_.copy_(order_in_host_);
}

BatchTensors DeviceBatches::make(const StepClock& clock) {
    const data::StoredClouds set = {view_of<const float, 2>(points_), view_of<const int64_t, 1>(offsets_),
                                    view_of<const int32_t, 1>(parts_), largest_};
    int64_t begin = 0;
    for (const BatchView& view : options_.views) {
        data::AugmentBatch batch;
        batch.order = view_of<const int32_t, 1>(order_);
        batch.first = clock.first.data_ptr<int64_t>();
        batch.epoch = clock.epoch.data_ptr<int64_t>();
        batch.clouds = options_.batch;
        batch.points = view.points;
        batch.used = options_.used;
        batch.options = view.augment;
        batch.seed = view.seed;
        batch.first_label = options_.first_part;
        const int64_t rows = options_.batch * view.points;
        const Tensor points = made_.points.narrow(0, begin, rows);
        const Tensor parts = options_.has_parts ? made_.parts.narrow(0, begin, rows) : Tensor();
        data::augment_batch(set, batch, view_of<float, 2>(points), view_of<int64_t, 1>(parts), current_stream(points));
        begin += rows;
    }
    if (labels_.defined())
        made_.labels.copy_(labels_.index_select(0, order_.index_select(0, places_ + clock.first).to(torch::kInt64)));
    return made_;
}

}  // namespace stipple::learn
