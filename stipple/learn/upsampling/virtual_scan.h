#pragma once
// A mesh as scanners see it: the parts of its surface that they reach, with rims where sight ended, and what is wrong
// with the points that they take. No torch here.

#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"

namespace stipple::learn {

/// This is what has been seen of a mesh, and from where.
struct VirtualScan {
    Mesh scene;                     // the mesh, once or twice, and what it stands on
    Mesh surface;                   // parts of the scene's faces, at their place
    std::vector<int32_t> stations;  // [faces] from where a face was seen, the nearest of several
    std::vector<Vec3d> places;      // of the stations
};

/// A scan of a mesh of radius 1 about 0, at random: by a turntable (three stations around an axis), from one or two
/// stations anywhere, or by one camera with a narrow view, 1.6 to 4 radii away; in half of the scans the mesh stands on
/// a plane, which then has its shadow. A fifth of the meshes are seen twice, side by side, so that sheets lie close to
/// each other, and a third has up to six dark places, which send no light back.
///
/// Faces are cut into pieces with edges of 0.02 at most. A piece is seen from a station where nothing lies between it
/// and its middle, and where it is not seen under less than six degrees. A face whose pieces are all seen stays whole.
/// So the truth ends where sight ended: at occlusion edges, shadows and the borders of the view. May have no faces.
/// Deterministic. Some 100,000 rays.
VirtualScan scan_virtually(const Mesh& mesh, const Rng& rng);

/// This is what is wrong with points on such a surface, for each [n, 3]: `noise`, the direction to its station, longer
/// the farther it is (1 on average) and up to three times as long at grazing angles, for a random factor; `mixed`, from
/// the point to somewhere between it and what lies behind or before it, where a beam of 0.6 degrees meets both, else 0.
struct ScanErrors {
    Array<float, 2> noise, mixed;
};
/// `faces`: of scan.surface, that the points lie on.
ScanErrors scan_errors(const VirtualScan& scan, View<const float, 2> points, View<const int32_t, 1> faces,
                       const Rng& rng);

}  // namespace stipple::learn
