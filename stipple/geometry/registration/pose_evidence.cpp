#include "stipple/geometry/pose_evidence.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "stipple/geometry/outliers.h"
#include "stipple/geometry/registration/each_of.h"
#include "stipple/geometry/registration/nearest_points.h"
#include "stipple/geometry/registration/small_linear.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::geometry {
namespace {

/// The tangent-plane distance of each point's nearest other point of the same scan.
double own_roughness(const ThinScan& scan) {
    const int64_t n = scan.size();
    if (n < 2) return 0;
    Array<float, 2> distances_sq({n, 2});
    Array<int32_t, 2> nearest({n, 2});
    ops::knn(scan.index, scan.points.view(), nearest.view(), distances_sq.view());
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t j = nearest.data()[2 * i] == i ? nearest.data()[2 * i + 1] : nearest.data()[2 * i];
        if (j < 0) continue;
        double off = 0;
        for (int axis = 0; axis < 3; ++axis)
            off += double{scan.normals.data()[3 * j + axis]} *
                   (double{scan.points.data()[3 * i + axis]} - scan.points.data()[3 * j + axis]);
        if (std::abs(off) > scan.voxel) continue;
        sum += off * off;
        ++count;
    }
    return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

struct Support {
    Vector3 place, normal;
    double off;
};

/// What lies how near, one way.
struct Neighbourhood {
    std::vector<Support> supports;
    int64_t close = 0, wide = 0;  // within 1.5 and within 8 cells
    double by_direction = 0;      // agreement, the mean over directions of normals
};

/// 0 to 47: the direction of a normal, either side: the largest component, and the cell of the two others.
int direction_of(const float* normal) {
    int axis = 0;
    for (int i = 1; i < 3; ++i)
        if (std::abs(normal[i]) > std::abs(normal[axis])) axis = i;
    const auto cell = [&](int other) {
        const double ratio = normal[axis] == 0 ? 0 : normal[other] / normal[axis];  // -1 to 1
        return std::clamp(static_cast<int>(2 * (ratio + 1)), 0, 3);
    };
    return 16 * axis + 4 * cell((axis + 1) % 3) + cell((axis + 2) % 3);
}

constexpr double kWide = 8;  // cells

/// The supports of support_of() one by one, and what is around. near: up to kWide cells.
Neighbourhood neighbourhood_of(const ThinScan& source, const ThinScan& target, const NearestPoints& near,
                               bool is_sided) {
    constexpr double kClose = 1.5, kAround = 3, kOffPlane = 0.5, kCosine = 0.8660254037844386;
    Neighbourhood found;
    const int64_t n = near.nearest.size(0);
    const double cell_sq = target.voxel * target.voxel;
    std::array<int64_t, 48> around = {}, support = {};
    for (int64_t i = 0; i < n; ++i) {
        const int64_t j = near.nearest.data()[i];
        if (j < 0 || near.distances_sq.data()[i] > kWide * kWide * cell_sq) continue;
        ++found.wide;
        if (near.distances_sq.data()[i] > kAround * kAround * cell_sq) continue;
        const float *a = source.normals.data() + 3 * i, *b = target.normals.data() + 3 * j;
        const int direction = direction_of(a);
        ++around[direction];
        if (near.distances_sq.data()[i] > kClose * kClose * cell_sq) continue;
        ++found.close;
        const Vector3 turned = near.local.rotate({a[0], a[1], a[2]});
        Support one{{near.moved.data()[3 * i], near.moved.data()[3 * i + 1], near.moved.data()[3 * i + 2]},
                    {b[0], b[1], b[2]},
                    0};
        double cosine = 0;
        for (int axis = 0; axis < 3; ++axis) {
            cosine += turned[axis] * b[axis];
            one.off += b[axis] * (double{target.points.data()[3 * j + axis]} - near.moved.data()[3 * i + axis]);
        }
        if (std::abs(one.off) > kOffPlane * target.voxel || (is_sided ? cosine : std::abs(cosine)) < kCosine) continue;
        ++support[direction];
        found.supports.push_back(one);
    }
    constexpr int64_t kFewest = 8;
    int directions = 0;
    for (int i = 0; i < 48; ++i) {
        if (around[i] < kFewest) continue;
        ++directions;
        found.by_direction += static_cast<double>(support[i]) / static_cast<double>(around[i]);
    }
    if (directions > 0) found.by_direction /= directions;
    return found;
}

/// The mean of places and their RMS distance from it.
struct Spread {
    Vector3 mean = {};
    double radius = 0;
};

Spread extent_of(const std::vector<Support>& supports) {
    const auto n = static_cast<double>(supports.size());
    Spread found;
    for (const Support& support : supports)
        for (int axis = 0; axis < 3; ++axis) found.mean[axis] += support.place[axis] / n;
    for (const Support& support : supports)
        for (int axis = 0; axis < 3; ++axis) {
            const double off = support.place[axis] - found.mean[axis];
            found.radius += off * off / n;
        }
    found.radius = std::sqrt(found.radius);
    return found;
}

double radius_of(const ThinScan& scan) {
    std::vector<Support> places(static_cast<size_t>(scan.size()));
    for (int64_t i = 0; i < scan.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) places[i].place[axis] = scan.points.data()[3 * i + axis];
    return extent_of(places).radius;
}

double stiffness_of(const std::vector<Support>& supports, const Spread& extent) {
    const double radius = extent.radius;
    if (supports.size() < 6 || !(radius > 0)) return 0;
    const auto n = static_cast<double>(supports.size());
    const Vector3& mean = extent.mean;
    Matrix6 information = {};
    for (const Support& support : supports) {
        const Vector3& m = support.normal;
        Vector3 r;
        for (int axis = 0; axis < 3; ++axis) r[axis] = (support.place[axis] - mean[axis]) / radius;
        const Vector6 row = {
            r[1] * m[2] - r[2] * m[1], r[2] * m[0] - r[0] * m[2], r[0] * m[1] - r[1] * m[0], m[0], m[1], m[2]};
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < 6; ++j) information[i][j] += row[i] * row[j] / n;
    }
    return std::max(0.0, least_eigenvalue(information));
}

}  // namespace

