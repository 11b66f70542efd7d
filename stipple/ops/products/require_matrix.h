#pragma once
// The checks that ops on matrices share. Each throws Error{bad_argument} naming the op.

#include <cstdint>

#include "stipple/ops/matrix_view.h"

namespace stipple::ops {

inline void require_number_type(const char* op, const char* name, DType dtype) {
    STIPPLE_REQUIRE(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
                    "{}: {} must be float32, float16 or bfloat16, got {}", op, name, name_of(dtype));
}

inline void require_aligned(const char* op, const char* name, const void* data) {
    STIPPLE_REQUIRE(reinterpret_cast<uintptr_t>(data) % 16 == 0,
                    "{}: on CUDA {} must begin at a multiple of 16 bytes, and is at {}", op, name, data);
}

}  // namespace stipple::ops
