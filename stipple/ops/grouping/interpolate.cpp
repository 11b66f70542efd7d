#include "stipple/ops/interpolate.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/scatter_terms.h"

namespace stipple::ops {
namespace cpu {
namespace {

void interpolate(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> weights, float* out) {
    const int64_t q = weights.size(1), k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, q * k * c, [&](const Neighbourhood& near) {
        float* sums = out + near.row * q * c;
        std::fill_n(sums, q * c, 0.0f);
        // Neighbours outside: a row is read once for all q sums, which stay in cache.
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = near.named(j);
            if (row < 0) continue;
            const float* __restrict from = rows.rows.data() + row * rows.rows.stride(0);
            const float* weight = weights.data() + near.row * q * k + j;
            for (int64_t r = 0; r < q; ++r) {
                const float w = weight[r * k];
                if (w == 0) continue;
                float* __restrict to = sums + r * c;
                for (int64_t l = 0; l < c; ++l) to[l] += w * from[l];
            }
        }
    });
}

/// Eight sums side by side, for the sake of vector units; products of floats are exact in double.
double dot(const float* a, const float* b, int64_t c) {
    double sum[8] = {};
    int64_t l = 0;
    for (; l + 8 <= c; l += 8) {
        for (int lane = 0; lane < 8; ++lane)
            sum[lane] += static_cast<double>(a[l + lane]) * static_cast<double>(b[l + lane]);
    }
    for (; l < c; ++l) sum[0] += static_cast<double>(a[l]) * static_cast<double>(b[l]);
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

void interpolate_backward_weights(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> dL_dout,
                                  float* dL_dweights) {
    const int64_t q = dL_dout.size(1), k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, q * k * c, [&](const Neighbourhood& near) {
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = near.named(j);
            const float* from = rows.rows.data() + (row < 0 ? 0 : row) * rows.rows.stride(0);
            for (int64_t r = 0; r < q; ++r) {
                const float* gradient = dL_dout.data() + (near.row * q + r) * c;
                dL_dweights[(near.row * q + r) * k + j] = row < 0 ? 0.0f : static_cast<float>(dot(gradient, from, c));
            }
        }
    });
}

}  // namespace
}  // namespace cpu

void interpolate(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> weights, View<float, 3> out,
                 [[maybe_unused]] Stream stream) {
    const int64_t m = neighbours.rows(), k = neighbours.k(), q = weights.size(1), c = rows.dimension();
    const Device device = rows.device();
    require_neighbours("interpolate", neighbours, rows.batch, device);
    require_output<const float, 3>("interpolate", "weights", weights, {m, q, k}, device);
    require_output<float, 3>("interpolate", "out", out, {m, q, c}, device);
    if (out.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu: return cpu::interpolate(rows, neighbours, weights, out.data());
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::interpolate, rows, neighbours, weights, out, stream);
    }
}

void interpolate_backward_rows(View<const float, 3> weights, const InvertedIndex& inverse, View<const float, 3> dL_dout,
                               View<float, 2> dL_drows, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "interpolate_backward_rows";
    const int64_t m = weights.size(0), q = weights.size(1), k = weights.size(2);
    const int64_t n = dL_drows.size(0), c = dL_drows.size(1);
    const Device device = weights.device();
    require_output<const float, 3>(kOp, "weights", weights, {m, q, k}, device);
    require_inverse(kOp, inverse, n, checked_mul(m, k), device);
    require_output<const float, 3>(kOp, "dL_dout", dL_dout, {m, q, c}, device);
    require_output<float, 2>(kOp, "dL_drows", dL_drows, {n, c}, device);
    if (dL_drows.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            return cpu::scatter(inverse, WeightedRows{weights.data(), dL_dout.data(), k, c, q}, dL_drows);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::interpolate_backward_rows, weights, inverse, dL_dout, dL_drows, stream);
    }
}

void interpolate_backward_weights(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> dL_dout,
                                  View<float, 3> dL_dweights, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "interpolate_backward_weights";
    const int64_t m = neighbours.rows(), k = neighbours.k(), q = dL_dout.size(1), c = rows.dimension();
    const Device device = rows.device();
    require_neighbours(kOp, neighbours, rows.batch, device);
    require_output<const float, 3>(kOp, "dL_dout", dL_dout, {m, q, c}, device);
    require_output<float, 3>(kOp, "dL_dweights", dL_dweights, {m, q, k}, device);
    if (dL_dweights.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu: return cpu::interpolate_backward_weights(rows, neighbours, dL_dout, dL_dweights.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::interpolate_backward_weights, rows, neighbours, dL_dout, dL_dweights, stream);
    }
}

}  // namespace stipple::ops
