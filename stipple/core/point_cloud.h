#pragma once
// PointCloud: float32 positions about a float64 origin, with named attributes. Mesh: a cloud with triangles.
//
// The place of point i in the world is origin + positions[i]. Files in world coordinates (UTM, LAS) keep their
// precision because the readers move the large part into the origin; operations work on the small float32 part and
// carry origin, attributes and facts along.

#include <array>
#include <span>

#include "stipple/core/attribute.h"
#include "stipple/core/file_facts.h"

namespace stipple {

struct PointCloud {
    Array<float, 2> positions;          // [n, 3]
    std::array<double, 3> origin = {};  // added to every position
    Attributes attributes;              // each with n rows
    FileFacts facts;                    // what the file knew besides; operations that move points call forget_place()

    PointCloud() = default;
    explicit PointCloud(int64_t n, Device device = {}) : positions({n, 3}, device) {}

    int64_t size() const { return positions.size(0); }
    double world(int64_t point, int axis) const { return origin[axis] + positions.data()[3 * point + axis]; }
    PointCloud clone() const;
};

struct Mesh {
    PointCloud vertices;
    Array<int32_t, 2> triangles;  // [m, 3], each index in [0, n)
    Attributes face_attributes;   // each with m rows

    int64_t faces() const { return triangles.size(0); }
    Mesh clone() const;
};

/// Throws Error{bad_argument} naming what breaks the rules above (row counts, duplicate names, indices). CPU only.
void validate(const PointCloud& cloud);
void validate(const Mesh& mesh);

/// The points at `indices` with all their attributes, the origin and the facts. Throws for an index out of range. CPU
/// only.
PointCloud select(const PointCloud& cloud, View<const int32_t, 1> indices);

/// Bounds of the finite points in world coordinates; `finite` is their count. CPU only. O(n).
struct Bounds {
    std::array<double, 3> min = {}, max = {};
    int64_t finite = 0;  // points whose three coordinates are finite
};
Bounds bounds_of(const PointCloud& cloud);

/// The cloud without its points of non-finite position, order kept.
PointCloud drop_nonfinite(const PointCloud& cloud);

/// Adds a vector to the world coordinates without touching a position: the origin moves, and with it the grid and the
/// viewpoint of the facts. The coordinate system, which is not true any more, is forgotten.
void shift_origin(PointCloud& cloud, const std::array<double, 3>& by);

/// The same points about another origin: positions change, places do not, except for what float32 rounds there. Returns
/// the largest change of a place along an axis. CPU only.
double move_origin(PointCloud& cloud, const std::array<double, 3>& origin);

/// The origin that keeps coordinates within `min`..`max` precise in float32: on each axis the rounded middle where the
/// coordinates are large for their extent (more than 8 times), else 0. Whole numbers, so that decimal text stays short.
std::array<double, 3> choose_origin(const std::array<double, 3>& min, const std::array<double, 3>& max);

/// The same by a sample of the points, x y z after x y z, all finite; 0 without any. What counts on each axis is the
/// range that holds all but the outermost fiftieth on either side, so that a few strays (points at 0 in a cloud of
/// UTM coordinates) cost no digits, and the extent of that axis alone, because longitude, latitude and metres stand
/// beside each other. The origin is the middle of that range, rounded to a power of ten of at most the extent, not
/// above 1 and not below 1e-6.
std::array<double, 3> choose_origin(std::span<const double> sample);

/// So many points are sample enough.
inline constexpr int64_t kOriginSample = 4096;

}  // namespace stipple
