// The fused chain on Hopper's tensor cores.
//
// A block takes a tile of a cloud's points. Its two warpgroups first carry their own halves of the tile through the
// first and middle layers, into shared memory; then each takes every other 64 channels of the last layer: the weights
// of these come from the L2 cache into registers, the tile's points stream past them 128 at a time, and of the products
// only the maximum remains. Two accumulators alternate, so that the maximum of one is taken while the other is being
// computed.

#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/chain_kernel.h"
#include "stipple/engine/cuda/chain_numbers.cuh"
#include "stipple/engine/cuda/wgmma.cuh"

namespace stipple::engine::cuda {
namespace {

constexpr int kChainWgmmaThreads = 256;          // two warpgroups
[[maybe_unused]] constexpr int kColumns = 128;   // points of one product
[[maybe_unused]] constexpr int kRowBytes = 128;  // of a slab: as many channels as fit

template <Precision P, int kPoints>
struct Layout {  // of a block's shared memory, after the first multiple of 1024
    static constexpr int kHidden = kPoints * kChainFirst * Factor<kMiddlePrecision<P>>::kBytes;
    static constexpr int kWide = kPoints * kChainLast * Factor<P>::kBytes;
    static constexpr int kFirst = kChainFirst * sizeof(float4);
    static constexpr int kBytes = kHidden + kWide + kFirst + 1024;
};

// Everything from here on needs sm_90a; other targets get kernels that do nothing and are never launched.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define STIPPLE_HAS_WGMMA 1
#else
#define STIPPLE_HAS_WGMMA 0
#endif

#if STIPPLE_HAS_WGMMA
template <Precision P, class Sum>
__device__ inline void product(Sum (&d)[64], const uint32_t (&a)[4], uint64_t b, int accumulate) {
    if constexpr (P == Precision::fp16) wgmma_f16(d, a, b, accumulate);
    if constexpr (P == Precision::bf16) wgmma_bf16(d, a, b, accumulate);
    if constexpr (P == Precision::tf32) wgmma_tf32(d, a, b, accumulate);
    if constexpr (P == Precision::fp8) wgmma_e4m3(d, a, b, accumulate);
    if constexpr (P == Precision::int8) wgmma_s8(d, a, b, accumulate);
}

/// The product of one group of 64 channels with 128 points: K channels, in slabs `slab_stride` bytes apart.
template <Precision P, int K, class Sum>
__device__ inline void multiply(Sum (&d)[64], const uint32_t (&a)[K * Factor<P>::kBytes / 32][4], uint32_t rows,
                                uint32_t slab_stride, bool accumulate = false) {
    constexpr int kSteps = K * Factor<P>::kBytes / 32;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        const uint64_t b = rows_descriptor(rows + (step / 4) * slab_stride + (step % 4) * 32);
        product<P>(d, a[step], b, accumulate || step > 0);
    }
}

__device__ inline void store_four(uint32_t address, const uint32_t (&x)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
}
__device__ inline void store_transposed(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/// Writes 64 channels (group `group`) of 128 points from their sums: activation(sum + bias), rounded to P, a row for
/// each point from `rows` on. Eight-bit channels of a warp's 16 are stored in the order 0, 8, 1, 9, ... 7, 15: the
/// weights that meet them are packed likewise. What rounding to tf32 takes away goes to `rest_rows`, where it is
/// wanted.
template <Precision P, bool kKeepsRest = false>
__device__ inline void store_rows(const float (&d)[64], uint32_t rows, uint32_t slab_stride, int group, int warp,
                                  int lane, float bias_low, float bias_high, float slope, float scale,
                                  [[maybe_unused]] uint32_t rest_rows = 0) {
    auto activate = [slope](float x) { return fmaxf(x, x * slope); };
    if constexpr (P == Precision::tf32) {
        const uint32_t channel = group * 64 + warp * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 16; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const uint32_t point = 8 * j + 2 * (lane & 3) + (e & 1), c = channel + (e & 2) * 4;
                const float value = activate(d[4 * j + e] + (e & 2 ? bias_high : bias_low));
                const uint32_t place = (c / 32) * slab_stride + swizzled(point, (c % 32) * 4);
                const float large = round_tf32(value);
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(rows + place), "f"(large) : "memory");
                if constexpr (kKeepsRest)
                    asm volatile("st.shared.f32 [%0], %1;" ::"r"(rest_rows + place), "f"(round_tf32(value - large))
                                 : "memory");
            }
    } else if constexpr (P == Precision::fp16 || P == Precision::bf16) {
        // Four 8 x 8 blocks at a time: channels 0..7 and 8..15 of the warp, of 8 points and the next 8.
        const uint32_t point = (lane & 7) + ((lane >> 4) & 1) * 8, byte = warp * 32 + ((lane >> 3) & 1) * 16;
        const uint32_t base = rows + group * slab_stride;
#pragma unroll
        for (int j = 0; j < 16; j += 2) {
            uint32_t packed[4];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float* sums = d + 4 * (j + h);
                packed[2 * h] = pack_half<P>(activate(sums[0] + bias_low), activate(sums[1] + bias_low));
                packed[2 * h + 1] = pack_half<P>(activate(sums[2] + bias_high), activate(sums[3] + bias_high));
            }
            store_transposed(base + swizzled(8 * j + point, byte), packed[0], packed[1], packed[2], packed[3]);
        }
    } else {
        const uint32_t byte = (group * 4 + warp) * 16;
#pragma unroll
        for (int j = 0; j < 16; j += 4) {
            uint32_t packed[4];
#pragma unroll
            for (int h = 0; h < 4; ++h) {
                const float* sums = d + 4 * (j + h);
                const uint32_t first =
                    pack_byte_pair<P>(activate(sums[0] + bias_low) * scale, activate(sums[2] + bias_high) * scale);
                const uint32_t second =
                    pack_byte_pair<P>(activate(sums[1] + bias_low) * scale, activate(sums[3] + bias_high) * scale);
                packed[h] = first | second << 16;
            }
            store_transposed(rows + swizzled(8 * j + lane, byte), packed[0], packed[1], packed[2], packed[3]);
        }
    }
}

