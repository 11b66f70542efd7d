#pragma once
// The arithmetic of the winding number, the same on CPU and CUDA: a cluster seen from afar, a triangle, a point.
// Everything is divided by 4 pi, so that terms add up to the winding number. No branches: lanes of a vector run it.

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/ops/common/fast_exp.h"

namespace stipple::geometry {

/// Numbers of a child of a node, and of a triangle or a point of a leaf; each is kept as lanes side by side.
enum ChildField {
    kCenterX,
    kCenterY,
    kCenterZ,
    kRadiusSq,  // of the sphere about the center that holds the cluster; -1: no such child
    kReachSq,   // within this distance the expansion does not hold, whatever the accuracy
    kDipole,    // 3 numbers, then 5 of the quadrupole, then 7 of the octupole: the expansion's terms of order 0, 1, 2
    kChildFields = kDipole + 15
};
enum TriangleField {
    kCornerA,
    kCornerB = 3,
    kCornerC = 6,
    kDoubleArea = 9,
    kFlat = 12,
    kTriangleFields
};                                                                        // 3 numbers each; 1
enum PointField { kPlace, kMoment = 3, kInverseSoft = 6, kPointFields };  // 3 numbers each; 1

/// Whether a cluster is taken as one. Decides a branch: rounded alike everywhere.
STIPPLE_HD bool is_far(float distance_squared, float radius_sq, float reach_sq, float accuracy_sq) {
    const float limit = multiply_rounded(radius_sq, accuracy_sq);
    return distance_squared > (limit > reach_sq ? limit : reach_sq);
}

/// Queries so far away, in extents, that distances would overflow. Seen from there everything vanishes.
STIPPLE_HD bool is_beyond(float x, float y, float z) {
    constexpr float kFurthest = 1e18f;
    return !(fabsf(x) < kFurthest && fabsf(y) < kFurthest && fabsf(z) < kFurthest);
}

/// The Taylor expansion of a cluster [Barill et al. 2018, eq. 13]. The derivatives of 1 / r are symmetric and without
/// trace, and so are the moments once what the derivatives cancel is removed: 3 + 5 + 7 numbers instead of 3 + 9 + 27.
/// (x, y, z): center minus query. moments: 15 numbers, `stride` apart.
STIPPLE_HD float cluster_term(float x, float y, float z, float distance_squared, const float* moments, int stride) {
    using ops::multiply_add;
    constexpr float kTiny = 1e-30f;
    const float inverse = 1.0f / sqrtf(distance_squared > kTiny ? distance_squared : kTiny);
    x *= inverse, y *= inverse, z *= inverse;
    const auto m = [=](int i) { return moments[i * stride]; };
    const float xx = x * x, yy = y * y, zz = z * z;
    const float zz3 = 3.0f * zz;
    const float dipole = multiply_add(m(0), x, multiply_add(m(1), y, m(2) * z));
    const float quadrupole =
        multiply_add(m(3), xx - zz,
                     multiply_add(m(4), yy - zz, multiply_add(m(5), x * y, multiply_add(m(6), x * z, m(7) * (y * z)))));
    const float octupole =
        multiply_add(x, multiply_add(m(8), xx - zz3, multiply_add(m(9), yy - zz, m(14) * (y * z))),
                     multiply_add(y, multiply_add(m(10), yy - zz3, m(11) * (xx - zz)),
                                  z * multiply_add(m(12), zz - 3.0f * xx, m(13) * (zz - 3.0f * yy))));
    return inverse * inverse * multiply_add(inverse, multiply_add(inverse, octupole, quadrupole), dipole);
}

/// The angle of (x, y) within 2e-7 of itself; 0 at the origin.
STIPPLE_HD float fast_atan2(float y, float x) {
    using ops::multiply_add;
    const float ax = fabsf(x), ay = fabsf(y);
    const float most = ax > ay ? ax : ay, least = ax > ay ? ay : ax;
    const float t = least / (most > 1e-37f ? most : 1e-37f), s = t * t;
    // atan(t) / t as a polynomial of degree 7 in t^2 with the least largest relative error, 1e-7.
    float p = -0x1.33940ep-8f;
    p = multiply_add(p, s, 0x1.8d59ecp-6f);
    p = multiply_add(p, s, -0x1.e75000p-5f);
    p = multiply_add(p, s, 0x1.9616e6p-4f);
    p = multiply_add(p, s, -0x1.1f1e76p-3f);
    p = multiply_add(p, s, 0x1.98fadep-3f);
    p = multiply_add(p, s, -0x1.5551d0p-2f);
    p = multiply_add(p, s, 0x1.fffffcp-1f);
    float angle = p * t;
    angle = ay > ax ? 0x1.921fb6p+0f - angle : angle;
    angle = x < 0 ? 0x1.921fb6p+1f - angle : angle;
    return copysignf(angle, y);
}

/// The solid angle of a triangle [van Oosterom and Strackee 1983]. From a point of its plane, as far as float32 tells,
/// it is 0: on a surface the winding number is the mean of its two sides. fields: kTriangleFields, `stride` apart.
STIPPLE_HD float triangle_term(const float* fields, int stride, float qx, float qy, float qz) {
    using ops::multiply_add;
    const auto f = [=](int i) { return fields[i * stride]; };
    const float ax = f(0) - qx, ay = f(1) - qy, az = f(2) - qz;
    const float bx = f(3) - qx, by = f(4) - qy, bz = f(5) - qz;
    const float cx = f(6) - qx, cy = f(7) - qy, cz = f(8) - qz;
    const float a = sqrtf(multiply_add(ax, ax, multiply_add(ay, ay, az * az)));
    const float b = sqrtf(multiply_add(bx, bx, multiply_add(by, by, bz * bz)));
    const float c = sqrtf(multiply_add(cx, cx, multiply_add(cy, cy, cz * cz)));
    const float ab = multiply_add(ax, bx, multiply_add(ay, by, az * bz));
    const float bc = multiply_add(bx, cx, multiply_add(by, cy, bz * cz));
    const float ca = multiply_add(cx, ax, multiply_add(cy, ay, cz * az));
    const float lengths = a * b * c;
    const float real = multiply_add(ab, c, multiply_add(bc, a, multiply_add(ca, b, lengths)));
    const float volume = multiply_add(ax, f(9), multiply_add(ay, f(10), az * f(11)));
    const float imaginary = fabsf(volume) > f(12) * a ? volume : 0.0f;
    const float turn = fast_atan2(imaginary, real);
    return imaginary == 0.0f ? 0.0f : turn * 0.15915494f;  // 2 * turn / (4 pi)
}

/// The dipole of a point, harmonic from the softening radius on; inside, 1 / r^3 is replaced by the parabola in r^2
/// that continues it twice differentiably. fields: kPointFields, `stride` apart.
STIPPLE_HD float point_term(const float* fields, int stride, float qx, float qy, float qz) {
    using ops::multiply_add;
    const auto f = [=](int i) { return fields[i * stride]; };
    const float x = f(0) - qx, y = f(1) - qy, z = f(2) - qz;
    const float distance_squared = multiply_add(x, x, multiply_add(y, y, z * z));
    const float flux = multiply_add(x, f(3), multiply_add(y, f(4), z * f(5)));
    const float inverse_soft = f(6), s = distance_squared * inverse_soft * inverse_soft;
    const float inside =
        inverse_soft * inverse_soft * inverse_soft * multiply_add(s, multiply_add(s, 1.875f, -5.25f), 4.375f);
    const float outside = 1.0f / (distance_squared * sqrtf(distance_squared));
    return flux * (s < 1.0f ? inside : outside);
}

}  // namespace stipple::geometry
