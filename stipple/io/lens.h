#pragma once
// Lens: what files of cameras say of one camera's inside: a pinhole with the distortion that OpenCV and COLMAP use.

#include <cstdint>

namespace stipple::io {

/// A point (x, y) of the plane at distance 1 (x right, y down) appears at pixel (fx x' + cx, fy y' + cy), where the
/// centre of the upper left pixel is (0.5, 0.5), r^2 = x^2 + y^2 and
///
///   x' = x (1 + k1 r^2 + k2 r^4) + 2 p1 x y + p2 (r^2 + 2 x^2)
///   y' = y (1 + k1 r^2 + k2 r^4) + 2 p2 x y + p1 (r^2 + 2 y^2)
struct Lens {
    int64_t width = 0, height = 0;  // pixels
    double fx = 0, fy = 0, cx = 0, cy = 0;
    double k1 = 0, k2 = 0, p1 = 0, p2 = 0;

    bool is_distorted() const { return k1 != 0 || k2 != 0 || p1 != 0 || p2 != 0; }
};

}  // namespace stipple::io
