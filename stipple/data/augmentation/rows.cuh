#pragma once
// Which rows of a cloud an augmentation leaves, and their order: found by one block of threads in shared memory, with
// the ties of the CPU. All threads of the block call each function; what one has written the others may read
// afterwards.

#include "stipple/data/augment_batch.h"
#include "stipple/data/augmentation/item_random.h"

namespace stipple::data::cuda {

constexpr int kThreads = 256;  // of a block
constexpr int kWords = kMostDevicePoints / 32;
constexpr int kBins = 256;
constexpr unsigned kWholeWarp = 0xffffffffu;
static_assert(kWords == 4 * 32, "a lane counts four words");
static_assert(kBins == kThreads && kBins == 8 * 32, "a thread clears a bin, a lane adds up eight");
static_assert(kMostDevicePoints < 0xffff, "a row in 16 bits");

/// Beside keys and rows, what a block needs to find rows.
struct RowWork {
    uint32_t histogram[kBins];
    uint32_t taken[kWords], tied[kWords];   // a bit for each row
    uint32_t before[kWords], all;           // rows before those of a word: taken << 16 | tied; all rows likewise
    uint32_t bin, count_before, bin_count;  // where the last key is that is wanted
    double ratio;
    int32_t kept, first;
    bool takes_first;
};

struct Rows {
    RowWork* work;
    uint64_t* keys;    // [capacity], a power of two
    uint16_t* source;  // [capacity]: of each row its stored index
    int count;         // how many rows; every thread has the same number
};

/// The sum of a warp's values up to the lane's own.
__device__ inline uint32_t sum_up_to_lane(uint32_t value) {
    const int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(kWholeWarp, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// ---- rows that stay, by bits

/// Sets the bits of all rows as mark(row, taken, tied) says.
template <class Mark>
__device__ inline void mark_rows(const Rows& rows, const Mark& mark) {
    for (int row = threadIdx.x; row < (rows.count + 31) / 32 * 32; row += kThreads) {  // whole warps
        bool is_taken = false, is_tied = false;
        if (row < rows.count) mark(row, is_taken, is_tied);
        const uint32_t taken = __ballot_sync(kWholeWarp, is_taken), tied = __ballot_sync(kWholeWarp, is_tied);
        if (row % 32 == 0) rows.work->taken[row / 32] = taken, rows.work->tied[row / 32] = tied;
    }
}

/// Returns how many are taken.
__device__ inline int count_marked(const Rows& rows) {
    RowWork& work = *rows.work;
    __syncthreads();
    if (threadIdx.x < 32) {
        uint32_t of_lane[4], sum = 0;
        for (int i = 0; i < 4; ++i) {
            const int word = 4 * threadIdx.x + i;
            of_lane[i] = sum;
            if (32 * word < rows.count) sum += __popc(work.taken[word]) << 16 | __popc(work.tied[word]);
        }
        const uint32_t up_to_lane = sum_up_to_lane(sum);
        for (int i = 0; i < 4; ++i) work.before[4 * threadIdx.x + i] = up_to_lane - sum + of_lane[i];
        if (threadIdx.x == 31) work.all = up_to_lane;
    }
    __syncthreads();
    return static_cast<int>(work.all >> 16);
}

/// Of a row: whether it stays, being taken or one of the first `ties` that are tied, and how many before it stay.
__device__ inline bool stays(const RowWork& work, int row, int ties, int& before) {
    const int word = row / 32;
    const uint32_t bit = 1u << row % 32, lower = bit - 1;
    const int tied_before = static_cast<int>(work.before[word] & 0xffff) + __popc(work.tied[word] & lower);
    before = static_cast<int>(work.before[word] >> 16) + __popc(work.taken[word] & lower) + min(tied_before, ties);
    return (work.taken[word] & bit) != 0 || ((work.tied[word] & bit) != 0 && tied_before < ties);
}

/// Brings the rows that stay to the front, in their order, `kept` of them. The form says what comes behind. Keys are
/// lost.
__device__ inline void keep_marked(Rows& rows, int ties, int kept, DropoutForm form) {
    auto* const moved = reinterpret_cast<uint16_t*>(rows.keys);
    for (int row = threadIdx.x; row < rows.count; row += kThreads) {
        int before = 0;
        if (stays(*rows.work, row, ties, before)) moved[before] = rows.source[row];
    }
    __syncthreads();
    if (form == DropoutForm::remove) rows.count = kept;
    for (int row = threadIdx.x; row < rows.count; row += kThreads)
        rows.source[row] = moved[row < kept ? row : form == DropoutForm::repeat ? row % kept : 0];
    __syncthreads();
}

// ---- the smallest keys

/// A row stays when its key >> shift is below `value`, and where it is equal as one of the first `ties` rows.
struct Threshold {
    uint64_t value;
    int shift, ties;
};

/// Of the `count` smallest of keys of so many bits, a multiple of 8; 1 <= count <= rows. Digit by digit from the
/// highest: each time the digit is found that the last of the wanted keys has, until all keys that share it are wanted.
__device__ inline Threshold smallest_keys(const Rows& rows, int count, int bits) {
    RowWork& work = *rows.work;
    Threshold found = {0, bits, count};
    do {
        found.shift -= 8;
        work.histogram[threadIdx.x] = 0;
        __syncthreads();
        for (int row = threadIdx.x; row < rows.count; row += kThreads) {
            const uint64_t digits = rows.keys[row] >> found.shift;
            if (digits >> 8 == found.value) atomicAdd(&work.histogram[digits & 0xff], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            const uint32_t* const bins = work.histogram + 8 * threadIdx.x;
            uint32_t sum = 0;
            for (int i = 0; i < 8; ++i) sum += bins[i];
            uint32_t before = sum_up_to_lane(sum) - sum;
            const auto wanted = static_cast<uint32_t>(found.ties);
            for (int i = 0; i < 8; ++i) {
                if (before < wanted && wanted <= before + bins[i])
                    work.bin = 8 * threadIdx.x + i, work.count_before = before, work.bin_count = bins[i];
                before += bins[i];
            }
        }
        __syncthreads();
        found.value = found.value << 8 | work.bin;
        found.ties -= static_cast<int>(work.count_before);
    } while (found.shift > 0 && static_cast<int>(work.bin_count) != found.ties);
    return found;
}

/// Keeps the rows of the `count` smallest keys; of equal ones the lowest rows.
__device__ inline void keep_smallest(Rows& rows, int count, int bits, DropoutForm form) {
    const Threshold last = smallest_keys(rows, count, bits);
    mark_rows(rows, [&](int row, bool& is_taken, bool& is_tied) {
        const uint64_t digits = rows.keys[row] >> last.shift;
        is_taken = digits < last.value, is_tied = digits == last.value;
    });
    count_marked(rows);
    keep_marked(rows, last.ties, count, form);
}

// ---- the operations, as augment.cpp has them

__device__ inline void choose_rows(Rows& rows, const Rng& rng, int count) {
    for (int row = threadIdx.x; row < rows.count; row += kThreads)
        rows.keys[row] = bits_of_point(rng, rows.source[row]);
    keep_smallest(rows, count, 64, DropoutForm::remove);
}

/// Sorts by key, then stored index [Batcher].
__device__ inline void shuffle_rows(const Rows& rows, const Rng& rng) {
    int size = 1;
    while (size < rows.count) size *= 2;
    for (int row = threadIdx.x; row < size; row += kThreads) {
        if (row >= rows.count) rows.source[row] = 0xffff;
        rows.keys[row] = row < rows.count ? bits_of_point(rng, rows.source[row]) : ~uint64_t{0};
    }
    for (int run = 2; run <= size; run *= 2)
        for (int stride = run / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size / 2; i += kThreads) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const uint64_t x = rows.keys[low], y = rows.keys[high];
                const uint16_t x_source = rows.source[low], y_source = rows.source[high];
                const bool is_behind = x > y || (x == y && x_source > y_source);
                if (is_behind != ((low & run) == 0)) continue;
                rows.keys[low] = y, rows.keys[high] = x;
                rows.source[low] = y_source, rows.source[high] = x_source;
            }
        }
    __syncthreads();
}

__device__ inline void drop_rows(Rows& rows, const AugmentOptions& options, const Rng& rng) {
    RowWork& work = *rows.work;
    if (threadIdx.x == 0) work.ratio = dropout_ratio_of(options, rng);
    __syncthreads();
    const double ratio = work.ratio;
    if (ratio < 0) return;
    mark_rows(rows, [&](int row, bool& is_taken, bool&) { is_taken = !is_dropped(rng, rows.source[row], ratio); });
    int kept = count_marked(rows);
    if (kept == rows.count) return;
    if (kept == 0) {
        if (threadIdx.x == 0) work.taken[0] = 1;
        __syncthreads();
        kept = 1;
    }
    if (options.dropout_form != DropoutForm::replace) return keep_marked(rows, 0, kept, options.dropout_form);
    for (int row = threadIdx.x; row < rows.count; row += kThreads) {
        int before = 0;
        if (stays(work, row, 0, before) && before == 0) work.first = rows.source[row];
    }
    __syncthreads();
    for (int row = threadIdx.x; row < rows.count; row += kThreads) {
        int before = 0;
        if (!stays(work, row, 0, before)) rows.source[row] = static_cast<uint16_t>(work.first);
    }
    __syncthreads();
}

__device__ inline void thin_rows(Rows& rows, const AugmentOptions& options, const Rng& rng) {
    RowWork& work = *rows.work;
    if (threadIdx.x == 0) {
        work.kept = static_cast<int32_t>(thinned_rows(options, rng, rows.count));
        work.takes_first = thins_to_first(options, rng);
    }
    __syncthreads();
    const int kept = work.kept;
    const DropoutForm form = options.dropout_form;
    if (kept == rows.count) return;
    if (!work.takes_first) {
        for (int row = threadIdx.x; row < rows.count; row += kThreads)
            rows.keys[row] = thin_bits_of_point(rng, rows.source[row]);
        return keep_smallest(rows, kept, 24, form);
    }
    if (form == DropoutForm::remove) rows.count = kept;
    for (int row = kept + static_cast<int>(threadIdx.x); row < rows.count; row += kThreads)
        rows.source[row] = rows.source[form == DropoutForm::repeat ? row % kept : 0];
    __syncthreads();
}

/// All of them, on a cloud of rows.count points.
__device__ inline void select_rows(Rows& rows, const AugmentOptions& options, const ItemRandom& random) {
    for (int row = threadIdx.x; row < rows.count; row += kThreads) rows.source[row] = static_cast<uint16_t>(row);
    __syncthreads();
    if (options.choose > 0 && options.choose < rows.count)
        choose_rows(rows, random.of(Draws::choose), static_cast<int>(options.choose));
    if (options.shuffle) shuffle_rows(rows, random.of(Draws::shuffle));
    if (options.dropout_ratio > 0) drop_rows(rows, options, random.of(Draws::dropout));
    if (options.thin_share > 0) thin_rows(rows, options, random.of(Draws::thin));
}

}  // namespace stipple::data::cuda
