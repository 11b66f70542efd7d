#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/dropout.h"
#include "stipple/ops/training/dropout_factor.h"
#include "stipple/ops/training/typed_numbers.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kDropoutThreads = 256;

struct DropoutArguments {
    const void* x;
    void* out;
    const int64_t* step;
    uint64_t key, first_block;  // first_block: of the random blocks that these numbers share
    int64_t count;
    int skipped;  // numbers of the first block that are before ours
    float factor;
    uint32_t least;
    bool is_aligned;
};

/// A thread takes the numbers of one random block. x may be out: a thread has read its numbers before it writes, and
/// nobody else's.
template <DType kType>
__global__ void __launch_bounds__(kDropoutThreads) dropout_kernel(const __grid_constant__ DropoutArguments a) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * kDropoutThreads + threadIdx.x;
    const int64_t begin = kEach * thread - a.skipped;
    if (begin >= a.count) return;
    const Rng rng(a.key, static_cast<uint64_t>(*a.step));
    const RandomBlock random = rng.block(a.first_block + static_cast<uint64_t>(thread));
    if (a.is_aligned && begin + kEach <= a.count) {
        float x[kEach];
        load_numbers(a.x, kType, begin, x);
#pragma unroll
        for (int i = 0; i < kEach; ++i) x[i] *= random.word[i] >= a.least ? a.factor : 0.0f;
        store_numbers(x, a.out, kType, begin);
        return;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        const int64_t at = begin + i;
        if (at < 0 || at >= a.count) continue;
        float x[1];
        load_numbers(a.x, kType, at, x);
        x[0] *= random.word[i] >= a.least ? a.factor : 0.0f;
        store_numbers(x, a.out, kType, at);
    }
}

static_assert(kEach == sizeof(RandomBlock) / sizeof(uint32_t));

}  // namespace

void dropout(const MatrixView& x, float rate, uint64_t key, const int64_t* step, int64_t first, void* out,
             Stream stream) {
    const CurrentDevice current(x.device);
    const int64_t count = x.rows * x.columns;
    const int skipped = static_cast<int>(first % 4);
    const DropoutArguments a = {.x = x.data,
                                .out = out,
                                .step = step,
                                .key = key,
                                .first_block = static_cast<uint64_t>(first / 4),
                                .count = count,
                                .skipped = skipped,
                                .factor = kept_factor(rate),
                                .least = least_kept(rate),
                                .is_aligned = skipped == 0 && are_aligned(x.data, out)};
    const unsigned blocks = blocks_for(count + skipped, kDropoutThreads * kEach);
    switch (x.dtype) {
        case DType::f16: dropout_kernel<DType::f16><<<blocks, kDropoutThreads, 0, raw(stream)>>>(a); break;
        case DType::bf16: dropout_kernel<DType::bf16><<<blocks, kDropoutThreads, 0, raw(stream)>>>(a); break;
        default: dropout_kernel<DType::f32><<<blocks, kDropoutThreads, 0, raw(stream)>>>(a); break;
    }
    STIPPLE_CHECK_LAUNCH(dropout_kernel);
}

}  // namespace stipple::ops::cuda
