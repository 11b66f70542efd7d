#pragma once
// A chain's layers as its kernels read them. Internal to cpu/chain.

#include <span>
#include <string>
#include <vector>

#include "stipple/core/buffer.h"
#include "stipple/engine/cpu/chain/kernels.h"
#include "stipple/engine/program.h"

namespace stipple::engine::cpu {

struct PackedLayer {
    int64_t in = 0, out = 0;
    Activation activation;
    const Kernel* kernel = nullptr;
    bool has_matrix = false;    // its weights come with each cloud
    float input_range = 0;      // int8
    float per_scale = 0;        // int8: steps of the input's scale in 1
    int64_t groups = 0;         // of inputs
    int64_t panels = 0;         // of weights
    int64_t panel_bytes = 0;    // of each of them
    int64_t row_bytes = 0;      // of a panel of rows that it reads, with room for all that the layer before it writes
    Buffer weights;             // panels
    std::vector<float> scales;  // int8: of its sums, [panels * channels]
    std::vector<float> bias;    // [panels * channels], zeros beyond `out`
    int64_t matrix_offset = 0;  // in the scratch memory of a task: scales, then panels of its cloud's weights

    int64_t panel_channels() const { return panels * kernel->channels; }
};

struct PackedChain {
    std::vector<PackedLayer> layers;
    Reduce reduce = Reduce::none;
    int64_t tile_panels = 1;  // of rows that go through all layers together
    /// Scratch memory of a task, in this order.
    int64_t tile_bytes = 0;      // rows between two layers, twice
    int64_t largest_offset = 0;  // the last layer's largest sums
    int64_t bias_offset = 0;     // the first layer's bias with the addends that all rows share
    int64_t scratch_bytes = 0;   // matrices are the rest
};

PackedChain pack_chain(const std::vector<Dense>& layers, Reduce reduce, std::span<const Kernel* const> kernels);

/// kernel: of the layer's precision. before: null for the first layer.
PackedLayer pack_layer(const Dense& dense, const Kernel& kernel, const PackedLayer* before);

/// weight [out, in] -> panels, and for int8 the scales of its sums [panels * channels].
void pack_weights(const PackedLayer& layer, const float* weight, std::byte* panels, float* scales);

}  // namespace stipple::engine::cpu
