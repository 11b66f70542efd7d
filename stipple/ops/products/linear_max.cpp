#include "stipple/ops/linear_max.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/common/simd.h"
#include "stipple/ops/products/float_rows.h"
#include "stipple/ops/products/require_matrix.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stipple::ops {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

bool fits_cuda(int64_t k, int64_t channels) {
    return k >= 16 && k <= 128 && k % 16 == 0 && channels >= 64 && channels % 64 == 0;
}

void require_matrix(const char* op, const char* name, const MatrixView& matrix, int64_t rows) {
    require_number_type(op, name, matrix.dtype);
    STIPPLE_REQUIRE(matrix.columns >= 0 && matrix.rows == rows, "{}: {} must be [{}, k], got [{}, {}]", op, name, rows,
                    matrix.rows, matrix.columns);
    if (matrix.device.type == DeviceType::cuda) require_aligned(op, name, matrix.data);
}

void require_sizes(const char* op, const Batch& batch, int64_t k, int64_t channels, Device device) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    STIPPLE_REQUIRE(batch.largest() <= kMost, "{}: a cloud of {} points; the most is {}", op, batch.largest(), kMost);
    STIPPLE_REQUIRE(device.type == DeviceType::cpu || fits_cuda(k, channels),
                    "{}: on CUDA k must be a multiple of 16 up to 128 and channels one of 64, got k {} and {} channels",
                    op, k, channels);
}

}  // namespace

