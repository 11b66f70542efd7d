#pragma once
// Clouds: what every op takes. One cloud, a dense batch or a ragged batch, as rows of one array.
//
//   knn(index, Clouds(view_n3), ...);                    one cloud       [n, 3]
//   knn(index, Clouds(view_bn3), ...);                   dense batch     [b, n, 3]
//   knn(index, Clouds(view_total3, Batch::ragged({0, 100, 350})), ...);  two clouds of 100 and 250 points
//
// Indices that ops take and give count from the first point of the cloud they belong to, never from the batch's.

#include <algorithm>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::ops {

/// Where the clouds of a batch begin and end in an array of rows. Host memory, cheap to copy.
class Batch {
public:
    Batch() = default;  // no clouds

    static Batch single(int64_t n) { return dense(1, n); }

    static Batch dense(int64_t clouds, int64_t n) {
        STIPPLE_REQUIRE(clouds >= 0 && n >= 0, "a batch of {} clouds of {} points", clouds, n);
        Batch batch;
        batch.clouds_ = clouds;
        batch.size_ = batch.largest_ = n;
        batch.rows_ = checked_mul(clouds, n);
        return batch;
    }

    /// clouds + 1 ascending row numbers, the first 0. Throws Error{bad_argument} otherwise.
    static Batch ragged(std::vector<int64_t> offsets) {
        STIPPLE_REQUIRE(!offsets.empty() && offsets[0] == 0, "the offsets of a ragged batch begin with 0");
        Batch batch;
        batch.clouds_ = static_cast<int64_t>(offsets.size()) - 1;
        for (size_t i = 1; i < offsets.size(); ++i) {
            STIPPLE_REQUIRE(offsets[i - 1] <= offsets[i], "offset {} of a ragged batch is {}, after {}", i, offsets[i],
                            offsets[i - 1]);
            batch.largest_ = std::max(batch.largest_, offsets[i] - offsets[i - 1]);
        }
        batch.rows_ = offsets.back();
        batch.offsets_ = std::move(offsets);
        return batch;
    }

    int64_t clouds() const { return clouds_; }
    int64_t rows() const { return rows_; }
    int64_t largest() const { return clouds_ == 0 ? 0 : largest_; }  // points of the largest cloud
    int64_t begin(int64_t cloud) const { return offsets_.empty() ? cloud * size_ : offsets_[cloud]; }
    int64_t end(int64_t cloud) const { return begin(cloud + 1); }
    int64_t size(int64_t cloud) const { return end(cloud) - begin(cloud); }

    bool is_dense() const { return offsets_.empty(); }
    const std::vector<int64_t>& offsets() const { return offsets_; }  // empty when dense

private:
    int64_t clouds_ = 0, size_ = 0, largest_ = 0, rows_ = 0;
    std::vector<int64_t> offsets_;
};

/// Points (or features) of a batch: rows [rows, c], the c numbers of a row adjacent, rows any distance apart.
struct Clouds {
    View<const float, 2> rows;
    Batch batch;

    /// Throws Error{bad_argument} when the numbers of a row are not adjacent or the batch has another number of rows.
    Clouds(View<const float, 2> points, Batch batch_of_points) : rows(points), batch(std::move(batch_of_points)) {
        STIPPLE_REQUIRE(points.size(1) <= 1 || points.stride(1) == 1, "the {} numbers of a row must be adjacent",
                        points.size(1));
        STIPPLE_REQUIRE(points.size(0) == batch.rows(), "{} rows for a batch of {}", points.size(0), batch.rows());
    }
    Clouds(View<const float, 2> points) : Clouds(points, Batch::single(points.size(0))) {}  // NOLINT
    Clouds(View<float, 2> points) : Clouds(View<const float, 2>(points)) {}                 // NOLINT
    Clouds(View<const float, 3> points)                                                     // NOLINT
        : Clouds(flat(points), Batch::dense(points.size(0), points.size(1))) {}
    Clouds(View<float, 3> points) : Clouds(View<const float, 3>(points)) {}  // NOLINT

    int64_t dimension() const { return rows.size(1); }
    Device device() const { return rows.device(); }

    /// One cloud of the batch.
    View<const float, 2> cloud(int64_t i) const { return rows.slice(batch.begin(i), batch.end(i)); }

private:
    static View<const float, 2> flat(View<const float, 3> points) {
        STIPPLE_REQUIRE(points.size(0) <= 1 || points.stride(0) == points.size(1) * points.stride(1),
                        "the clouds of a dense batch must follow each other");
        return {points.data(),
                {checked_mul(points.size(0), points.size(1)), points.size(2)},
                {points.stride(1), points.stride(2)},
                points.device()};
    }
};

}  // namespace stipple::ops
