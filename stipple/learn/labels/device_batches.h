#pragma once
// The clouds of a data set in the memory of a GPU, and batches that are made of them there.

#include <span>
#include <torch/types.h>
#include <vector>

#include "stipple/data/augment_batch.h"
#include "stipple/data/data_set.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// How the clouds of a batch are seen; every view has one of each cloud.
struct BatchView {
    int64_t points = 0;  // of a cloud; fewer come again
    data::AugmentOptions augment;
    double weight = 1;  // of its loss
    uint64_t seed = 0;
};

/// A batch, view by view.
struct BatchTensors {
    torch::Tensor points;  // [batch * (points of all views), 3]
    torch::Tensor labels;  // int64 [batch]
    torch::Tensor parts;   // int64 [batch * (points of all views)] of segmenters, else empty
};

struct DeviceBatchOptions {
    std::vector<BatchView> views;
    int64_t batch = 0;       // clouds
    int64_t used = 0;        // the first points of each cloud; 0: all
    bool has_parts = false;  // whether batches have labels of points
    int64_t first_part = 0;  // which is counted as 0
};

class DeviceBatches {
public:
    /// Whether the clouds of these items, in views that choose, drop and thin as they do, fit ops' kernels and `bytes`.
    static bool can_hold(const data::DataSet& set, const DeviceBatchOptions& options, int64_t bytes);

    /// Copies all clouds of the set, in their order.
    DeviceBatches(const data::DataSet& set, DeviceBatchOptions options, torch::Device device);

    /// Clouds of an epoch: batch k has those at k * batch and after.
    void set_order(std::span<const int64_t> clouds);

    /// The batch at clock.first of clock.epoch, into memory that the next call uses again. Waits for nothing.
    BatchTensors make(const StepClock& clock);

private:
    DeviceBatchOptions options_;
    torch::Tensor points_, offsets_, labels_, parts_;  // of the set
    int64_t largest_ = 0;
    torch::Tensor order_, order_in_host_;  // int32
    torch::Tensor places_;                 // 0 .. batch - 1
    BatchTensors made_;
};

}  // namespace stipple::learn