namespace cpu {
namespace {

// A step of the product: so many rows and vectors of channels at a time as fit into registers beside their factors.
constexpr int kRows = 4;
#if defined(__aarch64__)
constexpr int kVectors = 4;  // of 32 registers
#else
constexpr int kVectors = 2;  // of 16
#endif
constexpr int kPanel = 4 * kVectors;   // channels
constexpr int64_t kRowsOfBlock = 64;   // that all panels of a task pass over while they are in the first cache
constexpr int64_t kPanelsOfTask = 16;  // a block is converted once for so many

inline Float4 multiply_add(Float4 sum, Float4 a, Float4 b) {
#if defined(__aarch64__)
    return vfmaq_f32(sum, a, b);
#else
    return sum + a * b;
#endif
}

/// The weight by panels of kPanel channels, in each the numbers of one column side by side; channels that fill the last
/// panel are 0.
std::vector<float> panels_of(const MatrixView& weight) {
    const int64_t k = weight.columns, channels = weight.rows, panels = (channels + kPanel - 1) / kPanel;
    std::vector<float> packed(static_cast<size_t>(checked_mul(panels * kPanel, k)));
    parallel_for(panels, 8, [&](int64_t begin, int64_t end) {
        FloatRows rows(weight, 1);
        for (int64_t c = begin * kPanel; c < std::min(end * kPanel, channels); ++c) {
            const float* row = rows.get(c, 1);
            float* to = packed.data() + c / kPanel * kPanel * k + c % kPanel;
            for (int64_t j = 0; j < k; ++j) to[j * kPanel] = row[j];
        }
    });
    return packed;
}

struct Best {
    Float4 value[kVectors];
    Int4 row[kVectors];
};

/// Rows first .. first + Count of a cloud against one panel. A product is summed in the order of its columns, whatever
/// the blocks are.
template <int Count>
void pass(const float* rows, int64_t k, const float* panel, int32_t first, Best& best) {
    Float4 sum[Count][kVectors] = {};
    for (int64_t j = 0; j < k; ++j) {
        Float4 w[kVectors];
        for (int v = 0; v < kVectors; ++v) w[v] = load<Float4>(panel + j * kPanel + 4 * v);
        for (int r = 0; r < Count; ++r) {
            const Float4 x = all(rows[r * k + j]);
            for (int v = 0; v < kVectors; ++v) sum[r][v] = multiply_add(sum[r][v], x, w[v]);
        }
    }
    for (int r = 0; r < Count; ++r)
        for (int v = 0; v < kVectors; ++v) {
            const Float4 x = sum[r][v];
            const Int4 is_first_nan = (x != x) & (best.value[v] == best.value[v]);
            const Int4 wins = (x > best.value[v]) | is_first_nan;
            best.value[v] = wins ? x : best.value[v];
            best.row[v] = wins ? all(first + r) : best.row[v];
        }
}

void pass_block(const float* rows, int64_t count, int64_t k, const float* panel, int32_t first, Best& best) {
    int64_t r = 0;
    for (; r + kRows <= count; r += kRows) pass<kRows>(rows + r * k, k, panel, first + static_cast<int32_t>(r), best);
    for (; r < count; ++r) pass<1>(rows + r * k, k, panel, first + static_cast<int32_t>(r), best);
}

/// Panels begin .. end of one cloud.
void largest_of_cloud(FloatRows& rows, const Batch& batch, int64_t cloud, int64_t k, const float* packed, int64_t begin,
                      int64_t end, View<float, 2> largest, View<int32_t, 2> winners) {
    const int64_t n = batch.size(cloud), channels = largest.size(1);
    Best best[kPanelsOfTask];
    for (Best& one : best)
        for (int v = 0; v < kVectors; ++v) {
            one.value[v] = all(kNone);
            one.row[v] = all(n > 0 ? 0 : -1);  // stays where all products are -infinity
        }
    for (int64_t r = 0; r < n; r += kRowsOfBlock) {
        const int64_t count = std::min(kRowsOfBlock, n - r);
        const float* block = rows.get(batch.begin(cloud) + r, count);
        for (int64_t p = begin; p < end; ++p)
            pass_block(block, count, k, packed + p * kPanel * k, static_cast<int32_t>(r), best[p - begin]);
    }
    for (int64_t c = begin * kPanel; c < std::min(end * kPanel, channels); ++c) {
        const Best& one = best[c / kPanel - begin];
        largest(cloud, c) = one.value[c % kPanel / 4][c % 4];
        winners(cloud, c) = one.row[c % kPanel / 4][c % 4];
    }
}

void linear_max(const MatrixView& rows, const Batch& batch, const MatrixView& weight, View<float, 2> largest,
                View<int32_t, 2> winners) {
    const std::vector<float> packed = panels_of(weight);
    const int64_t panels = (weight.rows + kPanel - 1) / kPanel;
    const int64_t tasks_of_cloud = (panels + kPanelsOfTask - 1) / kPanelsOfTask;
    parallel_for(batch.clouds() * tasks_of_cloud, 1, [&](int64_t task, int64_t last_task) {
        FloatRows floats(rows, std::min(kRowsOfBlock, batch.largest()));
        for (; task < last_task; ++task) {
            const int64_t begin = task % tasks_of_cloud * kPanelsOfTask;
            largest_of_cloud(floats, batch, task / tasks_of_cloud, rows.columns, packed.data(), begin,
                             std::min(begin + kPanelsOfTask, panels), largest, winners);
        }
    });
}

bool is_row(const Batch& batch, int64_t cloud, int32_t winner) {
    return winner >= 0 && winner < batch.size(cloud);
}

constexpr int64_t kChannelsAtATime = 1024;  // as the kernel

void from_float(float x, const MutableMatrixView& matrix, int64_t at) {
    if (matrix.dtype == DType::f32)
        static_cast<float*>(matrix.data)[at] = x;
    else
        static_cast<uint16_t*>(matrix.data)[at] = matrix.dtype == DType::f16 ? float_to_half(x) : float_to_bfloat16(x);
}

void add_scaled(float* sum, float factor, const float* row, int64_t k) {
    for (int64_t j = 0; j < k; ++j) sum[j] += factor * row[j];
}

/// A cloud's channels in ascending order; of short numbers kChannelsAtATime of them are added to a row at once.
void linear_max_backward_rows(const Batch& batch, const MatrixView& weight, View<const int32_t, 2> winners,
                              View<const float, 2> dL_dlargest, const MutableMatrixView& dL_drows,
                              const RowsBefore& before) {
    const int64_t k = weight.columns, channels = weight.rows;
    FloatRows floats(weight, channels);
    const float* w = floats.get(0, channels);
    const bool has_before = before.factor.elements() > 0 || before.constant.elements() > 0;
    const float factor = before.factor.elements() > 0 ? before.factor(0) : 1.0f;
    if (!has_before && dL_drows.dtype == DType::f32) {
        parallel_for(batch.clouds(), 1, [&](int64_t begin, int64_t end) {
            for (int64_t cloud = begin; cloud < end; ++cloud)
                for (int64_t c = 0; c < channels; ++c) {
                    const int32_t winner = winners(cloud, c);
                    if (!is_row(batch, cloud, winner)) continue;
                    float* row = static_cast<float*>(dL_drows.data) + (batch.begin(cloud) + winner) * k;
                    add_scaled(row, dL_dlargest(cloud, c), w + c * k, k);
                }
        });
        return;
    }
    parallel_for(batch.clouds(), 1, [&](int64_t begin, int64_t end) {
        std::vector<float> sums(static_cast<size_t>(batch.largest() * k));
        std::vector<char> is_named(static_cast<size_t>(batch.largest()));
        for (int64_t cloud = begin; cloud < end; ++cloud)
            for (int64_t first = 0; first == 0 || first < channels; first += kChannelsAtATime) {
                std::fill(sums.begin(), sums.end(), 0.0f);
                std::fill(is_named.begin(), is_named.end(), has_before && first == 0);
                for (int64_t c = first; c < std::min(first + kChannelsAtATime, channels); ++c) {
                    const int32_t winner = winners(cloud, c);
                    if (!is_row(batch, cloud, winner)) continue;
                    is_named[static_cast<size_t>(winner)] = 1;
                    add_scaled(sums.data() + winner * k, dL_dlargest(cloud, c), w + c * k, k);
                }
                for (int64_t r = 0; r < batch.size(cloud); ++r) {
                    if (!is_named[static_cast<size_t>(r)]) continue;
                    for (int64_t j = 0; j < k; ++j) {
                        const int64_t at = (batch.begin(cloud) + r) * k + j;
                        float x = 0;
                        to_floats(dL_drows.data, dL_drows.dtype, at, 1, &x);
                        if (has_before && first == 0) {
                            const float constant = before.constant.elements() > 0 ? before.constant(j) : 0.0f;
                            x = std::fma(factor, x, constant);
                        }
                        from_float(x + sums[static_cast<size_t>(r * k + j)], dL_drows, at);
                    }
                }
            }
    });
}

/// A channel's clouds in ascending order.
void linear_max_backward_weight(const MatrixView& rows, const Batch& batch, View<const int32_t, 2> winners,
                                View<const float, 2> dL_dlargest, View<float, 2> dL_dweight) {
    const int64_t k = rows.columns, channels = dL_dweight.size(0);
    parallel_for(channels, 16, [&](int64_t begin, int64_t end) {
        FloatRows floats(rows, 1);
        std::fill(dL_dweight.data() + begin * k, dL_dweight.data() + end * k, 0.0f);
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
            for (int64_t c = begin; c < end; ++c) {
                const int32_t winner = winners(cloud, c);
                if (!is_row(batch, cloud, winner)) continue;
                const float* row = floats.get(batch.begin(cloud) + winner, 1);
                add_scaled(dL_dweight.data() + c * k, dL_dlargest(cloud, c), row, k);
            }
    });
}

}  // namespace
}  // namespace cpu

