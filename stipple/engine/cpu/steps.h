#pragma once
// The steps of a program on the CPU, chains apart (cpu/chain/chain.h): plain functions on the rows of one cloud. Each
// writes rows, points or channels [begin, end) of its output and nothing else, so that callers cut them over threads as
// they like: the numbers do not depend on the cut. Nothing is allocated but where it says so.

#include <cstddef>
#include <cstdint>
#include <span>

#include "stipple/engine/cpu/chain/chain.h"
#include "stipple/ops/point_index.h"

namespace stipple::engine::cpu {

/// Rows of a value as a step sees them: row r of the step reads row(r).
struct RowSource : ChainAddend {
    const float* row(int64_t r) const {
        switch (access) {
            case Access::row: return data + r * stride;
            case Access::cloud: return data;
            case Access::point: return data + r / width * stride;
            case Access::neighbour: return data + neighbours[r] * stride;
        }
        return data;
    }
};

struct Rows {
    float* data = nullptr;
    int64_t stride = 0;
    float* row(int64_t r) const { return data + r * stride; }
};

// Row by row: rows [begin, end) of the output.

void copy_rows(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end);
void reverse(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end);
void activate(const RowSource& x, int64_t channels, const Activation& activation, Rows out, int64_t begin, int64_t end);
/// x + factor * y
void add(const RowSource& x, const RowSource& y, float factor, int64_t channels, Rows out, int64_t begin, int64_t end);
/// Channels from `first` on plus factor * t.
void couple(const RowSource& x, const RowSource& t, float factor, int64_t first, int64_t channels, Rows out,
            int64_t begin, int64_t end);
/// (x - b) exp(-s), or x exp(s) + b in the inverse.
void inject(const RowSource& x, const RowSource& s, const RowSource& b, bool inverse, int64_t channels, Rows out,
            int64_t begin, int64_t end);
void sum_channels(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end);
void log_softmax(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end);
/// x_i, x_j, x_i - x_j, |x_i - x_j|; xi and xj are two accesses to one value.
void edge_distance(const RowSource& xi, const RowSource& xj, int64_t channels, Rows out, int64_t begin, int64_t end);

// Point by point: points [begin, end), each with `width` rows in x.

void max_rows(const RowSource& x, int64_t width, int64_t channels, Rows out, int64_t begin, int64_t end);
void softmax_rows(const RowSource& x, int64_t width, int64_t channels, Rows out, int64_t begin, int64_t end);
/// weights [width rows of `children` channels], values [width rows of `channels`] -> [children rows of `channels`].
void interpolate(const RowSource& weights, const RowSource& values, int64_t width, int64_t children, int64_t channels,
                 Rows out, int64_t begin, int64_t end);

// A whole cloud: all its rows, channels [begin, end). Sums are taken in double, in the order of the rows.

void max_points(const RowSource& x, int64_t rows, float* out, int64_t begin, int64_t end);
void sum_points(const RowSource& x, int64_t rows, float* out, int64_t begin, int64_t end);
/// The sum over all rows and channels of -(z^2 + ln 2 pi) / 2.
float gaussian_log_density(const RowSource& z, int64_t rows, int64_t channels);

/// Rows [begin, end) of W T^T: weight [out, k] (null: the identity), matrix T [k, k], out [out, k].
void fold_matrix(const float* weight, const float* matrix, int64_t k, float* out, int64_t begin, int64_t end);

// Neighbours.

/// Of every search; 64-byte aligned.
int64_t knn_scratch_bytes(int64_t channels, int64_t k);

/// Who looks for neighbours: the points themselves where there is no data.
struct KnnQueries {
    const float* data = nullptr;
    int64_t stride = 0;
    int64_t rows = 0;
};

/// The k nearest points of the cloud for queries [begin, end), nearest first: the distances and ties of ops::knn.
/// Missing ones are the point itself, or the first of the cloud for other queries. points [rows, channels]; out
/// [queries, k]. Compares with every point: for patches.
void knn_all(const float* points, int64_t stride, int64_t rows, int64_t channels, int64_t k, int32_t* out,
             int64_t begin, int64_t end, std::byte* scratch, const KnnQueries& queries = {});

/// The same for all queries of a large cloud, by a tree of its points, which are the queries where `is_own`. Allocates.
void knn_tree(const ops::PointIndex& points, const KnnQueries& queries, bool is_own, int64_t k, int32_t* out);

}  // namespace stipple::engine::cpu
