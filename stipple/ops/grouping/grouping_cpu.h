#pragma once
// What the CPU sides of grouping and interpolation share.

#include "stipple/core/parallel.h"
#include "stipple/ops/neighbours.h"

namespace stipple::ops::cpu {

constexpr int64_t kColumns = 128;  // sums of this many columns at a time stay in the first cache

/// About 32 k operations a chunk.
inline int64_t grain_for(int64_t operations_per_row) {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, operations_per_row));
}

/// The neighbours of one row.
struct Neighbourhood {
    int64_t row = 0;                   // of the batch
    const int32_t* indices = nullptr;  // k of them
    int64_t first = 0, n = 0;          // the rows they point into

    /// The row of the batch that neighbour j names, or -1.
    int64_t named(int64_t j) const { return names_row(indices[j], n) ? first + indices[j] : -1; }
};

/// Calls visit(rows begin .. end) for chunks of the rows that lie in one cloud each, in parallel; `visit` receives the
/// neighbourhoods one by one. `scratch()` makes what a chunk needs once.
template <class Scratch, class Visit>
void for_each_neighbourhood(const Neighbours& neighbours, const Batch& rows, int64_t operations_per_row,
                            const Scratch& scratch, const Visit& visit) {
    const Batch& batch = neighbours.batch;
    const int64_t k = neighbours.k();
    parallel_for(neighbours.rows(), grain_for(operations_per_row), [&](int64_t begin, int64_t end) {
        auto kept = scratch();
        int64_t cloud = 0;
        if (batch.is_dense()) {
            cloud = begin / batch.largest();
        } else {
            const auto& offsets = batch.offsets();
            cloud = std::upper_bound(offsets.begin(), offsets.end(), begin) - offsets.begin() - 1;
        }
        for (int64_t row = begin; row < end; ++row) {
            while (batch.end(cloud) <= row) ++cloud;
            visit(Neighbourhood{row, neighbours.indices.data() + row * k, rows.begin(cloud), rows.size(cloud)}, kept);
        }
    });
}

template <class Visit>
void for_each_neighbourhood(const Neighbours& neighbours, const Batch& rows, int64_t operations_per_row,
                            const Visit& visit) {
    for_each_neighbourhood(
        neighbours, rows, operations_per_row, [] { return 0; }, [&](const Neighbourhood& near, int) { visit(near); });
}

}  // namespace stipple::ops::cpu
