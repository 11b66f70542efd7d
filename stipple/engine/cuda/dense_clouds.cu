// Dense layers of many cloud-level rows: the heads of a network on a large batch. A block makes 64 rows x 64 channels
// from four stages of 64 inputs that are copied behind its back; few such blocks would leave the GPU idle, so the sum
// over the inputs is cut among the blocks of a cluster (sm_90 and newer), which add up in the order of their ranks.

#include <algorithm>
#include <cooperative_groups.h>

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kDenseCloudsRows = 64, kDepth = 64;
// 32 and 16 bytes more than a row: the rows that a warp reads at a time then lie in different banks.
constexpr int kXPitch = kDepth * 4 + 32, kWPitch = kDepth * 2 + 16;

template <int kColumns>
struct Shape {
    static constexpr int kThreads = kColumns * 2;           // a warp makes 32 x 32
    static constexpr int kStages = kColumns == 64 ? 4 : 3;  // as many as let two blocks share a multiprocessor
    static constexpr int kStageBytes = kDenseCloudsRows * kXPitch + kColumns * kWPitch;
    static constexpr int kBytes = kStages * kStageBytes;
    static constexpr int kProductPitch = kColumns + 4;
    static_assert(kDenseCloudsRows * kProductPitch * 4 <= kBytes);
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ inline uint32_t address_of(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
/// 16 bytes that arrive later; zeros when !is_there.
__device__ inline void copy_later(std::byte* to, const void* from, bool is_there) {
    const int bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ inline void end_of_stage() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Pending>
__device__ inline void wait_for_stage() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// The sum of all blocks' products, in the rows of this block's share. All threads; others' products stay until the
/// end.
template <int kColumns, int kSplit>
__device__ inline void add_products(float* product, int first_row) {
#if __CUDA_ARCH__ >= 900
    const auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
    constexpr int kVectors = kColumns / 4;
    for (int i = threadIdx.x; i < kDenseCloudsRows / kSplit * kVectors; i += Shape<kColumns>::kThreads) {
        float* at = product + (first_row + i / kVectors) * Shape<kColumns>::kProductPitch + i % kVectors * 4;
        float4 sum = *reinterpret_cast<const float4*>(cluster.map_shared_rank(at, 0));
#pragma unroll
        for (int rank = 1; rank < kSplit; ++rank) {
            const float4 x = *reinterpret_cast<const float4*>(cluster.map_shared_rank(at, rank));
            sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
        }
        *reinterpret_cast<float4*>(at) = sum;
    }
    cluster.sync();
#endif
}
#endif

template <class Factors, int kColumns, int kSplit>
__global__ void __launch_bounds__(Shape<kColumns>::kThreads)
    dense_clouds(const __grid_constant__ DenseArguments a, int64_t rows, int column_tiles) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    constexpr int kThreads = Shape<kColumns>::kThreads, kStages = Shape<kColumns>::kStages;
    constexpr int kStageBytes = Shape<kColumns>::kStageBytes, kProductPitch = Shape<kColumns>::kProductPitch;
    extern __shared__ __align__(16) std::byte shared[];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int block = blockIdx.x / kSplit, rank = blockIdx.x % kSplit;
    const int64_t row = static_cast<int64_t>(block / column_tiles) * kDenseCloudsRows;
    const int column = block % column_tiles * kColumns;
    const int all_steps = a.packed_in / kDepth;
    const int step_begin = all_steps * rank / kSplit, steps = all_steps * (rank + 1) / kSplit - step_begin;

    const float* const x = a.parts[0].data + (row - a.parts[0].origin) * a.parts[0].stride;
    const auto* const w = static_cast<const uint16_t*>(a.weight) + static_cast<int64_t>(column) * a.weight_pitch;
    const int packed_out = (a.out + kTileColumns - 1) / kTileColumns * kTileColumns;
    const auto fetch = [&](int step) {
        std::byte* const xs = shared + step % kStages * kStageBytes;
        std::byte* const ws = xs + kDenseCloudsRows * kXPitch;
        const int k = (step_begin + step) * kDepth;
        if (step < steps) {
#pragma unroll
            for (int i = thread; i < kDenseCloudsRows * kDepth / 4; i += kThreads) {
                const int r = i / (kDepth / 4), c = i % (kDepth / 4) * 4;
                const bool is_there = row + r < rows;
                copy_later(xs + r * kXPitch + c * 4, is_there ? x + r * a.parts[0].stride + k + c : x, is_there);
            }
#pragma unroll
            for (int i = thread; i < kColumns * kDepth / 8; i += kThreads) {
                const int n = i / (kDepth / 8), c = i % (kDepth / 8) * 8;
                const bool is_there = column + n < packed_out;
                copy_later(ws + n * kWPitch + c * 2,
                           is_there ? w + static_cast<int64_t>(n) * a.weight_pitch + k + c : w, is_there);
            }
        }
        end_of_stage();
    };
#pragma unroll
    for (int step = 0; step < kStages - 1; ++step) fetch(step);

    // A warp makes 32 x 32: two tiles of 16 rows, four of 8 columns.
    const int warp_row = warp % 2 * 32, warp_column = warp / 2 * 32;
    float sum[2][4][4] = {};
    for (int step = 0; step < steps; ++step) {
        wait_for_stage<kStages - 2>();
        __syncthreads();
        fetch(step + kStages - 1);
        const std::byte* const xs = shared + step % kStages * kStageBytes;
        const std::byte* const ws = xs + kDenseCloudsRows * kXPitch;
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            uint32_t xr[2][4], wr[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const int r = warp_row + i * 16 + lane / 4 + part % 2 * 8, c = k + part / 2 * 8 + lane % 4 * 2;
                    const float2 pair = *reinterpret_cast<const float2*>(xs + r * kXPitch + c * 4);
                    xr[i][part] = Factors::pack(pair.x, pair.y);
                }
                const std::byte* at =
                    ws + (warp_column + i * 16 + lane % 8 + lane / 16 * 8) * kWPitch + (k + lane / 8 % 2 * 8) * 2;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(wr[i][0]), "=r"(wr[i][1]), "=r"(wr[i][2]), "=r"(wr[i][3])
                             : "r"(address_of(at)));
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) Factors::multiply(sum[i][j], xr[i], wr[j / 2] + j % 2 * 2);
        }
    }
    wait_for_stage<0>();
    __syncthreads();

    float* const product = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float* at = product + (warp_row + i * 16 + lane / 4) * kProductPitch + warp_column + j * 8 + lane % 4 * 2;
            *reinterpret_cast<float2*>(at) = make_float2(sum[i][j][0], sum[i][j][1]);
            *reinterpret_cast<float2*>(at + 8 * kProductPitch) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    const int first_row = rank * (kDenseCloudsRows / kSplit);
    if constexpr (kSplit > 1)
        add_products<kColumns, kSplit>(product, first_row);
    else
        __syncthreads();

    constexpr int kVectors = kColumns / 4;
    const int n = column + thread % kVectors * 4;
    for (int r = first_row + thread / kVectors; r < first_row + kDenseCloudsRows / kSplit; r += kThreads / kVectors) {
        if (row + r >= rows) break;
        const float* const at = product + r * kProductPitch + thread % kVectors * 4;
        float* const y = a.y + (row + r - a.y_origin) * a.y_stride + n;
        if (a.y_vectors && n < a.out) {
            const float4 bias = *reinterpret_cast<const float4*>(a.bias + n);
            *reinterpret_cast<float4*>(y) =
                make_float4(apply(a.activation, at[0] + bias.x), apply(a.activation, at[1] + bias.y),
                            apply(a.activation, at[2] + bias.z), apply(a.activation, at[3] + bias.w));
        } else {
            for (int i = 0; i < 4 && n + i < a.out; ++i) y[i] = apply(a.activation, at[i] + a.bias[n + i]);
        }
    }
