#pragma once
// The small network g(x, t) of a flow_step (network.h) on torch tensors: values and exact Jacobians, both with
// gradients.

#include <array>
#include <torch/types.h>

#include "stipple/network/network.h"

namespace stipple::learn {

struct FlowNet {
    torch::Tensor condition;                                              // [n, 2 (2 h + c)]
    std::array<torch::Tensor, 3> weights;                                 // [h, c], [h, h], [c, h]
    torch::Tensor time;                                                   // [2 (2 h + c)], of an ODE; undefined: none
    network::ActivationKind activation = network::ActivationKind::swish;  // or tanh
};

struct FlowValue {
    torch::Tensor g;         // [n, c]
    torch::Tensor jacobian;  // [n, c, c], dg_i / dx_j; undefined where it was not asked for
};

/// At x [n, c] and time t, by torch's own operations: it can be differentiated as often as one likes.
FlowValue evaluate(const FlowNet& net, const torch::Tensor& x, double t, bool with_jacobian);

/// det (1 + J) [n] and (1 + J)^-1 [n, c, c] of J [n, c, c], c at most 3, by cofactors.
torch::Tensor determinant_beside_one(const torch::Tensor& jacobian);
torch::Tensor inverse_beside_one(const torch::Tensor& jacobian);

}  // namespace stipple::learn
