#include "stipple/tasks/scans/part_merger.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/pose_evidence.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;
using geometry::ThinScan;

ThinScan every_few(const ThinScan& scan, int64_t stride) {
    const int64_t kept = (scan.size() + stride - 1) / stride;
    Array<float, 2> points({kept, 3}), normals({kept, 3});
    for (int64_t i = 0; i < kept; ++i) {
        std::copy_n(scan.points.data() + 3 * i * stride, 3, points.data() + 3 * i);
        std::copy_n(scan.normals.data() + 3 * i * stride, 3, normals.data() + 3 * i);
    }
    ops::PointIndex index{ops::Clouds(points.view())};
    return {std::move(points), std::move(normals), scan.origin, scan.voxel, std::move(index), scan.sensor};
}

double off_by(const SureEdge& edge, const std::vector<RigidTransform>& poses) {
    return off_by(edge, poses[edge.edge.from], poses[edge.edge.to]);
}

}  // namespace

double off_by(const SureEdge& edge, const RigidTransform& from, const RigidTransform& to) {
    const RigidTransform off = geometry::inverse(to) * from * geometry::inverse(edge.edge.transform);
    const geometry::Vector3 &at = edge.edge.center, moved = off(at);
    return std::hypot(moved[0] - at[0], moved[1] - at[1], moved[2] - at[2]) +
           geometry::rotation_angle(off) * edge.radius;
}

PartMerger::PartMerger(std::span<const geometry::SearchScan> scans) : scans_(scans) {
    constexpr int64_t kFew = 4;
    for (const geometry::SearchScan& scan : scans) {
        some_.push_back(every_few(scan.matched, kFew));
        voxel_ = std::max(voxel_, scan.matched.voxel);
    }
}

PartMerger::Contact PartMerger::contact_of(const ScanParts& parts, int32_t moving, int32_t staying,
                                           const RigidTransform& shift) const {
    struct Two {
        size_t source, target;
        geometry::PoseSupport support;
    };
    std::vector<Two> pairs;
    for (size_t i = 0; i < scans_.size(); ++i)
        for (size_t j = 0; parts.part[i] == moving && j < scans_.size(); ++j)
            if (parts.part[j] == staying) pairs.push_back({i, j, {}});
    parallel_for(static_cast<int64_t>(pairs.size()), 4, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            Two& two = pairs[k];
            const ThinScan &from = some_[two.source], &to = scans_[two.target].matched;
            const RigidTransform pose = geometry::inverse(parts.poses[two.target]) * shift * parts.poses[two.source];
            const bool is_sided = scans_[two.source].own_normals || (from.sensor && to.sensor);
            two.support = geometry::support_of(from, to, pose);
            if (!is_sided) two.support.support += two.support.opposite;
            two.support.through = geometry::seen_through(from, some_[two.target], pose);
        }
    });
    constexpr double kNear = 0.2;  // of the source: what only touches says little
    Contact contact;
    double around = 0, supported = 0, points = 0, through = 0;
    for (const Two& two : pairs) {
        if (static_cast<double>(two.support.around) < kNear * static_cast<double>(two.support.points)) continue;
        around += static_cast<double>(two.support.around);
        supported += static_cast<double>(two.support.support);
        points += static_cast<double>(two.support.points);
        through += two.support.through * static_cast<double>(two.support.points);
    }
    if (around > 0) contact.agreement = supported / around;
    if (points > 0) contact.through = through / points;
    return contact;
}

