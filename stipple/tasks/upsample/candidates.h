#pragma once
// Where new points may go, as a network has it.

#include <span>

#include "stipple/ops/point_index.h"
#include "stipple/tasks/upsample.h"

namespace stipple::tasks {

struct Candidates {
    std::vector<float> points;         // [n, 3]
    std::vector<int32_t> parents;      // [n] the input point that each belongs to
    std::vector<float> uncertainties;  // [n] expected distance to the surface; empty: the network does not know
    int64_t width = 0;                 // input points that a candidate is made of
    std::vector<int32_t> sources;      // [n, width] these points; -1: fewer
    std::vector<float> weights;        // [n, width] their weights

    int64_t size() const { return static_cast<int64_t>(parents.size()); }
};

/// Adds one without sources, unless it is not finite.
void add_candidate(Candidates& candidates, const float* point, int32_t parent);

/// The part of a cloud that is worked on.
struct Region {
    View<const float, 2> cloud;          // [n, 3] all points, on the CPU
    std::span<const int32_t> points;     // input points of the region
    std::span<const int32_t> around;     // those, and others as far around them as a patch reaches
    std::span<const uint8_t> is_wanted;  // [n] points of the region whose candidates are asked for
    bool has_sources = true;             // whether it is asked what they are made of
    double temperature = 0;              // of the noise, for a network that takes some
    uint64_t seed = 0;
};

/// What the network makes of the wanted points of a region, at least `ratio` for each of them, and the input points
/// themselves (moved as queries are, where the network takes them) unless they are kept anyway. Those that are not
/// finite are left out.
Candidates make_candidates(Upsampler& upsampler, const Region& region, double ratio, bool has_inputs);

/// How far a patch around a point reaches, of most of `points`: what is nearer to a tile than this has a say in it.
float patch_radius(const ops::PointIndex& index, View<const float, 2> cloud, std::span<const int32_t> points);

}  // namespace stipple::tasks
