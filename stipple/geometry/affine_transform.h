#pragma once
// AffineTransform: x -> A x + t in float64: turns, scales, mirrors and shears. (Turns alone: rigid_transform.h.)

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

struct AffineTransform {
    Matrix3 linear = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    Vector3 translation = {};

    Vector3 turn(const Vector3& v) const;
    Vector3 operator()(const Vector3& point) const;
    bool operator==(const AffineTransform&) const = default;
};

AffineTransform to_affine(const RigidTransform& transform);
/// a after b: (a * b)(x) = a(b(x)).
AffineTransform operator*(const AffineTransform& a, const AffineTransform& b);
double determinant(const AffineTransform& transform);
/// Throws Error{bad_argument} when the matrix has no inverse.
AffineTransform inverse(const AffineTransform& transform);
/// The same transform with `point` where 0 is: the linear part leaves it where it is.
AffineTransform about(const AffineTransform& transform, const Vector3& point);

/// New x, y and z by name: "xzy" swaps y and z, "x-zy" turns y up into z up. Each letter once, a sign before it;
/// commas and blanks do not count. Throws Error{bad_argument} for anything else.
AffineTransform axis_swap(std::string_view text);

/// As to_text and parse_transform of rigid_transform.h, of any matrix whose numbers are finite.
std::string to_text(const AffineTransform& transform);
AffineTransform parse_affine(std::string_view text);
/// From 16 numbers row by row, or 12. Throws Error{bad_file} as parse_affine.
AffineTransform affine_from_numbers(std::span<const double> numbers);

/// The mesh moved in world coordinates, in float64, rounded once about a new origin (choose_origin of the new places).
///
/// Float attributes of 3 components turn along: `normal` by the inverse transpose and `direction` and `tangent` by the
/// matrix, each keeping its length; `velocity` by the matrix; `viewpoint` is a place of the world and moves as one.
/// Where the matrix mirrors, faces are turned round so that they keep their outside. All else stays.
///
/// Facts of the file: the viewpoint moves along where the matrix keeps shapes (a turn with one scale), else it goes; a
/// coordinate system and a grid go. Non-finite points stay non-finite. Throws Error{bad_argument} for a matrix that is
/// not finite or flattens (determinant 0). CPU. O(n).
Mesh transformed(const Mesh& mesh, const AffineTransform& transform);

}  // namespace stipple::geometry
