#pragma once
// Included by .cu files only.

#include <cuda_runtime.h>

#include "stipple/core/error.h"

/// Throws Error{cuda} with the expression, the place and CUDA's own message.
#define STIPPLE_CHECK_CUDA(expression)                                                                                \
    do {                                                                                                              \
        const cudaError_t status_ = (expression);                                                                     \
        if (status_ != cudaSuccess)                                                                                   \
            throw ::stipple::Error(                                                                                   \
                ::stipple::ErrorCode::cuda,                                                                           \
                fmt::format("{} failed at {}:{}: {}", #expression, __FILE__, __LINE__, cudaGetErrorString(status_))); \
    } while (0)
