#pragma once
// How well a closed mesh fits what it was made around: the judge of watertight() in tests and in the study.

#include "stipple/geometry/mesh_view.h"

namespace stipple::test {

struct ShellFit {
    double from_output = 0;   // farthest vertex or sample of the output from the input
    double from_visible = 0;  // farthest visible sample of the input from the output
    int64_t visible = 0, samples = 0;
};

/// A sample of the input is visible when a ball of `radius` can touch it without any input inside, and a straight line
/// leads from the ball's centre to infinity without meeting the input. About `samples` samples of either mesh, spread
/// by area, and as many vertices at most.
ShellFit measure_fit(const geometry::MeshView& input, const geometry::MeshView& output, double radius, int64_t samples);

}  // namespace stipple::test
