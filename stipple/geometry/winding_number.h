#pragma once
// Generalised winding number by a hierarchy of clusters [Barill et al. 2018]: 1 inside, 0 outside, and in between what
// an open or messy surface leaves undecided.

#include <memory>

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

namespace cpu {
struct WindingTree;
}
namespace cuda {
struct WindingHierarchy;
}

class WindingIndex {
public:
    /// Of a triangle soup: orientation matters, closedness does not.
    explicit WindingIndex(const MeshView& mesh, Stream stream = {});

    /// Of oriented points: normals [n, 3] of unit length, areas [n] that each stands for. Non-finite points are left
    /// out.
    WindingIndex(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                 Stream stream = {});

    Device device() const { return device_; }
    const cpu::WindingTree& on_cpu() const { return *cpu_; }
    const cuda::WindingHierarchy& on_cuda() const { return *cuda_; }

private:
    Device device_;
    std::shared_ptr<const cpu::WindingTree> cpu_;
    std::shared_ptr<const cuda::WindingHierarchy> cuda_;
};

/// The winding number at every query [m, 3] into [m]. `accuracy` is the paper's beta: clusters further away than beta
/// times their radius are taken as one, by their Taylor expansion of order 2. Non-finite queries give NaN.
void winding_number(const WindingIndex& index, View<const float, 2> queries, View<float, 1> winding,
                    float accuracy = 2.0f, Stream stream = {});

/// The area each point stands for when it lies on a surface sampled by `points` [n, 3]: what the points' WindingIndex
/// wants. From the k nearest neighbours. CPU and CUDA.
void point_areas(View<const float, 2> points, View<float, 1> areas, int k = 16, Stream stream = {});

}  // namespace stipple::geometry
