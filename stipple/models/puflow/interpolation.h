#pragma once
// Children in the latent space: which of a point's neighbours they are made of, and how much of each.

#include "stipple/models/puflow.h"
#include "stipple/network/builder.h"

namespace stipple::models::puflow_parts {

constexpr int64_t kMostChildren = 32;

struct Children {
    network::Tensor latents = -1;  // [B, N, ratio, c]
    network::Tensor weights = -1;  // [B, N, k, ratio] of the neighbours; over the k they sum to 1. Those of interp-conv
                                   // may be negative
    network::Tensor logits = -1;   // of weights that a network makes: before their softmax, else -1
};

/// points [B, N, 3], latents z [B, N, c], near [B, N, k] their neighbours, themselves included, nearest first. With
/// u_j = (p_j - p_i) / (distance to the farthest of the k):
///   learned           softmax over j of a network's outputs, one for each child, for at most 32
///   coded             the same network with one output and a code of the child as further input: two coordinates of a
///                     low-discrepancy sequence, so that the number of children is free
///   midpoint          child r is (z_i + z_j) / 2 with j its r-th nearest neighbour; k must be above ratio
///   inverse-distance  1 / (|u_j - e_r|^2 + 1e-4), e_r of a low-discrepancy sequence within half a unit of the centre
///   bilateral         theta psi of each channel: theta = ReLU(W_j (p_i - p_j)), psi = ReLU(V_j (z_i - z_j)), a pair of
///                     matrices for each place j among the neighbours and each child. 1e-6 is added to every product:
///                     where all are zero it is the mean of the neighbours   [PDGN, ECCV 2020]
///   interp-conv       1/k + sum over 27 kernel points q of a_rq (T_q(u_j) / sum over j of T_q - 1/k), T_q Gaussians on
///                     a lattice of spacing 1/2: the convolution of what latents differ from their mean by
///                                                                           [InterpConv, ICCV 2019]
/// Weights of bilateral are the mean over the channels: attributes that are not latents take these.
Children interpolate_latents(network::Builder& build, const PuFlowOptions& options, network::Tensor points,
                             network::Tensor z, network::Tensor near);

}  // namespace stipple::models::puflow_parts
