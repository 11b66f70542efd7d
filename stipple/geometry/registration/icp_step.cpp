#include "stipple/geometry/registration/icp_step.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

using Matrix6d = Eigen::Matrix<double, 6, 6>;
using Vector6d = Eigen::Matrix<double, 6, 1>;

constexpr int64_t kChunk = 4096;  // of ranks: the unit of sums, whatever the threads

struct Sums {
    int64_t within = 0, used = 0;
    double distance_sq = 0;
    RigidMoments moments;   // point: about the center
    double spread[6] = {};  // point: xx, xy, xz, yy, yz, zz of the moved source about the center
    double normal_matrix[21] = {}, right_side[6] = {};  // plane: upper triangle row by row

    void add(const Sums& other) {
        within += other.within;
        used += other.used;
        distance_sq += other.distance_sq;
        moments.add(other.moments);
        for (int i = 0; i < 6; ++i) spread[i] += other.spread[i];
        for (int i = 0; i < 21; ++i) normal_matrix[i] += other.normal_matrix[i];
        for (int i = 0; i < 6; ++i) right_side[i] += other.right_side[i];
    }
};

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// A pair as the steps see it: the moved source about the center, its way to the target, the normal.
struct Pair {
    Vector3 at, gap, normal;
    double distance_sq;
};

Pair pair_of(const StepInput& input, const RigidTransform& present, const Vector3& center, int64_t rank, int32_t slot) {
    const Vector3 moved = present(input.pairs.source(rank));
    Pair pair;
    for (int axis = 0; axis < 3; ++axis) {
        pair.gap[axis] = input.target.at(slot, axis) - moved[axis];
        pair.at[axis] = moved[axis] - center[axis];
    }
    pair.distance_sq = dot(pair.gap, pair.gap);
    pair.normal = {};
    if (!input.normals.empty())
        for (int axis = 0; axis < 3; ++axis) pair.normal[axis] = input.normals[slot][axis];
    return pair;
}

bool is_zero(const Vector3& v) {
    return v[0] == 0 && v[1] == 0 && v[2] == 0;
}

double residual_of(const Pair& pair, IcpMetric metric) {
    return metric == IcpMetric::plane ? dot(pair.normal, pair.gap) : std::sqrt(pair.distance_sq);
}

void add_plane(Sums& sums, const Pair& pair, double residual, double weight) {
    const Vector3 &a = pair.at, &n = pair.normal;
    const double row[6] = {
        a[1] * n[2] - a[2] * n[1], a[2] * n[0] - a[0] * n[2], a[0] * n[1] - a[1] * n[0], n[0], n[1], n[2]};
    int at = 0;
    for (int i = 0; i < 6; ++i) {
        const double weighted = weight * row[i];
        for (int j = i; j < 6; ++j) sums.normal_matrix[at++] += weighted * row[j];
        sums.right_side[i] += weighted * residual;
    }
}

void add_point(Sums& sums, const Pair& pair, double weight) {
    const Vector3& a = pair.at;
    sums.moments.add(a, {a[0] + pair.gap[0], a[1] + pair.gap[1], a[2] + pair.gap[2]}, weight);
    int at = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) sums.spread[at++] += weight * a[i] * a[j];
}

/// The k-th smallest value, k = share * count rounded up; 0 for no values.
float at_share(std::vector<float>& values, double share) {
    if (values.empty()) return 0;
    const auto count = static_cast<double>(values.size());
    const auto k = static_cast<size_t>(std::clamp(std::ceil(share * count), 1.0, count));
    std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(k) - 1, values.end());
    return values[k - 1];
}

/// The squared distance up to which pairs count.
float trimmed_distance_sq(const Pairs& pairs, double trim) {
    if (trim >= 1) return std::numeric_limits<float>::infinity();
    std::vector<float> distances;
    for (int64_t rank = 0; rank < pairs.size(); ++rank)
        if (pairs.slot(rank) >= 0) distances.push_back(pairs.distance_sq(rank));
    return at_share(distances, trim);
}

/// The kernel's c from the median residual: 1.4826 of it is the deviation of a normal distribution, and with these
/// multiples of the deviation each kernel has 95 % of the efficiency of least squares on normal residuals.
double scale_from_median(const StepInput& input, const RigidTransform& present, const Vector3& center,
                         const IcpOptions& options, float farthest_sq) {
    const int64_t n = input.pairs.size();
    std::vector<float> residuals(static_cast<size_t>(n), -1);
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        for (int64_t rank = begin; rank < end; ++rank) {
            const int32_t slot = input.pairs.slot(rank);
            if (slot < 0 || input.pairs.distance_sq(rank) > farthest_sq) continue;
            const Pair pair = pair_of(input, present, center, rank, slot);
            if (options.metric == IcpMetric::plane && is_zero(pair.normal)) continue;
            residuals[rank] = static_cast<float>(std::abs(residual_of(pair, options.metric)));
        }
    });
    residuals.erase(std::remove(residuals.begin(), residuals.end(), -1.0f), residuals.end());
    double multiple = 1;
    switch (options.kernel) {
        case RobustKernel::none: break;
        case RobustKernel::huber: multiple = 1.345; break;
        case RobustKernel::tukey: multiple = 4.685; break;
        case RobustKernel::cauchy: multiple = 2.385; break;
        case RobustKernel::geman_mcclure: multiple = 3.787; break;
    }
    constexpr double kDeviation = 1.4826;
    // Residuals that are 0 for the most part must not make the scale 0.
    const double least = 1e-9 * input.radius + std::numeric_limits<double>::min();
    return std::max(multiple * kDeviation * at_share(residuals, 0.5), least);
}

