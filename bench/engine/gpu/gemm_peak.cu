#include <algorithm>
#include <cublasLt.h>
#include <vector>

#include "gemm_peak.h"
#include "stipple/core/buffer.h"
#include "stipple/ops/cuda_launch.h"

namespace stipple::bench {
namespace {

using engine::Precision;

constexpr int64_t kSize = 8192;
constexpr size_t kWorkspace = size_t{64} << 20;

struct Types {
    cudaDataType_t factor, result, scale;
    cublasComputeType_t compute;
};

Types types_of(Precision precision) {
    switch (precision) {
        case Precision::fp32: return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
        case Precision::tf32: return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        case Precision::fp16: return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
        case Precision::bf16: return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
        case Precision::int8: return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
        case Precision::fp8: return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    }
    return {};
}

int64_t bytes_of(cudaDataType_t type) {
    if (type == CUDA_R_32F || type == CUDA_R_32I) return 4;
    return type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 1;
}

void check(cublasStatus_t status, const char* call) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Error(ErrorCode::cuda, fmt::format("{} failed: {}", call, cublasLtGetStatusString(status)));
}

/// Numbers of a few units in every format: bits of all kinds, as in real products. Zeros would draw less power.
__global__ void fill(uint8_t* bytes, int64_t count, Precision precision, uint32_t seed) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint32_t h = static_cast<uint32_t>(i) * 2654435761u + seed;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    const uint32_t mantissa = h & 0x7fffffu, sign = h >> 31;
    switch (precision) {
        case Precision::fp32:
        case Precision::tf32: reinterpret_cast<uint32_t*>(bytes)[i] = sign << 31 | 0x3f000000u | mantissa; break;
        case Precision::fp16:
            reinterpret_cast<uint16_t*>(bytes)[i] = static_cast<uint16_t>(sign << 15 | 0x3800u | mantissa >> 13);
            break;
        case Precision::bf16:
            reinterpret_cast<uint16_t*>(bytes)[i] = static_cast<uint16_t>(sign << 15 | 0x3f00u | mantissa >> 16);
            break;
        case Precision::int8: bytes[i] = static_cast<uint8_t>(h >> 8); break;
        case Precision::fp8: bytes[i] = static_cast<uint8_t>(sign << 7 | (mantissa >> 17 & 0x3fu)); break;
    }
}

struct Library {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    ~Library() {
        if (begin != nullptr) cudaEventDestroy(begin);
        if (end != nullptr) cudaEventDestroy(end);
        if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
        for (cublasLtMatrixLayout_t layout : {a, b, c})
            if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
        if (product != nullptr) cublasLtMatmulDescDestroy(product);
        if (handle != nullptr) cublasLtDestroy(handle);
    }
};

}  // namespace

double gemm_peak(Precision precision, Device device) {
    const ops::cuda::CurrentDevice current(device);
    const Types types = types_of(precision);
    const int64_t count = kSize * kSize;
    Buffer a(count * bytes_of(types.factor), device), b(count * bytes_of(types.factor), device);
    Buffer c(count * bytes_of(types.result), device), workspace(kWorkspace, device);
    for (Buffer* buffer : {&a, &b}) {
        fill<<<ops::cuda::blocks_for(count, 256), 256>>>(reinterpret_cast<uint8_t*>(buffer->data()), count, precision,
                                                         buffer == &a ? 1u : 7u);
        STIPPLE_CHECK_LAUNCH(fill);
    }
    Library lt;
    check(cublasLtCreate(&lt.handle), "cublasLtCreate");
    check(cublasLtMatmulDescCreate(&lt.product, types.compute, types.scale), "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;  // 8-bit products have no other form
    check(cublasLtMatmulDescSetAttribute(lt.product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    check(cublasLtMatrixLayoutCreate(&lt.a, types.factor, kSize, kSize, kSize), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&lt.b, types.factor, kSize, kSize, kSize), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatrixLayoutCreate(&lt.c, types.result, kSize, kSize, kSize), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatmulPreferenceCreate(&lt.preference), "cublasLtMatmulPreferenceCreate");
    check(cublasLtMatmulPreferenceSetAttribute(lt.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                               sizeof kWorkspace),
          "cublasLtMatmulPreferenceSetAttribute");
    constexpr int kMost = 8;
    cublasLtMatmulHeuristicResult_t found[kMost] = {};
    int count_found = 0;
    if (cublasLtMatmulAlgoGetHeuristic(lt.handle, lt.product, lt.a, lt.b, lt.c, lt.c, lt.preference, kMost, found,
                                       &count_found) != CUBLAS_STATUS_SUCCESS)
        return 0;
    STIPPLE_CHECK_CUDA(cudaEventCreate(&lt.begin));
    STIPPLE_CHECK_CUDA(cudaEventCreate(&lt.end));
    const float one_float = 1, zero_float = 0;
    const int32_t one_integer = 1, zero_integer = 0;
    const bool is_integer = types.scale == CUDA_R_32I;
    const void* one = is_integer ? static_cast<const void*>(&one_integer) : &one_float;
    const void* zero = is_integer ? static_cast<const void*>(&zero_integer) : &zero_float;
    float best = 0;  // milliseconds of one product
    for (int i = 0; i < count_found; ++i) {
        const auto multiply = [&] {
            return cublasLtMatmul(lt.handle, lt.product, one, a.data(), lt.a, b.data(), lt.b, zero, c.data(), lt.c,
                                  c.data(), lt.c, &found[i].algo, workspace.data(), kWorkspace, nullptr);
        };
        if (multiply() != CUBLAS_STATUS_SUCCESS) continue;
        constexpr int kRounds = 3, kProducts = 10;
        for (int round = 0; round < kRounds; ++round) {
            STIPPLE_CHECK_CUDA(cudaEventRecord(lt.begin));
            for (int j = 0; j < kProducts; ++j) check(multiply(), "cublasLtMatmul");
            STIPPLE_CHECK_CUDA(cudaEventRecord(lt.end));
            STIPPLE_CHECK_CUDA(cudaEventSynchronize(lt.end));
            float milliseconds = 0;
            STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, lt.begin, lt.end));
            best = best == 0 ? milliseconds / kProducts : std::min(best, milliseconds / kProducts);
        }
    }
    if (best == 0) return 0;
    return 2.0 * static_cast<double>(kSize) * static_cast<double>(count) / (1e-3 * best);
}

int64_t used_bytes(Device device) {
    const ops::cuda::CurrentDevice current(device);
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
    size_t free_now = 0, total = 0;
    STIPPLE_CHECK_CUDA(cudaMemGetInfo(&free_now, &total));
    return static_cast<int64_t>(total - free_now);
}

}  // namespace stipple::bench