bool can_linear_max_cuda(int64_t k, int64_t channels) {
#ifdef STIPPLE_WITH_CUDA
    return fits_cuda(k, channels) && cuda::has_linear_max();
#else
    return fits_cuda(k, channels);
#endif
}

void linear_max(const MatrixView& rows, const Batch& batch, const MatrixView& weight, View<float, 2> largest,
                View<int32_t, 2> winners, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "linear_max";
    const int64_t clouds = batch.clouds(), channels = weight.rows, k = rows.columns;
    require_matrix(kOp, "rows", rows, batch.rows());
    require_matrix(kOp, "weight", weight, channels);
    STIPPLE_REQUIRE(weight.columns == k, "{}: weight must be [channels, {}], got [{}, {}]", kOp, k, channels,
                    weight.columns);
    STIPPLE_REQUIRE(weight.dtype == rows.dtype, "{}: rows of {}, weight of {}", kOp, name_of(rows.dtype),
                    name_of(weight.dtype));
    require_device(kOp, "weight", rows.device, weight.device);
    require_output<float, 2>(kOp, "largest", largest, {clouds, channels}, rows.device);
    require_output<int32_t, 2>(kOp, "winners", winners, {clouds, channels}, rows.device);
    require_sizes(kOp, batch, k, channels, rows.device);
    if (largest.elements() == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::linear_max(rows, batch, weight, largest, winners);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::linear_max, rows, batch, weight, largest, winners, stream);
    }
}

