#include "stipple/geometry/cast_rays.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_queries_cuda.h"
#include "stipple/geometry/mesh_tree.h"
#include "stipple/geometry/ray_order.h"
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
                    return a.met.t != b.met.t ? a.met.t < b.met.t : a.face < b.face;
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
                result.t[at] = hit.met.t;
                result.faces[at] = hit.face;
                write_barycentrics(hit.met.v, hit.met.w, result.barycentrics[at].data());
                ++at;
            }
        }
    });
    return result;
}

/// The order in which the rays of a block are cast, and whether neighbours in it go the same way.
struct RayOrder {
    std::vector<int32_t> rows;  // empty: as they come
    bool coherent = false;
};

/// Rays of a camera or a scanner come in a good order already: most neighbours have like keys.
bool is_coherent(const Rays& rays, const RayGrid& grid, int64_t begin, int64_t end) {
    constexpr int64_t kSamples = 256;
    constexpr uint32_t kCoarse = ~0u << 12;  // an eighth of the box
    int64_t like = 0, tried = 0;
    const int64_t step = std::max<int64_t>(1, (end - begin) / kSamples);
    for (int64_t i = begin; i + 1 < end; i += step, ++tried) {
        const uint32_t a = ray_key(grid, &rays.origins(i, 0), &rays.directions(i, 0));
        const uint32_t b = ray_key(grid, &rays.origins(i + 1, 0), &rays.directions(i + 1, 0));
        like += (a & kCoarse) == (b & kCoarse);
    }
    return 4 * like >= 3 * tried;
}

RayOrder order_rays(const cpu::Triangles& triangles, const Rays& rays, int64_t begin, int64_t end) {
    const RayGrid grid = make_ray_grid(triangles.low, triangles.high);
    RayOrder order;
    order.coherent = is_coherent(rays, grid, begin, end);
    if (order.coherent || end - begin <= cpu::kRayBatch) return order;
    struct Item {
        uint32_t key;
        int32_t row;
    };
    const int64_t n = end - begin;
    std::vector<Item> items(static_cast<size_t>(n)), other(static_cast<size_t>(n));
    parallel_for(n, kGrain, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
            items[i] = {ray_key(grid, &rays.origins(begin + i, 0), &rays.directions(begin + i, 0)),
                        static_cast<int32_t>(i)};
        }
    });
    constexpr int kDigitBits = 10, kDigits = 3;
    for (int digit = 0; digit < kDigits; ++digit) {  // least significant first, stable
        const auto digit_of = [&](const Item& item) {
            return item.key >> (digit * kDigitBits) & ((1 << kDigitBits) - 1);
        };
        std::array<int32_t, 1 << kDigitBits> at{};
        for (const Item& item : items) ++at[digit_of(item)];
        int32_t sum = 0;
        for (int32_t& count : at) sum += std::exchange(count, sum);
        for (const Item& item : items) other[at[digit_of(item)]++] = item;
        items.swap(other);
    }
    order.rows.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) order.rows[i] = items[i].row;
    return order;
}

/// Calls ask(rays, count, coherent, out) for batches of rays that can hit something, and write(row, out[i]) for all.
/// Sorted rays are far apart in memory: expect(row) fetches what write(row, ...) will need, a batch ahead.
template <class Result, class Ask, class Expect, class Write>
void cast(const cpu::MeshTree& tree, const Rays& rays, const Ask& ask, const Expect& expect,
          const Write& write_result) {
    const int64_t m = rays.origins.size(0);
    constexpr int64_t kBlock = 1 << 20;
    for (int64_t begin = 0; begin < m; begin += kBlock) {
        const int64_t n = std::min(kBlock, m - begin);
        RayOrder order;
        if (tree.triangles.faces() > 0) order = order_rays(tree.triangles, rays, begin, begin + n);
        const int64_t batches = (n + cpu::kRayBatch - 1) / cpu::kRayBatch;
        parallel_for(batches, kGrain / cpu::kRayBatch, [&](int64_t from, int64_t to) {
            cpu::Ray batch[cpu::kRayBatch];
            int64_t rows[cpu::kRayBatch];
            Result results[cpu::kRayBatch];
            for (int64_t i = from; i < to; ++i) {
                const auto ahead = std::min<int64_t>((i + 2) * cpu::kRayBatch, std::ssize(order.rows));
                for (int64_t k = (i + 1) * cpu::kRayBatch; k < ahead; ++k) {
                    const int64_t row = begin + order.rows[k];
                    __builtin_prefetch(&rays.origins(row, 0));
                    __builtin_prefetch(&rays.directions(row, 0));
                    expect(row);
                }
                int count = 0;
                for (int64_t k = i * cpu::kRayBatch; k < std::min(n, (i + 1) * cpu::kRayBatch); ++k) {
                    const int64_t row = begin + (order.rows.empty() ? k : order.rows[k]);
                    if (tree.triangles.faces() > 0 && take_ray(rays, row, batch[count])) {
                        rows[count++] = row;
                    } else {
                        write_result(row, Result{});
                    }
                }
                if (count > 0) ask(batch, count, order.coherent, results);
                for (int k = 0; k < count; ++k) write_result(rows[k], results[k]);
            }
        });
    }
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
    cast<FirstHit>(
        tree, rays,
        [&](const cpu::Ray* batch, int count, bool coherent, FirstHit* out) {
            cpu::first_hits(tree, batch, count, coherent, out);
        },
        [&](int64_t row) {
            if (hits.t.data()) __builtin_prefetch(hits.t.data() + row, 1);
            if (hits.faces.data()) __builtin_prefetch(hits.faces.data() + row, 1);
            if (hits.barycentrics.data()) __builtin_prefetch(hits.barycentrics.data() + 3 * row, 1);
        },
        [&](int64_t row, const FirstHit& hit) { write(hits, row, hit); });
}

void any_hit(const MeshIndex& index, const Rays& rays, View<uint8_t, 1> hit, [[maybe_unused]] Stream stream) {
    require_rays("any_hit", index, rays);
    const int64_t m = rays.origins.size(0);
    ops::require_output("any_hit", "hit", hit, {m}, index.device());
    if (m == 0) return;
    if (index.device().type == DeviceType::cuda) return STIPPLE_CUDA_CALL(cuda::any_hit, index, rays, hit, stream);
    const cpu::MeshTree& tree = index.on_cpu();
    cast<bool>(
        tree, rays,
        [&](const cpu::Ray* batch, int count, bool coherent, bool* out) {
            cpu::any_hits(tree, batch, count, coherent, out);
        },
        [&](int64_t row) { __builtin_prefetch(hit.data() + row, 1); },
        [&](int64_t row, bool any) { hit.data()[row] = any; });
}

AllHits all_hits(const MeshIndex& index, const Rays& rays, [[maybe_unused]] Stream stream) {
    require_rays("all_hits", index, rays);
    if (index.device().type == DeviceType::cpu) return all_hits_on_cpu(index.on_cpu(), rays);
    STIPPLE_CUDA_CALL(return cuda::all_hits, index, rays, stream);
}

}  // namespace stipple::geometry
