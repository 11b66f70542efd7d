#pragma once
// One triangle against one point or one ray, in double: the same bits on the CPU and on CUDA (whose sources that
// include this are compiled without contraction into fused multiply-adds). Every engine asks these functions for the
// numbers it gives, so engines differ in speed only.

#include <cmath>
#include <cstdint>
#include <limits>

#include "stipple/core/vec3.h"

namespace stipple::geometry {

constexpr double kFarAway = std::numeric_limits<double>::infinity();  // of distances and t where there is nothing

STIPPLE_HD Vec3d combine(Vec3d a, double s, Vec3d b, double t, Vec3d c) {  // a + s b + t c
    return {a.x + s * b.x + t * c.x, a.y + s * b.y + t * c.y, a.z + s * b.z + t * c.z};
}

struct Triangle {
    Vec3d a, b, c;
};

/// The nearest point of a triangle: a + v (b - a) + w (c - a).
struct OnTriangle {
    double dist_sq, v, w;
};

/// Right for slivers, segments and points too: which side of an edge the query is on is told by cross products, whose
/// error grows with the ratio of length to height and not with its square, and edges are measured as segments.
STIPPLE_HD OnTriangle closest_on_triangle(Vec3d p, const Triangle& triangle) {
    const Vec3d ab = triangle.b - triangle.a, ac = triangle.c - triangle.a, ap = p - triangle.a;
    const Vec3d normal = cross(ab, ac);
    const double inside_ab = dot(cross(ab, ap), normal);  // > 0 on the triangle's side; sums to dot(normal, normal)
    const double inside_ca = dot(cross(ap, ac), normal);
    const Vec3d bc = triangle.c - triangle.b, bp = p - triangle.b;
    const double inside_bc = dot(cross(bc, bp), normal);
    if (inside_ab > 0 && inside_ca > 0 && inside_bc > 0) {
        const double scale = 1 / (inside_ab + inside_ca + inside_bc);
        const double v = inside_ca * scale, w = inside_ab * scale;
        const Vec3d offset = combine(ap, -v, ab, -w, ac);
        return {dot(offset, offset), v, w};
    }
    // The nearest point is on an edge that has the query on its outer side; without an area, on any.
    OnTriangle best = {kFarAway, 0, 0};
    if (!(inside_ab > 0)) {
        const double length_sq = dot(ab, ab), along = dot(ap, ab);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3d offset = combine(ap, -s, ab, 0, ac);
        best = {dot(offset, offset), s, 0};
    }
    if (!(inside_ca > 0)) {
        const double length_sq = dot(ac, ac), along = dot(ap, ac);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3d offset = combine(ap, 0, ab, -s, ac);
        const double dist_sq = dot(offset, offset);
        if (dist_sq < best.dist_sq) best = {dist_sq, 0, s};
    }
    if (!(inside_bc > 0)) {
        const double length_sq = dot(bc, bc), along = dot(bp, bc);
        const double s = !(along > 0) ? 0 : along < length_sq ? along / length_sq : 1;
        const Vec3d offset = combine(bp, -s, bc, 0, bc);
        const double dist_sq = dot(offset, offset);
        if (dist_sq < best.dist_sq) best = {dist_sq, 1 - s, s};
    }
    return best;
}

/// The point itself, rounded to float.
STIPPLE_HD void write_point(const OnTriangle& place, const Triangle& triangle, float* out) {
    const Vec3d point = combine(triangle.a, place.v, triangle.b - triangle.a, place.w, triangle.c - triangle.a);
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
    Vec3d origin;
    int axis_x, axis_y, axis_z;  // z: where the direction is longest
    double shear_x, shear_y;
};

STIPPLE_HD double along_axis(Vec3d a, int axis) {
    return axis == 0 ? a.x : axis == 1 ? a.y : a.z;
}

STIPPLE_HD ShearedRay shear_ray(Vec3d origin, Vec3d direction) {
    const double x = fabs(direction.x), y = fabs(direction.y), z = fabs(direction.z);
    const int axis_z = x > y ? (x > z ? 0 : 2) : (y > z ? 1 : 2);
    const int axis_x = axis_z == 2 ? 0 : axis_z + 1, axis_y = axis_x == 2 ? 0 : axis_x + 1;
    const double length = along_axis(direction, axis_z);
    return {
        origin, axis_x, axis_y, axis_z, along_axis(direction, axis_x) / length, along_axis(direction, axis_y) / length};
}

/// Whether a ray passes through a triangle, from either side, its border included. The edge functions of neighbours
/// differ in their sign alone, bit for bit, so that no ray slips between them. Never through a triangle without area.
STIPPLE_HD bool passes_through(const ShearedRay& ray, const Triangle& triangle) {
    const Vec3d a = triangle.a - ray.origin, b = triangle.b - ray.origin, c = triangle.c - ray.origin;
    const double az = along_axis(a, ray.axis_z), bz = along_axis(b, ray.axis_z), cz = along_axis(c, ray.axis_z);
    const double ax = along_axis(a, ray.axis_x) - ray.shear_x * az, ay = along_axis(a, ray.axis_y) - ray.shear_y * az;
    const double bx = along_axis(b, ray.axis_x) - ray.shear_x * bz, by = along_axis(b, ray.axis_y) - ray.shear_y * bz;
    const double cx = along_axis(c, ray.axis_x) - ray.shear_x * cz, cy = along_axis(c, ray.axis_y) - ray.shear_y * cz;
    const double u = cx * by - cy * bx, v = ax * cy - ay * cx, w = bx * ay - by * ax;
    const bool mixed = (u < 0 || v < 0 || w < 0) && (u > 0 || v > 0 || w > 0);
    return !mixed && u + v + w != 0;
}

/// Where a ray meets a triangle's plane: at t, at the point a + v (b - a) + w (c - a) [Moeller and Trumbore 1997].
/// t is rounded to float, and NaN or infinite for a plane seen edge-on.
struct OnRay {
    float t;
    double v, w;
};

STIPPLE_HD OnRay meet_plane(Vec3d origin, Vec3d direction, const Triangle& triangle) {
    const Vec3d ab = triangle.b - triangle.a, ac = triangle.c - triangle.a, from_a = origin - triangle.a;
    const Vec3d h = cross(direction, ac), q = cross(from_a, ab);
    const double inverse = 1 / dot(ab, h);
    const auto t = static_cast<float>(dot(ac, q) * inverse) + 0.0f;  // no -0
    return {t, dot(from_a, h) * inverse, dot(direction, q) * inverse};
}

/// A quick word in float: false only where passes_through is false for sure. `slack` is ray_slack of the ray.
/// Edges are turned about the middle of their ends, so that errors grow with the edge and not with the distance.
STIPPLE_HD bool may_hit(const float* o, const float* d, float slack, const float* a, const float* b, const float* c) {
    float volume[3];
    float longest = 0;
    const float* const ends[3][2] = {{b, c}, {c, a}, {a, b}};
    for (int i = 0; i < 3; ++i) {
        const float *p = ends[i][0], *q = ends[i][1];
        const float ex = q[0] - p[0], ey = q[1] - p[1], ez = q[2] - p[2];
        const float mx = (p[0] - o[0]) + (q[0] - o[0]), my = (p[1] - o[1]) + (q[1] - o[1]);
        const float mz = (p[2] - o[2]) + (q[2] - o[2]);
        volume[i] = d[0] * (ey * mz - ez * my) + d[1] * (ez * mx - ex * mz) + d[2] * (ex * my - ey * mx);
        longest = fmaxf(longest, fmaxf(fabsf(ex), fmaxf(fabsf(ey), fabsf(ez))));
    }
    const float underflow = 1e-37f * (1 + fabsf(d[0]) + fabsf(d[1]) + fabsf(d[2]));  // more than products may lose
    const float zero = slack * longest + underflow;
    const bool some_below = volume[0] < -zero || volume[1] < -zero || volume[2] < -zero;
    const bool some_above = volume[0] > zero || volume[1] > zero || volume[2] > zero;
    return !(some_below && some_above);
}

/// `largest`: of the coordinates of the mesh, without their sign.
STIPPLE_HD float ray_slack(const float* o, const float* d, float largest) {
    const float far = fmaxf(fabsf(o[0]), fmaxf(fabsf(o[1]), fabsf(o[2]))) + largest;
    return 0x1p-17f * far * (fabsf(d[0]) + fabsf(d[1]) + fabsf(d[2]));
}

/// The first hit so far: by t rounded to float, then by the lower face.
struct FirstHit {
    float t = static_cast<float>(kFarAway);
    int32_t face = -1;
    double v = 0, w = 0;  // weights of the second and third corner

    STIPPLE_HD bool offer(const OnRay& met, int32_t index) {
        if (met.t > t || (met.t == t && face >= 0 && index >= face)) return false;
        t = met.t;
        face = index;
        v = met.v;
        w = met.w;
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
