#include <cub/device/device_segmented_sort.cuh>

#include "stipple/ops/common/segment_sort.h"

namespace stipple::ops::cuda {

const uint64_t* sort_segments(uint64_t* keys, uint64_t* spare, int64_t count, const int64_t* begins,
                              const int64_t* ends, int64_t segments, cudaStream_t stream) {
    cub::DoubleBuffer<uint64_t> buffers(keys, spare);
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(
        cub::DeviceSegmentedSort::SortKeys(nullptr, bytes, buffers, count, segments, begins, ends, stream));
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(
        cub::DeviceSegmentedSort::SortKeys(scratch.get(), bytes, buffers, count, segments, begins, ends, stream));
    return buffers.Current();
}

}  // namespace stipple::ops::cuda
