#pragma once
// The colour network on the CPU, for many samples at a time.

#include <span>

#include "stipple/radiance/field.h"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance {

/// The network with its weights turned for loops over outputs. The result of a sample does not depend on what is
/// evaluated beside it.
class ColourEvaluator {
public:
    /// An empty network: colours are sigmoid(the first three features).
    explicit ColourEvaluator(const ColourNetwork& network);

    /// What the first layer makes of a view direction of unit length, with its bias: [kHidden]. Once for each ray.
    void view_part(Vec3f direction, float* to) const;

    /// Colours [n, 3] in (0, 1) of features [n, kFeatures]; views[i] is the view part of sample i (not read without a
    /// network).
    void colours(std::span<const float> features, std::span<const float* const> views, float* to) const;

    bool has_network() const { return !weight2_.empty(); }

private:
    std::vector<float> features1_;  // [kFeatures, kHidden]
    std::vector<float> views1_;     // [kViewInputs, kHidden]
    std::vector<float> bias1_;
    std::vector<float> weight2_;  // [inputs, outputs]
    std::vector<float> bias2_;
    std::vector<float> weight3_;  // [3, kHidden]
    std::vector<float> bias3_;
};

}  // namespace stipple::radiance
