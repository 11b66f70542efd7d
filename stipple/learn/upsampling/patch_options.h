#pragma once
// How training patches are cut from meshes and scans: the numbers of surface_patches.h. No torch here.

#include <cstdint>

#include "stipple/core/fields.h"

namespace stipple::learn {

struct PatchOptions {
    int64_t queries = 1024;  // candidates that are moved onto the surface
    int64_t truth = 1024;    // points of the surface that they should cover

    // Queries and truth lie around this share of the points, the nearest to the centre, and the truth within this share
    // of their radius: beyond it the candidates of points that are not there would be missing.
    double inner_share = 0.5, truth_radius = 0.9;

    // Of every mesh or scan: independent sets of points, and the points of each, of which clouds are drawn.
    int64_t pools = 3, samples = 16384;

    // Virtual scans of every mesh, each of which is trained on as often as the mesh itself.
    int64_t scans = 0;

    // Scans of more points are used by regions of so many.
    int64_t region = 262144;

    // Points of the cloud that a patch is cut from, log-uniform. A patch has at most cloud_min of them.
    int64_t cloud_min = 768, cloud_max = 8192;

    // Shares of clouds whose points are drawn at random, with a density that falls to an eighth along a direction, as
    // by a scanner, in stripes and sparser with the distance, and one in each cell of a grid, as thinned scans are. The
    // others are evenly spread (farthest points).
    double random_share = 0.3, gradient_share = 0.1, scan_share = 0.2, voxel_share = 0.1;

    // Share of noisy clouds, and the largest standard deviation, of which theirs are uniform parts; radius 1.
    double noise_share = 0.3, noise_max = 0.02;

    // The share of noisy clouds of virtual scans, whose noise is along the rays; less of it is likelier there.
    double scan_noise_share = 0.8;

    // Share of clouds of virtual scans with mixed pixels, of which up to all that may be are.
    double mixed_share = 0.3;

    // A patch is seen in units of its spacing times a factor between these, log-uniform.
    double scale_min = 0.8, scale_max = 1.25;

    // Shares of queries that are midpoints of a point and one of its 8 nearest neighbours, and input points themselves:
    // those are moved in use. The others lie anywhere near a point (data::neighbour_queries).
    double midpoint_share = 0.4, input_share = 0.1;

    // Share of queries that are moved by a Gaussian, and its largest standard deviation in spacings.
    double query_noise_share = 0.25, query_noise = 0.5;
};
const Fields& patch_fields();

/// Clouds of uneven density have at most this part of the points of a pool.
inline constexpr int64_t kThinnedShare = 4;

/// Throws Error{bad_config} for numbers out of range, with patches of `points` points.
void validate(const PatchOptions& options, int64_t points);

}  // namespace stipple::learn
