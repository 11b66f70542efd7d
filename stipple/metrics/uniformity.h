#pragma once
// How evenly a cloud covers a surface: points in disks of equal area.
//
// A disk is what lies within a Euclidean ball about a random point of the mesh, on faces whose normal turns away by
// less than 90 degrees from that of the disk's middle: this leaves out the other side of a thin sheet. The papers'
// programs use geodesic distances and need hours; on a disk of 1 % of a surface that is smooth at this scale the two
// agree to second order. Points are first moved to the nearest point of the mesh, as the papers' programs do.

#include <vector>

#include "stipple/metrics/point_to_face.h"

namespace stipple::metrics {

struct DiskOptions {
    int64_t disks = 1000;
    std::vector<double> shares = {0.004, 0.006, 0.008, 0.010, 0.012};  // of the area; radius sqrt(share * area / pi)
    uint64_t seed = 1;
};

struct DiskUniformity {
    double share = 0;
    double radius = 0;
    double value = 0;     // NaN when every disk was passed over
    int64_t skipped = 0;  // disks with fewer than 5 points: the paper's program passes over them
};

/// PU-GAN's uniformity [Li et al. 2019], for each share: mean over disks of imbalance * clutter, imbalance =
/// (n - n^)^2 / n^ with n^ = share * points, clutter = mean over the disk's points of (d - d^)^2 / d^, d the distance
/// to the nearest other point of the disk, d^ = sqrt(2 pi r^2 / (n * 1.732)) that of a hexagonal packing (1.732 as in
/// its program). A length; the paper's columns are per share, x 1e-3.
///
/// points   in mesh.frame()
/// Throws Error{bad_argument} for a mesh without area, no points, no disks, and shares outside (0, 1).
/// O(disks * points in a disk * log).
std::vector<DiskUniformity> disk_uniformity(const IndexedMesh& mesh, const Points& points,
                                            const DiskOptions& options = {});

struct Nuc {
    double share = 0;
    double mean = 0;   // of n_i / (N share) over the disks; 1 when disks are what they should be
    double value = 0;  // standard deviation of the same: the coefficient
};

/// Normalised uniformity coefficient [Yu et al. 2018, PU-Net], for each share, of one cloud: 9000 disks, shares 0.2 to
/// 1.2 %. Ratio. The paper takes the deviation over the disks of all shapes; here each shape has its own. Same errors.
DiskOptions nuc_defaults();
std::vector<Nuc> normalised_uniformity(const IndexedMesh& mesh, const Points& points,
                                       const DiskOptions& options = nuc_defaults());

}  // namespace stipple::metrics
