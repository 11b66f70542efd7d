#include "stipple/learn/flows/flow_net.h"

#include <torch/torch.h>

#include "stipple/core/error.h"

namespace stipple::learn {

using torch::Tensor;

FlowValue evaluate(const FlowNet& net, const Tensor& x, double t, bool with_jacobian) {
    const int64_t h = net.weights[0].size(0), c = net.weights[0].size(1), parts = 2 * h + c;
    const Tensor at = net.time.defined() ? net.condition + t * net.time : net.condition;
    const int64_t begins[3] = {0, h, 2 * h}, sizes[3] = {h, h, c};
    Tensor v = x, tangents;  // tangents [n, c, size]: row j is the derivative by x_j
    for (size_t i = 0; i < 3; ++i) {
        const Tensor shift = at.narrow(1, begins[i], sizes[i]);
        const Tensor gate = torch::sigmoid(at.narrow(1, parts + begins[i], sizes[i]));
        v = torch::matmul(v, net.weights[i].t()) * gate + shift;
        Tensor slope = gate;
        if (i < 2 && net.activation == network::ActivationKind::tanh) {
            v = torch::tanh(v);
            if (with_jacobian) slope = gate * (1 - v * v);
        } else if (i < 2) {
            const Tensor s = torch::sigmoid(v);
            v = v * s;
            if (with_jacobian) slope = gate * (s + v * (1 - s));
        }
        if (!with_jacobian) continue;
        const Tensor product = i == 0 ? net.weights[0].t().unsqueeze(0) : torch::matmul(tangents, net.weights[i].t());
        tangents = product * slope.unsqueeze(1);
    }
    return {v, with_jacobian ? tangents.transpose(1, 2) : Tensor()};
}

namespace {

/// The three columns of 1 + J, where J is made [n, 3, 3] by zeros.
std::array<Tensor, 3> columns_beside_one(const Tensor& jacobian) {
    const int64_t c = jacobian.size(2);
    STIPPLE_REQUIRE(c >= 1 && c <= 3 && jacobian.size(1) == c, "matrices of {} rows and {} columns", jacobian.size(1),
                    c);
    const Tensor sum = torch::constant_pad_nd(jacobian, {0, 3 - c, 0, 3 - c}) + torch::eye(3, jacobian.options());
    return {sum.select(2, 0), sum.select(2, 1), sum.select(2, 2)};
}

}  // namespace

Tensor determinant_beside_one(const Tensor& jacobian) {
    const auto [a, b, d] = columns_beside_one(jacobian);
    return (a * torch::cross(b, d, 1)).sum(1);
}

Tensor inverse_beside_one(const Tensor& jacobian) {
    const auto [a, b, d] = columns_beside_one(jacobian);
    const Tensor first = torch::cross(b, d, 1);
    const Tensor rows = torch::stack({first, torch::cross(d, a, 1), torch::cross(a, b, 1)}, 1);
    const int64_t c = jacobian.size(2);
    return (rows / (a * first).sum(1).reshape({-1, 1, 1})).narrow(1, 0, c).narrow(2, 0, c);
}

}  // namespace stipple::learn
