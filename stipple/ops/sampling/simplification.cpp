#include "stipple/ops/simplification.h"

#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double squared(const float* a, const float* b) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) sum += (double{a[axis]} - b[axis]) * (double{a[axis]} - b[axis]);
    return sum;
}

float squared_float(const float* a, const float* b) {
    const float dx = a[0] - b[0], dy = a[1] - b[1], dz = a[2] - b[2];
    return dx * dx + dy * dy + dz * dz;
}

/// One cloud of both.
struct SimplifiedCloud {
    const float *points, *queries;
    int64_t point_stride, query_stride, n, m;
    const int32_t* nearest;

    const float* point(int64_t i) const { return points + i * point_stride; }
    const float* query(int64_t i) const { return queries + i * query_stride; }
    double to_nearest(int64_t q) const { return nearest[q] < 0 ? kNan : squared(query(q), point(nearest[q])); }
};

SimplifiedCloud cloud_at(const Clouds& points, const Clouds& queries, View<const int32_t, 1> nearest, int64_t cloud) {
    const int64_t first = points.batch.begin(cloud), m = queries.batch.largest();
    return {points.rows.data() + first * points.rows.stride(0),
            queries.rows.data() + cloud * m * queries.rows.stride(0),
            points.rows.stride(0),
            queries.rows.stride(0),
            points.batch.size(cloud),
            m,
            nearest.data() + cloud * m};
}

void terms_of(const SimplifiedCloud& cloud, std::span<const int64_t> sizes, int32_t* owners, int64_t owner_stride,
              int32_t* farthest, double* terms) {
    const size_t count = sizes.size();
    double sum = 0, most = -1;
    int32_t most_at = 0;
    size_t s = 0;
    for (int64_t q = 0; s < count; ++q) {
        const double distance = cloud.to_nearest(q);
        sum += distance;
        if (!(distance <= most)) most = distance, most_at = static_cast<int32_t>(q);
        if (std::isnan(distance)) most = std::numeric_limits<double>::infinity();  // stays; the sum is NaN
        if (q + 1 < sizes[s]) continue;
        terms[3 * s] = sum / static_cast<double>(sizes[s]);
        terms[3 * s + 1] = std::isnan(sum) ? kNan : most;
        farthest[s++] = most_at;
    }
    std::vector<double> back(count, 0.0);
    for (int64_t p = 0; p < cloud.n; ++p) {
        float best = std::numeric_limits<float>::infinity();
        int32_t owner = -1;
        s = 0;
        for (int64_t q = 0; s < count; ++q) {
            const float distance = squared_float(cloud.point(p), cloud.query(q));
            if (distance < best) best = distance, owner = static_cast<int32_t>(q);
            if (q + 1 < sizes[s]) continue;
            owners[static_cast<int64_t>(s) * owner_stride + p] = owner;
            back[s++] += owner < 0 ? kNan : squared(cloud.point(p), cloud.query(owner));
        }
    }
    for (s = 0; s < count; ++s) terms[3 * s + 2] = back[s] / static_cast<double>(cloud.n);
}

void gradient_of(const SimplifiedCloud& cloud, std::span<const int64_t> sizes, const int32_t* owners,
                 int64_t owner_stride, const int32_t* farthest, const double* dL_dterms, float* dL_dqueries) {
    std::vector<double> sums(static_cast<size_t>(3 * cloud.m), 0.0);
    const auto pull = [&](int64_t q, const float* p, double weight) {
        for (int axis = 0; axis < 3; ++axis)
            sums[static_cast<size_t>(3 * q + axis)] += 2 * weight * (double{cloud.query(q)[axis]} - p[axis]);
    };
    for (size_t s = 0; s < sizes.size(); ++s) {
        const double* gradient = dL_dterms + 3 * s;
        for (int64_t q = 0; q < sizes[s]; ++q) {
            if (cloud.nearest[q] < 0) continue;
            const double largest = q == farthest[s] ? gradient[1] : 0;
            pull(q, cloud.point(cloud.nearest[q]), gradient[0] / static_cast<double>(sizes[s]) + largest);
        }
        for (int64_t p = 0; p < cloud.n; ++p) {
            const int32_t owner = owners[static_cast<int64_t>(s) * owner_stride + p];
            if (owner >= 0) pull(owner, cloud.point(p), gradient[2] / static_cast<double>(cloud.n));
        }
    }
    for (size_t i = 0; i < sums.size(); ++i) dL_dqueries[i] = static_cast<float>(sums[i]);
}

}  // namespace
}  // namespace cpu

