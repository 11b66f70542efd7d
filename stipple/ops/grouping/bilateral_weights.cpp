#include "stipple/ops/bilateral_weights.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/bilateral_weights_term.h"

namespace stipple::ops {
namespace cpu {
namespace {

const float* row_of(const Clouds& clouds, int64_t row) {
    return clouds.rows.data() + row * clouds.rows.stride(0);
}

void bilateral_similarity(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                          float* similarity) {
    const int64_t k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, k * (c + 8), [&](const Neighbourhood& near) {
        const float* query = row_of(queries, near.row);
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = near.named(j);
            float& to = similarity[near.row * k + j];
            to = 0;
            if (row < 0) continue;
            const float* x = row_of(rows, row);
            double sum[4] = {};  // side by side, for the sake of vector units
            int64_t l = 0;
            for (; l + 4 <= c; l += 4) {
                for (int lane = 0; lane < 4; ++lane) {
                    const double d = x[l + lane] - query[l + lane];
                    sum[lane] += d * d;
                }
            }
            for (; l < c; ++l) {
                const double d = x[l] - query[l];
                sum[0] += d * d;
            }
            to = similarity_of((sum[0] + sum[1]) + (sum[2] + sum[3]), beta);
        }
    });
}

void bilateral_similarity_backward(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                                   const float* similarity, const float* dL_dsimilarity, float* dL_doffsets) {
    const int64_t k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, k * c, [&](const Neighbourhood& near) {
        const float* query = row_of(queries, near.row);
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = near.named(j), e = near.row * k + j;
            float* to = dL_doffsets + e * c;
            const float* x = row < 0 ? query : row_of(rows, row);
            for (int64_t l = 0; l < c; ++l)
                to[l] = row < 0 ? 0 : similarity_slope(beta, similarity[e], dL_dsimilarity[e], x[l] - query[l]);
        }
    });
}

void bilateral_combine(const Clouds& rows, const Neighbours& neighbours, const float* th, const float* psi, float guard,
                       float* out, float* denominator) {
    const int64_t k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, k * c, [&](const Neighbourhood& near) {
        for (int64_t first = 0; first < c; first += kColumns) {
            const int64_t columns = std::min(kColumns, c - first);
            BilateralSum sums[kColumns];
            for (int64_t j = 0; j < k; ++j) {
                const int64_t row = near.named(j), at = (near.row * k + j) * c + first;
                if (row < 0) continue;
                const float* x = row_of(rows, row) + first;
                for (int64_t l = 0; l < columns; ++l) sums[l].add(th[at + l], psi[at + l], x[l]);
            }
            for (int64_t l = 0; l < columns; ++l) {
                const double d = sums[l].denominator(guard);
                out[near.row * c + first + l] = static_cast<float>(sums[l].values / d);
                denominator[near.row * c + first + l] = static_cast<float>(d);
            }
        }
    });
}

void bilateral_combine_backward(const Clouds& rows, const Neighbours& neighbours, const float* th, const float* psi,
                                float guard, const float* out, const float* denominator, const float* dL_dout,
                                float* dL_dth, float* dL_dpsi) {
    const int64_t k = neighbours.k(), c = rows.dimension();
    for_each_neighbourhood(neighbours, rows.batch, k * c, [&](const Neighbourhood& near) {
        const int64_t i = near.row * c;
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = near.named(j), e = (near.row * k + j) * c;
            if (row < 0) {
                std::fill_n(dL_dth + e, c, 0.0f);
                std::fill_n(dL_dpsi + e, c, 0.0f);
                continue;
            }
            const float* x = row_of(rows, row);
            for (int64_t l = 0; l < c; ++l) {
                const double slope = bilateral_slope(dL_dout[i + l], x[l], out[i + l], denominator[i + l], guard);
                dL_dth[e + l] = static_cast<float>(slope * psi[e + l]);
                dL_dpsi[e + l] = static_cast<float>(slope * th[e + l]);
            }
        }
    });
}

}  // namespace
}  // namespace cpu

namespace {

void require_pair(const char* op, const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta) {
    require_neighbours(op, neighbours, rows.batch, rows.device());
    require_clouds(op, "queries", queries, rows.dimension());
    require_same_batch(op, queries.batch, rows.batch);
    require_device(op, "queries", rows.device(), queries.device());
    STIPPLE_REQUIRE(neighbours.rows() == queries.rows.size(0), "{}: {} rows of indices for {} queries", op,
                    neighbours.rows(), queries.rows.size(0));
    STIPPLE_REQUIRE(beta >= 0, "{}: beta must not be negative, got {}", op, beta);
}

void require_factors(const char* op, const Clouds& rows, const Neighbours& neighbours, View<const float, 3> th,
                     View<const float, 3> psi, float guard) {
    require_neighbours(op, neighbours, rows.batch, rows.device());
    const std::array<int64_t, 3> shape = {neighbours.rows(), neighbours.k(), rows.dimension()};
    require_output<const float, 3>(op, "th", th, shape, rows.device());
    require_output<const float, 3>(op, "psi", psi, shape, rows.device());
    STIPPLE_REQUIRE(guard > 0, "{}: guard must be positive, got {}", op, guard);
}

}  // namespace