/// The weights of one group of 64 channels and 64 inputs, from a packed array or from the cloud's own float matrix.
/// Those of tf32 are not rounded yet.
template <Precision P>
__device__ inline void load_middle(uint32_t (&a)[2 * Factor<P>::kBytes][4], const ChainMiddle& layer, int cloud,
                                   int outs, int group, int warp, int lane) {
    constexpr int kSteps = 2 * Factor<P>::kBytes;
    if (layer.matrix == nullptr) {
        const uint4* packed = layer.weight + ((group * kSteps) * 4 + warp) * 32 + lane;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const uint4 four = __ldg(packed + step * 128);
            a[step][0] = four.x, a[step][1] = four.y, a[step][2] = four.z, a[step][3] = four.w;
        }
        return;
    }
    const float* matrix = layer.matrix + int64_t(cloud) * outs * 64;
    constexpr int kWord = 4 / Factor<P>::kBytes;  // channels of a register
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int row = group * 64 + warp * 16 + lane / 4 + (part & 1) * 8;
            const int channel = step * 8 * kWord + (part >> 1) * 4 * kWord + (lane & 3) * kWord;
            const float* at = matrix + row * 64 + channel;
            if constexpr (P == Precision::tf32) {
                a[step][part] = __float_as_uint(__ldg(at));
            } else {
                const float2 pair = __ldg(reinterpret_cast<const float2*>(at));
                a[step][part] = pack_half<P>(pair.x, pair.y);
            }
        }
}

