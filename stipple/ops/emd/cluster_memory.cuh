#pragma once
// Cluster-shared memory: access to the shared memory of the other blocks of a thread block cluster. GPUs older than
// sm_90 have no clusters: nothing here is called there.

#include <cstdint>

namespace stipple::ops::cuda::matching {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define STIPPLE_HAS_CLUSTERS 1
#else
#define STIPPLE_HAS_CLUSTERS 0
#endif

/// A 32-bit word in the shared memory of another block of the cluster, at the address that `here` has in this block.
struct RemoteShared {
    uint32_t address = 0;

    __device__ RemoteShared(const void* here, int block) {
#if STIPPLE_HAS_CLUSTERS
        const auto own = static_cast<uint32_t>(__cvta_generic_to_shared(here));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(block));
#endif
    }
    __device__ uint32_t load() const {
        uint32_t value = 0;
#if STIPPLE_HAS_CLUSTERS
        asm volatile("ld.relaxed.cluster.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
#endif
        return value;
    }
    // Each returns the value before, so that a dependent instruction is ordered after it. A macro, because the name of
    // an instruction has to be a literal.
#if STIPPLE_HAS_CLUSTERS
#define STIPPLE_ATOMIC(name, operation)                                                 \
    __device__ uint32_t name(uint32_t value) const {                                    \
        uint32_t before = 0;                                                            \
        asm volatile("atom.relaxed.cluster.shared::cluster." operation " %0, [%1], %2;" \
                     : "=r"(before)                                                     \
                     : "r"(address), "r"(value)                                         \
                     : "memory");                                                       \
        return before;                                                                  \
    }
#else
#define STIPPLE_ATOMIC(name, operation)        \
    __device__ uint32_t name(uint32_t) const { \
        return 0;                              \
    }
#endif
    STIPPLE_ATOMIC(fetch_min, "min.u32")
    STIPPLE_ATOMIC(fetch_add, "add.u32")
    STIPPLE_ATOMIC(fetch_or, "or.b32")
#undef STIPPLE_ATOMIC
};

/// Barrier of the cluster: what any of its threads wrote before is visible to all of them afterwards.
__device__ inline void cluster_barrier() {
#if STIPPLE_HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

}  // namespace stipple::ops::cuda::matching
