#pragma once
// Sheets of oriented points nearer to each other than a field of the points can tell apart: the two sides of a thin
// wall, or of a narrow gap. They are moved apart along their normals before a surface is made, and the surface's
// vertices back after.

#include <vector>

#include "stipple/core/view.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::geometry {

/// How far each of n points is to move along its normal so that sheets are `thinnest` spacings apart, or an empty
/// vector where none has to. Walls become thicker, gaps wider; between two layers in a stack the two may cancel.
///
/// points, normals  [n, 3], normals of unit length
/// areas            [n] that each point stands for; its root is the spacing
/// spacing          of most points; where they are sparser than twice that, it counts as twice
/// field            winding number of the points: tells a wall from a gap where the sheets are at one place
///
/// A sheet is opposite when points are that lie within 1.5 spacings of the normal's line and look the other way by 120
/// degrees or more. Both sheets need two points at least there and a third of the other's, and the point's own must be
/// flat to half a spacing: outliers, noise of that size and single wrong normals move nothing. Deterministic, threads
/// do not matter.
std::vector<float> sheet_shifts(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                                float spacing, const WindingIndex& field, float thinnest, float accuracy);

/// Takes from vertices [m, 3] the shift of the points around them; `points` have been moved by `shifts`. Where no point
/// is near, nothing moves.
void undo_shifts(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> areas,
                 const std::vector<float>& shifts, View<float, 2> vertices);

}  // namespace stipple::geometry
