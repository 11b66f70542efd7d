#pragma once
// Rooms in many fragments: the poses that register_scans() finds beside those that pairs with known poses give.

#include <functional>
#include <string>
#include <vector>

#include "stipple/tasks/register_scans.h"
#include "stipple/tasks/registration_study/pairs.h"

namespace stipple::tasks::study {

/// The fragments of a scene and their true poses.
struct PoseScene {
    std::string name;
    std::vector<std::string> names;               // of the fragments
    std::vector<geometry::RigidTransform> truth;  // to the coordinates of the first
    std::vector<double> overlap;                  // the most that a fragment shares with another, by the pairs
    std::vector<PosePair> pairs;
    const PairSet* set = nullptr;  // to load from
};

/// The scenes of all sets, in the order in which they come: poses along the pairs that overlap most, so that pairs of
/// all sets count. Pairs of files are no scene. Throws Error{bad_argument} for a scene that its pairs do not connect.
std::vector<PoseScene> scenes_of(const std::vector<PairSet>& sets);

struct SceneRules {
    double degrees = 5, distance = 0.1;  // a pose is right within these
    double overlap = 0.3;                // of fragments that count, with one other at least
};

struct SceneScore {
    int64_t fragments = 0, counted = 0, placed = 0, right = 0;  // right and placed: of those that count
    double degrees = 0, distance = 0;                           // medians of those that are placed; NaN without
    double rms = 0;                                             // of the points of those that are placed
    double worst = 0;                                           // RMS of the worst fragment's points
    int64_t edges = 0, wrong_edges = 0;                         // that hold; of them not right by the truth
    int64_t dropped = 0, wrong_dropped = 0;
};

/// Poses that were found are first laid on the true ones: the rigid motion that fits the points of the placed fragments
/// best, each fragment with one weight, then once more without those that are off by more than the distance, as long
/// as that leaves half of them.
SceneScore score_scene(const PoseScene& scene, const std::vector<const PointCloud*>& fragments,
                       const RegisteredScans& found, const SceneRules& rules);

}  // namespace stipple::tasks::study
