#include "stipple/ops/knn.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cpu.h"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops {

namespace {

[[maybe_unused]] constexpr int64_t kFewPoints = 4096, kFewNeighbours = 32;  // of a cloud without an index

void require_knn(const Batch& points, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
                 int64_t dimension, Device device) {
    const int64_t m = queries.rows.size(0), k = indices.size(1);
    require_clouds("knn", "queries", queries, dimension);
    require_same_batch("knn", points, queries.batch);
    require_device("knn", "queries", device, queries.device());
    STIPPLE_REQUIRE(k >= 1 && k <= 128, "knn: k must be 1 to 128, got {}", k);
    if (points.is_dense() && queries.batch.is_dense())
        STIPPLE_REQUIRE(m == 0 || k <= points.largest(), "knn: k is {}, but cloud 0 has {} points", k,
                        points.largest());
    else
        for (int64_t cloud = 0; cloud < queries.batch.clouds(); ++cloud)
            STIPPLE_REQUIRE(queries.batch.size(cloud) == 0 || k <= points.size(cloud),
                            "knn: k is {}, but cloud {} has {} points", k, cloud, points.size(cloud));
    require_output("knn", "indices", indices, {m, k}, device);
    if (distances_sq.elements() > 0) require_output("knn", "distances_sq", distances_sq, {m, k}, device);
}

}  // namespace

void knn(const PointIndex& index, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         [[maybe_unused]] Stream stream) {
    require_knn(index.batch(), queries, indices, distances_sq, index.dimension(), index.device());
    if (queries.rows.size(0) == 0) return;
    switch (index.device().type) {
        case DeviceType::cpu: return cpu::knn(index.on_cpu(), queries, indices, distances_sq);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::knn, index, queries, indices, distances_sq, stream);
    }
}

void knn(const Clouds& points, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         Stream stream) {
#ifdef STIPPLE_WITH_CUDA
    if (points.device().type == DeviceType::cuda && points.dimension() == 3 && indices.size(1) <= kFewNeighbours &&
        points.batch.largest() <= kFewPoints) {
        require_knn(points.batch, queries, indices, distances_sq, 3, points.device());
        return cuda::nearest_of_few(points, queries, indices.data(),
                                    distances_sq.elements() == 0 ? nullptr : distances_sq.data(),
                                    static_cast<int32_t>(indices.size(1)), stream);
    }
#endif
    knn(PointIndex(points, stream), queries, indices, distances_sq, stream);
}

}  // namespace stipple::ops
