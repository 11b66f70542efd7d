#include "stipple/tasks/registration_study/trials.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "stipple/core/rng.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks::study {
namespace {

/// RMS distance between both places of the source's points that lie near the target in the true pose.
double overlap_rmse(const PointCloud& source, const PointCloud& target, const geometry::RigidTransform& truth,
                    const geometry::RigidTransform& found, double near) {
    const int64_t n = source.size();
    Array<float, 2> moved({n, 3}), distances_sq({n, 1});
    Array<int32_t, 2> nearest({n, 1});
    for (int64_t i = 0; i < n; ++i) {
        const geometry::Vector3 place = truth({source.world(i, 0), source.world(i, 1), source.world(i, 2)});
        for (int axis = 0; axis < 3; ++axis)
            moved.data()[3 * i + axis] = static_cast<float>(place[axis] - target.origin[axis]);
    }
    const ops::PointIndex index{ops::Clouds(target.positions.view())};
    ops::knn(index, moved.view(), nearest.view(), distances_sq.view());
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (!(distances_sq.data()[i] < near * near)) continue;
        const geometry::Vector3 place = {source.world(i, 0), source.world(i, 1), source.world(i, 2)};
        const geometry::Vector3 a = truth(place), b = found(place);
        for (int axis = 0; axis < 3; ++axis) sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
        ++count;
    }
    return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : std::numeric_limits<double>::quiet_NaN();
}

constexpr double kNearDegrees = 10, kNearExtent = 0.1, kOtherDegrees = 30, kOtherExtent = 0.5;

struct Box3 {
    geometry::Vector3 middle = {};
    double extent = 0;  // the diagonal
};

Box3 box_of(const PointCloud& cloud) {
    const Bounds bounds = bounds_of(cloud);
    Box3 box;
    for (int axis = 0; axis < 3; ++axis) box.middle[axis] = (bounds.min[axis] + bounds.max[axis]) / 2;
    box.extent =
        std::hypot(bounds.max[0] - bounds.min[0], bounds.max[1] - bounds.min[1], bounds.max[2] - bounds.min[2]);
    return box;
}

}  // namespace

double median_of(std::vector<double> numbers) {
    if (numbers.empty()) return std::numeric_limits<double>::quiet_NaN();
    std::sort(numbers.begin(), numbers.end());
    const size_t half = numbers.size() / 2;
    return numbers.size() % 2 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

double distance_between(const geometry::Vector3& a, const geometry::Vector3& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

geometry::RigidTransform start_near(const PointCloud& source, const geometry::RigidTransform& truth, uint64_t seed) {
    const Rng random(seed, 62);
    const Box3 box = box_of(source);
    const geometry::Vector3 axis = {random.normal(0), random.normal(1), random.normal(2)};
    geometry::RigidTransform off =
        geometry::rotation_about(axis, kNearDegrees * M_PI / 180 * random.uniform(3), truth(box.middle));
    const geometry::Vector3 way = {random.normal(4), random.normal(5), random.normal(6)};
    const double length = kNearExtent * box.extent * random.uniform(7) / std::hypot(way[0], way[1], way[2]);
    for (int i = 0; i < 3; ++i) off.translation[i] += length * way[i];
    return off * truth;
}

geometry::RigidTransform start_elsewhere(const PointCloud& source, const PointCloud& target,
                                         const geometry::RigidTransform& truth, uint64_t seed) {
    const Box3 from = box_of(source);
    const Bounds to = bounds_of(target);
    for (uint64_t round = 0;; ++round) {
        const Rng random(seed, 1000 + round);
        geometry::RigidTransform start =
            geometry::from_quaternion({random.normal(0), random.normal(1), random.normal(2), random.normal(3)});
        const geometry::Vector3 turned = start(from.middle);
        for (int i = 0; i < 3; ++i)
            start.translation[i] =
                to.min[i] + (to.max[i] - to.min[i]) * random.uniform(4 + static_cast<uint64_t>(i)) - turned[i];
        const double degrees = geometry::rotation_angle(geometry::inverse(truth) * start) * 180 / M_PI;
        if (degrees > kOtherDegrees ||
            distance_between(start(from.middle), truth(from.middle)) > kOtherExtent * from.extent)
            return start;
    }
}

PairTrial try_pair(const PointCloud& source, const PointCloud& target, const geometry::RigidTransform& truth,
                   const RegisterOptions& options, const PoseRules& rules) {
    using Clock = std::chrono::steady_clock;
    PairTrial trial;
    const auto begin = Clock::now();
    trial.registration = register_clouds(source, target, options);
    trial.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const geometry::RigidTransform& found = trial.registration.found.transform;
    const PoseError error = pose_error(found, truth, source);
    trial.degrees = error.degrees;
    trial.translation = error.translation;
    trial.rmse = overlap_rmse(source, target, truth, found, rules.near);
    trial.is_right = trial.degrees < rules.degrees && trial.translation < rules.distance;
    trial.is_right_by_rmse = trial.rmse < rules.rmse;
    return trial;
}

std::array<double, std::size(kEvidenceColumns)> evidence_columns_of(const Registration& registration) {
    const geometry::PoseEvidence& e = registration.trust.evidence;
    const geometry::IcpEvidence& icp = registration.found.evidence;
    const double closeness = icp.around > 0 ? static_cast<double>(icp.close) / static_cast<double>(icp.around) : 0;
    return {registration.trust.confidence,
            e.overlap(),
            std::min(e.forth.overlap(), e.back.overlap()),
            e.close,
            e.wide,
            e.even,
            e.stiffness,
            e.residual,
            e.other,
            e.spread,
            e.inliers,
            e.rival,
            e.matches,
            e.through,
            static_cast<double>(e.forth.support),
            closeness,
            static_cast<double>(registration.poses),
            static_cast<double>(std::min(e.forth.points, e.back.points))};
}

std::array<ReliabilityBin, 10> reliability_of(std::span<const PairTrial* const> trials) {
    std::array<ReliabilityBin, 10> bins = {};
    for (const PairTrial* trial : trials) {
        const double confidence = trial->registration.trust.confidence;
        ReliabilityBin& bin = bins[static_cast<size_t>(std::clamp(confidence * 10, 0.0, 9.0))];
        bin.confidence += confidence;
        bin.right += trial->is_right;
        ++bin.trials;
    }
    for (ReliabilityBin& bin : bins)
        if (bin.trials > 0) bin.confidence /= static_cast<double>(bin.trials);
    return bins;
}

TrialSummary summarise(std::span<const PairTrial* const> trials) {
    TrialSummary summary;
    std::vector<double> degrees, translations, seconds;
    for (const PairTrial* trial : trials) {
        ++summary.pairs;
        summary.right += trial->is_right;
        summary.right_by_rmse += trial->is_right_by_rmse;
        const auto state = static_cast<size_t>(trial->registration.verdict.state);
        ++(trial->is_right ? summary.right_by_state : summary.wrong_by_state)[state];
        seconds.push_back(trial->seconds);
        if (!trial->is_right) continue;
        degrees.push_back(trial->degrees);
        translations.push_back(trial->translation);
    }
    summary.degrees = median_of(degrees);
    summary.translation = median_of(translations);
    summary.seconds = median_of(seconds);
    for (const ReliabilityBin& bin : reliability_of(trials))
        if (bin.trials > 0) {
            const auto count = static_cast<double>(bin.trials);
            summary.calibration_error += std::abs(bin.confidence - static_cast<double>(bin.right) / count) * count /
                                         static_cast<double>(summary.pairs);
        }
    return summary;
}

}  // namespace stipple::tasks::study
