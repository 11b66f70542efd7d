#include <cub/device/device_radix_sort.cuh>

#include "stipple/ops/common/radix_sort.h"

namespace stipple::ops::cuda {
namespace {

/// CUB asks twice: for the bytes, then for the work.
template <class Sort>
void with_scratch(const Sort& sort, cudaStream_t stream) {
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(sort(nullptr, bytes));
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(sort(scratch.get(), bytes));
}

}  // namespace

int64_t sort_pairs_bytes(int64_t count, int bits, cudaStream_t stream) {
    size_t bytes = 0;
    cub::DoubleBuffer<uint64_t> keys;
    cub::DoubleBuffer<int32_t> values;
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits, stream));
    return static_cast<int64_t>(bytes);
}

void sort_pairs(void* scratch, int64_t scratch_bytes, SortBuffer<uint64_t>& keys, SortBuffer<int32_t>& values,
                int64_t count, int bits, cudaStream_t stream) {
    auto bytes = static_cast<size_t>(scratch_bytes);
    cub::DoubleBuffer<uint64_t> both_keys(keys.current, keys.spare);
    cub::DoubleBuffer<int32_t> both_values(values.current, values.spare);
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(scratch, bytes, both_keys, both_values, count, 0, bits, stream));
    keys = {both_keys.Current(), both_keys.Alternate()};
    values = {both_values.Current(), both_values.Alternate()};
}

void sort_pairs(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values, int32_t* sorted_values,
                int64_t count, int bits, cudaStream_t stream) {
    with_scratch(
        [&](void* scratch, size_t& bytes) {
            return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values, count, 0,
                                                   bits, stream);
        },
        stream);
}

void sort_pairs_descending(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values, int32_t* sorted_values,
                           int64_t count, cudaStream_t stream) {
    with_scratch(
        [&](void* scratch, size_t& bytes) {
            return cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, sorted_keys, values, sorted_values,
                                                             count, 0, 64, stream);
        },
        stream);
}

void sort_keys(const int32_t* keys, int32_t* sorted_keys, int64_t count, cudaStream_t stream) {
    with_scratch(
        [&](void* scratch, size_t& bytes) {
            return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted_keys, count, 0, 32, stream);
        },
        stream);
}

}  // namespace stipple::ops::cuda
