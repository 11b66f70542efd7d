// The fused chain on tensor cores before Hopper's (sm_80 and newer; fp8 from sm_89 on): the same tiles, numbers and
// packed weights as cuda/chain_wgmma.cu, with the products of single warps. A warp keeps the weights of 32 channels in
// registers while the tile's points pass by, eight at a time, read from shared memory.

#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/chain_kernel.h"
#include "stipple/engine/cuda/chain_numbers.cuh"

namespace stipple::engine::cuda {
namespace {

constexpr int kChainMmaThreads = 256;
[[maybe_unused]] constexpr int kWarps = kChainMmaThreads / 32;
constexpr int kPoints = kChainMmaPoints;
[[maybe_unused]] constexpr int kRowBytes = 128;

template <Precision P>
struct ChainMmaLayout {
    static constexpr int kHidden = kPoints * kChainFirst * Factor<kMiddlePrecision<P>>::kBytes;
    static constexpr int kWide = kPoints * kChainLast * Factor<P>::kBytes;
    static constexpr int kBytes = 2 * kHidden + kWide;  // the middle layers go back and forth
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
constexpr uint32_t kSlab = kPoints * kRowBytes;

/// Where byte `byte` of a row of any length is: slabs of 128 bytes, in which 16-byte pieces are permuted by the row.
__device__ inline uint32_t place(uint32_t row, uint32_t byte) {
    return byte / kRowBytes * kSlab + row * kRowBytes + (byte % kRowBytes ^ (row & 7) << 4);
}

template <Precision P, class Sum>
__device__ inline void product(Sum (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define STIPPLE_MMA(instruction, constraint)                                                              \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                 : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (P == Precision::fp16) STIPPLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f");
    if constexpr (P == Precision::bf16) STIPPLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "f");
    if constexpr (P == Precision::tf32) STIPPLE_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "f");
    if constexpr (P == Precision::int8) STIPPLE_MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "r");
#if __CUDA_ARCH__ >= 890
    if constexpr (P == Precision::fp8) STIPPLE_MMA("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "f");
#endif
#undef STIPPLE_MMA
}

/// 64 bytes of eight rows: two steps' worth of the products' second factor.
__device__ inline void load_rows(uint32_t (&b)[4], uint32_t rows, uint32_t row, uint32_t byte, int lane) {
    const uint32_t address = rows + place(row + (lane & 7), byte + lane / 8 * 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address));
}

/// The weights of 16 channels: slice `slice` of the packed array, or of the cloud's own matrix.
template <Precision P, int kSteps>
__device__ inline void load_packed(uint32_t (&a)[kSteps][4], const uint4* packed, int slice, int lane) {
    const uint4* at = packed + ((slice / 4 * kSteps) * 4 + slice % 4) * 32 + lane;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        const uint4 four = __ldg(at + step * 128);
        a[step][0] = four.x, a[step][1] = four.y, a[step][2] = four.z, a[step][3] = four.w;
        if constexpr (P == Precision::tf32)  // those of the middle layers are not rounded yet
            for (uint32_t& word : a[step]) word = __float_as_uint(round_tf32(__uint_as_float(word)));
    }
}
template <Precision P, int kSteps>
__device__ inline void load_matrix(uint32_t (&a)[kSteps][4], const float* matrix, int slice, int lane) {
    constexpr int kWord = 4 / Factor<P>::kBytes;
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int row = slice * 16 + lane / 4 + (part & 1) * 8;
            const int channel = (step * 8 + (part >> 1) * 4 + (lane & 3)) * kWord;
            const float* at = matrix + row * kChainFirst + channel;
            if constexpr (P == Precision::tf32)
                a[step][part] = __float_as_uint(round_tf32(at[0]));
            else
                a[step][part] = pack_half<P>(at[0], at[1]);
        }
}