void bilateral_similarity(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                          View<float, 2> similarity, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "bilateral_similarity";
    require_pair(kOp, rows, queries, neighbours, beta);
    require_output<float, 2>(kOp, "similarity", similarity, {neighbours.rows(), neighbours.k()}, rows.device());
    if (similarity.elements() == 0) return;
    switch (rows.device().type) {
        case DeviceType::cpu: return cpu::bilateral_similarity(rows, queries, neighbours, beta, similarity.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::bilateral_similarity, rows, queries, neighbours, beta, similarity, stream);
    }
}

void bilateral_similarity_backward(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                                   View<const float, 2> similarity, View<const float, 2> dL_dsimilarity,
                                   View<float, 3> dL_doffsets, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "bilateral_similarity_backward";
    const int64_t m = neighbours.rows(), k = neighbours.k();
    const Device device = rows.device();
    require_pair(kOp, rows, queries, neighbours, beta);
    require_output<const float, 2>(kOp, "similarity", similarity, {m, k}, device);
    require_output<const float, 2>(kOp, "dL_dsimilarity", dL_dsimilarity, {m, k}, device);
    require_output<float, 3>(kOp, "dL_doffsets", dL_doffsets, {m, k, rows.dimension()}, device);
    if (dL_doffsets.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            return cpu::bilateral_similarity_backward(rows, queries, neighbours, beta, similarity.data(),
                                                      dL_dsimilarity.data(), dL_doffsets.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::bilateral_similarity_backward, rows, queries, neighbours, beta, similarity,
                              dL_dsimilarity, dL_doffsets, stream);
    }
}

void bilateral_combine(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> th,
                       View<const float, 3> psi, float guard, View<float, 2> out, View<float, 2> denominator,
                       [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "bilateral_combine";
    const int64_t m = neighbours.rows(), c = rows.dimension();
    require_factors(kOp, rows, neighbours, th, psi, guard);
    require_output<float, 2>(kOp, "out", out, {m, c}, rows.device());
    require_output<float, 2>(kOp, "denominator", denominator, {m, c}, rows.device());
    if (out.elements() == 0) return;
    switch (rows.device().type) {
        case DeviceType::cpu:
            return cpu::bilateral_combine(rows, neighbours, th.data(), psi.data(), guard, out.data(),
                                          denominator.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::bilateral_combine, rows, neighbours, th, psi, guard, out, denominator, stream);
    }
}

void bilateral_combine_backward(const Clouds& rows, const Neighbours& neighbours, const InvertedIndex& inverse,
                                View<const float, 3> th, View<const float, 3> psi, float guard,
                                View<const float, 2> out, View<const float, 2> denominator,
                                View<const float, 2> dL_dout, View<float, 3> dL_dth, View<float, 3> dL_dpsi,
                                View<float, 2> dL_drows, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "bilateral_combine_backward";
    const int64_t m = neighbours.rows(), k = neighbours.k(), c = rows.dimension(), n = rows.rows.size(0);
    const Device device = rows.device();
    require_factors(kOp, rows, neighbours, th, psi, guard);
    require_inverse(kOp, inverse, n, neighbours.entries(), device);
    require_output<const float, 2>(kOp, "out", out, {m, c}, device);
    require_output<const float, 2>(kOp, "denominator", denominator, {m, c}, device);
    require_output<const float, 2>(kOp, "dL_dout", dL_dout, {m, c}, device);
    require_output<float, 3>(kOp, "dL_dth", dL_dth, {m, k, c}, device);
    require_output<float, 3>(kOp, "dL_dpsi", dL_dpsi, {m, k, c}, device);
    require_output<float, 2>(kOp, "dL_drows", dL_drows, {n, c}, device);
    if (dL_dth.elements() == 0 && dL_drows.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            cpu::bilateral_combine_backward(rows, neighbours, th.data(), psi.data(), guard, out.data(),
                                            denominator.data(), dL_dout.data(), dL_dth.data(), dL_dpsi.data());
            return cpu::scatter(inverse, BilateralRows{th.data(), psi.data(), dL_dout.data(), denominator.data(), k, c},
                                dL_drows);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::bilateral_combine_backward, rows, neighbours, inverse, th, psi, guard, out,
                              denominator, dL_dout, dL_dth, dL_dpsi, dL_drows, stream);
    }
}

}  // namespace stipple::ops
