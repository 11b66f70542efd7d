#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include "stipple/ops/common/prefix_sum.h"

namespace stipple::ops::cuda {
namespace {

struct Widen {
    __host__ __device__ int64_t operator()(int32_t value) const { return value; }
};

template <class From, class To>
void sum(From from, To* to, int64_t count, cudaStream_t stream) {
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(cub::DeviceScan::InclusiveSum(nullptr, bytes, from, to, count, stream));
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(cub::DeviceScan::InclusiveSum(scratch.get(), bytes, from, to, count, stream));
}

}  // namespace

void inclusive_sum(uint32_t* values, int64_t count, cudaStream_t stream) {
    sum(values, values, count, stream);
}

void inclusive_sum(const int32_t* values, int64_t* sums, int64_t count, cudaStream_t stream) {
    sum(thrust::make_transform_iterator(values, Widen{}), sums, count, stream);
}

}  // namespace stipple::ops::cuda
