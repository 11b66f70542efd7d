// Sample elimination in rounds: each removes every sample that stands before all of its living neighbours. Why this is
// the sequential result is in poisson_weight.h. Sums are integers, so atomics are exact in any order.

#include <cooperative_groups.h>

#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/sampling/poisson_weight.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kPoissonDiskThreads = 128;
constexpr int kMaxRounds = 8192;
constexpr uint64_t kMaxCandidates = 4096;  // points in the cells around a point, on average; beyond, the CPU does it

struct Run {
    int32_t begin, end;
};

/// Finite points ordered by cell, and for each cell the nine runs of points in the cells around it.
struct DeviceCells {
    int64_t n, cells;
    const float4* points;  // x, y, z and the index in the cloud as bits
    const int32_t* cell;   // [n]
    const Run* runs;       // [cells, 9]
};

__global__ void order_points(const float* rows, int64_t stride, const int32_t* order, const int32_t* cell_of_point,
                             int64_t n, float4* points, int32_t* cell) {
    const int64_t i = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x;
    if (i >= n) return;
    const float* p = rows + order[i] * stride;
    points[i] = make_float4(p[0], p[1], p[2], __int_as_float(order[i]));
    cell[i] = cell_of_point[order[i]];
}

/// The first cell that does not come before (x, y, z).
__device__ int64_t first_cell(const int32_t* coordinates, int64_t cells, int32_t x, int32_t y, int32_t z) {
    int64_t low = 0, high = cells;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const int32_t* c = coordinates + 3 * middle;
        const bool before = c[2] != z ? c[2] < z : c[1] != y ? c[1] < y : c[0] < x;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// `candidates` sums, over all points, the points in the cells around.
__global__ void find_runs(const int32_t* coordinates, const int64_t* offsets, int64_t cells, Run* runs,
                          unsigned long long* candidates) {
    const int64_t item = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x;
    if (item >= 9 * cells) return;
    const int64_t cell = item / 9;
    const int k = static_cast<int>(item % 9);
    const int32_t* at = coordinates + 3 * cell;
    const int32_t y = at[1] + k % 3 - 1, z = at[2] + k / 3 - 1;
    const int64_t first = first_cell(coordinates, cells, at[0] - 1, y, z);
    int64_t last = first;  // at most three cells on
    while (last < cells && coordinates[3 * last + 2] == z && coordinates[3 * last + 1] == y &&
           coordinates[3 * last] <= at[0] + 1)
        ++last;
    runs[item] = {static_cast<int32_t>(offsets[first]), static_cast<int32_t>(offsets[last])};
    const auto members = static_cast<unsigned long long>(offsets[cell + 1] - offsets[cell]);
    atomicAdd(candidates, members * static_cast<unsigned long long>(offsets[last] - offsets[first]));
}

/// Calls body(place, squared distance) for the points in the cells around a point, the point itself included, until it
/// says false.
template <class Body>
__device__ void for_each_candidate(const DeviceCells& cells, const float4& p, int64_t place, const Body& body) {
    const Run* runs = cells.runs + int64_t{9} * cells.cell[place];
    for (int k = 0; k < 9; ++k) {
        for (int32_t j = runs[k].begin; j < runs[k].end; ++j) {
            const float4 q = cells.points[j];
            if (!body(j, distance_sq(p.x - q.x, p.y - q.y, p.z - q.z))) return;
        }
    }
}

/// A thread for each query.
__global__ void count_within(DeviceCells cells, int64_t queries, float reach_sq, unsigned long long* inverse_counts) {
    const int64_t query = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x;
    if (query >= queries) return;
    const int64_t place = poisson_query(query, queries, cells.n);
    unsigned long long count = 0;
    for_each_candidate(cells, cells.points[place], place, [&](int32_t, float sq) {
        count += sq <= reach_sq;
        return true;
    });
    atomicAdd(inverse_counts, (1ull << 32) / count);
}

__global__ void sum_weights(DeviceCells cells, float inverse_reach, int64_t* sums) {
    const int64_t place = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x;
    if (place >= cells.n) return;
    int64_t sum = -int64_t{poisson_weight(0, inverse_reach)};  // its own
    for_each_candidate(cells, cells.points[place], place, [&](int32_t, float sq) {
        sum += poisson_weight(sq, inverse_reach);
        return true;
    });
    sums[place] = sum;
}

struct RoundState {
    long long largest;           // sum of a living sample, + 1; 0 when none lives
    unsigned long long settled;  // keys above all living sums, as of the round before
};

enum : uint8_t { kGone = 0, kLiving = 1, kMarked = 2 };

/// Persistent: a thread keeps the places that are its own, two grid barriers a round. Neighbours never go in the same
/// round, as one of them stands before the other. keys[index] is the sum at removal.
__global__ void eliminate(DeviceCells cells, float inverse_reach, unsigned long long to_remove, int64_t* sums,
                          uint8_t* state, uint64_t* keys, RoundState* rounds, int* finished) {
    const auto grid = cooperative_groups::this_grid();
    const int64_t first = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x,
                  step = int64_t{gridDim.x} * kPoissonDiskThreads;
    for (int round = 0; round < kMaxRounds; ++round) {
        long long largest = 0;
        for (int64_t i = first; i < cells.n; i += step) {
            if (state[i] == kGone) continue;
            const int64_t sum = sums[i];
            largest = max(largest, static_cast<long long>(sum) + 1);
            const float4 p = cells.points[i];
            const int32_t index = __float_as_int(p.w);
            bool leads = true;
            for_each_candidate(cells, p, i, [&](int32_t j, float sq) {
                if (j == i || state[j] == kGone || poisson_weight(sq, inverse_reach) == 0) return true;
                const int64_t other = sums[j];
                leads = other != sum ? other < sum : __float_as_int(cells.points[j].w) > index;
                return leads;
            });
            if (leads) state[i] = kMarked;  // still read as living
        }
        for (int half = 16; half > 0; half /= 2) largest = max(largest, __shfl_xor_sync(~0u, largest, half));
        if (threadIdx.x % 32 == 0 && largest > 0) atomicMax(&rounds[round].largest, largest);
        grid.sync();
        const long long limit = rounds[round].largest;
        unsigned long long settled = 0;
        for (int64_t i = first; i < cells.n; i += step) {
            const float4 p = cells.points[i];
            if (state[i] == kMarked) {
                for_each_candidate(cells, p, i, [&](int32_t j, float sq) {
                    const int32_t weight = poisson_weight(sq, inverse_reach);
                    if (weight != 0 && j != i && state[j] == kLiving)
                        atomicAdd(reinterpret_cast<unsigned long long*>(sums + j),
                                  static_cast<unsigned long long>(-int64_t{weight}));
                    return true;
                });
                keys[__float_as_int(p.w)] = static_cast<uint64_t>(sums[i]);
                state[i] = kGone;
            } else if (state[i] == kGone) {
                settled += static_cast<long long>(keys[__float_as_int(p.w)]) >= limit;
            }
        }
        for (int half = 16; half > 0; half /= 2) settled += __shfl_xor_sync(~0u, settled, half);
        if (threadIdx.x % 32 == 0 && settled > 0) atomicAdd(&rounds[round].settled, settled);
        grid.sync();
        // With all sums below limit, keys at or above it are those that go first.
        if (limit == 0 || rounds[round].settled >= to_remove) {
            if (first == 0) *finished = 1;
            return;
        }
    }
}

/// Non-finite points have the highest key and go first; samples that live on have none.
__global__ void start_keys(const int32_t* cell_of_point, int64_t n, uint64_t* keys, int32_t* indices) {
    const int64_t i = int64_t{blockIdx.x} * kPoissonDiskThreads + threadIdx.x;
    if (i >= n) return;
    keys[i] = cell_of_point[i] < 0 ? ~uint64_t{0} : 0;
    indices[i] = static_cast<int32_t>(i);
}

/// Points by cells of the edge for a reach, and the arrays behind the view.
struct CellsOf {
    VoxelGrid grid;
    Scratch<float4> points;
    Scratch<int32_t> cell;
    Scratch<Run> runs;
    Scratch<unsigned long long> candidates;

    CellsOf(View<const float, 2> rows, const FiniteBox& box, float reach, Stream stream)
        : grid(ops::voxel_grid(rows, poisson_cell_size(box, reach), poisson_cell_origin(box), stream)) {
        const cudaStream_t on = raw(stream);
        const int64_t n = grid.order.size(0), cells = grid.cells.rows();
        points = Scratch<float4>(n, on);
        cell = Scratch<int32_t>(n, on);
        runs = Scratch<Run>(9 * cells, on);
        candidates = Scratch<unsigned long long>(1, on);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(candidates.get(), 0, sizeof(unsigned long long), on));
        if (n == 0) return;
        order_points<<<blocks_for(n, kPoissonDiskThreads), kPoissonDiskThreads, 0, on>>>(
            rows.data(), rows.stride(0), grid.order.data(), grid.cell_of_point.data(), n, points.get(), cell.get());
        STIPPLE_CHECK_LAUNCH(order_points);
        find_runs<<<blocks_for(9 * cells, kPoissonDiskThreads), kPoissonDiskThreads, 0, on>>>(
            grid.coordinates.data(), grid.offsets.data(), cells, runs.get(), candidates.get());
        STIPPLE_CHECK_LAUNCH(find_runs);
    }

    DeviceCells view() const { return {grid.order.size(0), grid.cells.rows(), points.get(), cell.get(), runs.get()}; }
};

