#pragma once
// Normals of a cloud as an attribute, and which way they point.

#include <optional>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

enum class Orientation {
    automatic,  // viewpoint where it is known, else mst
    none,       // the largest component is positive
    mst,        // outwards, and so that neighbours agree (geometry::orient_consistently)
    viewpoint,  // towards the place where the sensor stood
};
inline constexpr const char* kOrientationWords[] = {"auto", "none", "mst", "viewpoint"};

struct NormalsOptions {
    int k = 16;
    double radius = 0;  // 0: all of the k
    Orientation orient = Orientation::automatic;
    std::optional<std::array<double, 3>> viewpoint = {};  // in the world; without it that of the cloud's file
    bool curvature = false;
    Device device = {};  // of the search for neighbours
};
const Fields& normals_fields();

struct NormalsFound {
    int64_t points = 0;
    int64_t without_normal = 0;  // their neighbours span no plane
    int k = 0;
    std::optional<double> radius = {};
    Orientation orient = Orientation::none;  // what was done: not automatic
};
const Fields& normals_found_fields();

/// Throws Error{bad_argument} for options out of their ranges, and for a viewpoint where another orientation is wanted.
void check_options(const NormalsOptions& options);

/// Gives the cloud, on the CPU, the attribute `normal`, and `curvature` where it is wanted (geometry/normals.h). Throws
/// as check_options, and Error{bad_argument} for an orientation by a viewpoint that nobody knows.
NormalsFound add_normals(PointCloud& cloud, const NormalsOptions& options);

/// Turns normals [n, 3] of a cloud, both on the CPU: towards the sensor where the file knows its place, else outwards
/// and so that neighbours agree. Returns which of the two it was.
Orientation orient_normals(const PointCloud& cloud, View<float, 2> normals, int k = 16);

}  // namespace stipple::tasks