bool PartMerger::may_join(const ScanParts& parts, std::span<const SureEdge> edges, size_t one,
                          const RigidTransform& shift, double gate) {
    // Chosen on one scene, hotel3 (docs/registration.md): right joints have up to 0.032 of what was seen through and
    // from 0.5 of agreement, wrong ones of parts of several scans from 0.07, or less than 0.4, but for a few. Parts
    // that meet at both sides of a wall agree in little and are not joined: wrong joints look the same there.
    constexpr double kThrough = 0.04, kAgreement = 0.45;
    const int32_t moving = parts.part[edges[one].edge.from], staying = parts.part[edges[one].edge.to];
    std::vector<RigidTransform> joined = parts.poses;
    for (size_t i = 0; i < joined.size(); ++i)
        if (parts.part[i] == moving) joined[i] = shift * joined[i];
    double doubt = 1;
    for (const SureEdge& each : edges) {
        const int32_t a = parts.part[each.edge.from], b = parts.part[each.edge.to];
        const bool is_between = (a == moving && b == staying) || (a == staying && b == moving);
        if (is_between && off_by(each, joined) <= gate) doubt *= 1 - std::min(each.confidence, 1.0);
    }
    const bool is_sure = 1 - doubt >= geometry::kGood;
    const Contact contact = contact_of(parts, moving, staying, shift);
    return is_sure && contact.through <= kThrough && contact.agreement >= kAgreement;
}

void PartMerger::optimise(ScanParts& parts, std::span<const SureEdge> edges, double tolerance, double gate,
                          double drift) const {
    const auto n = static_cast<int32_t>(scans_.size());
    std::vector<RigidTransform> poses(scans_.size());
    std::vector<int32_t> part(scans_.size());
    std::iota(part.begin(), part.end(), 0);
    for (int32_t each = 0; each < n; ++each) {
        std::vector<geometry::PoseEdge> within;
        for (const SureEdge& one : edges)
            if (parts.part[one.edge.from] == each && parts.part[one.edge.to] == each &&
                off_by(one, parts.poses) <= (one.confidence >= geometry::kGood ? drift : 1) * gate)
                within.push_back(one.edge);
        if (within.empty()) continue;
        const geometry::PoseGraphResult graph = geometry::optimise_poses(n, within, {.tolerance = tolerance});
        const auto first = static_cast<int32_t>(std::find(graph.is_placed.begin(), graph.is_placed.end(), 1) -
                                                graph.is_placed.begin());
        for (int32_t i = 0; i < n; ++i)
            if (graph.is_placed[i] && parts.part[i] == each) {
                poses[i] = graph.poses[i];
                part[i] = first;
            }
    }
    parts.poses = std::move(poses);
    parts.part = std::move(part);
}

ScanParts PartMerger::merge(std::span<const SureEdge> edges, double tolerance) {
    const size_t n = scans_.size();
    const double gate = 3 * voxel_;
    ScanParts parts{std::vector<int32_t>(n), std::vector<RigidTransform>(n), {}};
    std::iota(parts.part.begin(), parts.part.end(), 0);
    std::vector<size_t> order(edges.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return edges[a].confidence > edges[b].confidence; });
    std::map<size_t, int64_t> refused;  // edges, by how many scans both parts had then
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (const size_t e : order) {
            check_interrupted();
            const geometry::PoseEdge& edge = edges[e].edge;
            const int32_t moving = parts.part[edge.from], staying = parts.part[edge.to];
            if (moving == staying) continue;
            const int64_t both = std::count(parts.part.begin(), parts.part.end(), moving) +
                                 std::count(parts.part.begin(), parts.part.end(), staying);
            if (const auto before = refused.find(e); before != refused.end() && before->second == both) continue;
            const RigidTransform shift =
                parts.poses[edge.to] * edge.transform * geometry::inverse(parts.poses[edge.from]);
            if (!may_join(parts, edges, e, shift, gate)) {
                refused[e] = both;
                continue;
            }
            for (size_t i = 0; i < n; ++i)
                if (parts.part[i] == moving) {
                    parts.poses[i] = shift * parts.poses[i];
                    parts.part[i] = staying;
                }
            is_changed = true;
        }
        // Poses along a long way are off what closes a loop, and less so once other loops are closed.
        for (const double drift : {8.0, 5.0, 5.0})
            if (is_changed) optimise(parts, edges, tolerance, gate, drift);
    }
    for (const SureEdge& one : edges)
        parts.agrees.push_back(parts.part[one.edge.from] == parts.part[one.edge.to] &&
                               off_by(one, parts.poses) <= gate);
    return parts;
}

}  // namespace stipple::tasks
