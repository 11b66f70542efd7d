#pragma once
// A batch as kernels see it: where its clouds begin and end. Included by .cu files only.

#include <cstdint>

namespace stipple::ops::cuda {

/// Index: int64_t in ops; int32_t where a program's rows are known to be few.
template <class Index>
struct DeviceBatchOf {
    const Index* offsets = nullptr;        // clouds + 1; null when dense
    Index clouds = 0, size = 0, rows = 0;  // size: points of every cloud of a dense batch

    __device__ Index begin(Index cloud) const { return offsets ? offsets[cloud] : cloud * size; }
    __device__ Index end(Index cloud) const { return begin(cloud + 1); }
    __device__ Index cloud_of(Index row) const {
        if (!offsets) return row / size;
        Index low = 0, high = clouds;  // the last cloud that begins at or before row; empty clouds are passed over
        while (high - low > 1) {
            const Index middle = (low + high) / 2;
            (offsets[middle] <= row ? low : high) = middle;
        }
        return low;
    }
};

using DeviceBatch = DeviceBatchOf<int64_t>;

}  // namespace stipple::ops::cuda