/// Of float32 weights the tf32 part, in place, and what it leaves.
__device__ inline void split_weights(uint32_t (&a)[8][4], uint32_t (&rest)[8][4]) {
#pragma unroll
    for (int step = 0; step < 8; ++step)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const float value = __uint_as_float(a[step][part]), large = round_tf32(value);
            a[step][part] = __float_as_uint(large);
            rest[step][part] = __float_as_uint(round_tf32(value - large));
        }
}

/// Barrier ids are constants: a computed one would reserve all sixteen.
__device__ inline void warpgroup_barrier(int group) {
    if (group == 0)
        asm volatile("bar.sync 1, 128;" ::: "memory");
    else
        asm volatile("bar.sync 2, 128;" ::: "memory");
}
/// Ordinary stores to shared memory before it are seen by products after the next barrier.
__device__ inline void publish_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif

template <Precision P, int kPoints>
__global__ void __launch_bounds__(kChainWgmmaThreads, 1) chain_kernel(ChainArguments arguments) {
#if STIPPLE_HAS_WGMMA
    constexpr Precision kMiddle = kMiddlePrecision<P>;
    constexpr int kHalf = kPoints / 2;  // of a warpgroup, until the last layer
    using Sum = typename Factor<P>::Sum;
    extern __shared__ char shared_memory[];
    const uint32_t unaligned = static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory));
    const uint32_t hidden = (unaligned + 1023) & ~1023u;
    const uint32_t wide = hidden + Layout<P, kPoints>::kHidden;
    const uint32_t first = wide + Layout<P, kPoints>::kWide;
    float4* first_rows = reinterpret_cast<float4*>(shared_memory + (first - unaligned));
    constexpr uint32_t kSlab = kPoints * kRowBytes;
    // tf32: the layers before the last take three products each, which make up a float32 one, so that only the last
    // layer rounds. What is left of the hidden channels lies where the second half of the wide ones will be.
    constexpr bool kIsTf32 = P == Precision::tf32;
    const uint32_t hidden_rest = wide + 2 * kSlab;

    const int tiles = (arguments.points + kPoints - 1) / kPoints;
    const int cloud = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const int64_t begin = arguments.offsets ? arguments.offsets[cloud] : int64_t(cloud) * arguments.points;
    const int n = arguments.offsets ? static_cast<int>(arguments.offsets[cloud + 1] - begin) : arguments.points;
    if (tile * kPoints >= n) return;

    const int thread = threadIdx.x, warpgroup = thread / 128, in_group = thread % 128;
    const int warp = in_group / 32, lane = thread % 32;

    // First layer: three multiply-adds a channel, in float32. Points past the end repeat the last one: the maximum is
    // the same.
    if (thread < kChainFirst) {
        const float* weight =
            arguments.first_weight + (arguments.first_of_cloud ? int64_t(cloud) * kChainFirst * 3 : 0);
        first_rows[thread] = make_float4(weight[thread * 3], weight[thread * 3 + 1], weight[thread * 3 + 2],
                                         arguments.first_bias[thread]);
    }
    float3 point[kHalf / 128];
#pragma unroll
    for (int i = 0; i < kHalf / 128; ++i) {
        const int row = min(tile * kPoints + warpgroup * kHalf + i * 128 + in_group, n - 1);
        const float* at = arguments.x + (begin + row) * arguments.x_stride;
        point[i] = make_float3(at[0], at[1], at[2]);
    }
    __syncthreads();
#pragma unroll 1
    for (int piece = 0; piece < kChainFirst * Factor<kMiddle>::kBytes / 16; ++piece) {
        constexpr int kChannels = 16 / Factor<kMiddle>::kBytes;
        float value[kHalf / 128][kChannels];
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
            const float4 w = first_rows[piece * kChannels + c];
#pragma unroll
            for (int i = 0; i < kHalf / 128; ++i) {
                const float sum = fmaf(w.z, point[i].z, fmaf(w.y, point[i].y, fmaf(w.x, point[i].x, w.w)));
                value[i][c] = fmaxf(sum, sum * arguments.first_slope);
            }
        }
