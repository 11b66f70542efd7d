#pragma once
// Numbers of the three types as floats and back. Internal to the CPU code of products.

#include <algorithm>
#include <vector>

#include "stipple/core/half.h"
#include "stipple/ops/matrix_view.h"

namespace stipple::ops::cpu {

inline void to_floats(const void* from, DType dtype, int64_t first, int64_t count, float* to) {
    if (dtype == DType::f32) {
        std::copy_n(static_cast<const float*>(from) + first, count, to);
    } else if (dtype == DType::f16) {
        const uint16_t* bits = static_cast<const uint16_t*>(from) + first;
        for (int64_t i = 0; i < count; ++i) to[i] = half_to_float(bits[i]);
    } else {
        const uint16_t* bits = static_cast<const uint16_t*>(from) + first;
        for (int64_t i = 0; i < count; ++i) to[i] = bfloat16_to_float(bits[i]);
    }
}

inline void from_floats(const float* from, int64_t count, void* to, DType dtype, int64_t first) {
    if (dtype == DType::f32) {
        std::copy_n(from, count, static_cast<float*>(to) + first);
    } else if (dtype == DType::f16) {
        uint16_t* bits = static_cast<uint16_t*>(to) + first;
        for (int64_t i = 0; i < count; ++i) bits[i] = float_to_half(from[i]);
    } else {
        uint16_t* bits = static_cast<uint16_t*>(to) + first;
        for (int64_t i = 0; i < count; ++i) bits[i] = float_to_bfloat16(from[i]);
    }
}

/// Rows of a matrix as floats: where they are, or converted into room that is reused.
class FloatRows {
public:
    explicit FloatRows(const MatrixView& matrix, int64_t most_rows) : matrix_(matrix) {
        if (matrix.dtype != DType::f32) room_.resize(static_cast<size_t>(checked_mul(most_rows, matrix.columns)));
    }
    const float* get(int64_t first, int64_t count) {
        const int64_t k = matrix_.columns;
        if (matrix_.dtype == DType::f32) return static_cast<const float*>(matrix_.data) + first * k;
        to_floats(matrix_.data, matrix_.dtype, first * k, count * k, room_.data());
        return room_.data();
    }

private:
    MatrixView matrix_;
    std::vector<float> room_;
};

}  // namespace stipple::ops::cpu
