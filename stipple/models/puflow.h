#pragma once
// PU-Flow [Mao et al. 2022], discrete: upsamples a patch with a normalizing flow whose conditions come from a densely
// connected edge network.
//
// Parameters have the names of the published checkpoints, but for three that our layers name otherwise:
//   - batch norm belongs to its convolution: "P.1.x" becomes "P.0.norm.x" and "P.4.x" becomes "P.3.norm.x", wherever a
//     "P.1.running_mean" or "P.4.running_mean" tells a batch norm;
//   - "flow_blocks.L.permutate1.permutater.W" becomes "flow_blocks.L.permutate1.permutater.weight";
//   - integers are left out: "num_batches_tracked", and the order of channels of permutate2, which is always reversed.
// Shapes lose their ones: a convolution's [o, i, 1, 1] is [o, i], an actnorm's [1, 1, 3] is [3].

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

/// What a block of the flow is made of, c its condition.
enum class FlowFamily {
    coupling,    // as published: actnorm, a 3 x 3 matrix, an additive coupling, an affine injector
    residual,    // actnorm, then x + g(x | c) with Lip(g) < 1: inverted by Newton's method
    continuous,  // dx/dt = g(x, t | c) by `steps` of RK4
    augmented,   // couplings on 3 + augmented_channels, of which the latter start as a function of the features;
                 // children are the first 3 of the inverse. log_det and nll are those of all channels together
    mlp,  // no flow back: layers of latent and features make the children. The control of what a bijection brings;
          // log_det and nll are those of the coupling flow there
};
inline constexpr const char* kFlowFamilyWords[] = {"coupling", "residual", "continuous", "augmented", "mlp"};

/// Whose neighbours a child is interpolated of.
enum class Neighbourhood {
    euclidean,  // of the points
    latent,     // of their latents
};
inline constexpr const char* kNeighbourhoodWords[] = {"euclidean", "latent"};

/// What features learn of the whole patch (puflow/context.h has the formulas). As published in 2022: none.
enum class Context {
    none,
    global_max,
    self_attention,
    shape_context,
    cosine_gate,
    intra_attention,
    group_shuffle,
    channel_graph,
    skip_attention,
    level_attention,
};
inline constexpr const char* kContextWords[] = {"none",           "global-max",      "self-attention", "shape-context",
                                                "cosine-gate",    "intra-attention", "group-shuffle",  "channel-graph",
                                                "skip-attention", "level-attention"};

/// How much of each neighbour a child is made of (puflow/interpolation.h has the formulas). As published: learned.
enum class Interpolation { learned, coded, midpoint, inverse_distance, bilateral, interp_conv };
inline constexpr const char* kInterpolationWords[] = {"learned",          "coded",     "midpoint",
                                                      "inverse-distance", "bilateral", "interp-conv"};

/// What the children's weights are of.
enum class Interpolated {
    latents,      // which the flow then takes back
    coordinates,  // of the points: the control of what the latent space brings. The flow is there for its likelihood
};
inline constexpr const char* kInterpolatedWords[] = {"latents", "coordinates"};

/// Those of network::Normalise that self-attention takes.
inline constexpr const char* kAttentionNormaliseWords[] = {"row", "joint"};

struct PuFlowOptions {
    int64_t ratio = 4;                     // children of a point
    int64_t neighbours = 16;               // of the feature network; a cloud needs as many points
    int64_t interpolation_neighbours = 8;  // likewise
    FlowFamily family = FlowFamily::coupling;
    int64_t steps = 8;               // of the continuous family
    int64_t augmented_channels = 8;  // of the augmented family
    Neighbourhood neighbourhood = Neighbourhood::euclidean;
    Context context = Context::none;
    network::Normalise attention_normalise = network::Normalise::row;  // of self-attention; or joint
    Interpolation interpolation = Interpolation::learned;
    Interpolated interpolated = Interpolated::latents;  // of coordinates only without noise and stages
    bool noise = false;   // an input noise [B, N, ratio, c], added to the latents of the children before they go back:
                          // normal numbers times a temperature make several outputs of one input
    bool stages = false;  // also output what the published code computes on the way, for parity tests
};
const Fields& puflow_fields();

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
PuFlowOptions puflow_options(const std::map<std::string, std::string>& config);

/// points [B, N, 3] -> upsampled [B, N, ratio, 3] (child r of point n is row n * ratio + r), the weights [B, N, 8,
/// ratio] of a point's neighbours [B, N, 8] in the interpolation of each child, log_likelihood terms log_det [B, 1] and
/// nll [B, 1]. Points are those of a patch, centred and of radius 1. No parameter depends on neighbours,
/// interpolation_neighbours, ratio, steps, neighbourhood or noise: they may change after training. But bilateral
/// interpolation has parameters for each of interpolation_neighbours, and midpoint needs more of them than ratio.
///
/// With options.stages also feat_1 .. feat_6 and cond_1 .. cond_6 [B, N, 32 | 64 | 128], flow_1 .. flow_6 and z
/// [B, N, 3] (flow_6 is z), interp_logits [B, N, 8, ratio] of learned and coded interpolation, latent_interp [B, N,
/// ratio, 3], decoded (upsampled by another name), inverse_of_z [B, N, 3]. Throws Error{bad_argument} for options out
/// of range.
network::Network puflow(const PuFlowOptions& options);

}  // namespace stipple::models
