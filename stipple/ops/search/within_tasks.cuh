#pragma once
// Tasks of packets that look for all points within a distance, a lane a query.

#include "stipple/ops/search/packet.cuh"

namespace stipple::ops::cuda {

/// Visits every point at a squared distance of at most `limit` whose index is below `below`.
template <class Hit>
struct WithinVisitor {
    static constexpr bool kStaged = true;

    float limit;
    uint32_t below;
    Hit hit;  // hit(distance_sq, index)

    __device__ bool wants(float gap, uint32_t lowest) const { return gap <= limit && lowest < below; }
    __device__ float bound() const { return limit; }

    template <class Source>
    __device__ void visit(const Source& source) {
        uint32_t candidates = points_within(source, limit);
        while (candidates != 0) {
            const int i = __ffs(static_cast<int>(candidates)) - 1;
            candidates &= candidates - 1;
            const uint32_t index = source.index(i);
            if (index < below) hit(source.one(i), index);
        }
    }
};

template <class Packet, class Hit>
__device__ void visit_within(Packet& packet, float limit, uint32_t below, Hit hit) {
    WithinVisitor<Hit> visitor{limit, below, hit};
    packet.search(visitor);
}

/// Counts them.
struct CountVisitor {
    static constexpr bool kStaged = true;

    float limit;
    uint32_t below;
    int32_t count = 0;

    __device__ bool wants(float gap, uint32_t lowest) const { return gap <= limit && lowest < below; }
    __device__ float bound() const { return limit; }

    template <class Source>
    __device__ void visit(const Source& source) {
        uint32_t within = points_within(source, limit);
        if (below == kNoNode) {
            count += __popc(within);
            return;
        }
        for (; within != 0; within &= within - 1) count += source.index(__ffs(static_cast<int>(within)) - 1) < below;
    }
};

template <class Packet>
__device__ int32_t count_within(Packet& packet, float limit, uint32_t below) {
    CountVisitor visitor{limit, below};
    packet.search(visitor);
    return visitor.count;
}

}  // namespace stipple::ops::cuda
