#include "stipple/ops/row_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/products/float_rows.h"
#include "stipple/ops/products/require_matrix.h"
#include "stipple/ops/products/row_norm_number.h"

namespace stipple::ops {
namespace {

void require_rows(const char* op, const MatrixView& rows) {
    require_number_type(op, "rows", rows.dtype);
    STIPPLE_REQUIRE(rows.rows >= 0 && rows.columns >= 0, "{}: rows of shape [{}, {}]", op, rows.rows, rows.columns);
    STIPPLE_REQUIRE(rows.columns <= std::numeric_limits<int32_t>::max(), "{}: {} columns; the most is {}", op,
                    rows.columns, std::numeric_limits<int32_t>::max());
    checked_mul(checked_mul(rows.rows, rows.columns), 4);
}

/// Another matrix of the shape of rows.
void require_like_rows(const char* op, const char* name, const MatrixView& matrix, const MatrixView& rows) {
    require_number_type(op, name, matrix.dtype);
    STIPPLE_REQUIRE(matrix.rows == rows.rows && matrix.columns == rows.columns, "{}: {} must be [{}, {}], got [{}, {}]",
                    op, name, rows.rows, rows.columns, matrix.rows, matrix.columns);
    require_device(op, name, rows.device, matrix.device);
}

template <class T>
void require_of_columns(const char* op, const char* name, const View<T, 1>& view, const MatrixView& rows) {
    require_output<T, 1>(op, name, view, {rows.columns}, rows.device);
}

void require_columns(const char* op, const NormColumns& columns, const MatrixView& rows) {
    require_of_columns(op, "mean", columns.mean, rows);
    require_of_columns(op, "inverse", columns.inverse, rows);
    require_of_columns(op, "scale", columns.scale, rows);
    require_of_columns(op, "shift", columns.shift, rows);
}

}  // namespace

namespace cpu {
namespace {

constexpr int64_t kBlockRows = 64;  // summed in float32, read twice from the cache

/// Rows cut into at most 256 parts of at least 32,768 numbers, whatever the number of threads.
struct Parts {
    int64_t rows, rows_of_part, count;

