#include "stipple/ops/knn.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops {

void knn(const PointIndex& index, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         [[maybe_unused]] Stream stream) {
    const int64_t m = queries.rows.size(0), k = indices.size(1);
    require_clouds("knn", "queries", queries, index.dimension());
    require_same_batch("knn", index.batch(), queries.batch);
    require_device("knn", "queries", index.device(), queries.device());
    STIPPLE_REQUIRE(k >= 1 && k <= 128, "knn: k must be 1 to 128, got {}", k);
    for (int64_t cloud = 0; cloud < queries.batch.clouds(); ++cloud) {
        STIPPLE_REQUIRE(queries.batch.size(cloud) == 0 || k <= index.batch().size(cloud),
                        "knn: k is {}, but cloud {} has {} points", k, cloud, index.batch().size(cloud));
    }
    require_output("knn", "indices", indices, {m, k}, index.device());
    if (distances_sq.elements() > 0) require_output("knn", "distances_sq", distances_sq, {m, k}, index.device());
    if (m == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu: return cpu::knn(index.on_cpu(), queries, indices, distances_sq);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::knn, index, queries, indices, distances_sq, stream);
    }
}

}  // namespace stipple::ops
