#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cublasLt.h>
#include <dlfcn.h>

#include "stipple/core/buffer.h"
#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/gemm_peak.h"

namespace stipple::engine::cuda {
namespace {

constexpr int64_t kSide = 8192;
constexpr int64_t kWorkspace = int64_t{64} << 20;

struct Types {
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int64_t in_bytes, out_bytes;
};

Types types_of(Precision precision) {
    switch (precision) {
        case Precision::fp32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 4, 4};
        case Precision::tf32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, 4, 4};
        case Precision::fp16: return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 2, 2};
        case Precision::bf16: return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 2, 2};
        case Precision::int8: return {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, 1, 4};
        case Precision::fp8: return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1, 2};
    }
    return {};
}

/// Numbers about 0, different in every place: a product of zeros draws less power and runs faster.
template <class T>
__global__ void fill(T* out, int64_t count) {
    for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
        uint32_t bits = static_cast<uint32_t>(i) * 2654435761u;
        bits ^= bits >> 15;
        bits *= 2246822519u;
        bits ^= bits >> 13;
        const float value = static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f;
        if constexpr (sizeof(T) == 1)
            out[i] = static_cast<T>(value * 100);
        else
            out[i] = T(value);
    }
}

__global__ void fill_fp8(__nv_fp8_e4m3* out, int64_t count) {
    for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
        const uint32_t bits = static_cast<uint32_t>(i) * 2654435761u;
        out[i] = __nv_fp8_e4m3(static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f);
    }
}

void fill_any(Precision precision, void* memory, int64_t count) {
    switch (precision) {
        case Precision::fp32:
        case Precision::tf32: fill<<<1024, 256>>>(static_cast<float*>(memory), count); break;
        case Precision::fp16: fill<<<1024, 256>>>(static_cast<__half*>(memory), count); break;
        case Precision::bf16: fill<<<1024, 256>>>(static_cast<__nv_bfloat16*>(memory), count); break;
        case Precision::int8: fill<<<1024, 256>>>(static_cast<int8_t*>(memory), count); break;
        case Precision::fp8: fill_fp8<<<1024, 256>>>(static_cast<__nv_fp8_e4m3*>(memory), count); break;
    }
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

// cuBLASLt is loaded when it is asked for: nothing else here needs its half gigabyte.
#define STIPPLE_CUBLASLT_FUNCTIONS(X)       \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)       \
    X(cublasLtMatmul)

struct Library {
#define STIPPLE_MEMBER(name) decltype(&::name) name = nullptr;
    STIPPLE_CUBLASLT_FUNCTIONS(STIPPLE_MEMBER)
#undef STIPPLE_MEMBER
};

/// Null when it is not there.
const Library* library() {
    static Library loaded;
    static const bool is_there = [] {
        void* handle = nullptr;
        for (const char* name : {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so"})
            if (!handle) handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!handle) return false;
        bool all = true;
#define STIPPLE_LOAD(name)                                                     \
    loaded.name = reinterpret_cast<decltype(&::name)>(::dlsym(handle, #name)); \
    all = all && loaded.name;
        STIPPLE_CUBLASLT_FUNCTIONS(STIPPLE_LOAD)
#undef STIPPLE_LOAD
        return all;
    }();
    return is_there ? &loaded : nullptr;
}

/// Handles that are given back whatever happens.
struct Product {
    const Library& lt;
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;

    ~Product() {
        if (preference) lt.cublasLtMatmulPreferenceDestroy(preference);
        for (cublasLtMatrixLayout_t layout : {a, b, c})
            if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
        if (operation) lt.cublasLtMatmulDescDestroy(operation);
        if (handle) lt.cublasLtDestroy(handle);
        for (cudaEvent_t event : {begin, end})
            if (event) cudaEventDestroy(event);
    }
};

}  // namespace

double gemm_peak(Device device, Precision precision) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
    if (!library()) return 0;
    const Library& lt = *library();
    const Types types = types_of(precision);
    const int64_t count = kSide * kSide;
    Buffer a(count * types.in_bytes, device), b(count * types.in_bytes, device), c(count * types.out_bytes, device),
        workspace(kWorkspace, device);
    fill_any(precision, a.data(), count);
    fill_any(precision, b.data(), count);
    Product product{lt};
    const auto ok = [](cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; };
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const uint64_t workspace_bytes = kWorkspace;
    cublasLtMatmulHeuristicResult_t found{};
    int results = 0;
    const bool ready =
        ok(lt.cublasLtCreate(&product.handle)) &&
        ok(lt.cublasLtMatmulDescCreate(&product.operation, types.compute, types.scale)) &&
        ok(lt.cublasLtMatmulDescSetAttribute(product.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                             sizeof(transposed))) &&
        ok(lt.cublasLtMatrixLayoutCreate(&product.a, types.in, kSide, kSide, kSide)) &&
        ok(lt.cublasLtMatrixLayoutCreate(&product.b, types.in, kSide, kSide, kSide)) &&
        ok(lt.cublasLtMatrixLayoutCreate(&product.c, types.out, kSide, kSide, kSide)) &&
        ok(lt.cublasLtMatmulPreferenceCreate(&product.preference)) &&
        ok(lt.cublasLtMatmulPreferenceSetAttribute(product.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof(workspace_bytes))) &&
        ok(lt.cublasLtMatmulAlgoGetHeuristic(product.handle, product.operation, product.a, product.b, product.c,
                                             product.c, product.preference, 1, &found, &results)) &&
        results > 0;
    if (!ready) return 0;
    STIPPLE_CHECK_CUDA(cudaEventCreate(&product.begin));
    STIPPLE_CHECK_CUDA(cudaEventCreate(&product.end));
    const float one = 1, zero = 0;
    const int32_t whole_one = 1, whole_zero = 0;
    const bool whole = precision == Precision::int8;
    const auto run = [&] {
        return ok(lt.cublasLtMatmul(
            product.handle, product.operation, whole ? static_cast<const void*>(&whole_one) : &one, a.data(), product.a,
            b.data(), product.b, whole ? static_cast<const void*>(&whole_zero) : &zero, c.data(), product.c, c.data(),
            product.c, &found.algo, workspace.data(), kWorkspace, nullptr));
    };
    for (int i = 0; i < 3; ++i)
        if (!run()) return 0;
    float best = 0;
    constexpr int kRuns = 5, kRounds = 6;
    for (int round = 0; round < kRounds; ++round) {
        STIPPLE_CHECK_CUDA(cudaEventRecord(product.begin));
        for (int i = 0; i < kRuns; ++i)
            if (!run()) return 0;
        STIPPLE_CHECK_CUDA(cudaEventRecord(product.end));
        STIPPLE_CHECK_CUDA(cudaEventSynchronize(product.end));
        float milliseconds = 0;
        STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, product.begin, product.end));
        best = round == 0 ? milliseconds : std::min(best, milliseconds);
    }
    return 2.0 * kSide * kSide * kSide * kRuns / (1e-3 * best);
}

}  // namespace stipple::engine::cuda
