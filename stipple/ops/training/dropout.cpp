#include "stipple/ops/dropout.h"

#include "stipple/core/parallel.h"
#include "stipple/ops/training/dropout_factor.h"
#include "stipple/ops/training/typed_numbers.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kPiece = 1024;  // numbers that are converted at a time

void dropout(const MatrixView& x, float rate, const Rng& rng, uint64_t first, void* out) {
    const int64_t count = x.rows * x.columns;
    const float factor = kept_factor(rate);
    const uint32_t least = least_kept(rate);
    parallel_for((count + kPiece - 1) / kPiece, 16, [&](int64_t piece, int64_t last_piece) {
        float numbers[kPiece];
        for (; piece < last_piece; ++piece) {
            const int64_t begin = piece * kPiece, n = std::min(kPiece, count - begin);
            to_floats(x.data, x.dtype, begin, n, numbers);
            RandomBlock block{};
            for (int64_t i = 0; i < n; ++i) {
                const uint64_t index = first + static_cast<uint64_t>(begin + i);
                if (i == 0 || index % 4 == 0) block = rng.block(index / 4);
                numbers[i] *= block.word[index % 4] >= least ? factor : 0.0f;
            }
            from_floats(numbers, x.dtype, begin, n, out);
        }
    });
}

}  // namespace
}  // namespace cpu

void dropout(const MatrixView& x, float rate, uint64_t key, const int64_t* step, int64_t first, void* out,
             [[maybe_unused]] Stream stream) {
    require_number_type("dropout", "x", x.dtype);
    STIPPLE_REQUIRE(x.rows >= 0 && x.columns >= 0, "dropout: x must be [rows, c], got [{}, {}]", x.rows, x.columns);
    STIPPLE_REQUIRE(rate >= 0 && rate < 1, "dropout: rate must be at least 0 and below 1, got {}", rate);
    STIPPLE_REQUIRE(first >= 0, "dropout: first must be at least 0, got {}", first);
    STIPPLE_REQUIRE(step != nullptr, "dropout: no step");
    if (checked_mul(x.rows, x.columns) == 0) return;
    STIPPLE_REQUIRE(x.data != nullptr && out != nullptr, "dropout: no memory for {} numbers", x.rows * x.columns);
    switch (x.device.type) {
        case DeviceType::cpu:
            return cpu::dropout(x, rate, Rng(key, static_cast<uint64_t>(*step)), static_cast<uint64_t>(first), out);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::dropout, x, rate, key, step, first, out, stream);
    }
}

}  // namespace stipple::ops
