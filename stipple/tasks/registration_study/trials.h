#pragma once
// Registrations of pairs with known poses: how often they are right, and how far their verdicts can be believed.

#include <array>
#include <iterator>
#include <span>

#include "stipple/tasks/register.h"
#include "stipple/tasks/registration_study/pairs.h"

namespace stipple::tasks::study {

/// When a pose counts as right: the rule of 3DMatch by angles [Chen et al. 2022] and the benchmark's own by the pair's
/// overlap [Zeng et al. 2017].
struct PoseRules {
    double degrees = 15, distance = 0.3;  // rotation and translation are off by less
    double rmse = 0.2;                    // of source points that lie `near` the target in the true pose: less
    double near = 0.0375;
};

struct PairTrial {
    Registration registration;
    double degrees = 0, translation = 0;  // off the truth
    double rmse = 0;                      // as in PoseRules; NaN where nothing is near
    bool is_right = false, is_right_by_rmse = false;
    double seconds = 0;
};

/// Registers and compares. Throws as register_clouds.
PairTrial try_pair(const PointCloud& source, const PointCloud& target, const geometry::RigidTransform& truth,
                   const RegisterOptions& options, const PoseRules& rules);

/// A start up to 10 degrees and a tenth of the source's extent (the diagonal of its box) off the truth.
geometry::RigidTransform start_near(const PointCloud& source, const geometry::RigidTransform& truth, uint64_t seed);
/// A start in another place: any turn, the middle of the source anywhere in the target's box, and more than 30 degrees
/// or half the source's extent off the truth.
geometry::RigidTransform start_elsewhere(const PointCloud& source, const PointCloud& target,
                                         const geometry::RigidTransform& truth, uint64_t seed);

/// What a registration rests on, as columns of a table; bench/geometry/confidence_fit.py reads them.
inline constexpr const char* kEvidenceColumns[] = {
    "confidence", "overlap", "least_overlap", "close",   "wide",    "even",    "stiffness", "residual", "other",
    "spread",     "inliers", "rival",         "matches", "through", "support", "closeness", "poses",    "points"};
std::array<double, std::size(kEvidenceColumns)> evidence_columns_of(const Registration& registration);

struct TrialSummary {
    int64_t pairs = 0, right = 0, right_by_rmse = 0;
    double degrees = 0, translation = 0;  // medians of right ones; NaN without
    int64_t right_by_state[3] = {};       // RegistrationState: good, doubtful, failed
    int64_t wrong_by_state[3] = {};
    double calibration_error = 0;  // over ten bins of confidence, weighted by their trials
    double seconds = 0;            // median
};
TrialSummary summarise(std::span<const PairTrial* const> trials);

/// A bin of a reliability diagram: trials of a tenth of the confidence.
struct ReliabilityBin {
    int64_t trials = 0, right = 0;
    double confidence = 0;  // mean
};
std::array<ReliabilityBin, 10> reliability_of(std::span<const PairTrial* const> trials);

/// NaN of none.
double median_of(std::vector<double> numbers);
double distance_between(const geometry::Vector3& a, const geometry::Vector3& b);

}  // namespace stipple::tasks::study
