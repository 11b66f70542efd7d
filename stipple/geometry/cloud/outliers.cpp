#include "stipple/geometry/outliers.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/cloud/outliers_cuda.h"
#include "stipple/geometry/cloud/outliers_mean.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/radius_search.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kEntries = int64_t{1} << 25;  // neighbours that are held at a time

void require_points(const char* name, const ops::Clouds& points, View<uint8_t, 1> keep) {
    ops::require_clouds(name, "points", points);
    ops::require_output<uint8_t, 1>(name, "keep", keep, {points.rows.size(0)}, points.device());
}

/// The mean distance of every point to its k nearest, on the host.
std::vector<double> mean_distances(const ops::Clouds& points, int64_t k, Stream stream) {
    const int64_t n = points.rows.size(0), columns = std::min(k, n), rows = std::min(n, kEntries / columns);
    std::vector<double> means(static_cast<size_t>(n));
    const ops::PointIndex index(points, stream);
    Array<int32_t, 2> neighbours({rows, columns}, points.device());
    Array<float, 2> distances_sq({rows, columns}, points.device());
    for (int64_t first = 0; first < n; first += rows) {
        const int64_t count = std::min(n - first, rows);
        const auto found = distances_sq.view().slice(0, count);
        ops::knn(index, points.rows.slice(first, first + count), neighbours.view().slice(0, count), found, stream);
        double* out = means.data() + first;
        switch (points.device().type) {
            case DeviceType::cpu:
                parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) out[i] = mean_distance(found.data() + i * columns, columns);
                });
                break;
            case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::mean_distances, found, out, stream); break;
        }
    }
    return means;
}

/// Writes keep[i] = test(i) on any device; how many are kept.
template <class Test>
int64_t write_mask(View<uint8_t, 1> keep, [[maybe_unused]] Stream stream, Test&& test) {
    const int64_t n = keep.size(0);
    std::vector<uint8_t> mask(static_cast<size_t>(n));
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) kept += mask[i] = test(i) ? 1 : 0;
    switch (keep.device().type) {
        case DeviceType::cpu: std::copy(mask.begin(), mask.end(), keep.data()); break;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::to_device, mask.data(), keep, stream); break;
    }
    return kept;
}

}  // namespace

OutlierStatistics statistical_outliers(View<const float, 2> points, View<uint8_t, 1> keep, int k, double ratio,
                                       Stream stream) {
    constexpr const char* kName = "statistical_outliers";
    require_points(kName, points, keep);
    STIPPLE_REQUIRE(k >= 2 && k <= 128, "{}: k must be 2 to 128, got {}", kName, k);
    STIPPLE_REQUIRE(ratio >= 0 && std::isfinite(ratio), "{}: the ratio must be from 0, got {}", kName, ratio);
    OutlierStatistics statistics;
    if (points.size(0) == 0) return statistics;
    const std::vector<double> means = mean_distances(points, k, stream);
    int64_t count = 0;
    double sum = 0, squares = 0;
    for (const double mean : means)
        if (!std::isnan(mean)) sum += mean, ++count;
    if (count > 0) statistics.mean = sum / static_cast<double>(count);
    for (const double mean : means)
        if (!std::isnan(mean)) squares += (mean - statistics.mean) * (mean - statistics.mean);
    if (count > 1) statistics.deviation = std::sqrt(squares / static_cast<double>(count - 1));
    statistics.threshold = statistics.mean + ratio * statistics.deviation;
    // Equal distances have a mean that rounding moves: their own rounding is no reason to drop them.
    const double limit = statistics.threshold * (1 + 1e-12);
    statistics.kept = write_mask(keep, stream, [&](int64_t i) { return means[i] <= limit; });
    return statistics;
}

int64_t radius_outliers(View<const float, 2> points, View<uint8_t, 1> keep, float radius, int neighbours,
                        Stream stream) {
    constexpr const char* kName = "radius_outliers";
    require_points(kName, points, keep);
    STIPPLE_REQUIRE(radius > 0, "{}: the radius must be above 0, got {}", kName, radius);
    STIPPLE_REQUIRE(neighbours >= 0, "{}: {} neighbours", kName, neighbours);
    const int64_t n = points.size(0);
    if (n == 0) return 0;
    Array<int32_t, 1> counts({n}, points.device());
    ops::radius_count(ops::PointIndex(points, stream), points, radius, counts.view(), stream);
    std::vector<int32_t> on_host(static_cast<size_t>(n));
    switch (points.device().type) {
        case DeviceType::cpu: std::copy(counts.data(), counts.data() + n, on_host.begin()); break;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::to_host, counts.view(), on_host.data(), stream); break;
    }
    return write_mask(keep, stream, [&](int64_t i) { return on_host[i] > neighbours; });  // it counts itself
}

}  // namespace stipple::geometry
