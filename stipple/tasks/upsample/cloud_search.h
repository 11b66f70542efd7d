#pragma once
// The input points of a cloud, to be searched by the CPU or by a GPU, whose answers are the same.

#include <functional>
#include <optional>

#include "stipple/core/array.h"
#include "stipple/ops/point_index.h"

namespace stipple::tasks {

class CloudSearch {
public:
    /// `cloud` [n, 3] of finite points, on the CPU, which must outlive it; a GPU has a copy of its own. O(n log n).
    explicit CloudSearch(View<const float, 2> cloud, Device device = {});

    View<const float, 2> cloud() const { return cloud_; }
    Device device() const { return device_; }
    /// On the CPU, for a few points at a time.
    const ops::PointIndex& index() const { return index_; }

    /// As ops::knn; everything is on the CPU.
    void knn(View<const float, 2> places, View<int32_t, 2> indices, View<float, 2> distances_sq) const;
    /// Calls use(i, neighbours, squared distances) for every input point with its k nearest ones, on all threads. They
    /// are searched for by parts: those of all points together would take ten times the memory of the points. Can be
    /// interrupted.
    void for_neighbours(
        int64_t k, const std::function<void(int64_t i, const int32_t* near, const float* distances_sq)>& use) const;
    /// As geometry::estimate_normals; everything is on the CPU.
    void estimate_normals(View<float, 2> normals, View<float, 1> curvatures, int k) const;

private:
    View<const float, 2> cloud_;
    Device device_;
    ops::PointIndex index_;
    Array<float, 2> there_;  // the cloud on a GPU; empty without
    std::optional<ops::PointIndex> index_there_;
};

}  // namespace stipple::tasks
