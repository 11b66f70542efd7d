// Statistics of columns, and rows normalised by them. Bound by memory: 2 bytes a number read, and as many written.

#include "stipple/ops/products/column_sums.cuh"
#include "stipple/ops/products/row_norm_number.h"
#include "stipple/ops/row_norm.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kRowNormBlocksOfUnit = 3;                          // on a multiprocessor: 80 registers a thread
constexpr int kRowNormFewRowsOfSum = 16, kMostRowsOfSum = 1024;  // that a thread adds up in float32

/// Of a part is stored its mean, and the sum of squares about it.
struct StatisticsTerms {
    int64_t rows, rows_of_part;
    float *mean, *variance;

    __device__ double2 term(double2 stored, double2 first, int64_t part) const {
        const auto n = static_cast<double>(min(rows_of_part, rows - part * rows_of_part));
        const double from_first = stored.x - first.x;
        return make_double2(n * from_first, stored.y + n * from_first * from_first);
    }
    __device__ void finish(int64_t column, double2 first, double2 sums) const {
        const MeanAndVariance all = mean_and_variance(first.x, sums.x, sums.y, static_cast<double>(rows));
        mean[column] = static_cast<float>(finite_or_nan(all.mean));
        variance[column] = static_cast<float>(all.variance);
    }
};

/// A thread has the mean of its rows and their squares about it, each relative to the part's first row, so that nothing
/// large is subtracted; four rows at a time are joined to those before them [Chan et al. 1979].
template <class Rows>
__global__ void __launch_bounds__(kAccessThreads, kRowNormBlocksOfUnit)
    statistics_of_parts(Rows rows, const __grid_constant__ Sharing s, const __grid_constant__ StatisticsTerms terms,
                        double2* stored) {
    constexpr int kWidth = Rows::kWidth;
    __shared__ double sums[2][kWidth][kAccessThreads];
    const Share own = own_share<kWidth>(s);
    float origin[kWidth] = {}, mean[kWidth] = {}, squares[kWidth] = {};
    float seen = 0;
    if (own.is_there) {
        const typename Rows::Raw raw = rows.load(own.first * s.columns + own.column);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) origin[j] = Rows::number(raw, j);
    }
    for_each_batch(rows, s, own, [&](const typename Rows::Raw(&raw)[kBatch], int count, int64_t) {
        const auto more = static_cast<float>(count);
        const float weight = 1 / more, share = more / (seen + more), between = seen * share;
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            float x[kBatch], sum = 0, about = 0;
#pragma unroll
            for (int i = 0; i < kBatch; ++i)
                if (i < count) sum += x[i] = Rows::number(raw[i], j) - origin[j];
            const float middle = sum * weight;
#pragma unroll
            for (int i = 0; i < kBatch; ++i)
                if (i < count) about = fmaf(x[i] - middle, x[i] - middle, about);
            const float apart = middle - mean[j];
            mean[j] = fmaf(apart, share, mean[j]);
            squares[j] += fmaf(apart * between, apart, about);
        }
        seen += more;
    });
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
        const double sum = static_cast<double>(seen) * mean[j];
        sums[0][j][threadIdx.x] = sum;
        sums[1][j][threadIdx.x] = squares[j] + sum * mean[j];
    }
    add_lanes(sums, s.lanes, s.groups);
    if (own.lane != 0 || !own.is_there) return;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
        const double2 all = make_double2(sums[0][j][threadIdx.x], sums[1][j][threadIdx.x]);
        if (s.parts == 1) {
            terms.finish(own.column + j, make_double2(origin[j], 0), all);
            continue;
        }
        const auto n = static_cast<double>(own.last - own.first);
        const MeanAndVariance part = mean_and_variance(origin[j], all.x, all.y, n);
        stored[own.part * s.columns + own.column + j] = make_double2(part.mean, part.variance * n);
    }
}

template <class Rows>
void launch_statistics(const MatrixView& rows, float* mean, float* variance, cudaStream_t stream) {
    const Sharing s = share(rows.rows, rows.columns, Rows::kWidth,
                            static_cast<int64_t>(kRowNormBlocksOfUnit) * multiprocessors(rows.device),
                            kRowNormFewRowsOfSum, kMostRowsOfSum);
    const StatisticsTerms terms = {rows.rows, s.rows_of_part, mean, variance};
    const Scratch<double2> stored(s.parts == 1 ? 0 : checked_mul(s.parts, s.columns), stream);
    statistics_of_parts<<<s.blocks(), kAccessThreads, 0, stream>>>(access<Rows>(rows), s, terms, stored.get());
    STIPPLE_CHECK_LAUNCH(statistics_of_parts);
    if (s.parts > 1) launch_combine(stored.get(), s, terms, stream);
}

/// least: as not_below() has it.
template <class Rows, class Out>
__global__ void __launch_bounds__(kAccessThreads, kRowNormBlocksOfUnit)
    normalise(Rows rows, Out out, const __grid_constant__ Sharing s, const float* scale, const float* shift,
              float least) {
    constexpr int kWidth = Rows::kWidth;
    const Share own = own_share<kWidth>(s);
    float a[kWidth] = {}, b[kWidth] = {};
    if (own.is_there) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) a[j] = scale[own.column + j], b[j] = shift[own.column + j];
    }
    const int64_t step = s.lanes * s.columns;
    for_each_batch(rows, s, own, [&](const typename Rows::Raw(&raw)[kBatch], int count, int64_t at) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            if (i >= count) continue;
            float y[kWidth];
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                y[j] = not_below(least, scaled_and_shifted(Rows::number(raw[i], j), a[j], b[j]));
            out.store(at + i * step, y);
        }
    });
}

template <class Rows, class Out>
void launch_normalise(const Rows& in, const Out& out, const MatrixView& rows, const float* scale, const float* shift,
                      bool has_relu, cudaStream_t stream) {
    // Four times as many blocks as run at once: late ones level out what the first ones had of the memory.
    const Sharing s = share(rows.rows, rows.columns, Rows::kWidth,
                            static_cast<int64_t>(4) * kRowNormBlocksOfUnit * multiprocessors(rows.device), kBatch,
                            rows.rows + kBatch);
    normalise<<<s.blocks(), kAccessThreads, 0, stream>>>(in, out, s, scale, shift, has_relu ? 0.0f : -INFINITY);
    STIPPLE_CHECK_LAUNCH(normalise);
}

}  // namespace

void column_statistics(const MatrixView& rows, View<float, 1> mean, View<float, 1> variance, Stream stream) {
    const CurrentDevice current(rows.device);
    const int width = rows.dtype == DType::f32 ? 4 : 8;
    if (rows.columns % width != 0 || !is_aligned(rows.data))
        return launch_statistics<Numbers>(rows, mean.data(), variance.data(), raw(stream));
    with_type(rows.dtype, [&](auto type) {
        constexpr DType kType = decltype(type)::value;
        launch_statistics<Vectors<kType, kType == DType::f32 ? 4 : 8>>(rows, mean.data(), variance.data(), raw(stream));
    });
}

void normalise_rows(const MatrixView& rows, View<const float, 1> scale, View<const float, 1> shift, bool has_relu,
                    const MutableMatrixView& out, Stream stream) {
    const CurrentDevice current(rows.device);
    with_access(rows, out, [&](const auto& in, const auto& to) {
        launch_normalise(in, to, rows, scale.data(), shift.data(), has_relu, raw(stream));
    });
}

}  // namespace stipple::ops::cuda
