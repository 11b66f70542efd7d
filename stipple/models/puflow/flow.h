#pragma once
// The flow of PU-Flow, between points and latents, in each of its families (models/puflow.h).

#include <string>
#include <vector>

#include "stipple/models/puflow.h"
#include "stipple/models/puflow/features.h"

namespace stipple::models::puflow_parts {

/// What a block needs from its features, once for both directions.
struct BlockCondition {
    network::Tensor features = -1;          // [B, N, c]
    network::Tensor scale = -1, bias = -1;  // of the injector [B, N, channels]: coupling, augmented, mlp
    network::Tensor step = -1;              // of the flow_step: residual, continuous
};

class PatchFlow {
public:
    PatchFlow(network::Builder& build, const PuFlowOptions& options) : build_(build), options_(options) {}

    /// Channels that it moves: 3, or more where it is augmented.
    int64_t channels() const;

    /// Makes what the next block needs.
    void add_condition(network::Tensor features);

    /// What the flow starts from: the points, with channels made of the first block's features where it is augmented.
    network::Tensor start(network::Tensor points);

    /// Through one block, all conditions being there.
    network::Tensor forward(int block, network::Tensor x);

    /// ln |det J| of the whole flow [B, 1], after forward() of all blocks.
    network::Tensor log_determinant(network::Tensor points);

    /// From latents back to points [.., 3]: the inverse of all blocks, or the decoder that stands in for it.
    /// children: rows of z for each point. Layers are named prefix + those of the flow, whose parameters they have.
    network::Tensor decode(const std::string& prefix, network::Tensor z, int64_t children);

private:
    bool has_steps() const;
    network::FlowStepOptions step_options() const;
    network::Tensor coupling(const std::string& prefix, int block, network::Tensor x, network::Tensor condition,
                             bool inverse);
    network::Tensor invert(const std::string& prefix, int block, network::Tensor z, int64_t children);
    network::Tensor decode_by_layers(const std::string& prefix, network::Tensor z, int64_t children);

    network::Builder& build_;
    const PuFlowOptions& options_;
    std::vector<BlockCondition> conditions_;
    std::vector<network::Tensor> log_dets_;  // of the flow_steps [B, N, 1]
    bool has_decoder_ = false;
};

}  // namespace stipple::models::puflow_parts
