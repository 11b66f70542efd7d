#pragma once
// Several scans in one frame: registrations of pairs, then a pose graph that drops what does not fit.
//
// Of few scans every pair is registered. Of many, every two are compared by a short search, and the most promising
// pairs of each scan are registered; the poses that follow tell which other pairs overlap, and these are registered
// from there by ICP alone, which closes loops; scans that are left out try their next pairs.

#include <functional>
#include <span>

#include "stipple/geometry/pose_graph.h"
#include "stipple/tasks/register.h"

namespace stipple::tasks {

struct ScansOptions {
    RegisterOptions pairs;        // of each pair; `initial` does not count
    double min_confidence = 0.5;  // of a registration that becomes an edge: likelier right than wrong
    double tolerance = 0;         // of edges; 0: the cells that poses are judged by, twice that where pairs are chosen
    int64_t most_scans = 12;      // of which every pair is registered; of more, pairs are chosen
};

/// Two scans, and what their registration became.
struct ScanPair {
    int32_t source = 0, target = 0;
    Registration registration;
    bool is_predicted = false;  // started from where the poses of others lay it
    bool is_edge = false;       // confident enough
    bool is_dropped = false;    // an edge that the others contradict
    double residual = 0;        // of an edge: RMS displacement against the poses
};

struct RegisteredScans {
    std::vector<geometry::RigidTransform> poses;  // to the coordinates of the first scan that is placed
    std::vector<uint8_t> is_placed;
    std::vector<ScanPair> pairs;  // those that were registered, the later scan as the source
    int64_t all_pairs = 0;        // n (n - 1) / 2
    double tolerance = 0, rms = 0;
    int iterations = 0;
    geometry::RegistrationVerdict verdict;  // failed: fewer than two scans are placed; doubtful: not all
};

/// `done` is called after each registration of a pair, on this thread. Throws as register_clouds, and
/// Error{bad_argument} for fewer than two scans or more than 500. Deterministic for any number of threads. A hundredth
/// of a second for each of the n (n - 1) / 2 pairs of many scans, and half a second for each of the 3 n to 5 n that are
/// searched. CPU.
RegisteredScans register_scans(std::span<const PointCloud* const> scans, const ScansOptions& options,
                               const std::function<void()>& done = {});

}  // namespace stipple::tasks
