#pragma once
// Linear algebra of a few numbers, by Eigen behind plain arrays: small_linear.cpp alone includes it, because its
// templates take longer to compile than the rest of registration together.

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

using Vector6 = std::array<double, 6>;
using Matrix6 = std::array<std::array<double, 6>, 6>;  // rows

double norm(const Vector3& v);
double norm(const std::array<double, 4>& v);
double determinant(const Matrix3& matrix);

/// The largest number of |M M^T - 1|; NaN or infinite where the matrix is not finite.
double orthogonality_error(const Matrix3& matrix);
/// The orthogonal matrix nearest to M: U V^T of its singular value decomposition [Higham 1986].
Matrix3 nearest_orthogonal(const Matrix3& matrix);

/// Rows: the eigenvectors of a symmetric matrix without negative eigenvalues, largest eigenvalue first.
Matrix3 principal_axes(const Matrix3& symmetric);

/// Of a symmetric matrix.
double least_eigenvalue(const Matrix6& symmetric);

/// Unit quaternion (w, x, y, z) of a rotation, and the rotation of a quaternion of any length but 0.
std::array<double, 4> quaternion_of(const Matrix3& rotation);
Matrix3 rotation_of(const std::array<double, 4>& wxyz);

/// best_fit() of moments with weight above 0.
RigidTransform fit_moments(const RigidMoments& moments);

/// The solution of M x = right with the least |x|, for a symmetric M with no negative eigenvalues, in which the first
/// three numbers of x are turns: they are scaled by `radius`, so that all six are lengths. Eigenvalues up to 1e-6 of
/// the largest count as 0; `undetermined` of them do.
struct LeastMotion {
    Vector6 x = {};
    int undetermined = 0;
};
LeastMotion solve_least_motion(const Matrix6& matrix, const Vector6& right, double radius);

}  // namespace stipple::geometry
