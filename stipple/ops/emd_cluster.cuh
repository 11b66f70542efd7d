#pragma once
// How the blocks of a group of emd talk: the barrier of a thread block cluster, and messages into the shared memory of
// another block that count themselves at a barrier there, so that nobody waits for stores to be visible everywhere.

#include <cstdint>

namespace stipple::ops::cuda::cluster {

#if __CUDA_ARCH__ >= 900

__device__ inline unsigned shared_address(const void* address) {
    return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

/// Everything written before is seen by the cluster afterwards.
__device__ inline void sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// The same address in the shared memory of block `rank`.
__device__ inline unsigned address_in(const void* address, int rank) {
    unsigned mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(shared_address(address)), "r"(rank));
    return mapped;
}

/// A barrier that one thread of its block arms with the bytes it shall wait for; they may come before that.
__device__ inline void init(uint64_t* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void expect(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
__device__ inline void wait(uint64_t* barrier, int parity) {
    unsigned done = 0;
    while (done == 0)
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
}

/// Writes to `to` in block `rank` and counts the bytes at `barrier` there.
__device__ inline void send(int4* to, const int4& value, uint64_t* barrier, int rank) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            address_in(to, rank)),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(address_in(barrier, rank))
        : "memory");
}
__device__ inline void send(int2* to, const int2& value, uint64_t* barrier, int rank) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
                     address_in(to, rank)),
                 "r"(value.x), "r"(value.y), "r"(address_in(barrier, rank))
                 : "memory");
}

#else  // a group is one block; never called

__device__ inline void sync() {}
__device__ inline void init(uint64_t*) {}
__device__ inline void expect(uint64_t*, int) {}
__device__ inline void wait(uint64_t*, int) {}
template <class T>
__device__ void send(T*, const T&, uint64_t*, int) {}

#endif

__device__ inline void send(float4* to, const float4& value, uint64_t* barrier, int rank) {
    send(reinterpret_cast<int4*>(to),
         make_int4(__float_as_int(value.x), __float_as_int(value.y), __float_as_int(value.z), __float_as_int(value.w)),
         barrier, rank);
}

}  // namespace stipple::ops::cuda::cluster
