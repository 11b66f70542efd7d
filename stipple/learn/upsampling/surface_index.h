#pragma once
// SurfaceIndex: the exact surfaces of a set of shapes, where a whole batch of patches finds its closest points by one
// search. The shapes lie side by side in one mesh, each in a cell of its own.

#include <torch/types.h>

#include "stipple/geometry/mesh_index.h"
#include "stipple/learn/upsampling/surface_patches.h"
#include "stipple/learn/upsampling/surface_truth.h"

namespace stipple::learn {

/// A patch's frame as a row of numbers: R by rows, scale, and where its centre lies in the common mesh.
inline constexpr int64_t kFrameNumbers = 13;

class SurfaceIndex : public SurfaceTruth {
public:
    /// Over all shapes of the set, on the device. O(faces log faces).
    SurfaceIndex(const SurfaceSet& set, torch::Device device);

    /// Writes the kFrameNumbers numbers of a patch of this shape.
    void write_frame(int64_t shape, const PatchFrame& frame, float* numbers) const;

    /// Right to about 1e-6 of the shape's radius. A shape's neighbours are 2 radii away: what is more than one radius
    /// from its own surface may find theirs.
    torch::Tensor closest(const torch::Tensor& positions, const torch::Tensor& frames) const override;

private:
    int64_t side_;  // cells of the grid, along each axis
    geometry::MeshIndex index_;
};

}  // namespace stipple::learn
