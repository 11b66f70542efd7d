// Attention over the points of a cloud: no pair is kept, softmaxes run along the keys.

#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kAttendWarp = 32;
constexpr int kAttendWarps = kThreads / kAttendWarp;
constexpr int kOfWarp = 4;                        // queries of a warp
constexpr int kQueries = kAttendWarps * kOfWarp;  // of a block
constexpr int kBlocksOfTile = kTileRows / kQueries;
constexpr int kChunk = 64;  // channels of keys that are there at a time
constexpr int kMost = network::kMostAttendChannels;
constexpr int kAttendColumns = kMost / kAttendWarp;  // of a lane
constexpr float kLowest = -3e38f;

struct AttendArguments {
    Span span;
    RowSource queries, keys, values;
    BatchView of_keys;
    ValueView out;
    float factor;
    bool is_softmax, unit, skips_self, log_sum;
};

struct AttendShared {
    float query[kQueries][kMost];
    float key[kAttendWarp][kChunk + 1];  // a lane reads a row of its own: rows begin in different banks
};

__device__ float sum_of_warp(float x) {
    for (int step = kAttendWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ float max_of_warp(float x) {
    for (int step = kAttendWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

/// Queries of this warp, times the factor and of length 1 where that is wanted; zeros for those that are not there.
__device__ void read_queries(const AttendArguments& a, const Tile& tile, int first, float (*query)[kMost], int lane) {
    for (int q = 0; q < kOfWarp; ++q) {
        const bool is_there = first + q < tile.rows;
        const float* from = a.queries.data + (tile.row + (is_there ? first + q : 0)) * a.queries.stride;
        float square = 0;
        for (int c = lane; c < a.queries.channels; c += kAttendWarp) square += from[c] * from[c];
        const float factor = a.unit ? a.factor * rsqrtf(sum_of_warp(square) + network::kUnitGuard) : a.factor;
        for (int c = lane; c < a.queries.channels; c += kAttendWarp) query[q][c] = is_there ? factor * from[c] : 0.0f;
    }
}

/// A block for 32 queries of one cloud, four a warp. Of 32 keys a lane has one and its inner products; then a lane has
/// every 32nd channel of what is gathered. Keys are read through shared memory, values from the caches.
__global__ void __launch_bounds__(kThreads) attend_to_points(const __grid_constant__ AttendArguments a) {
    __shared__ AttendShared shared;
    const Tile tile = tile_of(a.span, blockIdx.x / kBlocksOfTile);
    const int begin = blockIdx.x % kBlocksOfTile * kQueries;
    if (begin >= tile.rows) return;
    const int warp = threadIdx.x / kAttendWarp, lane = threadIdx.x % kAttendWarp, first = begin + warp * kOfWarp;
    float(*query)[kMost] = shared.query + warp * kOfWarp;
    read_queries(a, tile, first, query, lane);
    const int64_t key_begin = a.of_keys.begin(tile.cloud);
    const int keys = static_cast<int>(a.of_keys.end(tile.cloud) - key_begin);

    float gathered[kOfWarp][kAttendColumns] = {}, most[kOfWarp], sum[kOfWarp];
    for (int q = 0; q < kOfWarp; ++q) {
        most[q] = kLowest;
        sum[q] = 0;
    }
    for (int k0 = 0; k0 < keys; k0 += kAttendWarp) {
        float weight[kOfWarp] = {}, square = network::kUnitGuard;
        for (int c0 = 0; c0 < a.keys.channels; c0 += kChunk) {
            const int channels = min(kChunk, a.keys.channels - c0);
            __syncthreads();
            for (int i = threadIdx.x; i < kAttendWarp * kChunk; i += kThreads) {
                const int k = i / kChunk, c = i % kChunk;
                if (c < channels)
                    shared.key[k][c] =
                        k0 + k < keys ? a.keys.data[(key_begin + k0 + k) * a.keys.stride + c0 + c] : 0.0f;
            }
            __syncthreads();
            for (int c = 0; c < channels; ++c) {
                const float key = shared.key[lane][c];
                square += key * key;
#pragma unroll
                for (int q = 0; q < kOfWarp; ++q) weight[q] += query[q][c0 + c] * key;
            }
        }
        const int here = min(kAttendWarp, keys - k0);
#pragma unroll
        for (int q = 0; q < kOfWarp; ++q) {
            const bool is_hidden = lane >= here || (a.skips_self && tile.row_in_cloud + first + q == k0 + lane);
            if (a.unit) weight[q] *= rsqrtf(square);
            if (a.is_softmax) {
                const float largest = fmaxf(most[q], max_of_warp(is_hidden ? kLowest : weight[q]));
                const float shrink = expf(most[q] - largest);
                weight[q] = is_hidden ? 0.0f : expf(weight[q] - largest);
                sum[q] = sum[q] * shrink + sum_of_warp(weight[q]);
                most[q] = largest;
#pragma unroll
                for (int t = 0; t < kAttendColumns; ++t) gathered[q][t] *= shrink;
            } else if (is_hidden) {
                weight[q] = 0;
            }
        }
        for (int k = 0; k < here; ++k) {
            const float* value = a.values.data + (key_begin + k0 + k) * a.values.stride;
            float of_key[kOfWarp];
#pragma unroll
            for (int q = 0; q < kOfWarp; ++q) of_key[q] = __shfl_sync(~0u, weight[q], k);
#pragma unroll
            for (int t = 0; t < kAttendColumns; ++t) {
                const int c = t * kAttendWarp + lane;
                if (c >= a.values.channels) break;
                const float v = value[c];
#pragma unroll
                for (int q = 0; q < kOfWarp; ++q) gathered[q][t] += of_key[q] * v;
            }
        }
    }
    for (int q = 0; q < kOfWarp; ++q) {
        if (first + q >= tile.rows) break;
        const float factor = !a.is_softmax ? 1 / static_cast<float>(keys) : sum[q] > 0 ? 1 / sum[q] : 0.0f;
        float* to = a.out.data + (tile.row + first + q) * a.out.stride;
#pragma unroll
        for (int t = 0; t < kAttendColumns; ++t)
            if (t * kAttendWarp + lane < a.values.channels) to[t * kAttendWarp + lane] = gathered[q][t] * factor;
        if (a.log_sum && lane == 0) to[a.values.channels] = sum[q] > 0 ? most[q] + logf(sum[q]) : kLowest;
    }
}

/// A block a cloud; sums in float64 and in a fixed order.
__global__ void weigh_rows(RowSource x, BatchView batch, ValueView out) {
    __shared__ double partial[kThreads];
    const int64_t begin = batch.begin(blockIdx.x), end = batch.end(blockIdx.x);
    float most = kLowest;
    for (int64_t row = begin + threadIdx.x; row < end; row += kThreads)
        most = fmaxf(most, x.data[row * x.stride + out.channels]);
    partial[threadIdx.x] = most;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] = fmax(partial[threadIdx.x], partial[threadIdx.x + half]);
    }
    __syncthreads();
    const double largest = partial[0];
    __syncthreads();
    double sum = 0;
    for (int64_t row = begin + threadIdx.x; row < end; row += kThreads)
        sum += exp(x.data[row * x.stride + out.channels] - largest);
    partial[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    __syncthreads();
    const int64_t count = (end - begin) * out.channels;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
        const int64_t row = begin + i / out.channels, c = i % out.channels;
        const auto weight = static_cast<float>(exp(x.data[row * x.stride + out.channels] - largest) / partial[0]);
        out.data[row * out.stride + c] = weight * x.data[row * x.stride + c];
    }
}

void run_attend(const StepCall& call) {
    const Step& step = *call.step;
    AttendArguments a{call.span, call.inputs[0], call.inputs[1], call.inputs[2]};
    a.of_keys = call.batches[static_cast<size_t>(call.values[1].set)];
    a.out = call.out;
    a.factor = step.factor;
    a.is_softmax = step.end == 1;
    a.unit = step.inverse;
    a.skips_self = step.begin == 1;
    a.log_sum = call.out.channels > a.values.channels;
    attend_to_points<<<static_cast<unsigned>(call.span.tiles * kBlocksOfTile), kThreads, 0, call.stream>>>(a);
    STIPPLE_CHECK_LAUNCH(attend_to_points);
}

void run_weigh_points(const StepCall& call) {
    weigh_rows<<<static_cast<unsigned>(call.batch.clouds), kThreads, 0, call.stream>>>(call.inputs[0], call.batch,
                                                                                       call.out);
    STIPPLE_CHECK_LAUNCH(weigh_rows);
}

constexpr StepLauncher kAttendSteps[] = {{StepKind::attend, run_attend}, {StepKind::weigh_points, run_weigh_points}};

}  // namespace

std::span<const StepLauncher> attend_steps() {
    return kAttendSteps;
}

}  // namespace stipple::engine::cuda
