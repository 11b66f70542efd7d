#include <algorithm>
#include <cfloat>

#include "stipple/ops/common/prefix_sum.h"
#include "stipple/ops/common/segment_sort.h"
#include "stipple/ops/radius_search.h"
#include "stipple/ops/search/neighbours_cuda.h"
#include "stipple/ops/search/within_tasks.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kRadiusSearchThreads = 256;

/// The largest squared distance within the radius; an overflowed distance never is.
float largest_within(float radius) {
    return std::min(radius * radius, FLT_MAX);
}

struct CountWithin {
    static constexpr int kLanes = 1;
    static constexpr int kBlocks = 0;
    struct Params {
        float limit;
        int32_t* counts;
    };

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& params) {
        const int32_t count = count_within(packet, params.limit, kNoNode);
        if (packet.row() >= 0) params.counts[packet.row()] = count;
    }
};

/// Writes the hits of a query to its run, as keys in the order wanted. Offsets are the caller's: they are forced into
/// the outputs.
struct FillWithin {
    static constexpr int kLanes = 1;
    static constexpr int kBlocks = 0;
    struct Params {
        float limit;
        bool by_index;
        int64_t total;
        const int64_t* offsets;
        int64_t *begins, *ends;
        uint64_t* keys;
    };

    template <class Packet>
    __device__ static void run(Packet& packet, const Params& params) {
        int64_t at = 0, end = 0;
        const int64_t row = packet.row();
        if (row >= 0) {
            at = min(max(params.offsets[row], int64_t{0}), params.total);
            end = min(max(params.offsets[row + 1], at), params.total);
            params.begins[row] = at;
        }
        visit_within(packet, params.limit, kNoNode, [&](float distance_sq, uint32_t index) {
            if (at == end) return;
            const auto bits = static_cast<uint64_t>(__float_as_uint(distance_sq));
            params.keys[at++] = params.by_index ? uint64_t{index} << 32 | bits : bits << 32 | index;
        });
        if (row >= 0) params.ends[row] = at;
    }
};

__global__ void __launch_bounds__(kRadiusSearchThreads)
    unpack(const uint64_t* keys, int64_t count, bool by_index, int32_t* indices, float* distances) {
    const int64_t i = int64_t{blockIdx.x} * kRadiusSearchThreads + threadIdx.x;
    if (i >= count) return;
    const auto high = static_cast<uint32_t>(keys[i] >> 32), low = static_cast<uint32_t>(keys[i]);
    indices[i] = static_cast<int32_t>(by_index ? high : low);
    if (distances) distances[i] = __uint_as_float(by_index ? low : high);
}

}  // namespace

void radius_count(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 1> counts,
                  Stream stream) {
    const CurrentDevice current(index.device());
    const OrderedQueries ordered(index.on_cuda(), queries, raw(stream));
    launch_packets<CountWithin>({index.on_cuda().view, ordered.view, ordered.rows},
                                {largest_within(radius), counts.data()}, raw(stream));
}

int64_t radius_offsets(View<const int32_t, 1> counts, View<int64_t, 1> offsets, Stream stream) {
    const CurrentDevice current(offsets.device());
    const int64_t m = counts.size(0);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(offsets.data(), 0, sizeof(int64_t), raw(stream)));
    if (m > 0) inclusive_sum(counts.data(), offsets.data() + 1, m, raw(stream));
    int64_t total = 0;
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(&total, offsets.data() + m, sizeof(int64_t), cudaMemcpyDeviceToHost, raw(stream)));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(raw(stream)));
    return total;
}

void radius_search(const PointIndex& index, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq, NeighbourOrder order, Stream stream) {
    const CurrentDevice current(index.device());
    const int64_t m = queries.batch.rows(), total = indices.size(0);
    if (m == 0 || total == 0) return;
    const OrderedQueries ordered(index.on_cuda(), queries, raw(stream));
    const Scratch<uint64_t> keys(checked_mul(total, 2), raw(stream));
    const Scratch<int64_t> runs(checked_mul(m, 2), raw(stream));
    FillWithin::Params params;
    params.limit = largest_within(radius);
    params.by_index = order == NeighbourOrder::index;
    params.total = total;
    params.offsets = offsets.data();
    params.begins = runs.get();
    params.ends = runs.get() + m;
    params.keys = keys.get();
    launch_packets<FillWithin>({index.on_cuda().view, ordered.view, ordered.rows}, params, raw(stream));
    const uint64_t* sorted =
        sort_segments(keys.get(), keys.get() + total, total, params.begins, params.ends, m, raw(stream));
    unpack<<<blocks_for(total, kRadiusSearchThreads), kRadiusSearchThreads, 0, raw(stream)>>>(
        sorted, total, params.by_index, indices.data(), distances_sq.elements() == 0 ? nullptr : distances_sq.data());
    STIPPLE_CHECK_LAUNCH(unpack);
}

}  // namespace stipple::ops::cuda