/// Writes 16 channels of 8 points.
template <Precision P>
__device__ inline void store_sums(const float (&d)[4], uint32_t rows, int slice, int column, int lane, float bias_low,
                                  float bias_high, float slope, float scale) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const uint32_t row = column + (lane & 3) * 2 + e;
        float low = d[e] + bias_low, high = d[2 + e] + bias_high;
        low = fmaxf(low, low * slope), high = fmaxf(high, high * slope);
        if constexpr (P == Precision::tf32) {
            const uint32_t byte = (slice * 16 + lane / 4) * 4;
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(rows + place(row, byte)), "f"(round_tf32(low)) : "memory");
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(rows + place(row, byte + 32)), "f"(round_tf32(high))
                         : "memory");
        } else if constexpr (Factor<P>::kBytes == 2) {
            const uint32_t byte = (slice * 16 + lane / 4) * 2, pair = pack_half<P>(low, high);
            const uint16_t first = pair & 0xffff, second = pair >> 16;
            asm volatile("st.shared.u16 [%0], %1;" ::"r"(rows + place(row, byte)), "h"(first) : "memory");
            asm volatile("st.shared.u16 [%0], %1;" ::"r"(rows + place(row, byte + 16)), "h"(second) : "memory");
        } else {
            const auto pair = static_cast<uint16_t>(pack_byte_pair<P>(low * scale, high * scale));
            asm volatile("st.shared.u16 [%0], %1;" ::"r"(rows + place(row, slice * 16 + lane / 4 * 2)), "h"(pair)
                         : "memory");
        }
    }
}
#endif

template <Precision P>
__global__ void __launch_bounds__(kChainMmaThreads) chain_kernel(ChainArguments arguments) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    constexpr Precision kMiddle = kMiddlePrecision<P>;
    using Sum = typename Factor<P>::Sum;
    extern __shared__ __align__(1024) char shared_memory[];
    const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory));
    uint32_t from = base, to = base + ChainMmaLayout<P>::kHidden;
    const uint32_t wide = base + 2 * ChainMmaLayout<P>::kHidden;

    const int tiles = (arguments.points + kPoints - 1) / kPoints;
    const int cloud = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const int64_t begin = arguments.offsets ? arguments.offsets[cloud] : int64_t(cloud) * arguments.points;
    const int n = arguments.offsets ? static_cast<int>(arguments.offsets[cloud + 1] - begin) : arguments.points;
    if (tile * kPoints >= n) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // First layer, in float32: two threads a point. Points past the end repeat the last one.
    {
        const int row = threadIdx.x % kPoints, half = threadIdx.x / kPoints;
        const float* at = arguments.x + (begin + min(tile * kPoints + row, n - 1)) * arguments.x_stride;
        const float x = at[0], y = at[1], z = at[2];
        const float* weight =
            arguments.first_weight + (arguments.first_of_cloud ? int64_t(cloud) * kChainFirst * 3 : 0);
        auto channel_value = [&](int c) {
            const float sum =
                fmaf(weight[3 * c + 2], z, fmaf(weight[3 * c + 1], y, fmaf(weight[3 * c], x, arguments.first_bias[c])));
            return fmaxf(sum, sum * arguments.first_slope);
        };
        constexpr int kWord = 4 / Factor<kMiddle>::kBytes;
        for (int c = half * kChainFirst / 2; c < (half + 1) * kChainFirst / 2; c += kWord) {
            uint32_t word;
            if constexpr (kMiddle == Precision::tf32)
                word = __float_as_uint(round_tf32(channel_value(c)));
            else
                word = pack_half<kMiddle>(channel_value(c), channel_value(c + 1));
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(from + place(row, c * Factor<kMiddle>::kBytes)), "r"(word)
                         : "memory");
        }
    }
    __syncthreads();

    constexpr int kMiddleSteps = kChainFirst * Factor<kMiddle>::kBytes / 32;
