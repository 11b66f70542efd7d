#pragma once
// A chain of dense layers packed for this CPU: rows go through all layers in tiles that stay in its caches, so that
// only the last result, or only its maximum, reaches memory. Kernels are chosen at run time by the CPU's instructions.
//
// What a product is, in every kernel:
//   fp32  one accumulator, inputs in ascending order, fused multiply-adds where the CPU has them;
//   bf16  factors rounded to the nearest, ties to even; products exact; sums in float32, rounded as the CPU's
//         instructions round them: within a few units of float32's last place of the sum of magnitudes;
//   int8  weights in steps of their channel's largest magnitude / 127, inputs in steps of input_range / 127, nearest,
//         ties to even, at most 127; sums in int32, exact for up to 133,000 inputs; the same bits on every CPU.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "stipple/engine/program.h"

namespace stipple::engine::cpu {

struct ChainPart {
    const float* data = nullptr;
    int64_t stride = 0;
    int64_t channels = 0;  // of this part; those of all parts add up to the first layer's `in`
};

/// Row r of the task adds the row `data + stride * (row: r, cloud: 0, point: r / width, neighbour: neighbours[r])`.
struct ChainAddend {
    const float* data = nullptr;
    int64_t stride = 0;
    Access access = Access::row;
    int64_t width = 1;
    const int32_t* neighbours = nullptr;
};

/// Rows of one cloud.
struct ChainTask {
    int64_t rows = 0;
    std::span<const ChainPart> parts;        // of the first layer
    std::span<const ChainAddend> addends;    // of the first layer
    std::span<const float* const> matrices;  // for each layer its cloud's weights [out, in], null where shared
    int64_t width = 1;                       // Reduce::max_rows: rows of a point; `rows` is a multiple of it
    /// none: [rows, out]. max_rows: [rows / width, out]. max_points: [out], raised to the largest raw product of any
    /// row (no bias, no activation: finish() adds them when all rows of the cloud are in).
    float* out = nullptr;
    int64_t out_stride = 0;
};

struct Kernel;  // cpu/chain/kernels.h

class Chain {
public:
    /// Throws Error{bad_argument} for a precision other than fp32, bf16 and int8, and for int8 without an input range.
    Chain(const std::vector<Dense>& layers, Reduce reduce);
    /// With these kernels, one for each precision that the layers have: for tests and benchmarks.
    Chain(const std::vector<Dense>& layers, Reduce reduce, std::span<const Kernel* const> kernels);
    ~Chain();
    Chain(Chain&&) noexcept;

    int64_t weight_bytes() const;
    int64_t scratch_bytes() const;  // of one call of run(); 64-byte aligned
    int64_t tile_rows() const;      // a good number of rows for one call: callers cut larger clouds at multiples of it
    std::string describe() const;   // "fp32 neon 8x12", "fp32 neon 8x12, bf16 bfmmla 8x12"

    /// Any number of threads at a time, each with scratch of its own. Rows do not depend on how a cloud is cut.
    void run(const ChainTask& task, std::byte* scratch) const;
    /// Reduce::max_points: out = activation(raw + bias), in place.
    void finish(float* raw) const;

private:
    struct Packed;
    std::unique_ptr<const Packed> packed_;
};

}  // namespace stipple::engine::cpu
