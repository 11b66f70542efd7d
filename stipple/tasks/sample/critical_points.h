#pragma once
// Critical points of a PointNet [Qi et al. 2017]: those that win the max over the points in some channel. The others
// change nothing in what the network says.

#include <memory>

#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"
#include "stipple/tasks/model_file.h"

namespace stipple::tasks {

/// Points of a cloud that are looked at, at most.
constexpr int64_t kCriticalPoints = 65536;

/// The layer before the max, whose products are never in memory as a whole.
struct CriticalLayer {
    Array<float, 2> weight;     // [channels, inputs], batch norm folded in
    std::vector<float> bias;    // [channels], likewise
    bool is_rectified = false;  // a channel counts where its largest number is above 0

    int64_t channels() const { return weight.size(0); }
    int64_t inputs() const { return weight.size(1); }
};

/// Name of the output of what split_classifier() leaves: [B, N, inputs].
inline constexpr const char* kPointFeatures = "point_features";

bool is_classifier(const ModelOrEngine& source);

/// Takes the layer before the max of a PointNet classifier off: what is below it, as a model, and the layer. Throws
/// Error{bad_argument} for an engine.
ModelOrEngine split_classifier(ModelOrEngine source, std::shared_ptr<const CriticalLayer>& layer);

/// For every cloud its critical points, those that win most channels first, of equal ones the lowest index; each row is
/// filled up with its first. features [rows of the batch, inputs]; [clouds, channels] on the same device. The ranking
/// is done on the CPU.
Array<int32_t, 2> rank_critical_points(const CriticalLayer& layer, const Array<float, 2>& features,
                                       const ops::Batch& batch, Stream stream);

}  // namespace stipple::tasks
