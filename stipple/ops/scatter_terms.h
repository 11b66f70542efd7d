#pragma once
// Sums into the rows that entries name, the backward of every op that gathers. The driver is written once for the CPU
// (here) and once for CUDA (scatter_kernel.h); what is summed is a small `Terms` that both call:
//
//   int64_t per_entry;                        terms of an entry
//   Column columns(entry, term);              what the term adds to its row
//   bool Column::any; double Column::operator()(int64_t column);
//
// Every row sums its entries in the order of invert_index and its terms in their order, in double, and rounds once:
// the same bits on CPU and CUDA.

#include "stipple/ops/grouping_cpu.h"
#include "stipple/ops/invert_index.h"

namespace stipple::ops {

/// Row e of an array [entries, c].
struct CopiedRows {
    const float* values;
    int64_t c;
    int64_t per_entry = 1;

    struct Column {
        const float* values;
        bool any = true;
        STIPPLE_HD double operator()(int64_t column) const { return values[column]; }
    };
    STIPPLE_HD Column columns(int64_t entry, int64_t) const { return {values + entry * c}; }
};

/// Entry i k + j adds weights[i, r, j] gradients[i, r] for every r: the transpose of interpolate.
struct WeightedRows {
    const float* weights;
    const float* gradients;
    int64_t k, c;
    int64_t per_entry;

    struct Column {
        const float* values;
        double weight;
        bool any;
        // A product of floats is exact in double: fused or not, the sum is the same.
        STIPPLE_HD double operator()(int64_t column) const { return weight * values[column]; }
    };
    STIPPLE_HD Column columns(int64_t entry, int64_t term) const {
        const int64_t i = entry / k, j = entry - i * k, row = i * per_entry + term;
        const float weight = weights[row * k + j];
        return {gradients + row * c, weight, weight != 0};
    }
};

namespace cpu {

template <class Terms>
void scatter(const InvertedIndex& inverse, const Terms& terms, View<float, 2> out) {
    const int64_t n = out.size(0), c = out.size(1);
    const int32_t* const ranges = inverse.ranges.data();
    const int64_t entries_per_row = n == 0 ? 0 : inverse.positions.size(0) / n + 1;
    parallel_for(n, grain_for(entries_per_row * terms.per_entry * c), [&](int64_t begin, int64_t end) {
        double sum[kColumns];
        for (int64_t row = begin; row < end; ++row) {
            for (int64_t first = 0; first < c; first += kColumns) {
                const int64_t columns = std::min(kColumns, c - first);
                std::fill_n(sum, columns, 0.0);
                for (int64_t p = ranges[2 * row]; p < ranges[2 * row + 1]; ++p) {
                    for (int64_t term = 0; term < terms.per_entry; ++term) {
                        const auto column = terms.columns(inverse.positions.data()[p], term);
                        if (!column.any) continue;
                        for (int64_t l = 0; l < columns; ++l) sum[l] += column(first + l);
                    }
                }
                float* to = out.data() + row * c + first;
                for (int64_t l = 0; l < columns; ++l) to[l] = static_cast<float>(sum[l]);
            }
        }
    });
}

}  // namespace cpu
}  // namespace stipple::ops
