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
    /// Of a triangle soup: orientation matters, closedness does not; degenerate faces count nothing. A mesh without
    /// faces is legal and winds around nothing. Throws as require_mesh does, Error{out_of_memory}.
    ///
    /// Copies share the tree; it is never changed, so any number of threads may query it. The index copies what it
    /// needs: the mesh may go. O(m log m) time, O(m) memory. A mesh on CUDA is built on the host, with a wait for the
    /// device; the stream must outlive the index.
    explicit WindingIndex(const MeshView& mesh, Stream stream = {});

    /// Of oriented points: points [n, 3], normals [n, 3] of unit length, areas [n] that each stands for (point_areas).
    /// Points with a non-finite coordinate, normal or area are left out.
    ///
    /// A point is a small disc. Within `softening` radii of that disc, sqrt(area / pi), its field falls to 0 at the
    /// point instead of growing without bound; beyond, it is the dipole of the paper. 0: the dipole everywhere. Throws
    /// Error{bad_argument} for wrong shapes, gaps, mixed devices, a negative or non-finite softening.
    WindingIndex(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                 float softening = 1.0f, Stream stream = {});

    Device device() const { return device_; }
    const cpu::WindingTree& on_cpu() const { return *cpu_; }
    const cuda::WindingHierarchy& on_cuda() const { return *cuda_; }

private:
    Device device_;
    std::shared_ptr<const cpu::WindingTree> cpu_;
    std::shared_ptr<const cuda::WindingHierarchy> cuda_;
};

/// The winding number at every query [m, 3], contiguous, into [m], on the index's device.
///
/// accuracy  the paper's beta: clusters further away than beta times their radius are taken as one, by their Taylor
///           expansion of order 2; nearer triangles by their exact solid angle. Near a surface of 100 000 faces 2 is
///           wrong by 7e-4 on average and 3e-3 at most, 3 by a fifth of that, 4 by a twentieth; +infinity gives the
///           exact sum, in time proportional to the faces.
///
/// On the surface it is the mean of the two sides: 1/2 on a smooth part of a closed mesh. Non-finite queries give NaN,
/// and with an empty index every other one 0. Queries are taken in any order without loss: they are sorted inside. CPU
/// and CUDA decide alike which clusters are far, and agree to 1e-5. Throws Error{bad_argument} for wrong shapes, mixed
/// devices, and an accuracy that is not above 0. About O(log m) a query.
void winding_number(const WindingIndex& index, View<const float, 2> queries, View<float, 1> winding,
                    float accuracy = 2.0f, Stream stream = {});

/// The area each point stands for when it lies on a surface sampled by `points` [n, 3]: what the points' WindingIndex
/// wants. pi d^2 / k, d the distance to the k-th nearest other point; for points at random on a plane that is right on
/// average, within 1 / sqrt(k). A cloud of k points or fewer uses all of them; a lone point has area 0, and so has a
/// point with k exact duplicates. Non-finite points get 0. k is 1 to 127. CPU and CUDA.
void point_areas(View<const float, 2> points, View<float, 1> areas, int k = 16, Stream stream = {});

/// The same of points with normals [n, 3]: of the k others only those count whose normal is less than 90 degrees away,
/// the area being pi d^2 (k + 1) / (k (c + 1)) for c such. Walls thinner than the points are apart have neighbours on
/// both sides, which would halve the areas.
void point_areas(View<const float, 2> points, View<const float, 2> normals, View<float, 1> areas, int k = 16,
                 Stream stream = {});

}  // namespace stipple::geometry
