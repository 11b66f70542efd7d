#include "stipple/geometry/winding_number.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/winding/launch.h"
#include "stipple/geometry/winding/point_area.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/knn.h"

namespace stipple::geometry {
namespace {

void require_rows(const char* who, const char* name, View<const float, 2> rows) {
    STIPPLE_REQUIRE(rows.size(1) == 3 && rows.is_contiguous(), "{}: {} must be [n, 3] without gaps, got {}", who, name,
                    shape_text(rows.shape().data(), 2));
    STIPPLE_REQUIRE(rows.size(0) <= INT32_MAX, "{}: {} {}, at most {}", who, rows.size(0), name, INT32_MAX);
}

}  // namespace

WindingIndex::WindingIndex(const MeshView& mesh, [[maybe_unused]] Stream stream) : device_(mesh.device()) {
    require_mesh("WindingIndex", mesh);
    switch (device_.type) {
        case DeviceType::cpu: cpu_ = cpu::build_winding(mesh); return;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda_ = cuda::build_winding, mesh, stream);
    }
}

WindingIndex::WindingIndex(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                           float softening, [[maybe_unused]] Stream stream)
    : device_(points.device()) {
    constexpr const char* kWho = "WindingIndex";
    require_rows(kWho, "points", points);
    ops::require_output<const float, 2>(kWho, "normals", normals, points.shape(), device_);
    ops::require_output<const float, 1>(kWho, "areas", areas, {points.size(0)}, device_);
    STIPPLE_REQUIRE(std::isfinite(softening) && softening >= 0, "{}: the softening must be at least 0, got {}", kWho,
                    softening);
    switch (device_.type) {
        case DeviceType::cpu: cpu_ = cpu::build_winding(points, normals, areas, softening); return;
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda_ = cuda::build_winding, points, normals, areas, softening, stream);
    }
}

void winding_number(const WindingIndex& index, View<const float, 2> queries, View<float, 1> winding, float accuracy,
                    [[maybe_unused]] Stream stream) {
    constexpr const char* kWho = "winding_number";
    require_rows(kWho, "queries", queries);
    ops::require_device(kWho, "queries", index.device(), queries.device());
    ops::require_output<float, 1>(kWho, "winding", winding, {queries.size(0)}, index.device());
    STIPPLE_REQUIRE(accuracy > 0, "{}: the accuracy must be above 0, got {}", kWho, accuracy);
    if (queries.size(0) == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu: return cpu::winding_number(index.on_cpu(), queries, winding, accuracy);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::winding_number, index.on_cuda(), queries, winding, accuracy, stream);
    }
}

namespace {

/// Empty normals: every neighbour counts.
void areas_of(View<const float, 2> points, View<const float, 2> normals, View<float, 1> areas, int k, Stream stream) {
    constexpr const char* kWho = "point_areas";
    require_rows(kWho, "points", points);
    const int64_t n = points.size(0);
    ops::require_output<float, 1>(kWho, "areas", areas, {n}, points.device());
    STIPPLE_REQUIRE(k >= 1 && k <= 127, "{}: k must be 1 to 127, got {}", kWho, k);
    if (n == 0) return;
    constexpr int64_t kRows = 1 << 18;  // neighbours of so many points are held at a time
    const int64_t columns = std::min<int64_t>(k + 1, n);
    const ops::PointIndex index(points, stream);
    Array<int32_t, 2> neighbours({std::min(n, kRows), columns}, points.device());
    Array<float, 2> distances_sq({std::min(n, kRows), columns}, points.device());
    for (int64_t begin = 0; begin < n; begin += kRows) {
        const int64_t rows = std::min(kRows, n - begin);
        const auto found = neighbours.view().slice(0, rows);
        const auto how_far = distances_sq.view().slice(0, rows);
        ops::knn(index, points.slice(begin, begin + rows), found, how_far, stream);
        switch (points.device().type) {
            case DeviceType::cpu:
                parallel_for(rows, 4096, [&](int64_t first, int64_t last) {
                    for (int64_t i = first; i < last; ++i)
                        areas.data()[begin + i] =
                            area_of_neighbours(&how_far(i, 0), &found(i, 0), columns, normals.data(), begin + i);
                });
                break;
            case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::point_areas, how_far, found, normals, begin, areas, stream);
        }
    }
}

}  // namespace

void point_areas(View<const float, 2> points, View<float, 1> areas, int k, Stream stream) {
    areas_of(points, {}, areas, k, stream);
}

void point_areas(View<const float, 2> points, View<const float, 2> normals, View<float, 1> areas, int k,
                 Stream stream) {
    ops::require_output<const float, 2>("point_areas", "normals", normals, points.shape(), points.device());
    areas_of(points, normals, areas, k, stream);
}

}  // namespace stipple::geometry
