#pragma once
// Which points of a cloud lie in a box, a ball or a polygon of the world.

#include <optional>
#include <string_view>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// A part of the world: what all of its members that are there have in common.
struct Region {
    struct Block {
        std::array<double, 3> min, max;  // both belong to it; infinite where it has no end
    };
    struct Ball {
        std::array<double, 3> centre;
        double radius;  // what is so far away belongs to it
    };
    using Polygon = std::vector<std::array<double, 2>>;  // x y, from any corner in any direction; any z

    std::optional<Block> box;
    std::optional<Ball> sphere;
    Polygon polygon;  // of fewer than 3 corners: there is none
};

/// Where a point is.
enum class Side : uint8_t { outside, inside, nowhere };

/// Throws Error{bad_argument} for a box whose minimum is above its maximum, a radius that is negative, corners and
/// centres that are not finite (NaN for a box), a polygon of 1 or 2 corners, and no member at all.
void require_region(const Region& region);

/// For every point its side; `nowhere` when a coordinate is not finite. Coordinates are the world's, origin + position
/// in float64.
///
/// A polygon is filled by the even-odd rule and may cross itself. Of polygons that share edges, a point on an edge is
/// in exactly one, whatever their directions: in the one to its right, or above it where the edge is level.
///
/// CPU, in parallel; O(n), for polygons of many corners O(n log c) where they are not too wild. Throws as
/// require_region.
std::vector<Side> sides_of(const PointCloud& cloud, const Region& region);

/// Corners from text: two numbers a corner, separated by blanks, commas and line ends; '#' begins a comment. The first
/// corner may be repeated at the end. Throws Error{bad_file} with the line for anything else, an odd number of numbers
/// and fewer than 3 corners.
Region::Polygon parse_polygon(std::string_view text);

}  // namespace stipple::geometry
