#include "stipple/tasks/upsample/cloud_search.h"

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kPartNeighbours = 1 << 21;  // that are searched for at a time: 16 MiB
constexpr int64_t kSearchGrain = 512;

template <class T, int Rank>
void fetch(const Array<T, Rank>& there, View<T, Rank> here) {
    if (here.elements() > 0)
        copy_bytes(here.data(), {}, there.data(), there.device(), here.elements() * static_cast<int64_t>(sizeof(T)));
}

Array<float, 2> uploaded(View<const float, 2> points, Device device) {
    Array<float, 2> there({points.size(0), points.size(1)}, device);
    copy_bytes(there.data(), device, points.data(), {}, there.elements() * static_cast<int64_t>(sizeof(float)));
    return there;
}

}  // namespace

CloudSearch::CloudSearch(View<const float, 2> cloud, Device device) : cloud_(cloud), device_(device), index_(cloud) {
    if (device.type == DeviceType::cpu) return;
    there_ = uploaded(cloud, device);
    index_there_.emplace(there_.view());
}

void CloudSearch::knn(View<const float, 2> places, View<int32_t, 2> indices, View<float, 2> distances_sq) const {
    if (!index_there_) return ops::knn(index_, places, indices, distances_sq);
    const Array<float, 2> places_there = uploaded(places, device_);
    Array<int32_t, 2> indices_there({indices.size(0), indices.size(1)}, device_);
    Array<float, 2> distances_there({distances_sq.size(0), distances_sq.size(1)}, device_);
    ops::knn(*index_there_, places_there.view(), indices_there.view(), distances_there.view());
    fetch(indices_there, indices);
    fetch(distances_there, distances_sq);
}

void CloudSearch::for_neighbours(int64_t k,
                                 const std::function<void(int64_t, const int32_t*, const float*)>& use) const {
    const int64_t part = kPartNeighbours / std::max<int64_t>(1, k);
    for (int64_t begin = 0; begin < cloud_.size(0); begin += part) {
        check_interrupted();
        const int64_t count = std::min(part, cloud_.size(0) - begin);
        Array<int32_t, 2> near({count, k});
        Array<float, 2> distances_sq({count, k});
        knn(cloud_.slice(begin, begin + count), near.view(), distances_sq.view());
        parallel_for(count, kSearchGrain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) use(begin + i, near.data() + i * k, distances_sq.data() + i * k);
        });
    }
}

void CloudSearch::estimate_normals(View<float, 2> normals, View<float, 1> curvatures, int k) const {
    if (!index_there_) return geometry::estimate_normals(cloud_, normals, curvatures, k);
    Array<float, 2> normals_there({normals.size(0), normals.size(1)}, device_);
    Array<float, 1> curvatures_there({curvatures.size(0)}, device_);
    geometry::estimate_normals(there_.view(), normals_there.view(), curvatures_there.view(), k);
    fetch(normals_there, normals);
    fetch(curvatures_there, curvatures);
}

}  // namespace stipple::tasks
