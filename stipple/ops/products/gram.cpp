#include "stipple/ops/gram.h"

#include <algorithm>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/products/float_rows.h"
#include "stipple/ops/products/require_matrix.h"

namespace stipple::ops {
namespace {

bool fits_cuda(int64_t k) {
    return k >= 16 && k <= 128 && k % 16 == 0;
}

}  // namespace

namespace cpu {
namespace {

constexpr int64_t kBlockRows = 32;  // added up in float32

/// The sum of a part's rows, and on and above the diagonal of their products. A block's products of one column with all
/// that follow are one loop over the latter.
void add_part(FloatRows& rows, int64_t begin, int64_t end, int64_t k, double* sum, double* products) {
    std::vector<float> room(static_cast<size_t>(k));
    float* line = room.data();
    for (int64_t row = begin; row < end; row += kBlockRows) {
        const int64_t count = std::min(kBlockRows, end - row);
        const float* x = rows.get(row, count);
        std::fill_n(line, k, 0.0f);
        for (int64_t r = 0; r < count; ++r)
            for (int64_t j = 0; j < k; ++j) line[j] += x[r * k + j];
        for (int64_t j = 0; j < k; ++j) sum[j] += line[j];
        for (int64_t i = 0; i < k; ++i) {
            std::fill_n(line + i, k - i, 0.0f);
            for (int64_t r = 0; r < count; ++r) {
                const float* of_row = x + r * k;
                const float factor = of_row[i];
                for (int64_t j = i; j < k; ++j) line[j] += factor * of_row[j];
            }
            for (int64_t j = i; j < k; ++j) products[i * k + j] += line[j];
        }
    }
}

void gram(const MatrixView& rows, View<double, 1> sum, View<double, 2> products) {
    const int64_t n = rows.rows, k = rows.columns, numbers = k + k * k;
    // Parts do not depend on the number of threads; as many as 16 MB have room for.
    const int64_t most = std::clamp<int64_t>((int64_t{16} << 20) / (8 * numbers), 1, 64);
    const int64_t rows_of_part = std::max<int64_t>(1024, (n + most - 1) / most);
    const int64_t parts = (n + rows_of_part - 1) / rows_of_part;
    std::vector<double> of_parts(static_cast<size_t>(checked_mul(parts, numbers)));
    parallel_for(parts, 1, [&](int64_t part, int64_t last) {
        FloatRows floats(rows, std::min(kBlockRows, n));
        for (; part < last; ++part) {
            double* own = of_parts.data() + part * numbers;
            add_part(floats, part * rows_of_part, std::min(n, (part + 1) * rows_of_part), k, own, own + k);
        }
    });
    const auto total = [&](int64_t i) {
        double all = 0;
        for (int64_t part = 0; part < parts; ++part) all += of_parts[part * numbers + i];
        return all;
    };
    for (int64_t j = 0; j < k; ++j) sum(j) = total(j);
    for (int64_t i = 0; i < k; ++i)
        for (int64_t j = i; j < k; ++j) products(i, j) = products(j, i) = total(k + i * k + j);
}

}  // namespace
}  // namespace cpu

bool can_gram_cuda(int64_t k) {
#ifdef STIPPLE_WITH_CUDA
    return fits_cuda(k) && cuda::has_gram();
#else
    return fits_cuda(k);
#endif
}

void gram(const MatrixView& rows, View<double, 1> sum, View<double, 2> products, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "gram";
    const int64_t k = rows.columns;
    require_number_type(kOp, "rows", rows.dtype);
    STIPPLE_REQUIRE(rows.rows >= 0 && k >= 0, "{}: rows of shape [{}, {}]", kOp, rows.rows, k);
    require_output<double, 1>(kOp, "sum", sum, {k}, rows.device);
    require_output<double, 2>(kOp, "products", products, {k, k}, rows.device);
    if (rows.device.type == DeviceType::cuda) {
        STIPPLE_REQUIRE(rows.dtype != DType::f32, "{}: on CUDA rows must be float16 or bfloat16, got float32", kOp);
        STIPPLE_REQUIRE(fits_cuda(k), "{}: on CUDA k must be a multiple of 16 up to 128, got {}", kOp, k);
        require_aligned(kOp, "rows", rows.data);
    }
    if (k == 0) return;
    switch (rows.device.type) {
        case DeviceType::cpu: return cpu::gram(rows, sum, products);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::gram, rows, sum, products, stream);
    }
}

}  // namespace stipple::ops
