#include <algorithm>

#include "stipple/ops/chamfer.h"
#include "stipple/ops/common/cloud_parts.cuh"
#include "stipple/ops/common/fixed_sum.h"
#include "stipple/ops/distance/chamfer_term.h"

namespace stipple::ops::cuda {
namespace {

// ----------------------------------------------------------------------------------------------------------------
// means

struct Partial {
    double sum;
    int64_t used;

    static __device__ Partial shuffle_down(const Partial& p, int step) {
        return {__shfl_down_sync(~0u, p.sum, step),
                static_cast<int64_t>(__shfl_down_sync(~0u, static_cast<long long>(p.used), step))};
    }
};

struct AddPartials {
    __device__ Partial operator()(const Partial& a, const Partial& b) const { return {a.sum + b.sum, a.used + b.used}; }
};

struct MeanSide {
    DeviceBatch batch;
    const int32_t* nearest;
    const float* distances_sq;
    float* mean;
    int32_t* used;
};

struct MeanSides {
    MeanSide side[2];
};

__device__ void write_mean(const MeanSide& side, int64_t cloud, const Partial& all) {
    side.mean[cloud] = static_cast<float>(all.sum / static_cast<double>(all.used));  // 0 / 0 is NaN
    side.used[cloud] = static_cast<int32_t>(all.used);
}

/// One block for a part of a cloud of a direction; neighbouring threads read neighbouring rows. Fixed order.
__global__ void __launch_bounds__(kPartThreads)
    chamfer_parts_kernel(const __grid_constant__ MeanSides sides, bool squared, int64_t parts,
                         Partial* __restrict__ partials) {
    __shared__ Partial shared[32];
    const int64_t item = blockIdx.x / parts, part = blockIdx.x % parts;
    const int64_t clouds = sides.side[0].batch.clouds;
    const MeanSide& side = sides.side[item / clouds];
    const int64_t cloud = item % clouds;
    const int64_t begin = side.batch.begin(cloud) + part * kRowsPerPart;
    const int64_t end = min(begin + kRowsPerPart, side.batch.end(cloud));
    Partial mine = {0.0, 0};
    for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) {
        if (side.nearest[row] < 0) continue;
        const float sq = side.distances_sq[row];
        mine.sum += squared ? sq : sqrtf(sq);
        ++mine.used;
    }
    const Partial all = reduce_block(mine, shared, AddPartials{});
    if (threadIdx.x != 0) return;
    if (parts == 1)
        write_mean(side, cloud, all);
    else
        partials[blockIdx.x] = all;
}

/// One block for a cloud of a direction: its parts in order.
__global__ void __launch_bounds__(kPartThreads)
    chamfer_means_kernel(const __grid_constant__ MeanSides sides, int64_t parts, const Partial* __restrict__ partials) {
    __shared__ Partial shared[32];
    const int64_t clouds = sides.side[0].batch.clouds;
    Partial mine = {0.0, 0};
    for (int64_t part = threadIdx.x; part < parts; part += kPartThreads)
        mine = AddPartials{}(mine, partials[blockIdx.x * parts + part]);
    const Partial all = reduce_block(mine, shared, AddPartials{});
    if (threadIdx.x == 0) write_mean(sides.side[blockIdx.x / clouds], blockIdx.x % clouds, all);
}

// -------------------------------------------------------------------------------------------------------------
// backward

constexpr int kChamferThreads = 256;

/// A direction of the backward pass: points `from`, each with the row of its nearest point in `to`.
struct PairSide {
    DeviceBatch from, to;
    const float* from_rows;
    const float* to_rows;
    int64_t from_stride, to_stride;
    const float* dL_dmean;  // null: the direction has no part in the loss
    const int32_t* nearest;
    const int32_t* used;
    FixedSums* received;  // [to rows], null: dL/dto is not wanted
    float* dL_dfrom;      // [from rows, 3], null: not wanted
};

struct PairSides {
    PairSide side[2];
};

struct Target {
    int64_t row;  // of the nearest point, -1 for none
    int64_t cloud;
};

__device__ Target target_of(const PairSide& side, int64_t row) {
    const int32_t j = side.dL_dmean ? side.nearest[row] : -1;
    if (j < 0) return {-1, 0};
    const int64_t cloud = side.from.cloud_of(row), to = side.to.begin(cloud) + j;
    return {to < side.to.end(cloud) ? to : -1, cloud};
}

__device__ void term_of(const PairSide& side, int64_t row, const Target& target, DistanceNorm norm, float* term) {
    chamfer_term(side.from_rows + row * side.from_stride, side.to_rows + target.row * side.to_stride,
                 chamfer_coefficient(side.dL_dmean[target.cloud], side.used[target.cloud], norm), norm, term);
}

/// A thread for a row of either cloud. Scattered maxima and sums are of integers: any order gives the same bits.
template <class Visit>
__device__ void for_my_row(const PairSides& sides, const Visit& visit) {
    const int64_t first = sides.side[0].from.rows, all = first + sides.side[1].from.rows;
    const int64_t item = int64_t{blockIdx.x} * kChamferThreads + threadIdx.x;
    if (item >= all) return;
    if (item < first)
        visit(sides.side[0], sides.side[1], item);
    else
        visit(sides.side[1], sides.side[0], item - first);
}

/// Writes every row's own term, and finds the largest that each point of the other cloud receives.
__global__ void __launch_bounds__(kChamferThreads)
    chamfer_terms_kernel(const __grid_constant__ PairSides sides, DistanceNorm norm) {
    for_my_row(sides, [&](const PairSide& side, const PairSide&, int64_t row) {
        if (!side.received && !side.dL_dfrom) return;
        const Target target = target_of(side, row);
        float term[3] = {0, 0, 0};
        if (target.row >= 0) term_of(side, row, target, norm, term);
        if (side.dL_dfrom) {
            for (int axis = 0; axis < 3; ++axis) side.dL_dfrom[3 * row + axis] = term[axis];
        }
        if (side.received && target.row >= 0) atomicMax(&side.received[target.row].largest, largest_of(term));
    });
}

__global__ void __launch_bounds__(kChamferThreads)
    chamfer_sums_kernel(const __grid_constant__ PairSides sides, DistanceNorm norm) {
    for_my_row(sides, [&](const PairSide& side, const PairSide&, int64_t row) {
        if (!side.received) return;
        const Target target = target_of(side, row);
        if (target.row < 0) return;
        float term[3];
        if (side.dL_dfrom) {
            for (int axis = 0; axis < 3; ++axis) term[axis] = side.dL_dfrom[3 * row + axis];
        } else {
            term_of(side, row, target, norm, term);
        }
        FixedSums& received = side.received[target.row];
        const FixedGrid grid(received.largest, side.from.end(target.cloud) - side.from.begin(target.cloud));
        for (int axis = 0; axis < 3; ++axis) {
            const int64_t steps = grid.steps(term[axis]);
            auto* sum = reinterpret_cast<unsigned long long*>(&received.sums[axis]);
            if (steps != 0) atomicAdd(sum, static_cast<unsigned long long>(steps));
        }
    });
}

/// Takes what a row received through the other direction off its own term.
__global__ void __launch_bounds__(kChamferThreads) chamfer_gradient_kernel(const __grid_constant__ PairSides sides) {
    for_my_row(sides, [&](const PairSide& side, const PairSide& other, int64_t row) {
        if (!side.dL_dfrom || !other.received) return;
        const int64_t cloud = side.from.cloud_of(row);
        const FixedSums received = other.received[row];
        const FixedGrid grid(received.largest, other.from.end(cloud) - other.from.begin(cloud));
        for (int axis = 0; axis < 3; ++axis) {
            float& value = side.dL_dfrom[3 * row + axis];
            value = static_cast<float>(value - grid.value(received.sums[axis]));
        }
    });
}

}  // namespace