void linear_max_backward_rows(const Batch& batch, const MatrixView& weight, View<const int32_t, 2> winners,
                              View<const float, 2> dL_dlargest, const MutableMatrixView& dL_drows,
                              const RowsBefore& before, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "linear_max_backward_rows";
    const int64_t clouds = batch.clouds(), channels = weight.rows, k = weight.columns;
    require_matrix(kOp, "weight", weight, channels);
    require_output<const int32_t, 2>(kOp, "winners", winners, {clouds, channels}, weight.device);
    require_output<const float, 2>(kOp, "dL_dlargest", dL_dlargest, {clouds, channels}, weight.device);
    STIPPLE_REQUIRE(dL_drows.rows == batch.rows() && dL_drows.columns == k,
                    "{}: dL_drows must be [{}, {}], got [{}, {}]", kOp, batch.rows(), k, dL_drows.rows,
                    dL_drows.columns);
    require_matrix(kOp, "dL_drows", dL_drows, batch.rows());
    require_device(kOp, "dL_drows", weight.device, dL_drows.device);
    if (before.factor.elements() > 0) require_output<const float, 1>(kOp, "factor", before.factor, {1}, weight.device);
    if (before.constant.elements() > 0)
        require_output<const float, 1>(kOp, "constant", before.constant, {k}, weight.device);
    require_sizes(kOp, batch, k, channels, weight.device);
    if (batch.rows() == 0 || k == 0) return;
    switch (weight.device.type) {
        case DeviceType::cpu:
            return cpu::linear_max_backward_rows(batch, weight, winners, dL_dlargest, dL_drows, before);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::linear_max_backward_rows, batch, weight, winners, dL_dlargest, dL_drows, before,
                              stream);
    }
}

void linear_max_backward_weight(const MatrixView& rows, const Batch& batch, View<const int32_t, 2> winners,
                                View<const float, 2> dL_dlargest, View<float, 2> dL_dweight,
                                [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "linear_max_backward_weight";
    const int64_t clouds = batch.clouds(), channels = dL_dweight.size(0), k = rows.columns;
    require_matrix(kOp, "rows", rows, batch.rows());
    require_output<const int32_t, 2>(kOp, "winners", winners, {clouds, channels}, rows.device);
    require_output<const float, 2>(kOp, "dL_dlargest", dL_dlargest, {clouds, channels}, rows.device);
    require_output<float, 2>(kOp, "dL_dweight", dL_dweight, {channels, k}, rows.device);
    require_sizes(kOp, batch, k, channels, rows.device);
    if (rows.device.type == DeviceType::cuda) require_aligned(kOp, "dL_dweight", dL_dweight.data());
    if (dL_dweight.elements() == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::linear_max_backward_weight(rows, batch, winners, dL_dlargest, dL_dweight);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::linear_max_backward_weight, rows, batch, winners, dL_dlargest, dL_dweight, stream);
    }
}

}  // namespace stipple::ops
