#pragma once
// PU-Flow [Mao et al. 2022], discrete: upsamples a patch with a normalizing flow whose conditions come from a densely
// connected edge network. Parameter names are those of the published checkpoints, so that their weights load as they
// are.

#include "stipple/network/network.h"

namespace stipple::models {

struct PuFlowOptions {
    int64_t ratio = 4;        // children of a point, 1..32
    int64_t neighbours = 16;  // of the feature network
    int64_t interpolation_neighbours = 8;
    bool stages = false;  // also output what the published code computes on the way, for parity tests
};

/// points [B, N, 3] -> upsampled [B, N, ratio, 3] (child r of point n is row n * ratio + r), log_likelihood terms
/// log_det [B, 1] and nll [B, 1].
network::Network puflow(const PuFlowOptions& options);

}  // namespace stipple::models