template <class T>
T fetch(const T* from, cudaStream_t on) {
    T value;
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(&value, from, sizeof(T), cudaMemcpyDeviceToHost, on));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(on));
    return value;
}

float reach_of(View<const float, 2> points, const FiniteBox& box, int64_t m, Stream stream) {
    const cudaStream_t on = raw(stream);
    if (box.empty()) return 0;
    // The number of finite points comes with any grid; one cell is the cheapest.
    float extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, box.high[axis] - box.low[axis]);
    if (!(extent > 0)) return 0;
    const VoxelGrid all = ops::voxel_grid(points, poisson_cell_size(box, extent), poisson_cell_origin(box), stream);
    const int64_t finite = all.order.size(0);
    const Scratch<unsigned long long> sum(1, on);
    return solve_poisson_reach(box, finite, m, [&](float reach) {
        const CellsOf cells(points, box, reach, stream);
        const int64_t queries = std::min(finite, kPoissonQueries);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(sum.get(), 0, sizeof(unsigned long long), on));
        count_within<<<blocks_for(queries, kPoissonDiskThreads), kPoissonDiskThreads, 0, on>>>(
            cells.view(), queries, reach * reach, sum.get());
        STIPPLE_CHECK_LAUNCH(count_within);
        return static_cast<uint64_t>(fetch(sum.get(), on));
    });
}

}  // namespace

