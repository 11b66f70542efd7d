#pragma once
// Neighbours: rows that name other rows by index. What knn and ball_query give, and what grouping, interpolation and
// their gradients take.
//
// An index counts from the first row of its cloud. One that names no row of its cloud, -1 above all but any other
// outside [0, n) too, is a missing neighbour: it adds nothing and gets no gradient. The same on every device, and never
// an access outside the rows.

#include "stipple/core/numeric.h"
#include "stipple/ops/clouds.h"

namespace stipple::ops {

/// m rows of k indices, contiguous; the clouds of `batch` hold the m rows.
struct Neighbours {
    View<const int32_t, 2> indices;
    Batch batch;

    /// Throws Error{bad_argument} when the indices are not contiguous or the batch has another number of rows.
    Neighbours(View<const int32_t, 2> m_by_k, Batch batch_of_m) : indices(m_by_k), batch(std::move(batch_of_m)) {
        STIPPLE_REQUIRE(indices.is_contiguous(), "indices must be contiguous");
        STIPPLE_REQUIRE(indices.size(0) == batch.rows(), "{} rows of indices for a batch of {}", indices.size(0),
                        batch.rows());
    }
    Neighbours(View<const int32_t, 2> m_by_k) : Neighbours(m_by_k, Batch::single(m_by_k.size(0))) {}  // NOLINT
    Neighbours(View<int32_t, 2> m_by_k) : Neighbours(View<const int32_t, 2>(m_by_k)) {}               // NOLINT

    /// A dense batch [b, m, k].
    Neighbours(View<const int32_t, 3> b_by_m_by_k)  // NOLINT
        : Neighbours(flat(b_by_m_by_k), Batch::dense(b_by_m_by_k.size(0), b_by_m_by_k.size(1))) {}
    Neighbours(View<int32_t, 3> b_by_m_by_k) : Neighbours(View<const int32_t, 3>(b_by_m_by_k)) {}  // NOLINT

    /// One index a row (k = 1): nearest neighbours, samples.
    Neighbours(View<const int32_t, 1> m, Batch batch_of_m) : Neighbours(column(m), std::move(batch_of_m)) {}
    Neighbours(View<const int32_t, 1> m) : Neighbours(column(m)) {}                    // NOLINT
    Neighbours(View<int32_t, 1> m) : Neighbours(column(View<const int32_t, 1>(m))) {}  // NOLINT

    int64_t rows() const { return indices.size(0); }
    int64_t k() const { return indices.size(1); }
    int64_t entries() const { return checked_mul(rows(), k()); }
    Device device() const { return indices.device(); }

private:
    static View<const int32_t, 2> flat(View<const int32_t, 3> view) {
        STIPPLE_REQUIRE(view.is_contiguous(), "indices must be contiguous");
        return {view.data(), {checked_mul(view.size(0), view.size(1)), view.size(2)}, view.device()};
    }
    static View<const int32_t, 2> column(View<const int32_t, 1> m) {
        STIPPLE_REQUIRE(m.is_contiguous(), "indices must be contiguous");
        return {m.data(), {m.size(0), 1}, m.device()};
    }
};

/// Whether an index names one of n rows.
STIPPLE_HD bool names_row(int32_t index, int64_t n) {
    return index >= 0 && index < n;
}

}  // namespace stipple::ops
