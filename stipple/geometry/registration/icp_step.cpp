#include "stipple/geometry/registration/icp_step.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/registration/small_linear.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kChunk = 4096;  // of ranks: the unit of sums, whatever the threads

struct Sums {
    int64_t within = 0, used = 0;
    double distance_sq = 0;
    RigidMoments moments;           // point: about the center
    double spread[6] = {};          // point: xx, xy, xz, yy, yz, zz of the moved source about the center
    double normal_matrix[21] = {};  // plane, generalised: upper triangle row by row
    Vector6 right_side = {};

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

// A pair as the steps see it: the moved source about the center, its way to the target, the target's normal, and for
// the generalised metric the weight of a way in each direction.
struct Pair {
    Vector3 at, gap, normal;
    double distance_sq;
    Matrix3 measure;
};

/// The inverse of the sum of both points' covariances, 1 along a surface and kThickness across, times 2 kThickness: 1
/// across two parallel surfaces [Segal et al. 2009]. A normal of zero is a covariance of 1 every way.
Matrix3 plane_to_plane(const Vector3& a, const Vector3& b) {
    constexpr double kThickness = 1e-3;
    const auto sum = [&](int i, int j) {
        return (i == j ? 2.0 : 0.0) - (1 - kThickness) * (a[i] * a[j] + b[i] * b[j]);
    };
    const double xx = sum(0, 0), xy = sum(0, 1), xz = sum(0, 2), yy = sum(1, 1), yz = sum(1, 2), zz = sum(2, 2);
    const double cx = yy * zz - yz * yz, cy = xz * yz - xy * zz, cz = xy * yz - xz * yy;
    const double scale = 2 * kThickness / (xx * cx + xy * cy + xz * cz);  // of at least 2 kThickness: no zero
    return {{{scale * cx, scale * cy, scale * cz},
             {scale * cy, scale * (xx * zz - xz * xz), scale * (xy * xz - xx * yz)},
             {scale * cz, scale * (xy * xz - xx * yz), scale * (xx * yy - xy * xy)}}};
}

Pair pair_of(const StepInput& input, const RigidTransform& present, const Vector3& center, int64_t rank, int32_t slot) {
    const Vector3 moved = present(input.pairs.source(rank));
    Pair pair;
    for (int axis = 0; axis < 3; ++axis) {
        pair.gap[axis] = input.target.at(slot, axis) - moved[axis];
        pair.at[axis] = moved[axis] - center[axis];
    }
    pair.distance_sq = dot(pair.gap, pair.gap);
    pair.normal = {};
    pair.measure = {};
    if (!input.normals.empty())
        for (int axis = 0; axis < 3; ++axis) pair.normal[axis] = input.normals[slot][axis];
    if (!input.source_normals.empty()) {
        const std::array<float, 3>& own = input.source_normals[rank];
        pair.measure = plane_to_plane(pair.normal, present.rotate({own[0], own[1], own[2]}));
    }
    return pair;
}

bool is_zero(const Vector3& v) {
    return v[0] == 0 && v[1] == 0 && v[2] == 0;
}

double residual_of(const Pair& pair, IcpMetric metric) {
    switch (metric) {
        case IcpMetric::point: break;
        case IcpMetric::plane: return dot(pair.normal, pair.gap);
        case IcpMetric::generalised: {
            const Vector3 &g = pair.gap,
                          m = {dot(pair.measure[0], g), dot(pair.measure[1], g), dot(pair.measure[2], g)};
            return std::sqrt(std::max(dot(g, m), 0.0));
        }
    }
    return std::sqrt(pair.distance_sq);
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

void add_generalised(Sums& sums, const Pair& pair, double weight) {
    const Vector3& a = pair.at;
    // J = (-[a]x, 1), by columns; the three numbers of a column are directions.
    const Vector3 columns[6] = {{0, -a[2], a[1]}, {a[2], 0, -a[0]}, {-a[1], a[0], 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    int at = 0;
    for (int i = 0; i < 6; ++i) {
        const Vector3 &c = columns[i], m = {weight * dot(pair.measure[0], c), weight * dot(pair.measure[1], c),
                                            weight * dot(pair.measure[2], c)};
        for (int j = i; j < 6; ++j) sums.normal_matrix[at++] += dot(m, columns[j]);
        sums.right_side[i] += dot(m, pair.gap);
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
            if (options.metric != IcpMetric::point && is_zero(pair.normal)) continue;
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

Matrix6 normal_matrix_of(const Sums& sums, IcpMetric metric) {
    Matrix6 matrix = {};
    if (metric != IcpMetric::point) {
        int at = 0;
        for (int i = 0; i < 6; ++i)
            for (int j = i; j < 6; ++j) matrix[i][j] = matrix[j][i] = sums.normal_matrix[at++];
        return matrix;
    }
    // J = (-[a]x, 1): the sums of [a]x^T [a]x = |a|^2 1 - a a^T, of [a]x, and of 1.
    const double* s = sums.spread;
    const Vector3& m = sums.moments.from;
    const Matrix3 turns = {{{s[3] + s[5], -s[1], -s[2]}, {-s[1], s[0] + s[5], -s[4]}, {-s[2], -s[4], s[0] + s[3]}}};
    const Matrix3 mixed = {{{0, -m[2], m[1]}, {m[2], 0, -m[0]}, {-m[1], m[0], 0}}};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            matrix[i][j] = turns[i][j];
            matrix[i][3 + j] = matrix[3 + j][i] = mixed[i][j];
        }
        matrix[3 + i][3 + i] = sums.moments.weight;
    }
    return matrix;
}

/// A turn about the center, then a shift.
RigidTransform motion_of(const Vector6& x, const Vector3& center) {
    const Vector3 turn = {x[0], x[1], x[2]};
    const double angle = std::sqrt(dot(turn, turn));
    RigidTransform motion = angle > 0 ? rotation_about(turn, angle, center) : RigidTransform{};
    for (int axis = 0; axis < 3; ++axis) motion.translation[axis] += x[3 + axis];
    return motion;
}

/// Sums over all pairs that count.
Sums sums_of(const StepInput& input, const RigidTransform& present, const Vector3& center, const IcpOptions& options) {
    const float farthest_sq = trimmed_distance_sq(input.pairs, options.trim);
    double scale = options.kernel_scale;
    if (options.kernel != RobustKernel::none && scale == 0)
        scale = scale_from_median(input, present, center, options, farthest_sq);
    const int64_t n = input.pairs.size();
    std::vector<Sums> sums(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        Sums& sum = sums[begin / kChunk];
        for (int64_t rank = begin; rank < end; ++rank) {
            const int32_t slot = input.pairs.slot(rank);
            if (slot < 0) continue;
            const Pair pair = pair_of(input, present, center, rank, slot);
            ++sum.within;
            sum.distance_sq += pair.distance_sq;
            if (input.pairs.distance_sq(rank) > farthest_sq) continue;
            if (options.metric != IcpMetric::point && is_zero(pair.normal)) continue;
            const double residual = residual_of(pair, options.metric);
            const double weight = kernel_weight(options.kernel, residual, scale);
            if (weight == 0) continue;
            ++sum.used;
            switch (options.metric) {
                case IcpMetric::point: add_point(sum, pair, weight); break;
                case IcpMetric::plane: add_plane(sum, pair, residual, weight); break;
                case IcpMetric::generalised: add_generalised(sum, pair, weight); break;
            }
        }
    });
    Sums total;
    for (const Sums& sum : sums) total.add(sum);
    return total;
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
    const Sums total = sums_of(input, present, step.center, options);
    step.within = total.within;
    step.used = total.used;
    if (total.within > 0) step.rmse = std::sqrt(total.distance_sq / static_cast<double>(total.within));
    step.is_enough = total.used >= (options.metric == IcpMetric::point ? 3 : 6);
    if (!step.is_enough) return step;

    step.information = normal_matrix_of(total, options.metric);
    const LeastMotion solved =
        solve_least_motion(step.information, total.right_side, input.radius > 0 ? input.radius : 1);
    step.undetermined = solved.undetermined;
    step.motion = options.metric == IcpMetric::point ? in_world(best_fit(total.moments), step.center, step.center)
                                                     : motion_of(solved.x, step.center);
    // Points about their mean turn by radius * angle in the mean of squares, at most.
    const Vector3 after = step.motion(step.center);
    const Vector3 shift = {after[0] - step.center[0], after[1] - step.center[1], after[2] - step.center[2]};
    const double turned = rotation_angle(step.motion) * input.radius;
    step.moved = std::sqrt(dot(shift, shift) + turned * turned);
    return step;
}

IcpEvidence evidence_of(const StepInput& input, const RigidTransform& present, double near, double reach) {
    IcpEvidence evidence;
    evidence.near = near;
    evidence.reach = reach;
    evidence.source_points = input.pairs.size();
    evidence.target_points = input.target.size();
    const double window = std::min(4 * near, reach);
    double along_sq = 0, all_sq = 0;
    for (int64_t rank = 0; rank < input.pairs.size(); ++rank) {
        const int32_t slot = input.pairs.slot(rank);
        if (slot < 0) continue;
        const Pair pair = pair_of(input, present, {}, rank, slot);
        evidence.close += pair.distance_sq <= near * near;
        evidence.around += pair.distance_sq <= window * window;
        const double along = dot(pair.normal, pair.gap);
        along_sq += along * along;
        all_sq += pair.distance_sq;
    }
    if (all_sq > 0) evidence.across = along_sq / all_sq;
    return evidence;
}

}  // namespace stipple::geometry
