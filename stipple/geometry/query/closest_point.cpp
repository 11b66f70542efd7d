#include "stipple/geometry/closest_point.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/query/mesh_queries_cuda.h"
#include "stipple/geometry/query/mesh_tree.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/common/spatial_order.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 256;
constexpr int64_t kBlock = 1 << 20;  // queries sorted at once
constexpr int64_t kCrowd = 16;

bool is_finite(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

void write(const ClosestPoints& found, int64_t row, const NearestFace& nearest, const cpu::Triangles& triangles) {
    if (found.distances.data()) found.distances.data()[row] = nearest.distance;
    if (found.faces.data()) found.faces.data()[row] = nearest.face;
    if (found.barycentrics.data()) {
        float* to = found.barycentrics.data() + 3 * row;
        if (nearest.face < 0) {
            std::fill(to, to + 3, 0.0f);
        } else {
            write_barycentrics(nearest.place.v, nearest.place.w, to);
        }
    }
    if (found.points.data()) {
        float* to = found.points.data() + 3 * row;
        if (nearest.face < 0) {
            std::fill(to, to + 3, std::numeric_limits<float>::quiet_NaN());
        } else {
            write_point(nearest.place, triangles(nearest.face), to);
        }
    }
}

/// Queries along a curve: each begins with the face of the one before, and finds the nodes it needs in the cache.
void find_block(const cpu::MeshTree& tree, View<const float, 2> queries, int64_t begin, int64_t end,
                const ClosestPoints& found) {
    const View<const float, 2> block = queries.slice(begin, end);
    std::vector<int32_t> order;
    order.reserve(static_cast<size_t>(end - begin));
    for (int64_t i = 0; i < end - begin; ++i) {
        if (tree.triangles.size() > 0 && is_finite(&block(i, 0))) {
            order.push_back(static_cast<int32_t>(i));
        } else {
            write(found, begin + i, {}, tree.triangles);
        }
    }
    ops::cpu::spatial_order(block, order, kCrowd);
    parallel_for(static_cast<int64_t>(order.size()), kGrain, [&](int64_t from, int64_t to) {
        int32_t guess = -1;
        for (int64_t i = from; i < to; ++i) {
            const NearestFace nearest = cpu::nearest_face(tree, &block(order[i], 0), guess);
            guess = nearest.face;
            write(found, begin + order[i], nearest, tree.triangles);
        }
    });
}

}  // namespace

void closest_point(const MeshIndex& index, View<const float, 2> queries, const ClosestPoints& found,
                   [[maybe_unused]] Stream stream) {
    constexpr const char* kName = "closest_point";
    STIPPLE_REQUIRE(queries.size(1) == 3 && (queries.size(0) <= 1 || queries.stride(1) == 1),
                    "{}: queries must be [m, 3] with adjacent coordinates, got {}", kName,
                    shape_text(queries.shape().data(), 2));
    const int64_t m = queries.size(0);
    ops::require_device(kName, "queries", index.device(), queries.device());
    if (found.distances.data()) ops::require_output(kName, "distances", found.distances, {m}, index.device());
    if (found.faces.data()) ops::require_output(kName, "faces", found.faces, {m}, index.device());
    if (found.barycentrics.data())
        ops::require_output(kName, "barycentrics", found.barycentrics, {m, 3}, index.device());
    if (found.points.data()) ops::require_output(kName, "points", found.points, {m, 3}, index.device());
    if (m == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu:
            for (int64_t begin = 0; begin < m; begin += kBlock)
                find_block(index.on_cpu(), queries, begin, std::min(begin + kBlock, m), found);
            return;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::closest_point, index, queries, found, stream);
    }
}

}  // namespace stipple::geometry