    Parts(int64_t n, int64_t c) : rows(n) {
        const int64_t least = std::max(kBlockRows, 32768 / std::max<int64_t>(c, 1));
        rows_of_part = std::max(least, (n + 255) / 256);
        count = (n + rows_of_part - 1) / rows_of_part;
    }
    int64_t begin(int64_t part) const { return part * rows_of_part; }
    int64_t end(int64_t part) const { return std::min(rows, begin(part) + rows_of_part); }
};

/// Two numbers of every column, one after the other, for each part.
class PartNumbers {
public:
    PartNumbers(const Parts& parts, int64_t c)
        : c_(c), numbers_(static_cast<size_t>(checked_mul(2 * parts.count, c))) {}
    double* first(int64_t part) { return numbers_.data() + 2 * part * c_; }
    double* second(int64_t part) { return first(part) + c_; }

private:
    int64_t c_;
    std::vector<double> numbers_;
};

/// Mean of a part's rows, and the sum of squares about it. Both of a block's passes are relative to the part's first
/// row, so that nothing large is subtracted.
void statistics_of_part(FloatRows& rows, int64_t begin, int64_t end, int64_t c, double* mean, double* squares) {
    std::vector<float> room(static_cast<size_t>(3 * c));
    float *origin = room.data(), *middle = origin + c, *about = middle + c;
    std::copy_n(rows.get(begin, 1), c, origin);
    std::fill_n(mean, c, 0.0);
    std::fill_n(squares, c, 0.0);
    for (int64_t row = begin; row < end; row += kBlockRows) {
        const int64_t count = std::min(kBlockRows, end - row);
        const float* x = rows.get(row, count);
        const float weight = 1 / static_cast<float>(count);
        std::fill_n(middle, c, 0.0f);
        std::fill_n(about, c, 0.0f);
        for (int64_t r = 0; r < count; ++r)
            for (int64_t j = 0; j < c; ++j) middle[j] += x[r * c + j] - origin[j];
        for (int64_t j = 0; j < c; ++j) middle[j] *= weight;
        for (int64_t r = 0; r < count; ++r)
            for (int64_t j = 0; j < c; ++j) {
                const float d = x[r * c + j] - origin[j] - middle[j];
                about[j] += d * d;
            }
        for (int64_t j = 0; j < c; ++j) {
            const double sum = static_cast<double>(count) * middle[j];
            mean[j] += sum;
            squares[j] += about[j] + sum * middle[j];
        }
    }
    const auto n = static_cast<double>(end - begin);
    for (int64_t j = 0; j < c; ++j) {
        const MeanAndVariance part = mean_and_variance(origin[j], mean[j], squares[j], n);
        mean[j] = part.mean;
        squares[j] = part.variance * n;
    }
}

void column_statistics(const MatrixView& rows, View<float, 1> mean, View<float, 1> variance) {
    const int64_t c = rows.columns;
    const Parts parts(rows.rows, c);
    PartNumbers of_parts(parts, c);
    parallel_for(parts.count, 1, [&](int64_t part, int64_t last) {
        FloatRows floats(rows, std::min(kBlockRows, rows.rows));
        for (; part < last; ++part)
            statistics_of_part(floats, parts.begin(part), parts.end(part), c, of_parts.first(part),
                               of_parts.second(part));
    });
    for (int64_t j = 0; j < c; ++j) {
        const double origin = of_parts.first(0)[j];
        double sum = 0, squares = 0;
        for (int64_t part = 0; part < parts.count; ++part) {
            const auto n = static_cast<double>(parts.end(part) - parts.begin(part));
            const double from_origin = of_parts.first(part)[j] - origin;
            sum += n * from_origin;
            squares += of_parts.second(part)[j] + n * from_origin * from_origin;
        }
        const MeanAndVariance all = mean_and_variance(origin, sum, squares, static_cast<double>(rows.rows));
        mean(j) = static_cast<float>(finite_or_nan(all.mean));
        variance(j) = static_cast<float>(all.variance);
    }
}

/// Calls write(first, count, to) for blocks of rows, where `to` is for their results as floats: the matrix itself, or
/// room from which they are converted.
template <class Write>
void write_rows(const MutableMatrixView& out, const Write& write) {
    const int64_t c = out.columns, block = std::clamp<int64_t>(4096 / c, 1, out.rows);
    parallel_for((out.rows + block - 1) / block, 4, [&](int64_t begin, int64_t end) {
        std::vector<float> room(static_cast<size_t>(out.dtype == DType::f32 ? 0 : block * c));
        auto one = write(block);
        for (int64_t first = begin * block; first < std::min(end * block, out.rows); first += block) {
            const int64_t count = std::min(block, out.rows - first);
            if (out.dtype == DType::f32) {
                one(first, count, static_cast<float*>(out.data) + first * c);
            } else {
                one(first, count, room.data());
                from_floats(room.data(), count * c, out.data, out.dtype, first * c);
            }
        }
    });
}

void normalise_rows(const MatrixView& rows, View<const float, 1> scale, View<const float, 1> shift, bool has_relu,
                    const MutableMatrixView& out) {
    const int64_t c = rows.columns;
    const float least = has_relu ? 0.0f : -std::numeric_limits<float>::infinity();
    const float *a = scale.data(), *b = shift.data();
    write_rows(out, [&](int64_t block) {
        return [&, floats = FloatRows(rows, block)](int64_t first, int64_t count, float* to) mutable {
            const float* x = floats.get(first, count);
            for (int64_t r = 0; r < count; ++r)
                for (int64_t j = 0; j < c; ++j)
                    to[r * c + j] = not_below(least, scaled_and_shifted(x[r * c + j], a[j], b[j]));
        };
    });
}

/// Sums of g and of g (x - mean) over a part's rows.
void gradient_of_part(FloatRows& gradients, FloatRows& rows, const NormColumns& columns, bool has_relu, int64_t begin,
                      int64_t end, int64_t c, double* sum_g, double* sum_gx) {
    std::vector<float> room(static_cast<size_t>(2 * c));
    float *of_g = room.data(), *of_gx = of_g + c;
    const float *mean = columns.mean.data(), *scale = columns.scale.data(), *shift = columns.shift.data();
    std::fill_n(sum_g, c, 0.0);
    std::fill_n(sum_gx, c, 0.0);
    for (int64_t row = begin; row < end; row += kBlockRows) {
        const int64_t count = std::min(kBlockRows, end - row);
        const float *dL_dout = gradients.get(row, count), *x = rows.get(row, count);
        std::fill_n(of_g, 2 * c, 0.0f);
        for (int64_t r = 0; r < count; ++r)
            for (int64_t j = 0; j < c; ++j) {
                const int64_t i = r * c + j;
                const float g = passed(dL_dout[i], x[i], scale[j], shift[j], has_relu);
                of_g[j] += g;
                of_gx[j] += g * (x[i] - mean[j]);
            }
        for (int64_t j = 0; j < c; ++j) {
            sum_g[j] += of_g[j];
            sum_gx[j] += of_gx[j];
        }
    }
}

void norm_backward_sums(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns, bool has_relu,
                        View<float, 1> sum_g, View<float, 1> sum_gx) {
    const int64_t c = rows.columns;
    const Parts parts(rows.rows, c);
    PartNumbers of_parts(parts, c);
    parallel_for(parts.count, 1, [&](int64_t part, int64_t last) {
        const int64_t most = std::min(kBlockRows, rows.rows);
        FloatRows gradients(dL_dout, most), floats(rows, most);
        for (; part < last; ++part)
            gradient_of_part(gradients, floats, columns, has_relu, parts.begin(part), parts.end(part), c,
                             of_parts.first(part), of_parts.second(part));
    });
    for (int64_t j = 0; j < c; ++j) {
        double of_g = 0, of_gx = 0;
        for (int64_t part = 0; part < parts.count; ++part) {
            of_g += of_parts.first(part)[j];
            of_gx += of_parts.second(part)[j];
        }
        sum_g(j) = static_cast<float>(of_g);
        sum_gx(j) = static_cast<float>(of_gx * columns.inverse(j));
    }
}

void norm_backward_rows(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns,
                        View<const float, 1> sum_g, View<const float, 1> sum_gx, double count, bool has_relu,
                        const MutableMatrixView& dL_drows) {
    const int64_t c = rows.columns;
    const float *mean = columns.mean.data(), *scale = columns.scale.data(), *shift = columns.shift.data();
    std::vector<MeanGradient> all(static_cast<size_t>(c));
    for (int64_t j = 0; j < c; ++j) all[j] = mean_gradient(sum_g(j), sum_gx(j), columns.inverse(j), 1 / count);
    write_rows(dL_drows, [&](int64_t block) {
        return [&, gradients = FloatRows(dL_dout, block), floats = FloatRows(rows, block)](int64_t first, int64_t n,
                                                                                           float* to) mutable {
            const float *from = gradients.get(first, n), *x = floats.get(first, n);
            for (int64_t r = 0; r < n; ++r)
                for (int64_t j = 0; j < c; ++j) {
                    const int64_t i = r * c + j;
                    const float g = passed(from[i], x[i], scale[j], shift[j], has_relu);
                    to[i] = gradient_of_row(g, x[i], scale[j], mean[j], all[j]);
                }
        };
    });
}

}  // namespace
}  // namespace cpu

void column_statistics(const MatrixView& rows, View<float, 1> mean, View<float, 1> variance,
                       [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "column_statistics";
    require_rows(kOp, rows);
    STIPPLE_REQUIRE(rows.rows > 0, "{}: no rows, which have no mean", kOp);
    require_of_columns(kOp, "mean", mean, rows);
    require_of_columns(kOp, "variance", variance, rows);
    if (rows.columns == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::column_statistics(rows, mean, variance);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::column_statistics, rows, mean, variance, stream);
    }
}

void normalise_rows(const MatrixView& rows, View<const float, 1> scale, View<const float, 1> shift, bool has_relu,
                    const MutableMatrixView& out, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "normalise_rows";
    require_rows(kOp, rows);
    require_of_columns(kOp, "scale", scale, rows);
    require_of_columns(kOp, "shift", shift, rows);
    require_like_rows(kOp, "out", out, rows);
    if (rows.rows == 0 || rows.columns == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::normalise_rows(rows, scale, shift, has_relu, out);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::normalise_rows, rows, scale, shift, has_relu, out, stream);
    }
}

