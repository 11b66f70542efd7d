#pragma once
// One triangle against one point or one ray, in double: the same bits on the CPU and on CUDA (whose sources that
// include this are compiled without contraction into fused multiply-adds). Every engine asks these functions for the
// numbers it gives, so engines differ in speed only.

#include <cmath>
#include <cstdint>
#include <limits>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

constexpr double kFarAway = std::numeric_limits<double>::infinity();  // of distances and t where there is nothing

struct Vec3 {
    double x, y, z;
};
STIPPLE_HD Vec3 operator-(Vec3 a, Vec3 b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
STIPPLE_HD double dot(Vec3 a, Vec3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
STIPPLE_HD Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
STIPPLE_HD Vec3 combine(Vec3 a, double s, Vec3 b, double t, Vec3 c) {  // a + s b + t c
    return {a.x + s * b.x + t * c.x, a.y + s * b.y + t * c.y, a.z + s * b.z + t * c.z};
}

struct Triangle {
    Vec3 a, b, c;
};

/// The nearest point of a triangle: a + v (b - a) + w (c - a).
struct OnTriangle {
    double dist_sq, v, w;
};

/// Right for slivers, segments and points too: which side of an edge the query is on is told by cross products, whose
/// error grows with the ratio of length to height and not with its square, and edges are measured as segments.
STIPPLE_HD OnTriangle closest_on_triangle(Vec3 p, const Triangle& triangle) {
    const Vec3 ab = triangle.b - triangle.a, ac = triangle.c - triangle.a, ap = p - triangle.a;
    const Vec3 normal = cross(ab, ac);
    const double inside_ab = dot(cross(ab, ap), normal);  // > 0 on the triangle's side; sums to dot(normal, normal)
    const double inside_ca = dot(cross(ap, ac), normal);
    const Vec3 bc = triangle.c - triangle.b, bp = p - triangle.b;
    const double inside_bc = dot(cross(bc, bp), normal);
    if (inside_ab > 0 && inside_ca > 0 && inside_bc > 0) {
        const double scale = 1 / (inside_ab + inside_ca + inside_bc);
        const double v = inside_ca * scale, w = inside_ab * scale;
        const Vec3 offset = combine(ap, -v, ab, -w, ac);
        return {dot(offset, offset), v, w};
    }
    // The nearest point is on an edge that has the query on its outer side; without an area, on any.
    OnTriangle best = {kFarAway, 0, 0};
    if (!(inside_ab > 0)) {
        const double length_sq = dot(ab, ab), along = dot(ap, ab);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3 offset = combine(ap, -s, ab, 0, ac);
        best = {dot(offset, offset), s, 0};
    }
    if (!(inside_ca > 0)) {
        const double length_sq = dot(ac, ac), along = dot(ap, ac);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3 offset = combine(ap, 0, ab, -s, ac);
        const double dist_sq = dot(offset, offset);
        if (dist_sq < best.dist_sq) best = {dist_sq, 0, s};
    }
    if (!(inside_bc > 0)) {
        const double length_sq = dot(bc, bc), along = dot(bp, bc);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3 offset = combine(bp, -s, bc, 0, bc);
        const double dist_sq = dot(offset, offset);
        if (dist_sq < best.dist_sq) best = {dist_sq, 1 - s, s};
    }
    return best;
}

/// The point itself, rounded to float.
STIPPLE_HD void write_point(const OnTriangle& place, const Triangle& triangle, float* out) {
    const Vec3 point = combine(triangle.a, place.v, triangle.b - triangle.a, place.w, triangle.c - triangle.a);
    out[0] = static_cast<float>(point.x);
    out[1] = static_cast<float>(point.y);
    out[2] = static_cast<float>(point.z);
}

/// The nearest face so far: by distance rounded to float, then by the lower index. Offering faces in any order gives
/// the same.
struct NearestFace {
    float distance = static_cast<float>(kFarAway);
    int32_t face = -1;
    OnTriangle place = {kFarAway, 0, 0};

    /// Whether it became the nearest.
    STIPPLE_HD bool offer(const OnTriangle& found, int32_t index) {
        // 2^-21 more than the best square cannot round to the best distance: no root for most.
        if (found.dist_sq > place.dist_sq * (1 + 0x1p-21)) return false;
        const auto rounded = static_cast<float>(sqrt(found.dist_sq));
        if (rounded > distance || (rounded == distance && face >= 0 && index >= face)) return false;
        distance = rounded;
        face = index;
        place = found;
        return true;
    }
};

/// A ray made ready for many triangles: sheared and turned so that it runs along +z [Woop et al. 2013, Watertight
/// Ray/Triangle Intersection].
struct ShearedRay {
    Vec3 origin;
    int axis_x, axis_y, axis_z;  // z: where the direction is longest
    double shear_x, shear_y, inverse_z;
};

STIPPLE_HD double along_axis(Vec3 a, int axis) {
    return axis == 0 ? a.x : axis == 1 ? a.y : a.z;
}

STIPPLE_HD ShearedRay shear_ray(Vec3 origin, Vec3 direction) {
    const double x = fabs(direction.x), y = fabs(direction.y), z = fabs(direction.z);
    const int axis_z = x > y ? (x > z ? 0 : 2) : (y > z ? 1 : 2);
    const int axis_x = axis_z == 2 ? 0 : axis_z + 1, axis_y = axis_x == 2 ? 0 : axis_x + 1;
    const double length = along_axis(direction, axis_z);
    return {origin,
            axis_x,
            axis_y,
            axis_z,
            along_axis(direction, axis_x) / length,
            along_axis(direction, axis_y) / length,
            1 / length};
}

/// Where a ray meets a triangle: at t, at the point u a + v b + w c. `weight` is u + v + w before they were divided by
/// it: 0 for a triangle seen edge-on, which has no such point. Not inside the triangle where u, v and w differ in sign.
struct OnRay {
    double t, u, v, w, weight;
};

/// The edge functions of neighbours differ in their sign alone, bit for bit, so that no ray slips through an edge.
STIPPLE_HD OnRay meet_triangle(const ShearedRay& ray, const Triangle& triangle) {
    const Vec3 a = triangle.a - ray.origin, b = triangle.b - ray.origin, c = triangle.c - ray.origin;
    const double az = along_axis(a, ray.axis_z), bz = along_axis(b, ray.axis_z), cz = along_axis(c, ray.axis_z);
    const double ax = along_axis(a, ray.axis_x) - ray.shear_x * az, ay = along_axis(a, ray.axis_y) - ray.shear_y * az;
    const double bx = along_axis(b, ray.axis_x) - ray.shear_x * bz, by = along_axis(b, ray.axis_y) - ray.shear_y * bz;
    const double cx = along_axis(c, ray.axis_x) - ray.shear_x * cz, cy = along_axis(c, ray.axis_y) - ray.shear_y * cz;
    const double u = cx * by - cy * bx, v = ax * cy - ay * cx, w = bx * ay - by * ax;
    const double weight = u + v + w;
    return {(u * az + v * bz + w * cz) / weight * ray.inverse_z, u, v, w, weight};
}

STIPPLE_HD bool is_inside(const OnRay& met) {
    const bool mixed = (met.u < 0 || met.v < 0 || met.w < 0) && (met.u > 0 || met.v > 0 || met.w > 0);
    return !mixed && met.weight != 0;
}

/// The first hit so far: by t rounded to float, then by the lower face.
struct FirstHit {
    float t = static_cast<float>(kFarAway);
    int32_t face = -1;
    double v = 0, w = 0;  // weights of the second and third corner

    STIPPLE_HD bool offer(float found_t, double found_v, double found_w, int32_t index) {
        if (found_t > t || (found_t == t && face >= 0 && index >= face)) return false;
        t = found_t;
        face = index;
        v = found_v;
        w = found_w;
        return true;
    }
};

/// The weights of the three corners as they are given out: each in [0, 1], their sum 1 but for rounding.
STIPPLE_HD void write_barycentrics(double v, double w, float* out) {
    v = v > 0 ? (v < 1 ? v : 1) : 0;
    w = w > 0 ? (w < 1 - v ? w : 1 - v) : 0;
    out[0] = static_cast<float>(1 - v - w);
    out[1] = static_cast<float>(v);
    out[2] = static_cast<float>(w);
}

}  // namespace stipple::geometry