#pragma unroll
        for (int i = 0; i < kHalf / 128; ++i) {
            const uint32_t row = warpgroup * kHalf + i * 128 + in_group;
            const uint32_t place = (piece / 8) * kSlab + swizzled(row, (piece % 8) * 16);
            uint32_t packed[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                if constexpr (kIsTf32)
                    packed[q] = __float_as_uint(round_tf32(value[i][q]));
                else
                    packed[q] = pack_half<kMiddle>(value[i][2 * q], value[i][2 * q + 1]);
            }
            store_four(hidden + place, packed);
            if constexpr (kIsTf32) {
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    packed[q] = __float_as_uint(round_tf32(value[i][q] - __uint_as_float(packed[q])));
                store_four(hidden_rest + place, packed);
            }
        }
    }
    publish_to_products();
    warpgroup_barrier(warpgroup);

    // Middle layers: 64 -> 64 in place, the last of them 64 -> 128 into `wide`.
    const uint32_t own_rows = warpgroup * kHalf * kRowBytes;
#pragma unroll 1
    for (int m = 0; m < arguments.n_middle; ++m) {
        const ChainMiddle& layer = arguments.middle[m];
        const bool widens = m == arguments.n_middle - 1;
        const int groups = widens ? 2 : 1;
#pragma unroll 1
        for (int group = 0; group < groups; ++group) {
            uint32_t a[2 * Factor<kMiddle>::kBytes][4];
            load_middle<kMiddle>(a, layer, cloud, groups * 64, group, warp, lane);
            uint32_t rest[2 * Factor<kMiddle>::kBytes][4];
            if constexpr (kIsTf32) split_weights(a, rest);
            const int channel = group * 64 + warp * 16 + lane / 4;
            const float bias_low = layer.bias[channel], bias_high = layer.bias[channel + 8];
#pragma unroll 1
            for (int columns = 0; columns < kHalf; columns += kColumns) {
                const uint32_t rows = own_rows + columns * kRowBytes;
                float sums[64];
                wgmma_fence();
                if constexpr (kIsTf32) {
                    multiply<kMiddle, kChainFirst>(sums, rest, hidden + rows, kSlab);
                    multiply<kMiddle, kChainFirst>(sums, a, hidden_rest + rows, kSlab, true);
                }
                multiply<kMiddle, kChainFirst>(sums, a, hidden + rows, kSlab, kIsTf32);
                wgmma_commit();
                wgmma_wait<0>();
                // All four warps have read what is overwritten now.
                if (!widens || (kIsTf32 && group == 1)) warpgroup_barrier(warpgroup);
                if (widens)
                    store_rows<P>(sums, wide + rows, kSlab, group, warp, lane, bias_low, bias_high, layer.slope,
                                  arguments.last_input_scale);
                else
                    store_rows<kMiddle, kIsTf32>(sums, hidden + rows, kSlab, group, warp, lane, bias_low, bias_high,
                                                 layer.slope, 1, hidden_rest + rows);
            }
        }
        publish_to_products();
        if (!widens) warpgroup_barrier(warpgroup);
    }
    __syncthreads();

    // Last layer. A warpgroup's groups of 64 channels: every other one of the block's.
    constexpr int kSteps = kChainLast * Factor<P>::kBytes / 32;
    constexpr int kChunks = kPoints / kColumns;
    const int block_groups = arguments.out / 64 / gridDim.y;
    const int group_begin = blockIdx.y * block_groups + warpgroup;
    const int group_count = block_groups / 2;
    float* partial = arguments.partial + int64_t(blockIdx.x) * arguments.out;
    auto load = [&](uint32_t(&a)[kSteps][4], int i) {
        const uint4* packed = arguments.last_weight + (((group_begin + 2 * i) * kSteps) * 4 + warp) * 32 + lane;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const uint4 four = __ldg(packed + step * 128);
            a[step][0] = four.x, a[step][1] = four.y, a[step][2] = four.z, a[step][3] = four.w;
        }
    };
    auto take_max = [](const Sum(&d)[64], Sum& low, Sum& high) {
        Sum l0 = d[0], l1 = d[1], h0 = d[2], h1 = d[3];
#pragma unroll
        for (int j = 1; j < 16; ++j) {
            l0 = larger(l0, d[4 * j]), l1 = larger(l1, d[4 * j + 1]);
            h0 = larger(h0, d[4 * j + 2]), h1 = larger(h1, d[4 * j + 3]);
        }
        low = larger(low, larger(l0, l1)), high = larger(high, larger(h0, h1));
    };
    auto write_max = [&](Sum low, Sum high, int i) {
#pragma unroll
        for (int offset = 1; offset <= 2; offset *= 2) {
            low = larger(low, __shfl_xor_sync(~0u, low, offset));
            high = larger(high, __shfl_xor_sync(~0u, high, offset));
        }
        if ((lane & 3) == 0) {
            float* at = partial + (group_begin + 2 * i) * 64 + warp * 16 + lane / 4;
            at[0] = static_cast<float>(low), at[8] = static_cast<float>(high);
        }
    };
    Sum smallest;
    if constexpr (P == Precision::int8)
        smallest = INT32_MIN;
    else
        smallest = -INFINITY;

    Sum even[64], odd[64];
    auto run_group = [&](const uint32_t(&a)[kSteps][4], int i) {
        Sum low = smallest, high = smallest;
        wgmma_fence();
        multiply<P, kChainLast>(even, a, wide, kSlab);
        wgmma_commit();
#pragma unroll
        for (int chunk = 1; chunk < kChunks; ++chunk) {
            const uint32_t rows = wide + chunk * kColumns * kRowBytes;
            wgmma_fence();
            if (chunk % 2 == 1)
                multiply<P, kChainLast>(odd, a, rows, kSlab);
            else
                multiply<P, kChainLast>(even, a, rows, kSlab);
            wgmma_commit();
            wgmma_wait<1>();
            if (chunk % 2 == 1)
                take_max(even, low, high);
            else
                take_max(odd, low, high);
        }
        wgmma_wait<0>();
        take_max(odd, low, high);
        write_max(low, high, i);
    };
    static_assert(kChunks % 2 == 0);
    if constexpr (P == Precision::tf32) {  // no registers for the next group's weights
#pragma unroll 1
        for (int i = 0; i < group_count; ++i) {
            uint32_t a[kSteps][4];
            load(a, i);
            run_group(a, i);
        }
    } else {
        uint32_t a[kSteps][4], b[kSteps][4];
        load(a, 0);
#pragma unroll 1
        for (int i = 0; i < group_count; i += 2) {
            load(b, i + 1);
            run_group(a, i);
            if (i + 2 < group_count) load(a, i + 2);
            run_group(b, i + 1);
        }
    }
