#include "stipple/geometry/normals.h"

#include <algorithm>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/cloud/normals_cuda.h"
#include "stipple/geometry/cloud/normals_turn.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/knn.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kEntries = int64_t{1} << 25;  // neighbours that are held at a time: 128 MiB

void normals_of_rows(View<const float, 2> points, int64_t first, View<const int32_t, 2> neighbours, float radius_sq,
                     View<float, 2> normals, View<float, 1> curvatures) {
    const auto k = static_cast<int>(neighbours.size(1));
    const int64_t stride = points.stride(0);
    parallel_for(neighbours.size(0), 512, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = first + i;
            write_normal(
                normal_of(points.data(), stride, points.data() + row * stride, neighbours.data() + i * k, k, radius_sq),
                normals.data() + 3 * row, curvatures.elements() > 0 ? curvatures.data() + row : nullptr);
        }
    });
}

}  // namespace

void estimate_normals(View<const float, 2> points, View<float, 2> normals, View<float, 1> curvatures, int k,
                      float radius, Stream stream) {
    constexpr const char* kName = "estimate_normals";
    const ops::Clouds cloud(points);
    const int64_t n = points.size(0);
    ops::require_clouds(kName, "points", cloud);
    ops::require_output<float, 2>(kName, "normals", normals, {n, 3}, points.device());
    if (curvatures.elements() > 0) ops::require_output<float, 1>(kName, "curvatures", curvatures, {n}, points.device());
    STIPPLE_REQUIRE(k >= 3 && k <= 128, "{}: k must be 3 to 128, got {}", kName, k);
    STIPPLE_REQUIRE(radius > 0, "{}: the radius must be above 0, got {}", kName, radius);
    if (n == 0) return;
    const ops::PointIndex index(cloud, stream);
    const int64_t columns = std::min<int64_t>(k, n), rows = std::min(n, kEntries / columns);
    Array<int32_t, 2> neighbours({rows, columns}, points.device());
    for (int64_t first = 0; first < n; first += rows) {
        const int64_t last = std::min(n, first + rows);
        const auto found = neighbours.view().slice(0, last - first);
        ops::knn(index, points.slice(first, last), found, {}, stream);
        switch (points.device().type) {
            case DeviceType::cpu: normals_of_rows(points, first, found, radius * radius, normals, curvatures); break;
            case DeviceType::cuda:
                STIPPLE_CUDA_CALL(cuda::normals_of_rows, points, first, found, radius * radius, normals, curvatures,
                                  stream);
                break;
        }
    }
}

void orient_towards(View<const float, 2> points, View<float, 2> normals, const std::array<double, 3>& viewpoint,
                    [[maybe_unused]] Stream stream) {
    constexpr const char* kName = "orient_towards";
    const int64_t n = points.size(0);
    ops::require_clouds(kName, "points", ops::Clouds(points));
    ops::require_output<float, 2>(kName, "normals", normals, {n, 3}, points.device());
    for (double x : viewpoint) STIPPLE_REQUIRE(std::isfinite(x), "{}: the viewpoint is not finite", kName);
    if (n == 0) return;
    switch (points.device().type) {
        case DeviceType::cpu:
            return parallel_for(n, 16384, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    turn_towards(points.data() + i * points.stride(0), viewpoint.data(), normals.data() + 3 * i);
            });
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::orient_towards, points, normals, viewpoint, stream);
    }
}

}  // namespace stipple::geometry