void norm_backward_sums(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns, bool has_relu,
                        View<float, 1> sum_g, View<float, 1> sum_gx, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "norm_backward_sums";
    require_rows(kOp, rows);
    require_like_rows(kOp, "dL_dout", dL_dout, rows);
    require_columns(kOp, columns, rows);
    require_of_columns(kOp, "sum_g", sum_g, rows);
    require_of_columns(kOp, "sum_gx", sum_gx, rows);
    if (rows.columns == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::norm_backward_sums(dL_dout, rows, columns, has_relu, sum_g, sum_gx);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::norm_backward_sums, dL_dout, rows, columns, has_relu, sum_g, sum_gx, stream);
    }
}

void norm_backward_rows(const MatrixView& dL_dout, const MatrixView& rows, const NormColumns& columns,
                        View<const float, 1> sum_g, View<const float, 1> sum_gx, double count, bool has_relu,
                        const MutableMatrixView& dL_drows, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "norm_backward_rows";
    require_rows(kOp, rows);
    require_like_rows(kOp, "dL_dout", dL_dout, rows);
    require_columns(kOp, columns, rows);
    require_of_columns(kOp, "sum_g", sum_g, rows);
    require_of_columns(kOp, "sum_gx", sum_gx, rows);
    require_like_rows(kOp, "dL_drows", dL_drows, rows);
    STIPPLE_REQUIRE(dL_drows.dtype == rows.dtype, "{}: rows of {}, dL_drows of {}", kOp, name_of(rows.dtype),
                    name_of(dL_drows.dtype));
    STIPPLE_REQUIRE(count > 0 && std::isfinite(count), "{}: a count of {} rows", kOp, count);
    if (rows.rows == 0 || rows.columns == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu:
            return cpu::norm_backward_rows(dL_dout, rows, columns, sum_g, sum_gx, count, has_relu, dL_drows);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::norm_backward_rows, dL_dout, rows, columns, sum_g, sum_gx, count, has_relu,
                              dL_drows, stream);
    }
}

}  // namespace stipple::ops