#endif
}

/// Four channels a thread.
__global__ void finish_kernel(ChainFinish arguments) {
    const int fours = arguments.out / 4;
    const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= int64_t(arguments.clouds) * fours) return;
    const int cloud = static_cast<int>(at / fours), channel = static_cast<int>(at % fours) * 4;
    const int n = arguments.offsets ? arguments.offsets[cloud + 1] - arguments.offsets[cloud] : arguments.points;
    const int tiles = (arguments.points + arguments.tile_points - 1) / arguments.tile_points;
    const int used = (n + arguments.tile_points - 1) / arguments.tile_points;
    const float* partial = arguments.partial + (int64_t(cloud) * tiles) * arguments.out + channel;
    float4 largest = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    for (int tile = 0; tile < used; ++tile) {
        const float4 x = *reinterpret_cast<const float4*>(partial + int64_t(tile) * arguments.out);
        largest =
            make_float4(fmaxf(largest.x, x.x), fmaxf(largest.y, x.y), fmaxf(largest.z, x.z), fmaxf(largest.w, x.w));
    }
    const float4 scale = *reinterpret_cast<const float4*>(arguments.scale + channel);
    const float4 bias = *reinterpret_cast<const float4*>(arguments.bias + channel);
    auto finish = [&](float x, float s, float b) {
        const float y = fmaf(x, s, b);
        return fmaxf(y, y * arguments.slope);
    };
    const float4 y = make_float4(finish(largest.x, scale.x, bias.x), finish(largest.y, scale.y, bias.y),
                                 finish(largest.z, scale.z, bias.z), finish(largest.w, scale.w, bias.w));
    float* const to = arguments.result + int64_t(cloud) * arguments.out + channel;
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0)
        *reinterpret_cast<float4*>(to) = y;
    else  // a caller's memory
        to[0] = y.x, to[1] = y.y, to[2] = y.z, to[3] = y.w;
}

