#include "stipple/ops/knn.h"
#include "stipple/ops/search/nearest_tasks.cuh"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops::cuda {

void find_nearest(const PointHierarchy& index, const Clouds& queries, NeighbourRows rows, cudaStream_t stream) {
    const OrderedQueries ordered(index, queries, stream);
    const PacketJob job = {index.view, ordered.view, ordered.rows};
    const auto addresses = reinterpret_cast<uintptr_t>(rows.indices) | reinterpret_cast<uintptr_t>(rows.distances);
    rows.vectors = rows.k % 4 == 0 && addresses % 16 == 0 && rows.counts == nullptr;
    if (rows.k == 1) {
        launch_packets<NearestOne>(job, rows, stream);
    } else if (rows.k <= 8) {
        launch_packets<NearestShared<8>, NearestList<8>>(job, rows, stream);
    } else if (rows.k <= 16) {
        launch_packets<NearestShared<16>, NearestList<16>>(job, rows, stream);
    } else if (rows.k <= 32) {
        launch_packets<NearestShared<32>, NearestList<32>>(job, rows, stream);
    } else if (rows.k <= 64) {
        launch_packets<NearestWide<2>>(job, rows, stream);
    } else {
        launch_packets<NearestWide<4>>(job, rows, stream);
    }
}

void knn(const PointIndex& index, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         Stream stream) {
    const CurrentDevice current(index.device());
    NeighbourRows rows;
    rows.indices = indices.data();
    rows.distances = distances_sq.elements() == 0 ? nullptr : distances_sq.data();
    rows.k = static_cast<int32_t>(indices.size(1));
    find_nearest(index.on_cuda(), queries, rows, raw(stream));
}

}  // namespace stipple::ops::cuda
