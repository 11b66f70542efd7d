#pragma once
// Moments of a cluster of oriented area about a center, in double: what the expansion is made of, and how it moves.

#include <array>
#include <cmath>

#include "stipple/geometry/winding/terms.h"

namespace stipple::geometry::cpu {

using Vector3 = std::array<double, 3>;
using Symmetric2 = std::array<double, 6>;   // xx yy zz xy xz yz
using Symmetric3 = std::array<double, 10>;  // xxx yyy zzz xxy xxz xyy yyz xzz yzz xyz

inline Vector3 minus(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

/// The symmetric part of v w^T.
inline Symmetric2 symmetric_product(const Vector3& v, const Vector3& w) {
    return {v[0] * w[0],
            v[1] * w[1],
            v[2] * w[2],
            (v[0] * w[1] + v[1] * w[0]) / 2,
            (v[0] * w[2] + v[2] * w[0]) / 2,
            (v[1] * w[2] + v[2] * w[1]) / 2};
}

/// The symmetric part of v_i q_jk.
inline Symmetric3 symmetric_product(const Vector3& v, const Symmetric2& q) {
    const auto [x, y, z] = v;
    const auto [xx, yy, zz, xy, xz, yz] = q;
    return {x * xx,
            y * yy,
            z * zz,
            (2 * x * xy + y * xx) / 3,
            (2 * x * xz + z * xx) / 3,
            (2 * y * xy + x * yy) / 3,
            (2 * y * yz + z * yy) / 3,
            (2 * z * xz + x * zz) / 3,
            (2 * z * yz + y * zz) / 3,
            (x * yz + y * xz + z * xy) / 3};
}

struct Moments {
    Vector3 center{};
    double weight = 0;  // area
    Vector3 dipole{};   // integral of n
    Symmetric2 first{};
    Symmetric3 second{};  // of n d, of n d d, d from the center: their symmetric parts

    /// Adds oriented area n whose points are at `offset` from the center on average and spread by `spread` about that.
    void add(const Vector3& n, const Vector3& offset, const Symmetric2& spread) {
        Symmetric2 square = symmetric_product(offset, offset);
        for (int i = 0; i < 6; ++i) square[i] += spread[i];
        add_terms(n, symmetric_product(n, offset), symmetric_product(n, square));
    }

    /// Adds another cluster's moments, moved to this center.
    void add(const Moments& other) {
        const Vector3 shift = minus(other.center, center);
        Symmetric2 more = symmetric_product(other.dipole, shift);
        Symmetric3 most = symmetric_product(other.dipole, symmetric_product(shift, shift));
        const Symmetric3 cross = symmetric_product(shift, other.first);
        for (int i = 0; i < 6; ++i) more[i] += other.first[i];
        for (int i = 0; i < 10; ++i) most[i] += other.second[i] + 2 * cross[i];
        add_terms(other.dipole, more, most);
    }

    /// The 15 numbers that cluster_term takes.
    void coefficients(float* to, int stride) const {
        constexpr double kUnit = 0.25 / M_PI;
        const auto put = [&](int i, double value) { to[i * stride] = static_cast<float>(value * kUnit); };
        for (int i = 0; i < 3; ++i) put(i, dipole[i]);
        const auto [xx, yy, zz, xy, xz, yz] = first;
        const double trace = (xx + yy + zz) / 3;
        put(3, -3 * (xx - trace));
        put(4, -3 * (yy - trace));
        put(5, -6 * xy);
        put(6, -6 * xz);
        put(7, -6 * yz);
        const auto [xxx, yyy, zzz, xxy, xxz, xyy, yyz, xzz, yzz, xyz] = second;
        const double tx = (xxx + xyy + xzz) / 5, ty = (yyy + xxy + yzz) / 5, tz = (zzz + xxz + yyz) / 5;
        put(8, 7.5 * (xxx - 3 * tx));
        put(9, 22.5 * (xyy - tx));
        put(10, 7.5 * (yyy - 3 * ty));
        put(11, 22.5 * (xxy - ty));
        put(12, -7.5 * (xxz - tz));
        put(13, -7.5 * (yyz - tz));
        put(14, 45 * xyz);
    }

private:
    void add_terms(const Vector3& n, const Symmetric2& more, const Symmetric3& most) {
        for (int i = 0; i < 3; ++i) dipole[i] += n[i];
        for (int i = 0; i < 6; ++i) first[i] += more[i];
        for (int i = 0; i < 10; ++i) second[i] += most[i];
    }
};

}  // namespace stipple::geometry::cpu
