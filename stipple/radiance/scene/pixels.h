#pragma once
// Pictures as scenes keep them.

#include "stipple/core/image.h"
#include "stipple/io/lens.h"

namespace stipple::radiance {

/// Grey, RGB or RGBA as RGBA; opaque where there is no alpha.
Image to_rgba(Image image);

/// Any pixel that is not opaque. RGBA only.
bool has_transparent(const Image& image);

/// The RGBA picture that the lens without its distortion would have taken: same size, focal lengths and principal
/// point. Linear between pixel centres, colours by their alpha; within half a pixel of the edge the edge's pixels count
/// on. Transparent black where the photograph does not reach, which is also where radial distortion folds back on
/// itself.
Image undistorted(const Image& image, const io::Lens& lens);

/// Where (x, y) of the plane at distance 1 appears: x' and y' of io::Lens. False beyond the radius at which the
/// distortion turns around.
bool distorted_place(const io::Lens& lens, double x, double y, double& to_x, double& to_y);

/// Means of factor x factor RGBA pixels, colours by their alpha, rounded; what is left at the right and below is
/// dropped. Throws Error{bad_argument} where nothing would be left.
Image reduced(const Image& image, int factor);

}  // namespace stipple::radiance