double PoseEvidence::overlap() const {
    return std::max(forth.overlap(), back.overlap());
}

double PoseEvidence::agreement() const {
    return (forth.agreement() + back.agreement()) / 2;
}

ThinScan judged_scan(const PointCloud& cloud, double voxel, bool own_normals) {
    constexpr int kOthers = 3;
    const ops::VoxelGrid grid = ops::voxel_grid(cloud.positions.view(), static_cast<float>(voxel));
    const int64_t cells = grid.cells.rows();
    Array<float, 2> centroids({cells, 3});
    ops::voxel_centroids(grid, cloud.positions.view(), centroids.view());
    Array<uint8_t, 1> keep({cells});
    const int64_t kept =
        cells == 0 ? 0 : radius_outliers(centroids.view(), keep.view(), static_cast<float>(2 * voxel), kOthers);
    if (kept == cells || 5 * (cells - kept) > cells) return thin_scan(cloud, voxel, own_normals);
    std::vector<int32_t> chosen;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const int32_t cell = grid.cell_of_point.data()[i];
        if (cell >= 0 && keep.data()[cell]) chosen.push_back(static_cast<int32_t>(i));
    }
    return thin_scan(select(cloud, View<const int32_t, 1>(chosen.data(), {static_cast<int64_t>(chosen.size())})), voxel,
                     own_normals);
}

double judged_edge(double voxel, double spacing) {
    return std::max(voxel / 2, std::min(voxel, 1.5 * spacing));
}

double judged_edge(const PointCloud& source, const PointCloud& target, double voxel) {
    return judged_edge(voxel, common_spacing(source, target));
}

JudgedPair judged_pair(const PointCloud& source, const PointCloud& target, double edge) {
    const bool own_normals = has_normals(source) && has_normals(target);
    std::optional<ThinScan> scans[2];
    each_of(source, target,
            [&](int64_t i, const PointCloud& cloud) { scans[i] = judged_scan(cloud, edge, own_normals); });
    const bool is_sided = own_normals || (scans[0]->sensor && scans[1]->sensor);
    return {std::move(*scans[0]), std::move(*scans[1]), is_sided};
}

JudgedPair judged_pair(const ThinScan& source, const ThinScan& target, bool own_normals) {
    return {source.clone(), target.clone(), own_normals || (source.sensor && target.sensor)};
}

