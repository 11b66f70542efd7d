#pragma once
// What a step of training is made with, on CPU and CUDA.

#include <cmath>

#include "stipple/radiance/march/bricks.h"
#include "stipple/radiance/train/draw.h"

namespace stipple::radiance {

/// Of one grid of a stage.
struct StepConstants {
    DrawRules draw;
    int32_t rays = 0;
    float near = 0, step = 0;        // step: of rays, in units of length
    float opacity_length = 0;        // of a step, in voxels of the base grid
    float voxel_ratio = 1;           // of a voxel, likewise
    float shift = 0, threshold = 0;  // of densities; of opacities and weights
    float weight_entropy = 0, weight_rgbper = 0, weight_tv_density = 0, weight_tv_features = 0;
    float rate_density = 0, rate_features = 0, rate_network = 0, rate_environment = 0;
    int32_t environment_side = 0;  // 0: the background is not learned
    double decay = 1;
    bool occupancy_returns = false;
};

/// The colour network's numbers in one row: weight1 with bias1 as its last column [kHidden, kNetworkInputs], weight2,
/// bias2, weight3, bias3.
inline constexpr int kNetworkInputs = kFeatures + kViewInputs + 1;
inline constexpr int kWeight2 = kHidden * kNetworkInputs, kBias2 = kWeight2 + kHidden * kHidden,
                     kWeight3 = kBias2 + kHidden, kBias3 = kWeight3 + 3 * kHidden, kNetworkNumbers = kBias3 + 3;
inline constexpr int kViewCode = kViewInputs + 1;  // with a 1 for the bias

void unpack_network(const std::vector<float>& numbers, ColourNetwork& to);
std::vector<float> pack_network(const ColourNetwork& network);

/// Gradients of deterministic sums are integers of 1 / kGradientOne: whole numbers add up to the same in any order.
/// Adam moves by signs, so that gradients far below what matters must not round to 0; sums up to 2^15 fit.
inline constexpr float kGradientOne = 281474976710656.0f;  // 2^48

/// Samples of the last step, over all its rays.
struct SampleCounts {
    int64_t in_box = 0, in_mask = 0, opaque = 0, kept = 0, dropped_rays = 0;
};

/// Opacity's slope from the opacity itself.
template <class T>
STIPPLE_HD T slope_of_opacity(T alpha, T s) {
    if (!(alpha < 1)) return 0;
    return -s * std::expm1(std::log1p(-alpha) / s) * (1 - alpha);
}

}  // namespace stipple::radiance
