#pragma once
// Poses of several scans from registrations of pairs, some of which may be wrong: a graph whose nodes are scans and
// whose edges are motions between two, optimised with edges that switch themselves off [Choi et al. 2015].

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "stipple/geometry/icp.h"

namespace stipple::geometry {

/// The scan `from` laid on the scan `to`.
struct PoseEdge {
    int32_t from = 0, to = 0;
    RigidTransform transform;  // world coordinates of `from` to those of `to`
    /// Of a motion (turn about the axes through `center`, shift) away from the transform: x^T information x is the mean
    /// squared displacement of the surfaces. Symmetric, without negative eigenvalues.
    std::array<std::array<double, 6>, 6> information = {};
    Vector3 center = {};  // in the coordinates of `to`
    double strength = 1;  // above 0: its share in the last sums, and which edges the first poses come from
};

/// The edge of a registration: its information divided by the sum of its weights, and a thousandth of what pairs of
/// points would give, so that a motion along the surface counts a little. `radius` is the RMS radius of the overlap.
PoseEdge edge_of(int32_t from, int32_t to, const IcpResult& found, double radius, double strength);

struct PoseGraphOptions {
    double tolerance = 0;  // RMS displacement, above 0, at which an edge counts a quarter; more and more is dropped
    int iterations = 100;  // steps at most
};

struct PoseGraphResult {
    std::vector<RigidTransform> poses;  // of each node to the coordinates of the first that is placed; identity without
    std::vector<uint8_t> is_placed;     // connected with the largest part by edges that hold
    struct Edge {
        double residual = 0;      // RMS displacement against the poses; 0 between nodes that are not placed
        bool is_dropped = false;  // above the tolerance, or between nodes that are not placed
    };
    std::vector<Edge> edges;  // as they were given
    int iterations = 0;
    double rms = 0;  // of the residuals of edges that hold
};

/// The first poses come from a spanning tree: edges that agree with most triangles first, then the strongest. Then
/// Levenberg-Marquardt steps on all edges with weights (m / (m + r^2))^2, the line process of Choi et al., from a large
/// m down to the tolerance [graduated non-convexity; Yang et al. 2020]; edges beyond the tolerance are dropped, and the
/// others solved once more, weighted by their strength. Nodes that no edge that holds connects with the largest part
/// are not placed; without any edges that part is the first node.
///
/// Deterministic. Throws Error{bad_argument} for edges of nodes that are none, of a node with itself, strengths not
/// above 0, more than 500 nodes, and a tolerance not above 0. O(edges * nodes + iterations * nodes^3). CPU.
PoseGraphResult optimise_poses(int32_t nodes, std::span<const PoseEdge> edges, const PoseGraphOptions& options);

}  // namespace stipple::geometry
