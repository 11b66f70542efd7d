#include "stipple/tasks/register_scans.h"

#include <algorithm>

namespace stipple::tasks {
namespace {

/// Cells that suit all scans, so that edges are measured alike.
double voxel_for_all(std::span<const PointCloud* const> scans, int64_t most_points) {
    double voxel = 0;
    for (size_t i = 0; i < scans.size(); ++i)
        voxel = std::max(voxel, geometry::common_voxel(*scans[i], *scans[(i + 1) % scans.size()], most_points));
    return voxel;
}

void judge_scans(RegisteredScans& found) {
    const auto placed = std::count(found.is_placed.begin(), found.is_placed.end(), 1);
    const auto all = static_cast<int64_t>(found.is_placed.size());
    if (placed == all) return;
    found.verdict.state = placed < 2 ? geometry::RegistrationState::failed : geometry::RegistrationState::doubtful;
    found.verdict.reasons = {
        placed < 2 ? std::string("no two scans could be registered with confidence")
                   : fmt::format("{} of {} scans are placed: the others share too little with them", placed, all)};
}

}  // namespace

RegisteredScans register_scans(std::span<const PointCloud* const> scans, const ScansOptions& options,
                               const std::function<void()>& done) {
    STIPPLE_REQUIRE(scans.size() >= 2 && scans.size() <= 500, "{} scans: 2 to 500 can be registered", scans.size());
    STIPPLE_REQUIRE(options.min_confidence >= 0 && options.min_confidence <= 1, "a confidence is 0 to 1, not {}",
                    options.min_confidence);
    RegisterOptions pairwise = options.pairs;
    pairwise.initial = {};
    if (pairwise.global.voxel == 0) pairwise.global.voxel = voxel_for_all(scans, pairwise.global.most_points);
    RegisteredScans found;
    std::vector<geometry::PoseEdge> edges;
    for (size_t i = 1; i < scans.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            ScanPair pair;
            pair.source = static_cast<int32_t>(i);
            pair.target = static_cast<int32_t>(j);
            pair.registration = register_clouds(*scans[i], *scans[j], pairwise);
            const PoseTrust& trust = pair.registration.trust;
            pair.is_edge = pair.registration.verdict.state != geometry::RegistrationState::failed &&
                           trust.evidence.forth.support > 0 && trust.confidence >= options.min_confidence;
            if (pair.is_edge) {
                found.tolerance = std::max(found.tolerance, trust.voxel);
                edges.push_back(geometry::edge_of(
                    pair.source, pair.target, pair.registration.found, geometry::rms_radius(*scans[i]),
                    trust.confidence * static_cast<double>(trust.evidence.forth.support)));
            }
            found.pairs.push_back(std::move(pair));
            if (done) done();
        }
    if (options.tolerance > 0) found.tolerance = options.tolerance;
    if (found.tolerance == 0) found.tolerance = 1;  // no edges: nothing is measured
    const geometry::PoseGraphResult graph =
        geometry::optimise_poses(static_cast<int32_t>(scans.size()), edges, {.tolerance = found.tolerance});
    found.poses = graph.poses;
    found.is_placed = graph.is_placed;
    found.iterations = graph.iterations;
    found.rms = graph.rms;
    size_t at = 0;
    for (ScanPair& pair : found.pairs) {
        if (!pair.is_edge) continue;
        pair.is_dropped = graph.edges[at].is_dropped;
        pair.residual = graph.edges[at].residual;
        ++at;
    }
    judge_scans(found);
    return found;
}

}  // namespace stipple::tasks
