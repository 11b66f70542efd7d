#pragma once
// What the blocks of a cluster do in each other's shared memory. GPUs older than sm_90 have no clusters: nothing here
// is called there.

#include <cstdint>

namespace stipple::ops::cuda::matching {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define STIPPLE_HAS_CLUSTERS 1
#else
#define STIPPLE_HAS_CLUSTERS 0
#endif

/// Something in the shared memory of another block, where this block has `here`.
struct Elsewhere {
    uint32_t address = 0;

    __device__ Elsewhere(const void* here, int block) {
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
    // Each returns what was there before, so that what depends on it comes after. By a macro, because the name of an
    // instruction has to be a literal.
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
    STIPPLE_ATOMIC(least, "min.u32")
    STIPPLE_ATOMIC(add, "add.u32")
    STIPPLE_ATOMIC(set_bits, "or.b32")
#undef STIPPLE_ATOMIC
};

/// Everything that a thread of the cluster wrote before is seen by all of it afterwards.
__device__ inline void meet_cluster() {
#if STIPPLE_HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

}  // namespace stipple::ops::cuda::matching
