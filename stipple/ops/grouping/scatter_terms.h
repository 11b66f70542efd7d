#pragma once
// Sums into the rows that entries name, the backward of every op that gathers. The driver is written once for the CPU
// (here) and once for CUDA (scatter_kernel.h); what is summed is a small `Terms` that both call:
//
//   int64_t per_entry;                        terms of an entry
//   Column columns(int32_t entry, term);      what the term adds to its row
//   bool Column::any; double Column::operator()(int64_t column);
//   void touch(int32_t entry, first, columns);     asks for the entry's memory ahead of time, on the CPU
//
// Every row sums its entries in the order of invert_index and its terms in their order, in double, and rounds once:
// the same bits on CPU and CUDA.

#include "stipple/ops/grouping/grouping_cpu.h"
#include "stipple/ops/invert_index.h"

namespace stipple::ops {

namespace cpu {
/// The lines of memory that hold `count` floats. Entries of a row lie far apart: without this a sum waits for each.
inline void prefetch(const float* data, int64_t count) {
    for (int64_t l = 0; l < count; l += 16) __builtin_prefetch(data + l);
}
}  // namespace cpu

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
    STIPPLE_HD Column columns(int32_t entry, int64_t) const { return {values + entry * c}; }
    void touch(int32_t entry, int64_t first, int64_t count) const { cpu::prefetch(values + entry * c + first, count); }
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
    STIPPLE_HD Column columns(int32_t entry, int64_t term) const {
        const int64_t i = entry / static_cast<int32_t>(k), j = entry - i * k, row = i * per_entry + term;
        const float weight = weights[row * k + j];
        return {gradients + row * c, weight, weight != 0};
    }
    void touch(int32_t, int64_t, int64_t) const {}  // k entries share a gradient, which stays in cache
};

namespace cpu {

template <class Terms>
void scatter(const InvertedIndex& inverse, const Terms& terms, View<float, 2> out) {
    const int64_t n = out.size(0), c = out.size(1);
    constexpr int64_t kAhead = 6;  // entries between asking for memory and using it
    const int32_t* const ranges = inverse.ranges.data();
    const int32_t* const positions = inverse.positions.data();
    const int64_t entries = inverse.positions.size(0);
    const int64_t entries_per_row = n == 0 ? 0 : entries / n + 1;
    parallel_for(n, grain_for(entries_per_row * terms.per_entry * c), [&](int64_t begin, int64_t end) {
        double sum[kColumns];
        for (int64_t row = begin; row < end; ++row) {
            for (int64_t first = 0; first < c; first += kColumns) {
                const int64_t columns = std::min(kColumns, c - first);
                std::fill_n(sum, columns, 0.0);
                for (int64_t p = ranges[2 * row]; p < ranges[2 * row + 1]; ++p) {
                    if (p + kAhead < entries) terms.touch(positions[p + kAhead], first, columns);
                    for (int64_t term = 0; term < terms.per_entry; ++term) {
                        const auto column = terms.columns(positions[p], term);
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
