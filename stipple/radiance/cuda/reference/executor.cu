#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "stipple/radiance/cuda/reference/executor.cuh"

namespace stipple::radiance::reference {
namespace {

constexpr const char* kWaiting = "waiting for counts";

/// One block: always the same order.
__global__ void __launch_bounds__(1024) add_all_kernel(const float* values, int64_t n, double* to) {
    __shared__ double sums[32];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += 1024) sum += values[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 32; ++i) sum += sums[i];
    *to += sum;
}

/// What the sum of all is, from the sums before each.
__global__ void total_kernel(const int32_t* counts, const int32_t* sums, int64_t n, int32_t* to) {
    *to = n > 0 ? sums[n - 1] + counts[n - 1] : 0;
}

constexpr int kTile = 64, kInner = 16;

/// kTile numbers of a side by kInner, 0 beyond the end. Threads follow the direction that is contiguous in memory.
__device__ void load_tile(float (&tile)[kInner][kTile + 1], const float* from, int64_t first, int64_t end,
                          int64_t stride, int64_t inner, int64_t inner_end, int64_t inner_stride) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int part = 0; part < kTile * kInner / 256; ++part) {
        const int k = inner_stride == 1 ? thread % kInner : thread / kTile + 256 / kTile * part;
        const int at = inner_stride == 1 ? thread / kInner + 256 / kInner * part : thread % kTile;
        const bool is_there = first + at < end && inner + k < inner_end;
        tile[k][at] = is_there ? from[(first + at) * stride + (inner + k) * inner_stride] : 0.0f;
    }
}

/// A block makes a tile of 64 x 64 of a slice, a thread 4 x 4 numbers of it.
__global__ void __launch_bounds__(256) product_kernel(const __grid_constant__ Product p) {
    __shared__ float a[kInner][kTile + 1], b[kInner][kTile + 1];
    const int column = static_cast<int>(threadIdx.x) % 16, row = static_cast<int>(threadIdx.x) / 16;
    const int64_t first_row = int64_t{blockIdx.x} * kTile, first_column = int64_t{blockIdx.y} * kTile;
    const int64_t each = (p.inner + p.slices - 1) / p.slices, begin = blockIdx.z * each;
    const int64_t end = begin + each < p.inner ? begin + each : p.inner;
    float sum[4][4] = {};
    for (int64_t inner = begin; inner < end; inner += kInner) {
        load_tile(a, p.a, first_row, p.rows, p.a_row, inner, end, p.a_inner);
        load_tile(b, p.b, first_column, p.columns, p.b_column, inner, end, p.b_inner);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kInner; ++k) {
            float left[4], right[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) left[i] = a[k][row + 16 * i], right[i] = b[k][column + 16 * i];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
            }
        }
        __syncthreads();
    }
    float* c = p.c + blockIdx.z * p.rows * p.columns;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int64_t r = first_row + row + 16 * i;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int64_t q = first_column + column + 16 * j;
            if (r < p.rows && q < p.columns) c[r * p.columns + q] = sum[i][j];
        }
    }
}

}  // namespace

CudaExecutor::CudaExecutor(int device) {
    meter_.device = device;
    STIPPLE_CHECK_CUDA(cudaSetDevice(device));
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    STIPPLE_CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_count_), sizeof(int32_t)));
    count_ = Array<int32_t>(meter_, 1);
}

CudaExecutor::~CudaExecutor() {
    cudaStreamSynchronize(stream_);
    for (const Noted& noted : noted_) cudaEventDestroy(noted.event);
    cudaFreeHost(host_count_);
    cudaStreamDestroy(stream_);
}

void* CudaExecutor::scratch(size_t bytes) {
    return room<CudaExecutor, uint8_t>(*this, scratch_, static_cast<int64_t>(bytes));
}

int32_t CudaExecutor::counted() {
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(host_count_, count_.get(), sizeof(int32_t), cudaMemcpyDeviceToHost, stream_));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    mark(kWaiting);
    return *host_count_;
}

int64_t CudaExecutor::choose(std::string_view part, const uint8_t* flags, int64_t n, int32_t* list) {
    if (n == 0) return 0;
    const thrust::counting_iterator<int32_t> places(0);
    size_t bytes = 0;
    const auto select = [&](void* memory) {
        STIPPLE_CHECK_CUDA(
            cub::DeviceSelect::Flagged(memory, bytes, places, flags, list, count_.get(), static_cast<int>(n), stream_));
    };
    select(nullptr);
    select(scratch(bytes));
    mark(part);
    return counted();
}

int64_t CudaExecutor::sum_before(std::string_view part, const int32_t* counts, int64_t n, int32_t* sums) {
    if (n == 0) return 0;
    size_t bytes = 0;
    const auto scan = [&](void* memory) {
        STIPPLE_CHECK_CUDA(cub::DeviceScan::ExclusiveSum(memory, bytes, counts, sums, static_cast<int>(n), stream_));
    };
    scan(nullptr);
    scan(scratch(bytes));
    total_kernel<<<1, 1, 0, stream_>>>(counts, sums, n, count_.get());
    STIPPLE_CHECK_CUDA(cudaGetLastError());
    mark(part);
    return counted();
}

void CudaExecutor::multiply(std::string_view part, const Product& p) {
    if (p.rows > 0 && p.columns > 0) {
        const dim3 blocks(static_cast<unsigned>((p.rows + kTile - 1) / kTile),
                          static_cast<unsigned>((p.columns + kTile - 1) / kTile), static_cast<unsigned>(p.slices));
        product_kernel<<<blocks, 256, 0, stream_>>>(p);
        STIPPLE_CHECK_CUDA(cudaGetLastError());
    }
    mark(part);
}

void CudaExecutor::add_all(std::string_view part, const float* values, int64_t n, double* to) {
    add_all_kernel<<<1, 1024, 0, stream_>>>(values, n, to);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
    mark(part);
}

void CudaExecutor::wait() {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    mark("");  // the time until the next operation is not that of an operation
}

void CudaExecutor::mark(std::string_view part) {
    if (!is_profiling_) return;
    Noted noted{nullptr, std::string(part)};
    STIPPLE_CHECK_CUDA(cudaEventCreate(&noted.event));
    noted_.push_back(std::move(noted));
    STIPPLE_CHECK_CUDA(cudaEventRecord(noted_.back().event, stream_));
}

void CudaExecutor::begin_profile() {
    is_profiling_ = true;
    mark("");
}

std::vector<StepPart> CudaExecutor::end_profile() {
    is_profiling_ = false;
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    std::vector<StepPart> parts;
    for (size_t i = 1; i < noted_.size(); ++i) {
        if (noted_[i].part.empty()) continue;
        float milliseconds = 0;
        STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, noted_[i - 1].event, noted_[i].event));
        auto part =
            std::find_if(parts.begin(), parts.end(), [&](const StepPart& p) { return p.name == noted_[i].part; });
        if (part == parts.end()) part = parts.insert(parts.end(), {noted_[i].part, 0});
        part->milliseconds += milliseconds;
    }
    for (const Noted& noted : noted_) cudaEventDestroy(noted.event);
    noted_.clear();
    return parts;
}

}  // namespace stipple::radiance::reference