#pragma unroll 1
    for (int m = 0; m < arguments.n_middle; ++m) {
        const ChainMiddle& layer = arguments.middle[m];
        const bool widens = m == arguments.n_middle - 1;
        const int outs = widens ? kChainLast : kChainFirst, slices = outs / 16;
        const int slice = warp % slices, share = warp / slices, columns = kPoints * slices / kWarps;
        uint32_t a[kMiddleSteps][4];
        if (layer.matrix != nullptr)
            load_matrix<kMiddle, kMiddleSteps>(a, layer.matrix + int64_t(cloud) * outs * kChainFirst, slice, lane);
        else
            load_packed<kMiddle, kMiddleSteps>(a, layer.weight, slice, lane);
        const float bias_low = layer.bias[slice * 16 + lane / 4], bias_high = layer.bias[slice * 16 + lane / 4 + 8];
#pragma unroll 1
        for (int column = share * columns; column < (share + 1) * columns; column += 8) {
            float d[4] = {};
#pragma unroll
            for (int step = 0; step < kMiddleSteps; step += 2) {
                uint32_t b[4];
                load_rows(b, from, column, step * 32, lane);
                product<kMiddle>(d, a[step], b[0], b[1]);
                product<kMiddle>(d, a[step + 1], b[2], b[3]);
            }
            if (widens)
                store_sums<P>(d, wide, slice, column, lane, bias_low, bias_high, layer.slope,
                              arguments.last_input_scale);
            else
                store_sums<kMiddle>(d, to, slice, column, lane, bias_low, bias_high, layer.slope, 1);
        }
        const uint32_t swap = from;
        from = to, to = swap;
        __syncthreads();
    }

    constexpr int kSteps = kChainLast * Factor<P>::kBytes / 32;
    const int block_slices = arguments.out / 16 / gridDim.y, slice_begin = blockIdx.y * block_slices;
    float* partial = arguments.partial + int64_t(blockIdx.x) * arguments.out;
#pragma unroll 1
    for (int pair = warp; pair < block_slices / 2; pair += kWarps) {
        const int slice = slice_begin + 2 * pair;
        uint32_t a[2][kSteps][4];
        load_packed<P, kSteps>(a[0], arguments.last_weight, slice, lane);
        load_packed<P, kSteps>(a[1], arguments.last_weight, slice + 1, lane);
        Sum largest[2][2];
#pragma unroll 1
        for (int column = 0; column < kPoints; column += 8) {
            Sum d[2][4] = {};
#pragma unroll
            for (int step = 0; step < kSteps; step += 2) {
                uint32_t b[4];
                load_rows(b, wide, column, step * 32, lane);
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    product<P>(d[s], a[s][step], b[0], b[1]);
                    product<P>(d[s], a[s][step + 1], b[2], b[3]);
                }
            }
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                const Sum low = larger(d[s][0], d[s][1]), high = larger(d[s][2], d[s][3]);
                largest[s][0] = column == 0 ? low : larger(largest[s][0], low);
                largest[s][1] = column == 0 ? high : larger(largest[s][1], high);
            }
        }
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                Sum value = largest[s][h];
                value = larger(value, __shfl_xor_sync(~0u, value, 1));
                value = larger(value, __shfl_xor_sync(~0u, value, 2));
                if ((lane & 3) == 0) partial[(slice + s) * 16 + h * 8 + lane / 4] = static_cast<float>(value);
            }
    }
#endif
}

template <Precision P>
void launch(int multiprocessors, const ChainArguments& arguments, cudaStream_t stream) {
    const int64_t blocks = int64_t(arguments.clouds) * ((arguments.points + kPoints - 1) / kPoints);
    int shares = 1;
    while (blocks * shares * 2 <= multiprocessors && arguments.out / (shares * 2) % kChainOutStep == 0) shares *= 2;
    STIPPLE_CHECK_CUDA(
        cudaFuncSetAttribute(chain_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, ChainMmaLayout<P>::kBytes));
    chain_kernel<P>
        <<<dim3(static_cast<unsigned>(blocks), shares), kChainMmaThreads, ChainMmaLayout<P>::kBytes, stream>>>(
            arguments);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace

int chain_mma_shared_bytes(Precision precision) {
    switch (precision) {
        case Precision::tf32: return ChainMmaLayout<Precision::tf32>::kBytes;
        case Precision::int8:
        case Precision::fp8: return ChainMmaLayout<Precision::int8>::kBytes;
        default: return ChainMmaLayout<Precision::fp16>::kBytes;
    }
}

void launch_chain_mma(Precision precision, int multiprocessors, const ChainArguments& arguments, Stream stream) {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    switch (precision) {
        case Precision::fp16: return launch<Precision::fp16>(multiprocessors, arguments, handle);
        case Precision::bf16: return launch<Precision::bf16>(multiprocessors, arguments, handle);
        case Precision::tf32: return launch<Precision::tf32>(multiprocessors, arguments, handle);
        case Precision::int8: return launch<Precision::int8>(multiprocessors, arguments, handle);
        case Precision::fp8: return launch<Precision::fp8>(multiprocessors, arguments, handle);
        case Precision::fp32: break;
    }
    STIPPLE_ASSERT(!"a precision without tensor cores");
}

}  // namespace stipple::engine::cuda
