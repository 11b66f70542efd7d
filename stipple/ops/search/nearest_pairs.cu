#include "stipple/ops/nearest_pairs.h"
#include "stipple/ops/search/nearest_tasks.cuh"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops::cuda {
namespace {

constexpr int64_t kFewPoints = 256;  // of a cloud: every point against every other, without a hierarchy

struct BothWays {
    PacketJob job[2];
    NeighbourRows rows[2];
    int64_t packets[2] = {0, 0};
};

/// The packets of one direction, then those of the other.
__global__ void __launch_bounds__(32 * kPacketWarps) nearest_both_ways(const __grid_constant__ BothWays both) {
    __shared__ LeafPacket<NearestOne::kLanes>::Shared shared[kPacketWarps];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    int64_t number = int64_t{blockIdx.x} * kPacketWarps + warp;
    const int way = number >= both.packets[0];
    if (way == 1) number -= both.packets[0];
    if (number >= both.packets[way]) return;
    LeafPacket<NearestOne::kLanes> packet(both.job[way], number, shared[warp]);
    NearestOne::run(packet, both.rows[way]);
}

}  // namespace

void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b, Stream stream) {
    const CurrentDevice current(a.device());
    const bool wanted[2] = {b_of_a.elements() > 0 || sq_of_a.elements() > 0,
                            a_of_b.elements() > 0 || sq_of_b.elements() > 0};
    if (!wanted[0] && !wanted[1]) return;
    if (a.batch.largest() <= kFewPoints && b.batch.largest() <= kFewPoints) {
        if (wanted[0]) nearest_of_few(b, a, b_of_a.data(), sq_of_a.data(), 1, stream);
        if (wanted[1]) nearest_of_few(a, b, a_of_b.data(), sq_of_b.data(), 1, stream);
        return;
    }
    HierarchyPlan plan_a(a, /*with_boxes=*/wanted[1]), plan_b(b, /*with_boxes=*/wanted[0]);
    const Scratch<std::byte> memory(plan_a.bytes() + plan_b.bytes(), raw(stream));
    plan_a.place(memory.get(), raw(stream));
    plan_b.place(memory.get() + plan_a.bytes(), raw(stream));
    build_hierarchies(&plan_a, &plan_b, raw(stream));

    BothWays both;
    both.job[0] = {plan_b.view(), plan_a.view()};
    both.job[1] = {plan_a.view(), plan_b.view()};
    both.rows[0].indices = b_of_a.data();
    both.rows[0].distances = sq_of_a.data();
    both.rows[1].indices = a_of_b.data();
    both.rows[1].distances = sq_of_b.data();
    for (int way = 0; way < 2; ++way) {
        both.rows[way].k = 1;
        if (wanted[way]) both.packets[way] = int64_t{both.job[way].queries.leaves} * NearestOne::kLanes;
    }
    const int64_t packets = both.packets[0] + both.packets[1];
    if (packets == 0) return;
    nearest_both_ways<<<blocks_for(packets, kPacketWarps), 32 * kPacketWarps, 0, raw(stream)>>>(both);
    STIPPLE_CHECK_LAUNCH(nearest_both_ways);
}

}  // namespace stipple::ops::cuda
