#pragma once
// What products on tensor cores are made of: copies into shared memory that arrive later, fragments of matrices, and
// the product itself. Only in code for sm_80 and newer.
//
// A step of a product is 32 bytes of its factors' rows: 16 numbers of 16 bits, or 8 of tf32. Lane 4 g + t has
//   of a [16 rows, 32 bytes]  register p: row g + 8 (p % 2), bytes 4 t + 16 (p / 2) and the three next
//   of b [8 rows, 32 bytes]   register p: row g, bytes 4 t + 16 p and the three next
//   of d [16, 8]              number 2 h + e: row g + 8 h, column 2 t + e

#include <cstddef>
#include <cstdint>

#include "stipple/core/dtype.h"

namespace stipple::ops::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

__device__ inline uint32_t address_in_shared(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// 16 bytes that arrive later; zeros when !is_there.
__device__ inline void copy_later(uint32_t to, const std::byte* from, bool is_there) {
    const int bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/// Until this thread's copies are there; other threads see them after a barrier.
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
/// Copies since the last call are a group, an empty one where there are none.
__device__ inline void close_group_of_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until all but this thread's kNewest last groups are there.
template <int kNewest>
__device__ inline void wait_for_groups_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}

/// Where 16 bytes of a row lie. The pieces of eight rows are permuted so that the same piece of each is in other banks.
template <int kRowBytes>
__device__ inline uint32_t place(uint32_t row, uint32_t piece) {
    return row * kRowBytes + ((piece ^ (row & 7)) << 4);
}

__device__ inline uint4 load_shared(uint32_t from) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}
__device__ inline void store_shared(uint32_t to, const uint4& x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

/// Four matrices of 8 rows of 16 bytes; lanes 8 i .. 8 i + 7 give the addresses of matrix i's rows. Lane 4 g + t gets
/// of each row g, bytes 4 t and the three next.
__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t row_of_lane) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row_of_lane)
                 : "memory");
}

/// The same of the matrices' transposes: lane 4 g + t gets of rows 2 t and 2 t + 1 the number of 16 bits in column g.
__device__ inline void load_transposes(uint32_t (&r)[4], uint32_t row_of_lane) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row_of_lane)
                 : "memory");
}

/// To 10 bits of mantissa, halves away from 0. What is NaN stays so.
__device__ inline uint32_t round_to_tf32(uint32_t bits) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
}

/// d += a b^T. f32: numbers that round_to_tf32 has rounded.
template <DType kType>
__device__ inline void add_product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    static_assert(kType == DType::f16 || kType == DType::bf16 || kType == DType::f32);
#define STIPPLE_MMA(instruction)                                                                \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (kType == DType::f16)
        STIPPLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
    else if constexpr (kType == DType::bf16)
        STIPPLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
    else
        STIPPLE_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
#undef STIPPLE_MMA
}

/// NaN where either is.
__device__ inline float larger_or_nan(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

#endif

}  // namespace stipple::ops::cuda
