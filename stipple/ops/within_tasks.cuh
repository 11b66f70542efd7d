#pragma once
// Tasks of packets that look for all points within a distance, a lane a query.

#include "stipple/ops/packet.cuh"

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
        uint32_t candidates = 0;
#pragma unroll
        for (int part = 0; part < 8; ++part) {
            float d[4];
            source.four(part, d);
#pragma unroll
            for (int i = 0; i < 4; ++i) candidates |= d[i] <= limit ? 1u << (4 * part + i) : 0u;
        }
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
    __syncwarp();
}

}  // namespace stipple::ops::cuda
