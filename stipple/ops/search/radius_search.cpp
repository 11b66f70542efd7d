#include "stipple/ops/radius_search.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops {
namespace {

void require_search(const char* op, const PointIndex& index, const Clouds& queries, float radius) {
    require_clouds(op, "queries", queries, index.dimension());
    require_same_batch(op, index.batch(), queries.batch);
    require_device(op, "queries", index.device(), queries.device());
    STIPPLE_REQUIRE(radius >= 0, "{}: the radius must not be negative or NaN, got {}", op, radius);
}

}  // namespace

void radius_count(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 1> counts,
                  [[maybe_unused]] Stream stream) {
    require_search("radius_count", index, queries, radius);
    require_output("radius_count", "counts", counts, {queries.rows.size(0)}, index.device());
    if (queries.rows.size(0) == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu: return cpu::radius_count(index.on_cpu(), queries, radius, counts);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::radius_count, index, queries, radius, counts, stream);
    }
}

int64_t radius_offsets(View<const int32_t, 1> counts, View<int64_t, 1> offsets, [[maybe_unused]] Stream stream) {
    STIPPLE_REQUIRE(counts.is_contiguous(), "radius_offsets: counts must be contiguous");
    require_output("radius_offsets", "offsets", offsets, {checked_add(counts.size(0), 1)}, counts.device());
    int64_t total = 0;
    if (counts.device().type == DeviceType::cuda) {
        STIPPLE_CUDA_CALL(total = cuda::radius_offsets, counts, offsets, stream);
        return total;
    }
    offsets(0) = 0;
    for (int64_t i = 0; i < counts.size(0); ++i) {
        STIPPLE_REQUIRE(counts(i) >= 0, "radius_offsets: count {} is {}", i, counts(i));
        offsets(i + 1) = total += counts(i);
    }
    return total;
}

void radius_search(const PointIndex& index, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq, NeighbourOrder order,
                   [[maybe_unused]] Stream stream) {
    require_search("radius_search", index, queries, radius);
    const int64_t m = queries.rows.size(0), total = indices.size(0);
    require_output("radius_search", "offsets", offsets, {checked_add(m, 1)}, index.device());
    require_output("radius_search", "indices", indices, {total}, index.device());
    if (distances_sq.elements() > 0)
        require_output("radius_search", "distances_sq", distances_sq, {total}, index.device());
    if (m == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu:
            return cpu::radius_search(index.on_cpu(), queries, radius, offsets, indices, distances_sq, order);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::radius_search, index, queries, radius, offsets, indices, distances_sq, order,
                              stream);
    }
}

}  // namespace stipple::ops
