#pragma once
// SurfaceTruth: where the surfaces of a batch of patches are, for losses and scores. SurfaceIndex knows them exactly,
// DiscTruth by points and normals.

#include <torch/types.h>

namespace stipple::learn {

class SurfaceTruth {
public:
    virtual ~SurfaceTruth() = default;

    /// The nearest points of the patches' surfaces, in the coordinates of the patches, without gradients.
    ///
    /// positions  [patches, m, 3] float32 on the device, in the coordinates of their patches
    /// frames     [patches, kFrameNumbers] float32 there
    ///
    /// NaN for a position that is not finite.
    virtual torch::Tensor closest(const torch::Tensor& positions, const torch::Tensor& frames) const = 0;
};

/// The surfaces of patches that are known by points: of each patch, discs around its points, at right angles to their
/// normals. The closest point is that of the disc of the nearest point, so that it need not be the closest of all
/// discs.
///
/// Where the points lie on a smooth surface with radii of curvature of r or more and the normals are right, a closest
/// point is within radius^2 / (2 r) of the surface.
class DiscTruth : public SurfaceTruth {
public:
    /// points   [patches * t, 3] float32 on a device, in the coordinates of their patches
    /// normals  [patches * t, 3] there; of no length: the disc is its point
    /// radius   of the discs
    DiscTruth(torch::Tensor points, torch::Tensor normals, double radius);

    /// Of frames the number counts alone. One search of nearest points, O(patches m t) at worst.
    torch::Tensor closest(const torch::Tensor& positions, const torch::Tensor& frames) const override;

private:
    torch::Tensor points_, normals_;
    double radius_;
};

}  // namespace stipple::learn