namespace {

void require_simplification(const char* op, const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                            View<const int32_t, 1> nearest, const SimplificationRows& rows) {
    require_clouds(op, "points", points);
    require_clouds(op, "queries", queries);
    require_same_batch(op, points.batch, queries.batch);
    require_device(op, "queries", points.device(), queries.device());
    STIPPLE_REQUIRE(queries.batch.is_dense(), "{}: queries must be a dense batch", op);
    STIPPLE_REQUIRE(!sizes.empty() && sizes.size() <= 16, "{}: {} sizes; 1 to 16 are possible", op, sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
        STIPPLE_REQUIRE(sizes[i] > (i == 0 ? 0 : sizes[i - 1]) && sizes[i] <= queries.batch.largest(),
                        "{}: sizes must ascend from 1 to {}, got {}", op, queries.batch.largest(), sizes[i]);
    for (int64_t cloud = 0; !points.batch.is_dense() && cloud < points.batch.clouds(); ++cloud)
        STIPPLE_REQUIRE(points.batch.size(cloud) > 0, "{}: cloud {} has no points", op, cloud);
    STIPPLE_REQUIRE(points.batch.clouds() == 0 || points.batch.largest() > 0, "{}: clouds have no points", op);
    const auto count = static_cast<int64_t>(sizes.size());
    STIPPLE_REQUIRE(nearest.size(0) == queries.batch.rows() && nearest.is_contiguous(),
                    "{}: nearest must be [{}], contiguous", op, queries.batch.rows());
    require_device(op, "nearest", points.device(), nearest.device());
    require_output<int32_t, 2>(op, "owners", rows.owners, {count, points.batch.rows()}, points.device());
    require_output<int32_t, 2>(op, "farthest", rows.farthest, {points.batch.clouds(), count}, points.device());
}

}  // namespace

void simplification(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                    View<const int32_t, 1> nearest, const SimplificationRows& rows, View<double, 3> terms,
                    [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "simplification";
    require_simplification(kOp, points, queries, sizes, nearest, rows);
    const auto count = static_cast<int64_t>(sizes.size());
    const int64_t clouds = points.batch.clouds();
    require_output<double, 3>(kOp, "terms", terms, {clouds, count, 3}, points.device());
    if (clouds == 0) return;
    if (points.device().type == DeviceType::cuda)
        STIPPLE_CUDA_CALL(cuda::simplification, points, queries, sizes, nearest, rows, terms, stream);
    else
        parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
            for (int64_t cloud = begin; cloud < end; ++cloud)
                cpu::terms_of(cpu::cloud_at(points, queries, nearest, cloud), sizes,
                              rows.owners.data() + points.batch.begin(cloud), rows.owners.size(1),
                              rows.farthest.data() + cloud * count, terms.data() + 3 * cloud * count);
        });
}

void simplification_backward(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                             View<const int32_t, 1> nearest, const SimplificationRows& rows,
                             View<const double, 3> dL_dterms, View<float, 2> dL_dqueries,
                             [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "simplification_backward";
    require_simplification(kOp, points, queries, sizes, nearest, rows);
    const auto count = static_cast<int64_t>(sizes.size());
    const int64_t clouds = points.batch.clouds(), m = queries.batch.largest();
    require_output<const double, 3>(kOp, "dL_dterms", dL_dterms, {clouds, count, 3}, points.device());
    require_output<float, 2>(kOp, "dL_dqueries", dL_dqueries, {clouds * m, 3}, points.device());
    if (clouds == 0) return;
    if (points.device().type == DeviceType::cuda)
        STIPPLE_CUDA_CALL(cuda::simplification_backward, points, queries, sizes, nearest, rows, dL_dterms, dL_dqueries,
                          stream);
    else
        parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
            for (int64_t cloud = begin; cloud < end; ++cloud)
                cpu::gradient_of(cpu::cloud_at(points, queries, nearest, cloud), sizes,
                                 rows.owners.data() + points.batch.begin(cloud), rows.owners.size(1),
                                 rows.farthest.data() + cloud * count, dL_dterms.data() + 3 * cloud * count,
                                 dL_dqueries.data() + 3 * cloud * m);
        });
}

}  // namespace stipple::ops