PoseEvidence evidence_of(const JudgedPair& scans, const RigidTransform& pose) {
    return evidence_of(scans.source, scans.target, pose, scans.is_sided);
}

// By confidence_fit.py (bench/results/geometry.md): of poses of a search, and of ICP alone, which knows no matches.
constexpr double kSearched[] = {-1.61, 1.58, 0, 0, 0, 0, -1.83, 4.08, 0.38, -44.04};
constexpr double kMatched[] = {-4.01, 1.34, -0.67};
constexpr double kAlone[] = {0.99, 0, 2.80, 5.49, 0, 2.68, -2.01, 2.07, 0.49, -65.13};

namespace {

PoseSupport judged_support(const ThinScan& source, const ThinScan& target, const NearestPoints& near, double through,
                           bool is_sided) {
    PoseSupport support = support_of(source, target, near, 1);
    if (!is_sided) support.support += support.opposite;
    support.through = through;
    return support;
}

}  // namespace

PoseSupport judged_support(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, bool is_sided) {
    return judged_support(source, target, nearest_points(source, target, pose, kSupportReach * target.voxel),
                          seen_through(source, target, pose), is_sided);
}

double pose_confidence(const PoseEvidence& evidence) {
    if (evidence.forth.support == 0) return 0;
    const double common[] = {1,
                             evidence.close,
                             evidence.wide,
                             evidence.even,
                             evidence.overlap(),
                             std::log10(std::max(evidence.stiffness, 1e-4)),
                             std::min(evidence.residual, 3.0),
                             evidence.spread,
                             std::log10(1 + static_cast<double>(evidence.forth.support)),
                             std::min(evidence.through, 0.2)};
    const double other = std::min(evidence.other, 1.0);
    const double matched[] = {other, std::log10(1 + evidence.inliers), std::log10(1 + evidence.rival)};
    double logit = 0;
    if (evidence.matches > 0) {
        for (size_t i = 0; i < std::size(common); ++i) logit += kSearched[i] * common[i];
        for (size_t i = 0; i < std::size(matched); ++i) logit += kMatched[i] * matched[i];
    } else {
        for (size_t i = 0; i < std::size(common); ++i) logit += kAlone[i] * common[i];
    }
    // At most one of two poses is right: this limit comes from reason, not from regression.
    return std::min(1 / (1 + std::exp(-logit)), 1 / (1 + other));
}

PoseEvidence evidence_of(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, bool is_sided) {
    PoseEvidence evidence;
    const NearestPoints forth = nearest_points(source, target, pose, kWide * target.voxel),
                        across = nearest_points(target, source, inverse(pose), kWide * source.voxel);
    evidence.through = seen_through(source, target, pose);
    evidence.forth = judged_support(source, target, forth, evidence.through, is_sided);
    evidence.back = judged_support(target, source, across, evidence.through, is_sided);
    const double all =
        static_cast<double>(is_sided ? evidence.forth.support + evidence.forth.opposite : evidence.forth.support);
    if (all > 0) evidence.sidedness = std::abs(1 - 2 * static_cast<double>(evidence.forth.opposite) / all);
    const Neighbourhood near = neighbourhood_of(source, target, forth, is_sided),
                        back = neighbourhood_of(target, source, across, is_sided);
    const std::vector<Support>& supports = near.supports;
    const auto share = [](size_t part, int64_t whole) {
        return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
    };
    evidence.close = (share(supports.size(), near.close) + share(back.supports.size(), back.close)) / 2;
    evidence.wide = (share(supports.size(), near.wide) + share(back.supports.size(), back.wide)) / 2;
    evidence.even = (near.by_direction + back.by_direction) / 2;
    const Spread extent = extent_of(supports);
    evidence.stiffness = stiffness_of(supports, extent);
    const double smaller = std::min(radius_of(source), radius_of(target));
    evidence.spread = smaller > 0 ? extent.radius / smaller : 0;
    double sum = 0;
    for (const Support& support : supports) sum += support.off * support.off;
    const double rough = own_roughness(target);
    const double off = supports.empty() ? 0 : std::sqrt(sum / static_cast<double>(supports.size()));
    // Exact copies have no roughness to compare with: a thousandth of a cell stands for rounding.
    evidence.residual = off / std::max(rough, 1e-3 * target.voxel);
    return evidence;
}

}  // namespace stipple::geometry
