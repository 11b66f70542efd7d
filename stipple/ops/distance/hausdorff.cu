#include <algorithm>
#include <cmath>

#include "stipple/ops/common/cloud_parts.cuh"
#include "stipple/ops/distance/chamfer_term.h"
#include "stipple/ops/distance/hausdorff_key.h"
#include "stipple/ops/hausdorff.h"
#include "stipple/ops/nearest_pairs.h"

namespace stipple::ops::cuda {
namespace {

struct Farthest {
    unsigned long long key;

    static __device__ Farthest shuffle_down(const Farthest& f, int step) {
        return {__shfl_down_sync(~0u, f.key, step)};
    }
};

struct Farther {
    __device__ Farthest operator()(const Farthest& a, const Farthest& b) const { return a.key < b.key ? b : a; }
};

struct HausdorffPairs {
    DeviceBatch batch[2];       // of a and of b
    const int32_t* nearest[2];  // b_of_a, a_of_b; null: the direction is left out
    const float* distances_sq[2];
    float* distance;
    int32_t* pair;
};

__device__ void write_farthest(const HausdorffPairs& p, int64_t cloud, unsigned long long key) {
    if (key == kNoFarthest) {
        p.distance[cloud] = NAN;
        p.pair[2 * cloud] = p.pair[2 * cloud + 1] = -1;
        return;
    }
    const int side = key_side(key);
    const int32_t index = key_index(key);
    p.distance[cloud] = sqrtf(key_distance_sq(key));
    p.pair[2 * cloud + side] = index;
    p.pair[2 * cloud + 1 - side] = p.nearest[side][p.batch[side].begin(cloud) + index];
}

/// One block for a part of a cloud, both directions. A maximum: its order does not matter.
__global__ void __launch_bounds__(kPartThreads)
    hausdorff_parts_kernel(const __grid_constant__ HausdorffPairs p, int64_t parts,
                           unsigned long long* __restrict__ partials) {
    __shared__ Farthest shared[32];
    const int64_t cloud = blockIdx.x / parts, part = blockIdx.x % parts;
    Farthest mine = {kNoFarthest};
    for (int side = 0; side < 2; ++side) {
        if (!p.nearest[side]) continue;
        const int64_t first = p.batch[side].begin(cloud), begin = first + part * kRowsPerPart;
        const int64_t end = min(begin + kRowsPerPart, p.batch[side].end(cloud));
        for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) {
            if (p.nearest[side][row] < 0) continue;
            const auto key = farthest_key(p.distances_sq[side][row], side, static_cast<int32_t>(row - first));
            mine = Farther{}(mine, {key});
        }
    }
    const Farthest all = reduce_block(mine, shared, Farther{});
    if (threadIdx.x != 0) return;
    if (parts == 1)
        write_farthest(p, cloud, all.key);
    else
        partials[blockIdx.x] = all.key;
}

__global__ void __launch_bounds__(kPartThreads)
    hausdorff_kernel(const __grid_constant__ HausdorffPairs p, int64_t parts,
                     const unsigned long long* __restrict__ partials) {
    __shared__ Farthest shared[32];
    Farthest mine = {kNoFarthest};
    for (int64_t part = threadIdx.x; part < parts; part += kPartThreads)
        mine = Farther{}(mine, {partials[blockIdx.x * parts + part]});
    const Farthest all = reduce_block(mine, shared, Farther{});
    if (threadIdx.x == 0) write_farthest(p, blockIdx.x, all.key);
}

struct PairGradient {
    DeviceBatch batch[2];
    const float* rows[2];
    int64_t stride[2];
    const int32_t* pair;
    const float* dL_ddistance;
    float* gradient[2];  // null: not wanted
};

/// A thread for a cloud.
__global__ void hausdorff_gradient_kernel(const __grid_constant__ PairGradient p) {
    const int64_t cloud = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (cloud >= p.batch[0].clouds) return;
    const float* point[2];
    int64_t row[2];
    for (int side = 0; side < 2; ++side) {
        const int32_t index = p.pair[2 * cloud + side];
        row[side] = p.batch[side].begin(cloud) + index;
        if (index < 0 || row[side] >= p.batch[side].end(cloud)) return;
        point[side] = p.rows[side] + row[side] * p.stride[side];
    }
    float term[3];
    chamfer_term(point[0], point[1], p.dL_ddistance[cloud], DistanceNorm::euclidean, term);
    for (int axis = 0; axis < 3; ++axis) {
        if (p.gradient[0]) p.gradient[0][3 * row[0] + axis] = term[axis];
        if (p.gradient[1]) p.gradient[1][3 * row[1] + axis] = -term[axis];
    }
}

}  // namespace