void poisson_reach(View<const float, 2> points, int64_t m, float& reach, Stream stream) {
    const CurrentDevice current(points.device());
    reach = reach_of(points, finite_boxes(points, stream)[0], m, stream);
}

void poisson_disk(View<const float, 2> points, int32_t* out, int64_t m, float radius, bool& chosen, Stream stream) {
    const CurrentDevice current(points.device());
    const cudaStream_t on = raw(stream);
    const int64_t n = points.size(0);
    const FiniteBox box = finite_boxes(points, stream)[0];
    const float reach = radius > 0 ? 2 * radius : reach_of(points, box, m, stream);
    const CellsOf storage(points, box, kPoissonCell * reach, stream);
    const DeviceCells cells = storage.view();
    STIPPLE_REQUIRE(cells.n >= m, "poisson_disk: asked for {} samples of {} finite points", m, cells.n);
    const Scratch<uint64_t> keys(2 * n, on);
    const Scratch<int32_t> indices(2 * n, on);
    start_keys<<<blocks_for(n, kPoissonDiskThreads), kPoissonDiskThreads, 0, on>>>(storage.grid.cell_of_point.data(), n,
                                                                                   keys.get(), indices.get());
    STIPPLE_CHECK_LAUNCH(start_keys);
    chosen = true;
    if (reach > 0 && cells.n > m) {
        if (fetch(storage.candidates.get(), on) / static_cast<uint64_t>(cells.n) > kMaxCandidates) {
            chosen = false;
            return;
        }
        const Scratch<int64_t> sums(cells.n, on);
        const Scratch<uint8_t> state(cells.n, on);
        const Scratch<RoundState> rounds(kMaxRounds, on);
        const Scratch<int> finished(1, on);
        sum_weights<<<blocks_for(cells.n, kPoissonDiskThreads), kPoissonDiskThreads, 0, on>>>(cells, 1 / reach,
                                                                                              sums.get());
        STIPPLE_CHECK_LAUNCH(sum_weights);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(state.get(), kLiving, cells.n, on));
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(rounds.get(), 0, kMaxRounds * sizeof(RoundState), on));
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(finished.get(), 0, sizeof(int), on));
        int per_unit = 0, units = 0;
        STIPPLE_CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, eliminate, kPoissonDiskThreads, 0));
        STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, points.device().index));
        const unsigned blocks =
            std::min(blocks_for(cells.n, kPoissonDiskThreads), static_cast<unsigned>(per_unit * units));
        DeviceCells cells_argument = cells;
        float inverse = 1 / reach;
        auto to_remove = static_cast<unsigned long long>(cells.n - m);
        int64_t* sums_argument = sums.get();
        uint8_t* state_argument = state.get();
        uint64_t* keys_argument = keys.get();
        RoundState* rounds_argument = rounds.get();
        int* finished_argument = finished.get();
        void* arguments[] = {&cells_argument, &inverse,       &to_remove,       &sums_argument,
                             &state_argument, &keys_argument, &rounds_argument, &finished_argument};
        STIPPLE_CHECK_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(eliminate), dim3(blocks),
                                                       dim3(kPoissonDiskThreads), arguments, 0, on));
        STIPPLE_CHECK_LAUNCH(eliminate);
        if (fetch(finished.get(), on) == 0) {
            chosen = false;
            return;
        }
    }
    // Stable and descending: equal keys go by ascending index, as they would one after the other. The last m stay.
    sort_pairs_descending(keys.get(), keys.get() + n, indices.get(), indices.get() + n, n, on);
    sort_keys(indices.get() + n + (n - m), out, m, on);
}

}  // namespace stipple::ops::cuda