void chamfer_means(const Batch& a, const Batch& b, DistanceNorm norm, const ChamferSide& a_to_b,
                   const ChamferSide& b_to_a, Device device, Stream stream) {
    const CurrentDevice current(device);
    const UploadedBatch batch_a(a, raw(stream)), batch_b(b, raw(stream));
    const auto side_of = [](const UploadedBatch& batch, const ChamferSide& side) {
        return MeanSide{batch.view(), side.nearest.data(), side.distances_sq.data(), side.mean.data(),
                        side.used.data()};
    };
    MeanSides sides{};
    int64_t count = 0, largest = 0;
    if (a_to_b.mean.size(0) > 0) {
        sides.side[count++] = side_of(batch_a, a_to_b);
        largest = a.largest();
    }
    if (b_to_a.mean.size(0) > 0) {
        sides.side[count++] = side_of(batch_b, b_to_a);
        largest = std::max(largest, b.largest());
    }
    if (count == 0) return;
    const int64_t parts = parts_of(largest), items = count * a.clouds();
    const Scratch<Partial> partials(parts == 1 ? 0 : checked_mul(items, parts), raw(stream));
    chamfer_parts_kernel<<<blocks_for(items * parts, 1), kPartThreads, 0, raw(stream)>>>(
        sides, norm == DistanceNorm::squared, parts, partials.get());
    STIPPLE_CHECK_LAUNCH(chamfer_parts_kernel);
    if (parts == 1) return;
    chamfer_means_kernel<<<blocks_for(items, 1), kPartThreads, 0, raw(stream)>>>(sides, parts, partials.get());
    STIPPLE_CHECK_LAUNCH(chamfer_means_kernel);
}

