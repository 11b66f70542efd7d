#pragma once
// Context of PU-Flow: what a point's features learn from the whole patch, beside the neighbours of its edge
// convolutions. Every module is equivariant to the order of points; attention costs O(N^2) of a patch of N.
//
// Where they are:
//   - those that map [B, N, c] to [B, N, c] stand once, on the chained features of the third block, the first of full
//     width: its condition and everything after it see them;
//   - skip-attention is at every condition, before the flow takes it;
//   - level-attention makes the features of which the last condition is made, the one that children go back through
//     first.

#include <vector>

#include "stipple/models/puflow.h"
#include "stipple/network/builder.h"

namespace stipple::models::puflow_parts {

/// The block whose chained features context_features() is for.
constexpr int kContextBlock = 2;

/// Of a point's features f [B, N, c]:
///   global-max       MLP [f_i, max_j f_j]                                                     [Mao et al. 2021]
///   self-attention   f + mu W^T z, W the softmax of y x^T; mu starts at 0                     [SOE-Net, CVPR 2021]
///   shape-context    h = ReLU MLP of softmax(q k^T / sqrt(d)) v, gated: sigmoid(linear h) h   [Xie et al., CVPR 2018]
///   cosine-gate      c_i = 1/N sum over j != i of cos(f_i, f_j) f_j, a gate b of bias -4: b c + (1 - b) f
///                                                                                             [CF-SIS, ACM MM 2020]
///   intra-attention  f + mu softmax(m s^T) h; mu starts at random within 0.1                  [CF-SIS, ACM MM 2020]
///   group-shuffle    by groups g of channels softmax(x_g x_g^T / sqrt(c)) ELU(x_g), shuffled, plus f, group norm
///                                                                                             [Yang et al., CVPR 2019]
///   channel-graph    channels are nodes q = phi(f)^T s / N, reasoned over by ReLU(softmax(q q^T) q W), back to points
///                    by s; the last map starts at zero                                        [PointGCR, WACV 2020]
/// The others leave it as it is.
network::Tensor context_features(network::Builder& build, Context context, network::Normalise normalise,
                                 network::Tensor features);

/// The condition of a block beside what it finds in the block's features: [B, N, c] each -> [B, N, 2 c].
network::Tensor skip_attention(network::Builder& build, int block, network::Tensor condition, network::Tensor features);

/// The features of all blocks, each mapped to 128 channels, summed with weights of the point, a softmax over levels
/// that starts with equal ones: [B, N, 128].
network::Tensor level_attention(network::Builder& build, const std::vector<network::Tensor>& levels);

}  // namespace stipple::models::puflow_parts
