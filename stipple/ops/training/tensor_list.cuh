#pragma once
// One kernel for the numbers of many tensors. Pointers and counts travel as parameters of the launch, so that nothing
// is copied and a CUDA graph keeps them; each block has a piece of one tensor and finds it by bisection.

#include <algorithm>
#include <cstdint>
#include <span>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/training/typed_numbers.cuh"

namespace stipple::ops::cuda {

constexpr int kListThreads = 256;
constexpr int kMostTensors = 128;  // of a launch: at most 8 kB of parameters, of the 32,764 bytes there are
constexpr int64_t kMostBlocks = int64_t{1} << 30;

/// Item: plain pointers, a count, is_aligned.
template <class Item>
struct TensorList {
    Item items[kMostTensors];
    int32_t ends[kMostTensors];  // blocks of the tensors up to and with each
    int32_t count;
};

/// The tensor of a block, and which of its blocks this is.
template <class Item>
__device__ inline int find_tensor(const TensorList<Item>& list, int32_t block, int32_t& block_of_tensor) {
    int low = 0, high = list.count - 1;  // the first whose end is above the block
    while (low < high) {
        const int middle = (low + high) / 2;
        if (list.ends[middle] > block)
            high = middle;
        else
            low = middle + 1;
    }
    block_of_tensor = block - (low == 0 ? 0 : list.ends[low - 1]);
    return low;
}

/// Calls body<kEach>(at) and body<1>(at) for the numbers of one block: those that fill vectors, and the rest.
template <int kPerBlock, class Body>
__device__ inline void for_numbers(int64_t count, int32_t block_of_tensor, bool is_aligned, const Body& body) {
    const int64_t begin = static_cast<int64_t>(block_of_tensor) * kPerBlock;
    const int here = static_cast<int>(min(count - begin, static_cast<int64_t>(kPerBlock)));
    const int vectors = is_aligned ? here / kEach : 0;
    for (int i = threadIdx.x; i < vectors; i += kListThreads) body.template operator()<kEach>(begin + i * kEach);
    for (int i = vectors * kEach + threadIdx.x; i < here; i += kListThreads) body.template operator()<1>(begin + i);
}

/// Fills lists with what `item` makes of the tensors, and calls launch(list, blocks) for each. Tensors without numbers
/// are left out.
template <class Item, class Tensor, class MakeItem, class Launch>
void for_lists(std::span<const Tensor> tensors, int per_block, const MakeItem& item, const Launch& launch) {
    static_assert(sizeof(TensorList<Item>) <= 8192);
    TensorList<Item> list = {};
    int64_t blocks = 0;
    const auto flush = [&] {
        if (list.count > 0) launch(list, static_cast<unsigned>(blocks));
        list.count = 0;
        blocks = 0;
    };
    for (const Tensor& tensor : tensors) {
        if (tensor.count == 0) continue;
        const int64_t more = (tensor.count + per_block - 1) / per_block;
        if (list.count == kMostTensors || blocks + more > kMostBlocks) flush();
        blocks += more;
        list.items[list.count] = item(tensor);
        list.ends[list.count] = static_cast<int32_t>(blocks);
        ++list.count;
    }
    flush();
}

}  // namespace stipple::ops::cuda
