#include "stipple/geometry/cast_rays.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_queries_cuda.h"
#include "stipple/geometry/mesh_tree.h"
#include "stipple/ops/require.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 1024;

void require_rays(const char* who, const MeshIndex& index, const Rays& rays) {
    for (const View<const float, 2>* view : {&rays.origins, &rays.directions}) {
        const char* name = view == &rays.origins ? "origins" : "directions";
        STIPPLE_REQUIRE(view->size(1) == 3 && (view->size(0) <= 1 || view->stride(1) == 1),
                        "{}: {} must be [m, 3] with adjacent coordinates, got {}", who, name,
                        shape_text(view->shape().data(), 2));
        ops::require_device(who, name, index.device(), view->device());
    }
    STIPPLE_REQUIRE(rays.origins.size(0) == rays.directions.size(0), "{}: {} origins and {} directions", who,
                    rays.origins.size(0), rays.directions.size(0));
    STIPPLE_REQUIRE(rays.t_near >= 0 && rays.t_near <= rays.t_far, "{}: t from {} to {}", who, rays.t_near, rays.t_far);
}

/// False for rays that hit nothing by contract.
bool take_ray(const Rays& rays, int64_t row, cpu::Ray& ray) {
    const float *origin = &rays.origins(row, 0), *direction = &rays.directions(row, 0);
    bool is_finite = true, has_direction = false;
    for (int axis = 0; axis < 3; ++axis) {
        ray.origin[axis] = origin[axis];
        ray.direction[axis] = direction[axis];
        is_finite = is_finite && std::isfinite(origin[axis]) && std::isfinite(direction[axis]);
        has_direction = has_direction || direction[axis] != 0;
    }
    ray.t_near = rays.t_near;
    ray.t_far = std::min(rays.t_far, std::numeric_limits<float>::max());  // a hit has a finite t
    return is_finite && has_direction;
}

void write(const RayHits& hits, int64_t row, const FirstHit& hit) {
    if (hits.t.data()) hits.t.data()[row] = hit.t;
    if (hits.faces.data()) hits.faces.data()[row] = hit.face;
    if (!hits.barycentrics.data()) return;
    float* to = hits.barycentrics.data() + 3 * row;
    if (hit.face < 0) {
        std::fill(to, to + 3, 0.0f);
    } else {
        write_barycentrics(hit.v, hit.w, to);
    }
}

AllHits all_hits_on_cpu(const cpu::MeshTree& tree, const Rays& rays) {
    const int64_t m = rays.origins.size(0), chunks = (m + kGrain - 1) / kGrain;
    std::vector<std::vector<cpu::RayHit>> found(static_cast<size_t>(chunks));
    AllHits result;
    result.offsets.assign(static_cast<size_t>(m) + 1, 0);
    parallel_for(chunks, 1, [&](int64_t from, int64_t to) {
        cpu::Ray ray;
        for (int64_t chunk = from; chunk < to; ++chunk) {
            std::vector<cpu::RayHit>& hits = found[chunk];
            for (int64_t row = chunk * kGrain; row < std::min(m, (chunk + 1) * kGrain); ++row) {
                const auto before = static_cast<int64_t>(hits.size());
                if (tree.triangles.faces() > 0 && take_ray(rays, row, ray)) cpu::all_hits(tree, ray, hits);
                std::sort(hits.begin() + before, hits.end(), [](const cpu::RayHit& a, const cpu::RayHit& b) {
                    return a.t != b.t ? a.t < b.t : a.face < b.face;
                });
                result.offsets[row + 1] = static_cast<int64_t>(hits.size()) - before;
            }
        }
    });
    for (int64_t row = 0; row < m; ++row) result.offsets[row + 1] += result.offsets[row];
    const auto total = static_cast<size_t>(result.offsets.back());
    result.t.resize(total);
    result.faces.resize(total);
    result.barycentrics.resize(total);
    parallel_for(chunks, 1, [&](int64_t from, int64_t to) {
        for (int64_t chunk = from; chunk < to; ++chunk) {
            int64_t at = result.offsets[chunk * kGrain];
            for (const cpu::RayHit& hit : found[chunk]) {
                result.t[at] = hit.t;
                result.faces[at] = hit.face;
                write_barycentrics(hit.v, hit.w, result.barycentrics[at].data());
                ++at;
            }
        }
    });
    return result;
}

}  // namespace

void first_hit(const MeshIndex& index, const Rays& rays, const RayHits& hits, [[maybe_unused]] Stream stream) {
    require_rays("first_hit", index, rays);
    const int64_t m = rays.origins.size(0);
    if (hits.t.data()) ops::require_output("first_hit", "t", hits.t, {m}, index.device());
    if (hits.faces.data()) ops::require_output("first_hit", "faces", hits.faces, {m}, index.device());
    if (hits.barycentrics.data())
        ops::require_output("first_hit", "barycentrics", hits.barycentrics, {m, 3}, index.device());
    if (m == 0) return;
    if (index.device().type == DeviceType::cuda) return STIPPLE_CUDA_CALL(cuda::first_hit, index, rays, hits, stream);
    const cpu::MeshTree& tree = index.on_cpu();
    parallel_for(m, kGrain, [&](int64_t from, int64_t to) {
        cpu::Ray ray;
        for (int64_t row = from; row < to; ++row) {
            const bool casts = index.faces() > 0 && take_ray(rays, row, ray);
            write(hits, row, casts ? cpu::first_hit(tree, ray) : FirstHit{});
        }
    });
}

void any_hit(const MeshIndex& index, const Rays& rays, View<uint8_t, 1> hit, [[maybe_unused]] Stream stream) {
    require_rays("any_hit", index, rays);
    const int64_t m = rays.origins.size(0);
    ops::require_output("any_hit", "hit", hit, {m}, index.device());
    if (m == 0) return;
    if (index.device().type == DeviceType::cuda) return STIPPLE_CUDA_CALL(cuda::any_hit, index, rays, hit, stream);
    const cpu::MeshTree& tree = index.on_cpu();
    parallel_for(m, kGrain, [&](int64_t from, int64_t to) {
        cpu::Ray ray;
        for (int64_t row = from; row < to; ++row)
            hit.data()[row] = index.faces() > 0 && take_ray(rays, row, ray) && cpu::any_hit(tree, ray);
    });
}

AllHits all_hits(const MeshIndex& index, const Rays& rays, [[maybe_unused]] Stream stream) {
    require_rays("all_hits", index, rays);
    if (index.device().type == DeviceType::cpu) return all_hits_on_cpu(index.on_cpu(), rays);
    STIPPLE_CUDA_CALL(return cuda::all_hits, index, rays, stream);
}

}  // namespace stipple::geometry
