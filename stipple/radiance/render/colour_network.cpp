#include "stipple/radiance/render/colour_network.h"

#include <algorithm>

namespace stipple::radiance {
namespace {

constexpr int kInputs = kFeatures + kViewInputs;
constexpr int kTogether = 4;  // samples that share a load of weights
constexpr int kColumns = 16;  // outputs of them in registers

/// rows [kTogether, kHidden] times weights [kHidden, kHidden], plus bias, rectified; each sum in the order of its
/// inputs.
void hidden_layer(const float* rows, const float* weights, const float* bias, float* to) {
    for (int first = 0; first < kHidden; first += kColumns) {
        float sum[kTogether][kColumns];
        for (int r = 0; r < kTogether; ++r)
            for (int c = 0; c < kColumns; ++c) sum[r][c] = bias[first + c];
        for (int k = 0; k < kHidden; ++k) {
            const float* w = weights + k * kHidden + first;
            for (int r = 0; r < kTogether; ++r) {
                const float x = rows[r * kHidden + k];
                for (int c = 0; c < kColumns; ++c) sum[r][c] += x * w[c];
            }
        }
        for (int r = 0; r < kTogether; ++r)
            for (int c = 0; c < kColumns; ++c) to[r * kHidden + first + c] = std::max(sum[r][c], 0.0f);
    }
}

}  // namespace

ColourEvaluator::ColourEvaluator(const ColourNetwork& network) {
    if (network.weight1.empty()) return;
    features1_.resize(size_t{kFeatures} * kHidden);
    views1_.resize(size_t{kViewInputs} * kHidden);
    weight2_.resize(size_t{kHidden} * kHidden);
    for (size_t o = 0; o < kHidden; ++o) {
        for (size_t i = 0; i < kFeatures; ++i) features1_[i * kHidden + o] = network.weight1[o * kInputs + i];
        for (size_t i = 0; i < kViewInputs; ++i)
            views1_[i * kHidden + o] = network.weight1[o * kInputs + kFeatures + i];
        for (size_t i = 0; i < kHidden; ++i) weight2_[i * kHidden + o] = network.weight2[o * kHidden + i];
    }
    bias1_ = network.bias1;
    bias2_ = network.bias2;
    weight3_ = network.weight3;
    bias3_ = network.bias3;
}

void ColourEvaluator::view_part(Vec3f direction, float* to) const {
    float code[kViewInputs];
    encode_view(direction, code);
    std::copy(bias1_.begin(), bias1_.end(), to);
    for (int i = 0; i < kViewInputs; ++i) {
        const float* w = views1_.data() + i * kHidden;
        for (int o = 0; o < kHidden; ++o) to[o] += code[i] * w[o];
    }
}

void ColourEvaluator::colours(std::span<const float> features, std::span<const float* const> views, float* to) const {
    const auto n = static_cast<int>(features.size() / kFeatures);
    if (!has_network()) {
        for (int i = 0; i < n; ++i)
            for (int c = 0; c < 3; ++c) to[3 * i + c] = sigmoid(features[static_cast<size_t>(i * kFeatures + c)]);
        return;
    }
    float one[kTogether * kHidden] = {}, two[kTogether * kHidden];
    for (int first = 0; first < n; first += kTogether) {
        const int count = std::min(kTogether, n - first);
        for (int r = 0; r < count; ++r) {
            float* row = one + r * kHidden;
            std::copy_n(views[static_cast<size_t>(first + r)], kHidden, row);
            for (int f = 0; f < kFeatures; ++f) {
                const float x = features[static_cast<size_t>((first + r) * kFeatures + f)];
                const float* w = features1_.data() + f * kHidden;
                for (int o = 0; o < kHidden; ++o) row[o] += x * w[o];
            }
            for (int o = 0; o < kHidden; ++o) row[o] = std::max(row[o], 0.0f);
        }
        hidden_layer(one, weight2_.data(), bias2_.data(), two);
        for (int r = 0; r < count; ++r)
            for (int c = 0; c < 3; ++c) {
                float sum = bias3_[static_cast<size_t>(c)];
                for (int k = 0; k < kHidden; ++k)
                    sum += two[r * kHidden + k] * weight3_[static_cast<size_t>(c * kHidden + k)];
                to[3 * (first + r) + c] = sigmoid(sum);
            }
    }
}

}  // namespace stipple::radiance
