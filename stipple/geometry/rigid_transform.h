#pragma once
// RigidTransform: a rotation and a translation in float64, x -> R x + t. What registration finds.

#include <span>
#include <string>
#include <string_view>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<std::array<double, 3>, 3>;  // rows

struct RigidTransform {
    Matrix3 rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    Vector3 translation = {};

    Vector3 rotate(const Vector3& v) const {
        const Matrix3& r = rotation;
        return {r[0][0] * v[0] + r[0][1] * v[1] + r[0][2] * v[2], r[1][0] * v[0] + r[1][1] * v[1] + r[1][2] * v[2],
                r[2][0] * v[0] + r[2][1] * v[1] + r[2][2] * v[2]};
    }
    Vector3 operator()(const Vector3& point) const {
        const Vector3 v = rotate(point);
        return {v[0] + translation[0], v[1] + translation[1], v[2] + translation[2]};
    }
    bool operator==(const RigidTransform&) const = default;
};

/// a after b: (a * b)(x) = a(b(x)).
RigidTransform operator*(const RigidTransform& a, const RigidTransform& b);
RigidTransform inverse(const RigidTransform& transform);

/// Geodesic angle of the rotation, 0 to pi, precise at both ends. That between a and b is that of inverse(a) * b.
double rotation_angle(const RigidTransform& transform);

/// Unit quaternion (w, x, y, z), w >= 0.
std::array<double, 4> to_quaternion(const RigidTransform& transform);
/// Of any length but 0. Throws Error{bad_argument} for zero and for non-finite numbers.
RigidTransform from_quaternion(const std::array<double, 4>& wxyz, const Vector3& translation = {});
/// About an axis of any length but 0, through `center`, by the right-hand rule. Throws as from_quaternion.
RigidTransform rotation_about(const Vector3& axis, double radians, const Vector3& center = {});

/// The rotation nearest to a matrix [Higham 1986], for matrices from text or from long products. Throws
/// Error{bad_argument} when the matrix is not a rotation to `tolerance` in every number of R R^T, or reflects.
Matrix3 nearest_rotation(const Matrix3& matrix, double tolerance = 1e-3);

/// The cloud moved in world coordinates: places, the attribute "normal" (float32, 3 components), all else as it is. The
/// new origin is choose_origin() of the moved places, which are computed in float64 and rounded once. Non-finite points
/// stay non-finite. CPU only. O(n).
PointCloud transformed(const PointCloud& cloud, const RigidTransform& transform);

/// The same motion for positions that are relative to `from` and shall be relative to `to`: y = R y + (R from + t -
/// to).
RigidTransform between_origins(const RigidTransform& world, const Vector3& from, const Vector3& to);
/// And back.
RigidTransform in_world(const RigidTransform& local, const Vector3& from, const Vector3& to);

/// Four lines of four numbers, each the shortest text that reads back as the same number.
std::string to_text(const RigidTransform& transform);
/// Reads 4x4 numbers (or 3x4) separated by blanks, commas and line ends; '#' begins a comment. Throws Error{bad_file}
/// for another count, a last row other than 0 0 0 1 and what nearest_rotation refuses (which it also makes exact).
RigidTransform parse_transform(std::string_view text);

/// Sums from which the best fit follows; about any pivot near the points.
struct RigidMoments {
    double weight = 0;
    Vector3 from = {}, to = {};
    Matrix3 cross = {};  // sum of w * from * to^T

    void add(const Vector3& a, const Vector3& b, double w) {
        weight += w;
        for (int i = 0; i < 3; ++i) {
            from[i] += w * a[i];
            to[i] += w * b[i];
            for (int j = 0; j < 3; ++j) cross[i][j] += w * a[i] * b[j];
        }
    }
    void add(const RigidMoments& other);
};

/// The proper rotation and translation that minimise the weighted sum of |R from + t - to|^2 [Kabsch 1976; Umeyama 1991
/// for the guard against reflections]. What points on a line leave open is the shortest turn of one line into the
/// other; points at one place, or no weight, give a translation only.
RigidTransform best_fit(const RigidMoments& moments);

/// Of rows [n, 3] pair by pair, CPU; weights of n numbers from 0, or none. Pairs with a non-finite number or weight 0
/// do not count. Throws Error{bad_argument} for wrong shapes and negative or non-finite weights.
RigidTransform best_fit(View<const float, 2> from, View<const float, 2> to, std::span<const double> weights = {});

}  // namespace stipple::geometry
