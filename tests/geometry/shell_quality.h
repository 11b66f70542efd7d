#pragma once
// How well a closed mesh fits what it was made around: the judge of watertight() in tests and in the study.

#include "stipple/geometry/mesh_view.h"

namespace stipple::test {

struct ShellFit {
    double from_output = 0;   // farthest vertex, middle of a face or sample of the output from the input
    double from_visible = 0;  // farthest visible sample of the input from the output
    int64_t visible = 0, samples = 0;
};

/// A sample of the input is visible when a ball of `radius` can touch it and roll from there to infinity on a straight
/// line, all without any input inside. About `samples` samples of either mesh, spread by area, and as many vertices at
/// most.
ShellFit measure_fit(const geometry::MeshView& input, const geometry::MeshView& output, double radius, int64_t samples);

/// Edges that meet a face with which they share no vertex: 0 for a mesh that does not cut itself.
int64_t crossing_edges(const geometry::MeshView& mesh);

}  // namespace stipple::test
