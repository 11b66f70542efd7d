#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/training/tensor_list.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kGradientNormPerBlock = 4096;  // numbers: four vectors a thread
constexpr int kLastThreads = 1024;

struct NormItem {
    const void* data;
    int64_t count;
    DType dtype;
    bool is_aligned;
};

/// Of a block, in the first thread: within each warp by halves, then the warps' sums likewise. All threads.
template <int kThreads>
__device__ inline double block_sum(double sum) {
    constexpr int kWarps = kThreads / 32;
    static_assert(kWarps <= 32);
    __shared__ double sums[kWarps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp != 0) return 0;
    sum = lane < kWarps ? sums[lane] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    return sum;
}

/// The sum of squares of each block's numbers: a thread's own in their order, then as block_sum says.
__global__ void __launch_bounds__(kListThreads)
    squares_kernel(const __grid_constant__ TensorList<NormItem> list, double* block_sums) {
    int32_t block_of_tensor;
    const NormItem& item = list.items[find_tensor(list, static_cast<int32_t>(blockIdx.x), block_of_tensor)];
    double sum = 0;
    for_numbers<kGradientNormPerBlock>(item.count, block_of_tensor, item.is_aligned, [&]<int kCount>(int64_t at) {
        float x[kCount];
        load_numbers(item.data, item.dtype, at, x);
#pragma unroll
        for (int i = 0; i < kCount; ++i) sum = fma(static_cast<double>(x[i]), static_cast<double>(x[i]), sum);
    });
    sum = block_sum<kListThreads>(sum);
    if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

/// One block. Thread t adds up the sums t, t + 1024, ...
__global__ void __launch_bounds__(kLastThreads) norm_kernel(const double* block_sums, int64_t count, float* norm) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += kLastThreads) sum += block_sums[i];
    sum = block_sum<kLastThreads>(sum);
    if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

}  // namespace

void gradient_norm(std::span<const GradientTensor> gradients, View<float, 1> norm, Stream stream) {
    const CurrentDevice current(norm.device());
    int64_t blocks = 0;
    for (const GradientTensor& tensor : gradients)
        blocks += (tensor.count + kGradientNormPerBlock - 1) / kGradientNormPerBlock;
    const Scratch<double> sums(blocks, raw(stream));
    int64_t first = 0;
    const auto item = [](const GradientTensor& tensor) {
        return NormItem{tensor.data, tensor.count, tensor.dtype, are_aligned(tensor.data)};
    };
    for_lists<NormItem>(gradients, kGradientNormPerBlock, item, [&](const TensorList<NormItem>& list, unsigned count) {
        squares_kernel<<<count, kListThreads, 0, raw(stream)>>>(list, sums.get() + first);
        STIPPLE_CHECK_LAUNCH(squares_kernel);
        first += count;
    });
    norm_kernel<<<1, kLastThreads, 0, raw(stream)>>>(sums.get(), blocks, norm.data());
    STIPPLE_CHECK_LAUNCH(norm_kernel);
}

}  // namespace stipple::ops::cuda
