#include "stipple/engine/cpu/chain/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/error.h"

namespace stipple::engine::cpu {
namespace {

// A tile's rows should stay in the first-level cache while all weights pass by.
constexpr int64_t kTileBytes = 48 << 10;
constexpr int64_t kMostPanels = 11;

int64_t aligned(int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

uint16_t bf16_bits(float x) {
    x = round_to_bf16(x);
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);
}

// The largest magnitude of a row. Magnitudes of floats are ordered as their bits are, and a maximum of integers is one
// that compilers vectorise.
float largest_of(const float* row, int64_t n) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        std::memcpy(&bits, row + i, sizeof bits);
        largest = std::max(largest, bits & 0x7fffffff);
    }
    float x;
    std::memcpy(&x, &largest, sizeof x);
    return x;
}

// to: the channel's place in the first group of its panel. Places that no input has stay as they are.
template <class T, class Convert>
void scatter(const float* row, int64_t in, const Kernel& kernel, std::byte* to, Convert convert) {
    auto* at = reinterpret_cast<T*>(to);
    const int64_t step = kernel.channels * kernel.group;
    for (int64_t i = 0; i < in; i += kernel.group, at += step)
        for (int64_t j = 0; j < std::min(kernel.group, in - i); ++j) at[j] = convert(row[i + j]);
}

}  // namespace

void pack_weights(const PackedLayer& layer, const float* weight, std::byte* panels, float* scales) {
    const Kernel& kernel = *layer.kernel;
    const int64_t start_bytes = kernel.factor == Factor::u8 ? 4 : 0;
    if (layer.in == 0) return;
    std::memset(panels, 0, static_cast<size_t>(layer.panels * layer.panel_bytes));
    for (int64_t o = 0; o < layer.out; ++o) {
        std::byte* panel = panels + o / kernel.channels * layer.panel_bytes;
        const int64_t c = o % kernel.channels;
        std::byte* to = panel + start_bytes * kernel.channels + c * kernel.group * kernel.factor_bytes();
        const float* row = weight + o * layer.in;
        if (kernel.precision == Precision::fp32) scatter<float>(row, layer.in, kernel, to, [](float w) { return w; });
        if (kernel.precision == Precision::bf16 && kernel.factor == Factor::f32)
            scatter<float>(row, layer.in, kernel, to, round_to_bf16);
        if (kernel.factor == Factor::bf16) scatter<uint16_t>(row, layer.in, kernel, to, bf16_bits);
        if (kernel.precision != Precision::int8) continue;

        const float largest = largest_of(row, layer.in);
        const float per_scale = largest > 0 ? 127 / largest : 0;
        scales[o] = largest / 127 * (layer.input_range / 127);
        int32_t sum = 0;
        if (kernel.factor == Factor::i16) {
            scatter<int16_t>(row, layer.in, kernel, to,
                             [&](float w) { return static_cast<int16_t>(round_to_int8(w, per_scale)); });
        } else {
            scatter<int8_t>(row, layer.in, kernel, to, [&](float w) {
                const auto q = static_cast<int8_t>(round_to_int8(w, per_scale));
                sum += q;
                return q;
            });
        }
        const int32_t start = -128 * sum;
        if (kernel.factor == Factor::u8) std::memcpy(panel + c * start_bytes, &start, sizeof start);
    }
    if (kernel.precision == Precision::int8) std::fill(scales + layer.out, scales + layer.panel_channels(), 0.0f);
}

PackedLayer pack_layer(const Dense& dense, const Kernel& kernel, const PackedLayer* before) {
    STIPPLE_REQUIRE(dense.precision != Precision::int8 || dense.in == 0 || dense.input_range > 0,
                    "{}: int8 without calibration", dense.name);
    PackedLayer layer;
    layer.in = dense.in;
    layer.out = dense.out;
    layer.activation = dense.activation;
    layer.kernel = &kernel;
    layer.has_matrix = dense.matrix >= 0;
    layer.input_range = dense.input_range;
    layer.per_scale = dense.input_range > 0 ? 127 / dense.input_range : 0;
    layer.groups = kernel.groups(dense.in);
    layer.panels = (dense.out + kernel.channels - 1) / kernel.channels;
    layer.panel_bytes = kernel.weight_panel_bytes(dense.in);
    layer.row_bytes = kernel.row_panel_bytes(before == nullptr ? dense.in : before->panel_channels());
    layer.bias.resize(static_cast<size_t>(layer.panel_channels()));
    std::copy(dense.bias.begin(), dense.bias.end(), layer.bias.begin());
    if (layer.has_matrix) return layer;

    STIPPLE_REQUIRE(static_cast<int64_t>(dense.weight.size()) == dense.in * dense.out, "{}: {} weights for [{}, {}]",
                    dense.name, dense.weight.size(), dense.out, dense.in);
    layer.weights = Buffer(layer.panels * layer.panel_bytes);
    if (kernel.precision == Precision::int8) layer.scales.resize(static_cast<size_t>(layer.panel_channels()));
    pack_weights(layer, dense.weight.data(), layer.weights.data(), layer.scales.data());
    return layer;
}

PackedChain pack_chain(const std::vector<Dense>& layers, Reduce reduce, std::span<const Kernel* const> kernels) {
    STIPPLE_REQUIRE(!layers.empty(), "a chain without layers");
    PackedChain chain;
    chain.reduce = reduce;
    int64_t row_bytes = 64;
    for (const Dense& dense : layers) {
        const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                         [&](const Kernel* k) { return k->precision == dense.precision; });
        STIPPLE_REQUIRE(kernel != kernels.end(), "{}: the CPU computes in fp32, bf16 and int8, not in {}", dense.name,
                        name_of(dense.precision));
        chain.layers.push_back(pack_layer(dense, **kernel, chain.layers.empty() ? nullptr : &chain.layers.back()));
        row_bytes = std::max(row_bytes, aligned(chain.layers.back().row_bytes));
    }
    chain.tile_panels = std::clamp(kTileBytes / row_bytes, int64_t{1}, kMostPanels);
    chain.tile_bytes = chain.tile_panels * row_bytes;
    chain.largest_offset = 2 * chain.tile_bytes;
    chain.bias_offset = chain.largest_offset + aligned(chain.layers.back().panel_channels() * 4);
    chain.scratch_bytes = chain.bias_offset + aligned(chain.layers.front().panel_channels() * 4);
    for (PackedLayer& layer : chain.layers) {
        if (!layer.has_matrix) continue;
        layer.matrix_offset = chain.scratch_bytes;
        chain.scratch_bytes += aligned(layer.panel_channels() * 4) + aligned(layer.panels * layer.panel_bytes);
    }
    return chain;
}

}  // namespace stipple::engine::cpu
