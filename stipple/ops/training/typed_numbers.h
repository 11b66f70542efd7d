#pragma once
// Numbers of float32, float16 or bfloat16 as floats, for the CPU code of training ops.

#include <algorithm>

#include "stipple/core/dtype.h"
#include "stipple/core/error.h"
#include "stipple/core/half.h"

namespace stipple::ops {

inline bool is_number_type(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

inline void require_number_type(const char* op, const char* name, DType dtype) {
    STIPPLE_REQUIRE(is_number_type(dtype), "{}: {} must be float32, float16 or bfloat16, got {}", op, name,
                    name_of(dtype));
}

namespace cpu {

/// Numbers first .. first + count of an array.
inline void to_floats(const void* from, DType dtype, int64_t first, int64_t count, float* to) {
    if (dtype == DType::f32) {
        std::copy_n(static_cast<const float*>(from) + first, count, to);
        return;
    }
    const uint16_t* bits = static_cast<const uint16_t*>(from) + first;
    if (dtype == DType::f16)
        for (int64_t i = 0; i < count; ++i) to[i] = half_to_float(bits[i]);
    else
        for (int64_t i = 0; i < count; ++i) to[i] = bfloat16_to_float(bits[i]);
}

inline void from_floats(const float* from, DType dtype, int64_t first, int64_t count, void* to) {
    if (dtype == DType::f32) {
        std::copy_n(from, count, static_cast<float*>(to) + first);
        return;
    }
    uint16_t* bits = static_cast<uint16_t*>(to) + first;
    if (dtype == DType::f16)
        for (int64_t i = 0; i < count; ++i) bits[i] = float_to_half(from[i]);
    else
        for (int64_t i = 0; i < count; ++i) bits[i] = float_to_bfloat16(from[i]);
}

}  // namespace cpu
}  // namespace stipple::ops
