#include "stipple/ops/ball_query.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops {

void ball_query(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order, [[maybe_unused]] Stream stream) {
    const int64_t m = queries.rows.size(0), samples = indices.size(1);
    require_clouds("ball_query", "queries", queries, index.dimension());
    require_same_batch("ball_query", index.batch(), queries.batch);
    require_device("ball_query", "queries", index.device(), queries.device());
    STIPPLE_REQUIRE(radius >= 0, "ball_query: the radius must not be negative or NaN, got {}", radius);
    STIPPLE_REQUIRE(samples >= 1 && samples <= std::numeric_limits<int32_t>::max(), "ball_query: groups of {} points",
                    samples);
    STIPPLE_REQUIRE(order == NeighbourOrder::index || samples <= 128,
                    "ball_query: the nearest {} points asked for; the most is 128", samples);
    require_output("ball_query", "indices", indices, {m, samples}, index.device());
    if (counts.elements() > 0) require_output("ball_query", "counts", counts, {m}, index.device());
    if (m == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu: return cpu::ball_query(index.on_cpu(), queries, radius, indices, counts, order);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::ball_query, index, queries, radius, indices, counts, order, stream);
    }
}

}  // namespace stipple::ops
