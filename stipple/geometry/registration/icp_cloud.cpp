#include "stipple/geometry/registration/icp_cloud.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/geometry/cloud/normals_turn.h"
#include "stipple/geometry/registration/cell_centroids.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::geometry {
namespace {

using ops::cpu::kLeaf;

/// Unit length, or zero for what has no direction.
std::array<float, 3> unit(const float* v) {
    const double length = std::sqrt(double{v[0]} * v[0] + double{v[1]} * v[1] + double{v[2]} * v[2]);
    if (!(length > 1e-6) || !std::isfinite(length)) return {};
    return {static_cast<float>(v[0] / length), static_cast<float>(v[1] / length), static_cast<float>(v[2] / length)};
}

/// As estimate_normals(), with the index that is there already.
Array<float, 2> normals_of(const PairTarget& target, View<const float, 2> points, int neighbours) {
    const int64_t n = points.size(0);
    Array<float, 2> normals({n, 3});
    if (n == 0) return normals;
    constexpr int64_t kRows = 1 << 18;  // neighbours of so many points are held at a time
    const auto k = static_cast<int>(std::min<int64_t>(neighbours, n));
    Array<int32_t, 2> found({std::min(n, kRows), k});
    for (int64_t first = 0; first < n; first += kRows) {
        const int64_t last = std::min(n, first + kRows);
        ops::knn(target.index(), points.slice(first, last), found.view().slice(0, last - first), {});
        parallel_for(last - first, 512, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                write_normal(normal_of(points.data(), 3, points.data() + 3 * (first + i), found.data() + i * k, k,
                                       std::numeric_limits<float>::infinity()),
                             normals.data() + 3 * (first + i), nullptr);
        });
    }
    return normals;
}

/// The cloud's own normals, or nothing.
const Attribute* own_normals(const PointCloud& cloud) {
    const Attribute* normal = find(cloud.attributes, "normal");
    return normal && normal->dtype() == DType::f32 && normal->components() == 3 ? normal : nullptr;
}

}  // namespace

Extent extent_of(View<const float, 2> points) {
    // About the first finite point, so that squares of large coordinates do not swallow the spread.
    constexpr int64_t kChunk = 1 << 14, kRun = 256;
    struct Sums {
        double sum[3] = {}, squares = 0;
        int64_t count = 0;
    };
    const auto is_finite = [&](int64_t i) {
        const float* p = points.data() + 3 * i;
        return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
    };
    Extent extent;
    const int64_t n = points.size(0);
    int64_t first = 0;
    while (first < n && !is_finite(first)) ++first;
    if (first == n) return extent;
    const float* about = points.data() + 3 * first;
    std::vector<Sums> chunks(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        Sums& chunk = chunks[begin / kChunk];
        for (int64_t row = begin; row < end; row += kRun) {  // a run at a time in float64, its four sums in registers
            double x = 0, y = 0, z = 0, squares = 0;
            int64_t count = 0;
            for (int64_t i = row; i < std::min(end, row + kRun); ++i) {
                const float* p = points.data() + 3 * i;
                const bool finite = p[0] * 0 == 0 && p[1] * 0 == 0 && p[2] * 0 == 0;  // 0 times infinity is no number
                const double dx = finite ? double{p[0]} - about[0] : 0, dy = finite ? double{p[1]} - about[1] : 0,
                             dz = finite ? double{p[2]} - about[2] : 0;
                count += finite;
                x += dx;
                y += dy;
                z += dz;
                squares += dx * dx + dy * dy + dz * dz;
            }
            chunk.count += count;
            chunk.squares += squares;
            chunk.sum[0] += x;
            chunk.sum[1] += y;
            chunk.sum[2] += z;
        }
    });
    Sums total;
    for (const Sums& chunk : chunks) {
        total.count += chunk.count;
        total.squares += chunk.squares;
        for (int axis = 0; axis < 3; ++axis) total.sum[axis] += chunk.sum[axis];
    }
    const auto count = static_cast<double>(total.count);
    double square = total.squares / count;
    for (int axis = 0; axis < 3; ++axis) {
        const double mean = total.sum[axis] / count;
        extent.mean[axis] = about[axis] + mean;
        square -= mean * mean;
    }
    extent.radius = std::sqrt(std::max(square, 0.0));
    return extent;
}