void chamfer_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSideGradient& a_to_b,
                      const ChamferSideGradient& b_to_a, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream) {
    const int64_t rows_a = a.batch.rows(), rows_b = b.batch.rows();
    if (rows_a + rows_b == 0) return;
    const CurrentDevice current(a.device());
    const UploadedBatch batch_a(a.batch, raw(stream)), batch_b(b.batch, raw(stream));
    // What a point receives exists where the gradient is wanted and the other direction has a part in the loss.
    const bool a_receives = dL_da.elements() > 0 && b_to_a.nearest.size(0) > 0;
    const bool b_receives = dL_db.elements() > 0 && a_to_b.nearest.size(0) > 0;
    const int64_t to_a = a_receives ? rows_a : 0, to_b = b_receives ? rows_b : 0;
    const Scratch<FixedSums> received(to_a + to_b, raw(stream));
    const auto side_of = [](const Clouds& from, const UploadedBatch& from_batch, const Clouds& to,
                            const UploadedBatch& to_batch, const ChamferSideGradient& side, View<float, 2> gradient) {
        const bool has_part = side.nearest.size(0) > 0;
        PairSide pairs{};
        pairs.from = from_batch.view();
        pairs.to = to_batch.view();
        pairs.from_rows = from.rows.data();
        pairs.to_rows = to.rows.data();
        pairs.from_stride = from.rows.stride(0);
        pairs.to_stride = to.rows.stride(0);
        pairs.dL_dmean = has_part ? side.dL_dmean.data() : nullptr;
        pairs.nearest = side.nearest.data();
        pairs.used = side.used.data();
        pairs.dL_dfrom = gradient.elements() > 0 ? gradient.data() : nullptr;
        return pairs;
    };
    PairSides sides{{side_of(a, batch_a, b, batch_b, a_to_b, dL_da), side_of(b, batch_b, a, batch_a, b_to_a, dL_db)}};
    if (a_receives) sides.side[1].received = received.get();
    if (b_receives) sides.side[0].received = received.get() + to_a;

    const unsigned blocks = blocks_for(rows_a + rows_b, kChamferThreads);
    const bool receives = a_receives || b_receives;
    if (receives)
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(received.get(), 0, received.count() * sizeof(FixedSums), raw(stream)));
    chamfer_terms_kernel<<<blocks, kChamferThreads, 0, raw(stream)>>>(sides, norm);
    STIPPLE_CHECK_LAUNCH(chamfer_terms_kernel);
    if (!receives) return;
    chamfer_sums_kernel<<<blocks, kChamferThreads, 0, raw(stream)>>>(sides, norm);
    STIPPLE_CHECK_LAUNCH(chamfer_sums_kernel);
    chamfer_gradient_kernel<<<blocks, kChamferThreads, 0, raw(stream)>>>(sides);
    STIPPLE_CHECK_LAUNCH(chamfer_gradient_kernel);
}

}  // namespace stipple::ops::cuda
