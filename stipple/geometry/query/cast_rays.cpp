#include "stipple/geometry/cast_rays.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "stipple/core/parallel.h"
#include "stipple/geometry/query/mesh_queries_cuda.h"
#include "stipple/geometry/query/mesh_tree.h"
#include "stipple/geometry/query/ray_order.h"
#include "stipple/ops/common/require.h"

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
bool take_ray(const Rays& rays, const float* origin, const float* direction, cpu::Ray& ray) {
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
                if (tree.triangles.size() > 0 && take_ray(rays, &rays.origins(row, 0), &rays.directions(row, 0), ray))
                    cpu::all_hits(tree, ray, hits);
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

struct RayItem {
    uint32_t key;
    int32_t row;
};

/// Least significant digit first, stable; in parts that do not depend on the number of threads.
void sort_by_key(std::unique_ptr<RayItem[]>& items, std::unique_ptr<RayItem[]>& other, int64_t n) {
    constexpr int kDigitBits = 10, kDigits = 3;
    constexpr int64_t kPart = 1 << 16;
    std::vector<std::array<int32_t, 1 << kDigitBits>> at(static_cast<size_t>((n + kPart - 1) / kPart));
    for (int digit = 0; digit < kDigits; ++digit) {
        const auto digit_of = [&](const RayItem& item) {
            return item.key >> (digit * kDigitBits) & ((1 << kDigitBits) - 1);
        };
        parallel_for(n, kPart, [&](int64_t from, int64_t to) {
            auto& counts = at[from / kPart];
            counts.fill(0);
            for (int64_t i = from; i < to; ++i) ++counts[digit_of(items[i])];
        });
        int32_t sum = 0;
        for (int value = 0; value < 1 << kDigitBits; ++value) {
            for (auto& part : at) sum += std::exchange(part[value], sum);
        }
        parallel_for(n, kPart, [&](int64_t from, int64_t to) {
            auto& place = at[from / kPart];
            for (int64_t i = from; i < to; ++i) other[place[digit_of(items[i])]++] = items[i];
        });
        items.swap(other);
    }
}

/// A ray of a block and, later, what it hit: half a line of the cache, since sorted rays are far apart in memory.
template <class Result>
union alignas(32) RaySlot {
    struct {
        float origin[3], direction[3];
    } ray;
    Result result;

    RaySlot() {}
};

/// Calls ask(rays, count, coherent, out) for batches of rays that can hit something, and write(row, out[i]) for all.
template <class Result, class Ask, class Write>
class RayCaster {
public:
    RayCaster(const cpu::MeshTree& tree, const Rays& rays, const Ask& ask, const Write& write_result)
        : rays_(rays), ask_(ask), write_(write_result) {
        const int64_t m = rays.origins.size(0);
        const RayGrid grid = make_ray_grid(tree.triangles.box.low, tree.triangles.box.high);
        for (int64_t begin = 0; begin < m; begin += kBlock) {
            const int64_t end = std::min(begin + kBlock, m);
            if (tree.triangles.size() == 0) {
                for (int64_t row = begin; row < end; ++row) write_(row, Result{});
            } else if (is_coherent(rays, grid, begin, end)) {
                cast_in_order(begin, end);
            } else {
                cast_sorted(grid, begin, end);
            }
        }
    }

private:
    static constexpr int64_t kBlock = 1 << 20;
    static constexpr int kBatch = cpu::kRayBatch;

    void cast_in_order(int64_t begin, int64_t end) {
        parallel_for(end - begin, kGrain, [&](int64_t from, int64_t to) {
            cpu::Ray batch[kBatch];
            int64_t rows[kBatch];
            Result results[kBatch];
            for (int64_t row = begin + from; row < begin + to;) {
                int count = 0;
                for (const int64_t stop = std::min(row + kBatch, begin + to); row < stop; ++row) {
                    if (take_ray(rays_, &rays_.origins(row, 0), &rays_.directions(row, 0), batch[count])) {
                        rows[count++] = row;
                    } else {
                        write_(row, Result{});
                    }
                }
                ask_(batch, count, /*coherent=*/true, results);
                for (int k = 0; k < count; ++k) write_(rows[k], results[k]);
            }
        });
    }

    void cast_sorted(const RayGrid& grid, int64_t begin, int64_t end) {
        const int64_t n = end - begin;
        if (!slots_) {  // the first block is the largest
            items_ = std::make_unique_for_overwrite<RayItem[]>(static_cast<size_t>(n));
            other_ = std::make_unique_for_overwrite<RayItem[]>(static_cast<size_t>(n));
            slots_ = std::make_unique_for_overwrite<RaySlot<Result>[]>(static_cast<size_t>(n));
        }
        parallel_for(n, kGrain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) {
                auto& ray = slots_[i].ray;
                std::copy_n(&rays_.origins(begin + i, 0), 3, ray.origin);
                std::copy_n(&rays_.directions(begin + i, 0), 3, ray.direction);
                items_[i] = {ray_key(grid, ray.origin, ray.direction), static_cast<int32_t>(i)};
            }
        });
        sort_by_key(items_, other_, n);
        parallel_for(n, kGrain, [&](int64_t from, int64_t to) {
            cpu::Ray batch[kBatch];
            RaySlot<Result>* slots[kBatch];
            Result results[kBatch];
            for (int64_t i = from; i < to;) {
                for (int64_t k = i + kBatch; k < std::min(i + 2 * kBatch, n); ++k)
                    __builtin_prefetch(&slots_[items_[k].row], 1);
                int count = 0;
                for (const int64_t stop = std::min(i + kBatch, to); i < stop; ++i) {
                    RaySlot<Result>& slot = slots_[items_[i].row];
                    if (take_ray(rays_, slot.ray.origin, slot.ray.direction, batch[count])) {
                        slots[count++] = &slot;
                    } else {
                        slot.result = {};
                    }
                }
                ask_(batch, count, /*coherent=*/false, results);
                for (int k = 0; k < count; ++k) slots[k]->result = results[k];
            }
        });
        parallel_for(n, kGrain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) write_(begin + i, slots_[i].result);
        });
    }

    const Rays& rays_;
    const Ask& ask_;
    const Write& write_;
    std::unique_ptr<RayItem[]> items_, other_;
    std::unique_ptr<RaySlot<Result>[]> slots_;
};

template <class Result, class Ask, class Write>
void cast(const cpu::MeshTree& tree, const Rays& rays, const Ask& ask, const Write& write_result) {
    RayCaster<Result, Ask, Write>(tree, rays, ask, write_result);
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
        [&](int64_t row, bool any) { hit.data()[row] = any; });
}

AllHits all_hits(const MeshIndex& index, const Rays& rays, [[maybe_unused]] Stream stream) {
    require_rays("all_hits", index, rays);
    if (index.device().type == DeviceType::cpu) return all_hits_on_cpu(index.on_cpu(), rays);
    STIPPLE_CUDA_CALL(return cuda::all_hits, index, rays, stream);
}

}  // namespace stipple::geometry