void hausdorff(const Clouds& a, const Clouds& b, Direction direction, View<float, 1> distance, View<int32_t, 2> pair,
               Stream stream) {
    const int64_t clouds = a.batch.clouds();
    if (clouds == 0) return;
    const CurrentDevice current(a.device());
    const int64_t from_a = direction == Direction::b_to_a ? 0 : a.batch.rows();
    const int64_t from_b = direction == Direction::a_to_b ? 0 : b.batch.rows();
    const Scratch<int32_t> nearest(from_a + from_b, raw(stream));
    const Scratch<float> distances_sq(from_a + from_b, raw(stream));
    nearest_pairs(a, b, {nearest.get(), {from_a}, a.device()}, {distances_sq.get(), {from_a}, a.device()},
                  {nearest.get() + from_a, {from_b}, a.device()}, {distances_sq.get() + from_a, {from_b}, a.device()},
                  stream);
    const UploadedBatch batch_a(a.batch, raw(stream)), batch_b(b.batch, raw(stream));
    HausdorffPairs p{};
    p.batch[0] = batch_a.view();
    p.batch[1] = batch_b.view();
    if (from_a > 0) p.nearest[0] = nearest.get();
    if (from_b > 0) p.nearest[1] = nearest.get() + from_a;
    p.distances_sq[0] = distances_sq.get();
    p.distances_sq[1] = distances_sq.get() + from_a;
    p.distance = distance.data();
    p.pair = pair.data();
    const int64_t parts = parts_of(std::max(from_a > 0 ? a.batch.largest() : 0, from_b > 0 ? b.batch.largest() : 0));
    const Scratch<unsigned long long> partials(parts == 1 ? 0 : checked_mul(clouds, parts), raw(stream));
    hausdorff_parts_kernel<<<blocks_for(clouds * parts, 1), kPartThreads, 0, raw(stream)>>>(p, parts, partials.get());
    STIPPLE_CHECK_LAUNCH(hausdorff_parts_kernel);
    if (parts == 1) return;
    hausdorff_kernel<<<blocks_for(clouds, 1), kPartThreads, 0, raw(stream)>>>(p, parts, partials.get());
    STIPPLE_CHECK_LAUNCH(hausdorff_kernel);
}

void hausdorff_backward(const Clouds& a, const Clouds& b, View<const int32_t, 2> pair,
                        View<const float, 1> dL_ddistance, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream) {
    const CurrentDevice current(a.device());
    for (const View<float, 2>& gradient : {dL_da, dL_db}) {
        if (gradient.elements() > 0)
            STIPPLE_CHECK_CUDA(cudaMemsetAsync(gradient.data(), 0, gradient.elements() * sizeof(float), raw(stream)));
    }
    if (a.batch.clouds() == 0) return;
    const UploadedBatch batch_a(a.batch, raw(stream)), batch_b(b.batch, raw(stream));
    const PairGradient p = {
        {batch_a.view(), batch_b.view()},
        {a.rows.data(), b.rows.data()},
        {a.rows.stride(0), b.rows.stride(0)},
        pair.data(),
        dL_ddistance.data(),
        {dL_da.elements() > 0 ? dL_da.data() : nullptr, dL_db.elements() > 0 ? dL_db.data() : nullptr}};
    hausdorff_gradient_kernel<<<blocks_for(a.batch.clouds(), 128), 128, 0, raw(stream)>>>(p);
    STIPPLE_CHECK_LAUNCH(hausdorff_gradient_kernel);
}

}  // namespace stipple::ops::cuda
