#pragma once
// Errors of rigid registration.

#include <array>
#include <span>

#include "stipple/core/view.h"

namespace stipple::metrics {

/// A rigid motion, row-major: x -> R x + t, the last row 0 0 0 1.
using Motion = std::array<double, 16>;

/// Throws Error{bad_argument} beginning with `who` when the rotation is not one to 1e-4 (R R^T = I, det 1), the last
/// row is not 0 0 0 1, or a number is not finite.
void require_motion(const char* who, const Motion& motion);

/// The angle of the rotation that leads from one to the other, in degrees, 0 to 180. Exact at both ends: no acos of
/// something beyond 1.
double rotation_error(const Motion& estimate, const Motion& truth);

/// What SampleNet's program prints as the rotation error: 2 acos(2 <q1, q2>^2 - 1), twice the angle; 0 to 360.
double rotation_error_doubled(const Motion& estimate, const Motion& truth);

/// |t_estimate - t_truth|, in the unit of the points: also the translation of estimate^-1 truth, what is left to move
/// after the estimate (iPCRNet), since a rotation does not change its length.
double translation_error(const Motion& estimate, const Motion& truth);

/// Root of the mean squared distance between the points moved by the one and by the other. points [n, 3] on the CPU;
/// non-finite ones are left out, NaN when none is left.
double point_rmse(View<const float, 2> points, const Motion& estimate, const Motion& truth);

/// Area under the curve "share of errors at most x" for x in [0, most], by trapezoids of width `step`, divided by
/// `most`: 1 when every error is 0. SampleNet: degrees, 180, 0.5 (and doubled angles). A non-finite error is never
/// below. Throws Error{bad_argument} without errors and for step or most not above 0.
double precision_auc(std::span<const double> errors, double most = 180, double step = 0.5);

/// Share of pairs within both thresholds: "success" of PCRNet.
double success_rate(std::span<const double> rotations, std::span<const double> translations, double most_rotation,
                    double most_translation);

}  // namespace stipple::metrics
