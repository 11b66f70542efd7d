// The k nearest points of the own cloud, or of the same cloud in another point set, distances and ties as ops/knn.h
// says: a warp a query, its lanes hold the list in order. Blocks stage the cloud through shared memory; every query
// looks at every point, which for the clouds of networks is cheaper than a hierarchy and needs no memory of its own.

#include "stipple/core/numeric.h"
#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kStaged = 6144;  // floats
static_assert(kStaged / kMaxNeighbourChannels >= 32);

/// Place i of the list is in lane i % 32, register i / 32.
template <int Registers>
struct NearestOfWarp {
    float distance[Registers];
    int32_t index[Registers];
    float worst = INFINITY;  // of place k - 1

    __device__ NearestOfWarp() {
        for (int i = 0; i < Registers; ++i) distance[i] = INFINITY, index[i] = -1;
    }

    /// All lanes alike. Goes after those of equal distance: candidates come in ascending order of index.
    __device__ void insert(float d, int32_t candidate, int k, int lane) {
#pragma unroll
        for (int i = Registers - 1; i >= 0; --i) {
            // The element before each lane's own; lane 0 takes the last of the register before.
            float before = __shfl_up_sync(~0u, distance[i], 1);
            int32_t before_index = __shfl_up_sync(~0u, index[i], 1);
            if (i > 0) {
                const float last = __shfl_sync(~0u, distance[i > 0 ? i - 1 : 0], 31);
                const int32_t last_index = __shfl_sync(~0u, index[i > 0 ? i - 1 : 0], 31);
                if (lane == 0) before = last, before_index = last_index;
            } else if (lane == 0) {
                before = -INFINITY;
            }
            if (distance[i] > d) {
                const bool is_place = !(before > d);
                distance[i] = is_place ? d : before;
                index[i] = is_place ? candidate : before_index;
            }
        }
#pragma unroll
        for (int i = 0; i < Registers; ++i)
            if ((k - 1) / 32 == i) worst = __shfl_sync(~0u, distance[i], (k - 1) % 32);
    }
};

template <int Registers>
__global__ void __launch_bounds__(kWarps * 32)
    nearest(RowSource queries, RowSource x, BatchView of_x, bool is_own, Span span, int32_t k, int32_t* indices) {
    __shared__ float staged[kStaged];
    // A tile of points is kTileRows queries; a block takes kWarps of them.
    constexpr int kBlocks = kTileRows / kWarps;
    const Tile tile = tile_of(span, blockIdx.x / kBlocks);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int query = blockIdx.x % kBlocks * kWarps + warp;
    if (blockIdx.x % kBlocks * kWarps >= tile.rows) return;
    const int32_t first_point = of_x.begin(tile.cloud), points = of_x.end(tile.cloud) - first_point;
    const bool is_query = query < tile.rows;
    const float* own = queries.data + (tile.row + (is_query ? query : 0)) * queries.stride;
    const float own_x = own[0], own_y = x.channels > 1 ? own[1] : 0, own_z = x.channels > 2 ? own[2] : 0;
    const int chunk = kStaged / x.channels / 32 * 32;
    NearestOfWarp<Registers> list;
    for (int32_t first = 0; first < points; first += chunk) {
        const int count = min(chunk, points - first);
        __syncthreads();
        for (int i = threadIdx.x; i < count * x.channels; i += kWarps * 32) {
            const int p = i / x.channels, c = i - p * x.channels;
            staged[c * chunk + p] = x.data[(static_cast<int64_t>(first_point) + first + p) * x.stride + c];
        }
        __syncthreads();
        if (!is_query) continue;
        for (int p = lane; p - lane < count; p += 32) {
            float d = INFINITY;
            if (p < count && x.channels == 3) {
                d = distance_sq(own_x - staged[p], own_y - staged[chunk + p], own_z - staged[2 * chunk + p]);
            } else if (p < count) {
                for (int c = 0; c < x.channels; ++c) {
                    const float difference = own[c] - staged[c * chunk + p];
                    const float square = multiply_rounded(difference, difference);
                    d = c == 0 ? square : add_rounded(d, square);
                }
            }
            // `worst` falls as candidates enter: each is looked at again.
            for (unsigned wanted = __ballot_sync(~0u, d < list.worst); wanted != 0; wanted &= wanted - 1) {
                const int source = __ffs(wanted) - 1;
                const float candidate = __shfl_sync(~0u, d, source);
                if (candidate < list.worst) list.insert(candidate, first + (p - lane) + source, k, lane);
            }
        }
    }
    if (!is_query) return;
#pragma unroll
    for (int i = 0; i < Registers; ++i)
        if (i * 32 + lane < k) {
            // Missing, for want of finite points: the point itself, or the first one.
            const int32_t missing = is_own ? tile.row_in_cloud + query : 0;
            const int32_t found = list.index[i] < 0 ? missing : list.index[i];
            indices[(tile.row + query) * k + i * 32 + lane] = found;
        }
}

template <int Registers>
void launch_nearest(const StepCall& call) {
    const size_t last = call.inputs.size() - 1;
    const auto blocks = static_cast<unsigned>(call.span.tiles * (kTileRows / kWarps));
    nearest<Registers><<<blocks, kWarps * 32, 0, call.stream>>>(
        call.inputs[0], call.inputs[last], call.batches[static_cast<size_t>(call.values[last].set)], last == 0,
        call.span, call.out.width, reinterpret_cast<int32_t*>(call.out.data));
    STIPPLE_CHECK_LAUNCH(nearest);
}

void run_knn_step(const StepCall& call) {
    const int32_t k = call.out.width;
    STIPPLE_ASSERT(k <= kMaxNeighbours && call.out.channels == 1 && call.out.stride == 1);
    if (k <= 32)
        launch_nearest<1>(call);
    else if (k <= 64)
        launch_nearest<2>(call);
    else
        launch_nearest<4>(call);
}

__global__ void first_of(const int32_t* indices, int32_t k, int32_t fewer, int64_t count, int32_t* out) {
    STIPPLE_GRID_LOOP(i, count) out[i] = indices[i / fewer * k + i % fewer];
}

void run_first_neighbours(const StepCall& call) {
    first_of<<<grid_for(call.out.rows), kThreads, 0, call.stream>>>(call.values[0].indices(), call.values[0].width,
                                                                    call.out.width, call.out.rows,
                                                                    reinterpret_cast<int32_t*>(call.out.data));
    STIPPLE_CHECK_LAUNCH(first_of);
}

constexpr StepLauncher kKnnSteps[] = {{StepKind::knn, run_knn_step},
                                      {StepKind::first_neighbours, run_first_neighbours}};

}  // namespace

std::span<const StepLauncher> knn_steps() {
    return kKnnSteps;
}

}  // namespace stipple::engine::cuda
