#pragma once
// What the tests of grouping and interpolation share: indices of every kind, finite differences.

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/ops/invert_index.h"
#include "tests/ops/guarded.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {

/// Channels that fill vectors and warps, and that do not.
const std::vector<int64_t> kWidths = {1, 3, 4, 64, 67, 300};

/// Expects that calls leave as many blocks alive as there were.
inline void expect_flat_memory(const std::function<void()>& run) {
    run();
    const int64_t live = live_allocations();
    for (int i = 0; i < 3000; ++i) run();
    EXPECT_EQ(live, live_allocations());
}

/// m rows of k indices into the clouds of `rows`; about one in eight is missing, as -1 or out of range.
inline Array<int32_t, 2> make_indices(const ops::Batch& batch, int64_t k, const ops::Batch& rows, uint64_t seed = 1) {
    Array<int32_t, 2> indices({batch.rows(), k});
    const Rng rng(seed, 77);
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        const auto n = static_cast<uint32_t>(rows.size(cloud));
        for (int64_t e = batch.begin(cloud) * k; e < batch.end(cloud) * k; ++e) {
            const uint32_t kind = rng.bits(2 * e) % 32;
            int32_t index = n == 0 ? -1 : static_cast<int32_t>(rng.below(2 * e + 1, n));
            if (kind < 2) index = -1;
            if (kind == 2) index = static_cast<int32_t>(n);
            if (kind == 3) index = INT32_MIN;
            if (kind == 5) index = INT32_MAX;
            if (kind == 4 && n > 0) index = 0;  // a row that many name
            indices.data()[e] = index;
        }
    }
    return indices;
}

/// The row of the batch that entry e names, or -1.
inline int64_t named_row(const Array<int32_t, 2>& indices, const ops::Batch& batch, const ops::Batch& rows, int64_t e) {
    const int64_t i = e / indices.size(1);
    int64_t cloud = 0;
    while (batch.end(cloud) <= i) ++cloud;
    const int64_t index = indices.data()[e];
    return index >= 0 && index < rows.size(cloud) ? rows.begin(cloud) + index : -1;
}

/// Batches of m and of n rows: one cloud, dense, ragged with empty clouds on either side.
struct Layout {
    ops::Batch batch, rows;
};
inline std::vector<Layout> layouts() {
    using ops::Batch;
    return {{Batch::single(0), Batch::single(0)},
            {Batch::single(0), Batch::single(5)},
            {Batch::single(5), Batch::single(0)},
            {Batch::single(1), Batch::single(1)},
            {Batch::single(37), Batch::single(53)},
            {Batch::single(700), Batch::single(61)},
            {Batch::dense(3, 33), Batch::dense(3, 20)},
            {Batch::ragged({0, 5, 5, 40, 41}), Batch::ragged({0, 7, 30, 30, 90})}};
}

/// (f(x + h) - f(x - h)) / 2h for one number of x.
inline double central_difference(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x,
                                 size_t at, double h = 1e-5) {
    const double before = x[at];
    x[at] = before + h;
    const double above = f(x);
    x[at] = before - h;
    return (above - f(x)) / (2 * h);
}

template <class T, int Rank>
std::vector<double> doubles(const Array<T, Rank>& array) {
    return {array.span().begin(), array.span().end()};
}

template <class T, int Rank>
Array<T, Rank> random_array(std::array<int64_t, Rank> shape, uint64_t seed, float low = -1, float high = 1) {
    Array<T, Rank> array(shape);
    const Rng rng(seed, 78);
    for (int64_t i = 0; i < array.elements(); ++i) array.data()[i] = low + (high - low) * rng.uniform(i);
    return array;
}

/// a and b bit for bit.
template <class T, int Rank>
void expect_same_bits(const Array<T, Rank>& a, const Array<T, Rank>& b, const std::string& what) {
    ASSERT_EQ(a.shape(), b.shape()) << what;
    for (int64_t i = 0; i < a.elements(); ++i)
        ASSERT_EQ(0, std::memcmp(a.data() + i, b.data() + i, sizeof(T)))
            << what << ": element " << i << ": " << a.data()[i] << " and " << b.data()[i];
}

/// Inverts on the device of the indices.
struct Inverse {
    Array<int32_t, 2> ranges;
    Array<int32_t, 1> positions;

    Inverse(const ops::Neighbours& neighbours, const ops::Batch& rows)
        : ranges({rows.rows(), 2}, neighbours.device()), positions({neighbours.entries()}, neighbours.device()) {
        ops::invert_index(neighbours, rows, ranges.view(), positions.view());
    }
    ops::InvertedIndex view() const { return {ranges.view(), positions.view()}; }
};

constexpr Device kFakeCuda{DeviceType::cuda, 0};

}  // namespace stipple::test
