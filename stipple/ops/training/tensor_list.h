#pragma once
// Lists of tensors in the CPU code of training ops: their checks, and pieces that threads share.

#include <span>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/training/typed_numbers.h"

namespace stipple::ops {

inline void require_tensor(const char* op, const char* name, size_t position, bool has_memory, int64_t count) {
    STIPPLE_REQUIRE(count >= 0 && count <= int64_t{1} << 40, "{}: {} {} has {} numbers", op, name, position, count);
    STIPPLE_REQUIRE(has_memory || count == 0, "{}: {} {} lacks an array", op, name, position);
}

namespace cpu {

/// Calls body(tensor, begin, end, piece) for pieces of at most `grain` numbers of all tensors, on many threads. Pieces
/// are counted through the list, and do not depend on the number of threads.
template <class Tensor, class Body>
void for_pieces(std::span<const Tensor> tensors, int64_t grain, const Body& body) {
    std::vector<int64_t> firsts;  // piece of each tensor
    int64_t pieces = 0;
    for (const Tensor& tensor : tensors) {
        firsts.push_back(pieces);
        pieces += (tensor.count + grain - 1) / grain;
    }
    parallel_for(pieces, 4, [&](int64_t piece, int64_t last_piece) {
        for (; piece < last_piece; ++piece) {
            const auto after = std::upper_bound(firsts.begin(), firsts.end(), piece);
            const auto position = static_cast<size_t>(after - firsts.begin()) - 1;
            const int64_t begin = (piece - firsts[position]) * grain;
            body(tensors[position], begin, std::min(begin + grain, tensors[position].count), piece);
        }
    });
}

template <class Tensor>
int64_t piece_count(std::span<const Tensor> tensors, int64_t grain) {
    int64_t pieces = 0;
    for (const Tensor& tensor : tensors) pieces += (tensor.count + grain - 1) / grain;
    return pieces;
}

}  // namespace cpu
}  // namespace stipple::ops