std::shared_ptr<const IcpCloud> icp_cloud(const PointCloud& cloud, double voxel, int neighbours) {
    const Attribute* own = neighbours > 0 ? own_normals(cloud) : nullptr;
    Array<float, 2> thinned, normals;
    View<const float, 2> points = cloud.positions.view();
    if (voxel > 0 && !own) {
        thinned = cell_centroids(points, static_cast<float>(voxel));
        points = thinned.view();
    } else if (voxel > 0) {
        const ops::VoxelGrid grid = ops::voxel_grid(points, static_cast<float>(voxel));
        thinned = Array<float, 2>({grid.cells.rows(), 3});
        ops::voxel_centroids(grid, points, thinned.view());
        points = thinned.view();
        normals = Array<float, 2>({grid.cells.rows(), 3});
        ops::voxel_centroids(grid, own->as<float>(), normals.view());
    }
    auto made = std::make_shared<IcpCloud>(IcpCloud{PairTarget(points), {}, extent_of(points)});
    if (neighbours == 0) return made;
    if (!own) normals = normals_of(made->points, points, neighbours);
    const float* from = own && voxel == 0 ? own->as<float>().data() : normals.data();
    made->normals.resize(static_cast<size_t>(made->points.size()));
    for (int64_t slot = 0; slot < made->points.size(); ++slot)
        made->normals[slot] = unit(from + 3 * int64_t{made->points.index_at(slot)});
    return made;
}

double spacing_of(const PairTarget& target) {
    constexpr int64_t kSome = 1024;
    const int64_t n = target.size(), stride = (n + kSome - 1) / kSome;
    if (n < 2) return 0;
    const int64_t some = (n + stride - 1) / stride;
    Array<float, 2> queries({some, 3}), distances_sq({some, 2});
    Array<int32_t, 2> indices({some, 2});
    for (int64_t i = 0; i < some; ++i)
        for (int axis = 0; axis < 3; ++axis) queries.data()[3 * i + axis] = target.at(i * stride, axis);
    ops::knn(target.index(), queries.view(), indices.view(), distances_sq.view());
    std::vector<float> nearest(static_cast<size_t>(some));
    for (int64_t i = 0; i < some; ++i) nearest[i] = distances_sq.data()[2 * i + 1];
    std::nth_element(nearest.begin(), nearest.begin() + some / 2, nearest.end());
    return std::sqrt(double{nearest[some / 2]});
}

ops::cpu::Leaves every(const ops::cpu::Leaves& all, int64_t stride) {
    ops::cpu::Leaves some;
    some.dimension = all.dimension;
    some.size = (all.size + stride - 1) / stride;
    some.blocks = Buffer(some.count() * some.block_bytes());
    for (int64_t i = 0; i < some.count() * kLeaf; ++i) {
        std::byte* block = some.blocks.data() + i / kLeaf * some.block_bytes();
        auto* to = reinterpret_cast<float*>(block) + i % kLeaf;
        auto* index = reinterpret_cast<int32_t*>(block + some.block_bytes()) - kLeaf + i % kLeaf;
        const int64_t from = i * stride;
        const bool exists = i < some.size;
        *index = exists ? all.indices_at(from / kLeaf)[from % kLeaf] : std::numeric_limits<int32_t>::max() - 1;
        for (int axis = 0; axis < some.dimension; ++axis)
            to[axis * kLeaf] =
                exists ? all.at(from / kLeaf)[axis * kLeaf + from % kLeaf] : std::numeric_limits<float>::infinity();
    }
    return some;
}

}  // namespace stipple::geometry
