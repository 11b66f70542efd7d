#pragma once
// Matrices whose type is known at run time, as networks have them: float32, or 16 bits to save memory.

#include "stipple/core/dtype.h"
#include "stipple/core/view.h"

namespace stipple::ops {

/// Numbers of a matrix [rows, columns], row after row, of a type that is known at run time: f32, f16 or bf16.
struct MatrixView {
    const void* data = nullptr;
    DType dtype = DType::f32;
    int64_t rows = 0, columns = 0;
    Device device = {};

    MatrixView() = default;
    MatrixView(const void* data_, DType dtype_, int64_t rows_, int64_t columns_, Device device_)
        : data(data_), dtype(dtype_), rows(rows_), columns(columns_), device(device_) {}
    MatrixView(View<const float, 2> view);  // NOLINT: contiguous, else Error{bad_argument}
};

/// The same, to be written.
struct MutableMatrixView {
    void* data = nullptr;
    DType dtype = DType::f32;
    int64_t rows = 0, columns = 0;
    Device device = {};

    MutableMatrixView() = default;
    MutableMatrixView(void* data_, DType dtype_, int64_t rows_, int64_t columns_, Device device_)
        : data(data_), dtype(dtype_), rows(rows_), columns(columns_), device(device_) {}
    MutableMatrixView(View<float, 2> view);  // NOLINT: contiguous, else Error{bad_argument}

    operator MatrixView() const { return {data, dtype, rows, columns, device}; }  // NOLINT
};

}  // namespace stipple::ops