template <Precision P, int kPoints>
void launch(int multiprocessors, const ChainArguments& arguments, cudaStream_t stream) {
    const int tiles = (arguments.points + kPoints - 1) / kPoints;
    const int64_t blocks = int64_t(arguments.clouds) * tiles;
    // Few tiles: several blocks share one, each with some of the channels (and the first layers over again).
    int shares = 1;
    while (blocks * shares * 2 <= multiprocessors && arguments.out / (shares * 2) % kChainOutStep == 0) shares *= 2;
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(chain_kernel<P, kPoints>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            Layout<P, kPoints>::kBytes));
    chain_kernel<P, kPoints>
        <<<dim3(static_cast<unsigned>(blocks), shares), kChainWgmmaThreads, Layout<P, kPoints>::kBytes, stream>>>(
            arguments);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace

int chain_wgmma_points(Precision precision, int64_t clouds, int64_t points, int multiprocessors) {
    if (precision == Precision::tf32) return 256;
    // Half as many weights pass through the L2 cache with the larger tile; with few points it leaves processors idle.
    const int64_t blocks = clouds * ((points + 511) / 512);
    return points > 256 && blocks >= multiprocessors ? 512 : 256;
}

void launch_chain_wgmma(Precision precision, int tile_points, int multiprocessors, const ChainArguments& arguments,
                        Stream stream) {
    const auto handle = static_cast<cudaStream_t>(stream.handle);
    const bool large = tile_points == 512;
    switch (precision) {
        case Precision::fp16:
            return large ? launch<Precision::fp16, 512>(multiprocessors, arguments, handle)
                         : launch<Precision::fp16, 256>(multiprocessors, arguments, handle);
        case Precision::bf16:
            return large ? launch<Precision::bf16, 512>(multiprocessors, arguments, handle)
                         : launch<Precision::bf16, 256>(multiprocessors, arguments, handle);
        case Precision::int8:
            return large ? launch<Precision::int8, 512>(multiprocessors, arguments, handle)
                         : launch<Precision::int8, 256>(multiprocessors, arguments, handle);
        case Precision::fp8:
            return large ? launch<Precision::fp8, 512>(multiprocessors, arguments, handle)
                         : launch<Precision::fp8, 256>(multiprocessors, arguments, handle);
        case Precision::tf32: return launch<Precision::tf32, 256>(multiprocessors, arguments, handle);
        case Precision::fp32: break;
    }
    STIPPLE_ASSERT(!"a precision without tensor cores");
}

void launch_chain_finish(const ChainFinish& arguments, Stream stream) {
    const int64_t items = int64_t(arguments.clouds) * arguments.out / 4;
    finish_kernel<<<static_cast<unsigned>((items + 255) / 256), 256, 0, static_cast<cudaStream_t>(stream.handle)>>>(
        arguments);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::engine::cuda