#endif
}

template <class Factors, int kColumns, int kSplit>
void launch_split(const DenseArguments& a, int64_t rows, int column_tiles, int64_t blocks, cudaStream_t stream) {
    constexpr int kBytes = Shape<kColumns>::kBytes;
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(dense_clouds<Factors, kColumns, kSplit>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {kSplit, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks * kSplit));
    config.blockDim = dim3(Shape<kColumns>::kThreads);
    config.dynamicSmemBytes = kBytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = kSplit > 1 ? 1 : 0;
    STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&config, dense_clouds<Factors, kColumns, kSplit>, a, rows, column_tiles));
}

template <class Factors, int kColumns>
void launch_columns(const DenseArguments& a, int64_t rows, cudaStream_t stream) {
    int device = 0, major = 0, units = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device));
    const int column_tiles = (a.out + kColumns - 1) / kColumns;
    const int64_t blocks = (rows + kDenseCloudsRows - 1) / kDenseCloudsRows * column_tiles;
    int split = 1;
    while (major >= 9 && split < 4 && blocks * split * 2 <= 2 * units && a.packed_in / kDepth >= split * 4) split *= 2;
    if (split == 4) return launch_split<Factors, kColumns, 4>(a, rows, column_tiles, blocks, stream);
    if (split == 2) return launch_split<Factors, kColumns, 2>(a, rows, column_tiles, blocks, stream);
    launch_split<Factors, kColumns, 1>(a, rows, column_tiles, blocks, stream);
}

template <class Factors>
void launch(const DenseArguments& a, int64_t rows, cudaStream_t stream) {
    if (a.out <= 64) return launch_columns<Factors, 64>(a, rows, stream);
    launch_columns<Factors, 128>(a, rows, stream);
}

}  // namespace

bool fits_dense_clouds(const DenseArguments& a, Precision precision) {
    const bool fits = (precision == Precision::fp16 || precision == Precision::bf16) && a.matrix == nullptr &&
                      a.reduce == Reduce::none && a.part_count == 1 && a.addend_count == 0 && a.parts[0].vectors &&
                      a.packed_in == a.in && a.in % kDepth == 0;
    if (!fits) return false;
    int device = 0, shared = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return shared >= std::max(Shape<64>::kBytes, Shape<128>::kBytes);
}

void launch_dense_clouds(const DenseArguments& arguments, int64_t rows, Precision precision, cudaStream_t stream) {
    if (precision == Precision::bf16) return launch<Bf16Factors>(arguments, rows, stream);
    launch<Fp16Factors>(arguments, rows, stream);
}

}  // namespace stipple::engine::cuda