Matrix6d normal_matrix_of(const Sums& sums, IcpMetric metric) {
    Matrix6d matrix = Matrix6d::Zero();
    if (metric == IcpMetric::plane) {
        int at = 0;
        for (int i = 0; i < 6; ++i)
            for (int j = i; j < 6; ++j) matrix(i, j) = matrix(j, i) = sums.normal_matrix[at++];
        return matrix;
    }
    // J = (-[a]x, 1): the sums of [a]x^T [a]x = |a|^2 1 - a a^T, of [a]x, and of 1.
    const double* s = sums.spread;
    const Vector3& m = sums.moments.from;
    matrix.topLeftCorner<3, 3>() << s[3] + s[5], -s[1], -s[2], -s[1], s[0] + s[5], -s[4], -s[2], -s[4], s[0] + s[3];
    matrix.topRightCorner<3, 3>() << 0, -m[2], m[1], m[2], 0, -m[0], -m[1], m[0], 0;
    matrix.bottomLeftCorner<3, 3>() = matrix.topRightCorner<3, 3>().transpose();
    matrix.bottomRightCorner<3, 3>().diagonal().setConstant(sums.moments.weight);
    return matrix;
}

/// Solves the normal equations with the least motion: turns scaled by the radius, so that all six numbers are lengths.
RigidTransform solve_plane(const Sums& sums, const Eigen::SelfAdjointEigenSolver<Matrix6d>& scaled, double radius,
                           double least, const Vector3& center) {
    Vector6d right;
    for (int i = 0; i < 6; ++i) right[i] = sums.right_side[i] / (i < 3 ? radius : 1);
    Vector6d x = Vector6d::Zero();
    for (int i = 0; i < 6; ++i) {
        const double value = scaled.eigenvalues()[i];
        if (value > least) x += scaled.eigenvectors().col(i) * (scaled.eigenvectors().col(i).dot(right) / value);
    }
    const Vector3 turn = {x[0] / radius, x[1] / radius, x[2] / radius};
    const double angle = std::sqrt(dot(turn, turn));
    RigidTransform motion = angle > 0 ? rotation_about(turn, angle, center) : RigidTransform{};
    for (int axis = 0; axis < 3; ++axis) motion.translation[axis] += x[3 + axis];
    return motion;
}

}  // namespace

double kernel_weight(RobustKernel kernel, double residual, double scale) {
    const double ratio = std::abs(residual) / scale, ratio_sq = ratio * ratio;
    switch (kernel) {
        case RobustKernel::none: break;
        case RobustKernel::huber: return ratio <= 1 ? 1 : 1 / ratio;
        case RobustKernel::tukey: return ratio < 1 ? (1 - ratio_sq) * (1 - ratio_sq) : 0;
        case RobustKernel::cauchy: return 1 / (1 + ratio_sq);
        case RobustKernel::geman_mcclure: return 1 / ((1 + ratio_sq) * (1 + ratio_sq));
    }
    return 1;
}

Step icp_step(const StepInput& input, const RigidTransform& present, const IcpOptions& options) {
    Step step;
    step.center = present(input.mean);
    const float farthest_sq = trimmed_distance_sq(input.pairs, options.trim);
    double scale = options.kernel_scale;
    if (options.kernel != RobustKernel::none && scale == 0)
        scale = scale_from_median(input, present, step.center, options, farthest_sq);
    const int64_t n = input.pairs.size();
    std::vector<Sums> sums(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        Sums& sum = sums[begin / kChunk];
        for (int64_t rank = begin; rank < end; ++rank) {
            const int32_t slot = input.pairs.slot(rank);
            if (slot < 0) continue;
            const Pair pair = pair_of(input, present, step.center, rank, slot);
            ++sum.within;
            sum.distance_sq += pair.distance_sq;
            if (input.pairs.distance_sq(rank) > farthest_sq) continue;
            if (options.metric == IcpMetric::plane && is_zero(pair.normal)) continue;
            const double residual = residual_of(pair, options.metric);
            const double weight = kernel_weight(options.kernel, residual, scale);
            if (weight == 0) continue;
            ++sum.used;
            if (options.metric == IcpMetric::plane)
                add_plane(sum, pair, residual, weight);
            else
                add_point(sum, pair, weight);
        }
    });
    Sums total;
    for (const Sums& sum : sums) total.add(sum);
    step.within = total.within;
    step.used = total.used;
    if (total.within > 0) step.rmse = std::sqrt(total.distance_sq / static_cast<double>(total.within));
    step.is_enough = total.used >= (options.metric == IcpMetric::plane ? 6 : 3);
    if (!step.is_enough) return step;

    const Matrix6d matrix = normal_matrix_of(total, options.metric);
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) step.information[i][j] = matrix(i, j);
    const double radius = input.radius > 0 ? input.radius : 1;
    Vector6d unit;
    unit << Eigen::Vector3d::Constant(1 / radius), Eigen::Vector3d::Ones();
    const Eigen::SelfAdjointEigenSolver<Matrix6d> scaled(unit.asDiagonal() * matrix * unit.asDiagonal());
    constexpr double kDetermined = 1e-6;
    const double least = kDetermined * scaled.eigenvalues()[5];
    for (int i = 0; i < 6; ++i) step.undetermined += scaled.eigenvalues()[i] <= least;
    step.motion = options.metric == IcpMetric::plane ? solve_plane(total, scaled, radius, least, step.center)
                                                     : in_world(best_fit(total.moments), step.center, step.center);
    // Points about their mean turn by radius * angle in the mean of squares, at most.
    const Vector3 after = step.motion(step.center);
    const Vector3 shift = {after[0] - step.center[0], after[1] - step.center[1], after[2] - step.center[2]};
    const double turned = rotation_angle(step.motion) * input.radius;
    step.moved = std::sqrt(dot(shift, shift) + turned * turned);
    return step;
}

}  // namespace stipple::geometry
