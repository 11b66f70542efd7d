#pragma once
// Hopper's warpgroup products: D [64, 128] += A [64, k] B^T [128, k], where k is 32 bytes of either factor. A is in
// registers, 16 rows a warp; B in shared memory, a row of 128 bytes for each of the 128 columns of D, 16-byte pieces
// permuted as in `swizzled`. Thread 4 g + t of warp w has of D the rows 16 w + g (d[4 j], d[4 j + 1]) and 16 w + g + 8
// (d[4 j + 2], d[4 j + 3]), columns 8 j + 2 t and the next. Only for sm_90a.

#include <cstdint>

namespace stipple::engine::cuda {

/// Byte `byte` (0..127) of row `row`, as the products expect it: every eighth row begins at a multiple of 1024.
__device__ inline uint32_t swizzled(uint32_t row, uint32_t byte) {
    return row * 128 + (byte ^ ((row & 7) << 4));
}

/// What the product reads: 128 rows from `address` (in shared memory) on. 32 bytes of the rows are one step: add 2.
__device__ inline uint64_t rows_descriptor(uint32_t address) {
    constexpr uint64_t kEightRows = uint64_t(1024 >> 4) << 32, kSwizzle128 = uint64_t(1) << 62,
                       kIgnored = uint64_t(1) << 16;
    return uint64_t((address & 0x3ffff) >> 4) | kIgnored | kEightRows | kSwizzle128;
}

__device__ inline void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `Pending` groups are unfinished.
template <int Pending>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

#define STIPPLE_WGMMA_SUMS(constraint)                                                                                \
    "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3]), "+" constraint(d[4]),     \
        "+" constraint(d[5]), "+" constraint(d[6]), "+" constraint(d[7]), "+" constraint(d[8]), "+" constraint(d[9]), \
        "+" constraint(d[10]), "+" constraint(d[11]), "+" constraint(d[12]), "+" constraint(d[13]),                   \
        "+" constraint(d[14]), "+" constraint(d[15]), "+" constraint(d[16]), "+" constraint(d[17]),                   \
        "+" constraint(d[18]), "+" constraint(d[19]), "+" constraint(d[20]), "+" constraint(d[21]),                   \
        "+" constraint(d[22]), "+" constraint(d[23]), "+" constraint(d[24]), "+" constraint(d[25]),                   \
        "+" constraint(d[26]), "+" constraint(d[27]), "+" constraint(d[28]), "+" constraint(d[29]),                   \
        "+" constraint(d[30]), "+" constraint(d[31]), "+" constraint(d[32]), "+" constraint(d[33]),                   \
        "+" constraint(d[34]), "+" constraint(d[35]), "+" constraint(d[36]), "+" constraint(d[37]),                   \
        "+" constraint(d[38]), "+" constraint(d[39]), "+" constraint(d[40]), "+" constraint(d[41]),                   \
        "+" constraint(d[42]), "+" constraint(d[43]), "+" constraint(d[44]), "+" constraint(d[45]),                   \
        "+" constraint(d[46]), "+" constraint(d[47]), "+" constraint(d[48]), "+" constraint(d[49]),                   \
        "+" constraint(d[50]), "+" constraint(d[51]), "+" constraint(d[52]), "+" constraint(d[53]),                   \
        "+" constraint(d[54]), "+" constraint(d[55]), "+" constraint(d[56]), "+" constraint(d[57]),                   \
        "+" constraint(d[58]), "+" constraint(d[59]), "+" constraint(d[60]), "+" constraint(d[61]),                   \
        "+" constraint(d[62]), "+" constraint(d[63])
// One function a type of factors; `tail` is what the instruction wants after its four operands.
#define STIPPLE_WGMMA(name, shape_and_types, Sum, constraint, tail)                                            \
    __device__ inline void name(Sum(&d)[64], const uint32_t(&a)[4], uint64_t b, int accumulate) {              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned." shape_and_types \
                     " "                                                                                       \
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                 \
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "        \
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "        \
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "       \
                     "{%64, %65, %66, %67}, %68, p" tail ";\n}\n"                                              \
                     : STIPPLE_WGMMA_SUMS(constraint)                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                   \
    }

STIPPLE_WGMMA(wgmma_f16, "m64n128k16.f32.f16.f16", float, "f", ", 1, 1, 0")
STIPPLE_WGMMA(wgmma_bf16, "m64n128k16.f32.bf16.bf16", float, "f", ", 1, 1, 0")
STIPPLE_WGMMA(wgmma_tf32, "m64n128k8.f32.tf32.tf32", float, "f", ", 1, 1")
STIPPLE_WGMMA(wgmma_e4m3, "m64n128k32.f32.e4m3.e4m3", float, "f", ", 1, 1")
STIPPLE_WGMMA(wgmma_s8, "m64n128k32.s32.s8.s8", int32_t, "r", "")

#undef STIPPLE_WGMMA
#undef STIPPLE_WGMMA_SUMS

}  // namespace stipple::engine::cuda
