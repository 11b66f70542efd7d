// Gradients of normalised rows: the two sums of a column that all its rows share, then the rows. Bound by memory.

#include "stipple/ops/products/column_sums.cuh"
#include "stipple/ops/products/row_norm_number.h"
#include "stipple/ops/row_norm.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kBlocksOfUnit = 2;                          // on a multiprocessor: 128 registers a thread
constexpr int kFewRowsOfSum = 16, kMostRowsOfSum = 1024;  // that a thread adds up in float32

/// Of a part are stored the sums of g and of g (x - mean).
struct GradientTerms {
    const float* inverse;
    float *sum_g, *sum_gx;

    __device__ double2 term(double2 stored, double2, int64_t) const { return stored; }
    __device__ void finish(int64_t column, double2, double2 sums) const {
        sum_g[column] = static_cast<float>(sums.x);
        sum_gx[column] = static_cast<float>(sums.y * inverse[column]);
    }
};

struct SumArguments {
    const float *mean, *scale, *shift;
    bool has_relu;
};

template <class Gradient, class Rows>
__global__ void __launch_bounds__(kAccessThreads, kBlocksOfUnit)
    sums_of_parts(Both<Gradient, Rows> both, const __grid_constant__ Sharing s, const __grid_constant__ SumArguments a,
                  const __grid_constant__ GradientTerms terms, double2* stored) {
    using Raw = typename Both<Gradient, Rows>::Raw;
    constexpr int kWidth = Rows::kWidth;
    __shared__ double sums[2][kWidth][kAccessThreads];
    const Share own = own_share<kWidth>(s);
    float mean[kWidth] = {}, scale[kWidth] = {}, shift[kWidth] = {}, sum_g[kWidth] = {}, sum_gx[kWidth] = {};
    if (own.is_there) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            mean[j] = a.mean[own.column + j];
            scale[j] = a.scale[own.column + j];
            shift[j] = a.shift[own.column + j];
        }
    }
    for_each_batch(both, s, own, [&](const Raw(&raw)[kBatch], int count, int64_t) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                if (i >= count) continue;
                const float x = Rows::number(raw[i].b, j);
                const float g = passed(Gradient::number(raw[i].a, j), x, scale[j], shift[j], a.has_relu);
                sum_g[j] += g;
                sum_gx[j] = fmaf(g, x - mean[j], sum_gx[j]);
            }
    });
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sums[0][j][threadIdx.x] = sum_g[j], sums[1][j][threadIdx.x] = sum_gx[j];
    add_lanes(sums, s.lanes, s.groups);
    if (own.lane != 0 || !own.is_there) return;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
        const double2 all = make_double2(sums[0][j][threadIdx.x], sums[1][j][threadIdx.x]);
        if (s.parts == 1)
            terms.finish(own.column + j, all, all);
        else
            stored[own.part * s.columns + own.column + j] = all;
    }
}

template <class Gradient, class Rows>
void launch_sums(const Gradient& gradient, const Rows& in, const MatrixView& rows, const SumArguments& a,
                 const GradientTerms& terms, cudaStream_t stream) {
    const Sharing s =
        share(rows.rows, rows.columns, Rows::kWidth, static_cast<int64_t>(kBlocksOfUnit) * multiprocessors(rows.device),
              kFewRowsOfSum, kMostRowsOfSum);
    const Scratch<double2> stored(s.parts == 1 ? 0 : checked_mul(s.parts, s.columns), stream);
    sums_of_parts<<<s.blocks(), kAccessThreads, 0, stream>>>(Both<Gradient, Rows>{gradient, in}, s, a, terms,
                                                             stored.get());
    STIPPLE_CHECK_LAUNCH(sums_of_parts);
    if (s.parts > 1) launch_combine(stored.get(), s, terms, stream);
}

struct RowArguments {
    const float *mean, *inverse, *scale, *shift, *sum_g, *sum_gx;
    double inverse_count;
    bool has_relu;
};

template <class Gradient, class Rows>
__global__ void __launch_bounds__(kAccessThreads, kBlocksOfUnit)
    gradients_of_rows(Both<Gradient, Rows> both, Rows out, const __grid_constant__ Sharing s,
                      const __grid_constant__ RowArguments a) {
    using Raw = typename Both<Gradient, Rows>::Raw;
    constexpr int kWidth = Rows::kWidth;
    const Share own = own_share<kWidth>(s);
    float mean[kWidth] = {}, scale[kWidth] = {}, shift[kWidth] = {};
    MeanGradient all[kWidth] = {};
    if (own.is_there) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            const int64_t column = own.column + j;
            mean[j] = a.mean[column], scale[j] = a.scale[column], shift[j] = a.shift[column];
            all[j] = mean_gradient(a.sum_g[column], a.sum_gx[column], a.inverse[column], a.inverse_count);
        }
    }
    const int64_t step = s.lanes * s.columns;
    for_each_batch(both, s, own, [&](const Raw(&raw)[kBatch], int count, int64_t at) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            if (i >= count) continue;
            float y[kWidth];
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float x = Rows::number(raw[i].b, j);
                const float g = passed(Gradient::number(raw[i].a, j), x, scale[j], shift[j], a.has_relu);
                y[j] = gradient_of_row(g, x, scale[j], mean[j], all[j]);
            }
            out.store(at + i * step, y);
        }
    });
}

template <class Gradient, class Rows>
void launch_rows(const Gradient& gradient, const Rows& in, const MatrixView& rows, const MatrixView& out,
                 const RowArguments& a, cudaStream_t stream) {
    // Four times as many blocks as run at once: late ones level out what the first ones had of the memory.
    const Sharing s =
        share(rows.rows, rows.columns, Rows::kWidth,
              static_cast<int64_t>(4) * kBlocksOfUnit * multiprocessors(rows.device), kBatch, rows.rows + kBatch);
    gradients_of_rows<<<s.blocks(), kAccessThreads, 0, stream>>>(Both<Gradient, Rows>{gradient, in}, access<Rows>(out),
                                                                 s, a);
    STIPPLE_CHECK_LAUNCH(gradients_of_rows);
}

}  // namespace

void norm_backward_sums(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns, bool has_relu,
                        View<float, 1> sum_g, View<float, 1> sum_gx, Stream stream) {
    const CurrentDevice current(rows.device);
    const SumArguments a = {columns.mean.data(), columns.scale.data(), columns.shift.data(), has_relu};
    const GradientTerms terms = {columns.inverse.data(), sum_g.data(), sum_gx.data()};
    with_access(dL_dout, rows,
                [&](const auto& gradient, const auto& in) { launch_sums(gradient, in, rows, a, terms, raw(stream)); });
}

void norm_backward_rows(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns,
                        View<const float, 1> sum_g, View<const float, 1> sum_gx, double count, bool has_relu,
                        const MutableMatrixView& dL_drows, Stream stream) {
    const CurrentDevice current(rows.device);
    const RowArguments a = {columns.mean.data(),
                            columns.inverse.data(),
                            columns.scale.data(),
                            columns.shift.data(),
                            sum_g.data(),
                            sum_gx.data(),
                            1 / count,
                            has_relu};
    // Where only the result is not aligned, all are taken number by number.
    const auto launch = [&](const auto& gradient, const auto& in) {
        launch_rows(gradient, in, rows, dL_drows, a, raw(stream));
    };
    if (is_aligned(dL_drows.data))
        with_access(dL_dout, rows, launch);
    else
        launch(access<Numbers>(dL_dout), access<Numbers>(rows));
}

}  // namespace stipple::ops::cuda
