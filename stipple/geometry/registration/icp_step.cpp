#include "stipple/geometry/registration/icp_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/geometry/registration/small_linear.h"

namespace stipple::geometry {
namespace {

using ops::cpu::kLeaf;

constexpr int64_t kChunk = 4096;  // of ranks, whole leaves: the unit of sums, whatever the threads

using Double2 = double __attribute__((vector_size(16)));

/// The upper triangle of a sum of weighted outer products of rows of six, two columns at a time: entries (i, j) with
/// j >= i / 2 * 2.
struct Outer6 {
    Double2 sums[12] = {};

    /// weighted row^T, of which the caller brings the left factor.
    void add(const double* left, const double* right) {
        Double2 columns[3];
        std::memcpy(columns, right, sizeof columns);
        int at = 0;
        for (int i = 0; i < 6; ++i)
            for (int j = i / 2; j < 3; ++j) sums[at++] += left[i] * columns[j];
    }
    void add(const Outer6& other) {
        for (int i = 0; i < 12; ++i) sums[i] += other.sums[i];
    }
    Matrix6 matrix() const {
        Matrix6 full = {};
        int at = 0;
        for (int i = 0; i < 6; ++i)
            for (int j = i / 2; j < 3; ++j, ++at)
                for (int k = 0; k < 2; ++k)
                    if (2 * j + k >= i) full[i][2 * j + k] = full[2 * j + k][i] = sums[at][k];
        return full;
    }
};

struct Sums {
    int64_t within = 0, used = 0;
    double distance_sq = 0;
    RigidMoments moments;   // point: about the center
    double spread[6] = {};  // point, generalised: xx, xy, xz, yy, yz, zz of the moved source about the center
    double weight = 0;      // generalised: and the sums of the weights, and of the weighted places and ways
    double place[3] = {}, way[3] = {}, twist[3] = {};
    Outer6 normal_matrix;  // plane, generalised
    Vector6 right_side = {};

    void add(const Sums& other) {
        within += other.within;
        used += other.used;
        distance_sq += other.distance_sq;
        moments.add(other.moments);
        for (int i = 0; i < 6; ++i) spread[i] += other.spread[i];
        weight += other.weight;
        for (int i = 0; i < 3; ++i) {
            place[i] += other.place[i];
            way[i] += other.way[i];
            twist[i] += other.twist[i];
        }
        normal_matrix.add(other.normal_matrix);
        for (int i = 0; i < 6; ++i) right_side[i] += other.right_side[i];
    }
};

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Covariances are 1 along a surface and this much across [Segal et al. 2009].
constexpr double kThickness = 1e-3;

// Pairs as the steps see them, a leaf of the source at a time, number by number so that the compiler makes vectors of
// the arithmetic: the moved source about the center, its way to the target, the target's normal a and, for the
// generalised metric, the source's normal b. Lanes without a pair have a slot of -1 and a way of 0.
struct Block {
    int32_t slot[kLeaf];
    double at[3][kLeaf], gap[3][kLeaf], normal[3][kLeaf], own[3][kLeaf];
    double distance_sq[kLeaf];
    double residual_sq[kLeaf];
    double along[kLeaf], along_own[kLeaf];  // a . gap, b . gap
    // Generalised: M = 2 kThickness (2 - c (a a^T + b b^T))^-1 with c = 1 - kThickness is
    // kThickness (1 + [a b] K [a b]^T) by Woodbury's identity, K being symmetric.
    double aa[kLeaf], ab[kLeaf], bb[kLeaf];

    bool has_normal(int lane) const { return normal[0][lane] != 0 || normal[1][lane] != 0 || normal[2][lane] != 0; }
    Vector3 lane_of(const double (&columns)[3][kLeaf], int lane) const {
        return {columns[0][lane], columns[1][lane], columns[2][lane]};
    }
};

template <IcpMetric metric>
void fill(Block& block, const StepInput& input, const RigidTransform& present, const Vector3& center, int64_t leaf) {
    const float* from = input.pairs.block(leaf);
    const auto lanes = static_cast<int>(std::min<int64_t>(kLeaf, input.pairs.size() - leaf * kLeaf));
    double x[3][kLeaf];
    for (int axis = 0; axis < 3; ++axis)  // the last leaf is filled up with infinities
        for (int lane = 0; lane < kLeaf; ++lane) x[axis][lane] = lane < lanes ? from[axis * kLeaf + lane] : 0;
    for (int lane = 0; lane < kLeaf; ++lane)
        block.slot[lane] = lane < lanes ? input.pairs.slot(leaf * kLeaf + lane) : -1;
    double to[3][kLeaf];
    for (int lane = 0; lane < kLeaf; ++lane) {
        static constexpr float kNowhere[3 * kLeaf] = {};
        const int32_t slot = block.slot[lane];
        const float* place = slot >= 0 ? input.target.at(slot) : kNowhere;
        for (int axis = 0; axis < 3; ++axis) to[axis][lane] = place[axis * kLeaf];
        if constexpr (metric != IcpMetric::point) {
            const float* normal = slot >= 0 ? input.normals[slot].data() : kNowhere;
            for (int axis = 0; axis < 3; ++axis) block.normal[axis][lane] = normal[axis];
        }
        if constexpr (metric == IcpMetric::generalised)
            for (int axis = 0; axis < 3; ++axis)
                block.own[axis][lane] = lane < lanes ? input.source_normals[leaf * kLeaf + lane][axis] : 0;
    }
    const auto& r = present.rotation;
    for (int axis = 0; axis < 3; ++axis)
        for (int lane = 0; lane < kLeaf; ++lane) {
            const double moved =
                r[axis][0] * x[0][lane] + r[axis][1] * x[1][lane] + r[axis][2] * x[2][lane] + present.translation[axis];
            block.gap[axis][lane] = block.slot[lane] >= 0 ? to[axis][lane] - moved : 0;
            block.at[axis][lane] = moved - center[axis];
        }
    const auto &g = block.gap, &a = block.normal;
    for (int lane = 0; lane < kLeaf; ++lane) {
        block.distance_sq[lane] = g[0][lane] * g[0][lane] + g[1][lane] * g[1][lane] + g[2][lane] * g[2][lane];
        block.residual_sq[lane] = block.distance_sq[lane];
    }
    if constexpr (metric == IcpMetric::point) return;
    for (int lane = 0; lane < kLeaf; ++lane) {
        block.along[lane] = a[0][lane] * g[0][lane] + a[1][lane] * g[1][lane] + a[2][lane] * g[2][lane];
        block.residual_sq[lane] = block.along[lane] * block.along[lane];
    }
    if constexpr (metric == IcpMetric::plane) return;
    for (int lane = 0; lane < kLeaf; ++lane) {
        const double n[3] = {block.own[0][lane], block.own[1][lane], block.own[2][lane]};
        for (int axis = 0; axis < 3; ++axis)
            block.own[axis][lane] = r[axis][0] * n[0] + r[axis][1] * n[1] + r[axis][2] * n[2];
    }
    const auto& b = block.own;
    for (int lane = 0; lane < kLeaf; ++lane) {
        block.along_own[lane] = b[0][lane] * g[0][lane] + b[1][lane] * g[1][lane] + b[2][lane] * g[2][lane];
        constexpr double kTwice = 2 / (1 - kThickness);
        const double both = a[0][lane] * b[0][lane] + a[1][lane] * b[1][lane] + a[2][lane] * b[2][lane];
        const double first = kTwice - (a[0][lane] * a[0][lane] + a[1][lane] * a[1][lane] + a[2][lane] * a[2][lane]);
        const double second = kTwice - (b[0][lane] * b[0][lane] + b[1][lane] * b[1][lane] + b[2][lane] * b[2][lane]);
        const double scale = 1 / (first * second - both * both);
        const double aa = scale * second, ab = scale * both, bb = scale * first;
        const double one = block.along[lane], two = block.along_own[lane];
        const double sum = block.distance_sq[lane] + aa * one * one + 2 * ab * one * two + bb * two * two;
        block.residual_sq[lane] = kThickness * sum;
        block.aa[lane] = aa;
        block.ab[lane] = ab;
        block.bb[lane] = bb;
    }
}

/// The row of J^T n for a pair, J = (-[at]x, 1).
inline void row_of(const Vector3& a, const Vector3& n, double* row) {
    row[0] = a[1] * n[2] - a[2] * n[1];
    row[1] = a[2] * n[0] - a[0] * n[2];
    row[2] = a[0] * n[1] - a[1] * n[0];
    for (int i = 0; i < 3; ++i) row[3 + i] = n[i];
}

inline void add_spread(Sums& sums, const Vector3& a, double weight) {
    int at = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) sums.spread[at++] += weight * a[i] * a[j];
}

inline void add_plane(Sums& sums, const Block& block, int lane, double weight) {
    double row[6], weighted[6];
    row_of(block.lane_of(block.at, lane), block.lane_of(block.normal, lane), row);
    for (int i = 0; i < 6; ++i) {
        weighted[i] = weight * row[i];
        sums.right_side[i] += weighted[i] * block.along[lane];
    }
    sums.normal_matrix.add(weighted, row);
}

/// J^T M J and J^T M gap: the part of the unit matrix by moments, see equations_of(), that of the normals here.
inline void add_generalised(Sums& sums, const Block& block, int lane, double weight) {
    weight *= kThickness;
    const Vector3 a = block.lane_of(block.at, lane), g = block.lane_of(block.gap, lane);
    sums.weight += weight;
    for (int i = 0; i < 3; ++i) {
        sums.place[i] += weight * a[i];
        sums.way[i] += weight * g[i];
        sums.twist[i] += weight * (a[(i + 1) % 3] * g[(i + 2) % 3] - a[(i + 2) % 3] * g[(i + 1) % 3]);
    }
    add_spread(sums, a, weight);
    double one[6], two[6], left_one[6], left_two[6];
    row_of(a, block.lane_of(block.normal, lane), one);
    row_of(a, block.lane_of(block.own, lane), two);
    const double aa = weight * block.aa[lane], ab = weight * block.ab[lane], bb = weight * block.bb[lane];
    const double to_one = aa * block.along[lane] + ab * block.along_own[lane];
    const double to_two = ab * block.along[lane] + bb * block.along_own[lane];
    for (int i = 0; i < 6; ++i) {
        left_one[i] = aa * one[i] + ab * two[i];
        left_two[i] = ab * one[i] + bb * two[i];
        sums.right_side[i] += to_one * one[i] + to_two * two[i];
    }
    sums.normal_matrix.add(left_one, one);
    sums.normal_matrix.add(left_two, two);
}

inline void add_point(Sums& sums, const Block& block, int lane, double weight) {
    const Vector3 a = block.lane_of(block.at, lane), g = block.lane_of(block.gap, lane);
    sums.moments.add(a, {a[0] + g[0], a[1] + g[1], a[2] + g[2]}, weight);
    add_spread(sums, a, weight);
}

/// kernel_weight() by squares.
inline double weight_of(RobustKernel kernel, double residual_sq, double inverse_scale_sq) {
    const double ratio_sq = residual_sq * inverse_scale_sq;
    switch (kernel) {
        case RobustKernel::none: break;
        case RobustKernel::huber: return ratio_sq <= 1 ? 1 : 1 / std::sqrt(ratio_sq);
        case RobustKernel::tukey: return ratio_sq < 1 ? (1 - ratio_sq) * (1 - ratio_sq) : 0;
        case RobustKernel::cauchy: return 1 / (1 + ratio_sq);
        case RobustKernel::geman_mcclure: return 1 / ((1 + ratio_sq) * (1 + ratio_sq));
    }
    return 1;
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
template <IcpMetric metric>
double scale_from_median(const StepInput& input, const RigidTransform& present, const Vector3& center,
                         const IcpOptions& options, float farthest_sq) {
    // Of some two thousand residuals, evenly spread: right to 3 %, which the weights do not notice.
    constexpr int64_t kSome = 2048;
    const int64_t leaves = (input.pairs.size() + kLeaf - 1) / kLeaf;
    const int64_t stride = (leaves * kLeaf + kSome - 1) / kSome;
    std::vector<float> residuals;
    residuals.reserve(kSome);
    Block block;
    for (int64_t leaf = 0; leaf < leaves; leaf += stride) {
        fill<metric>(block, input, present, center, leaf);
        for (int lane = 0; lane < kLeaf; ++lane) {
            if (block.slot[lane] < 0 || input.pairs.distance_sq(leaf * kLeaf + lane) > farthest_sq) continue;
            if (metric != IcpMetric::point && !block.has_normal(lane)) continue;
            residuals.push_back(static_cast<float>(std::sqrt(std::max(block.residual_sq[lane], 0.0))));
        }
    }
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

/// The sums of w J^T J for J = (-[a]x, 1): of [a]x^T [a]x = |a|^2 1 - a a^T, of [a]x, and of 1.
Matrix6 unit_matrix_of(const double* s, const double* m, double weight) {
    Matrix6 matrix = {};
    const Matrix3 turns = {{{s[3] + s[5], -s[1], -s[2]}, {-s[1], s[0] + s[5], -s[4]}, {-s[2], -s[4], s[0] + s[3]}}};
    const Matrix3 mixed = {{{0, -m[2], m[1]}, {m[2], 0, -m[0]}, {-m[1], m[0], 0}}};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            matrix[i][j] = turns[i][j];
            matrix[i][3 + j] = matrix[3 + j][i] = mixed[i][j];
        }
        matrix[3 + i][3 + i] = weight;
    }
    return matrix;
}

/// The normal equations of all sums.
struct Equations {
    Matrix6 matrix = {};
    Vector6 right = {};
};

Equations equations_of(const Sums& sums, IcpMetric metric) {
    if (metric == IcpMetric::point)
        return {unit_matrix_of(sums.spread, sums.moments.from.data(), sums.moments.weight), {}};
    Equations equations = {sums.normal_matrix.matrix(), sums.right_side};
    if (metric == IcpMetric::plane) return equations;
    const Matrix6 units = unit_matrix_of(sums.spread, sums.place, sums.weight);
    for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) equations.matrix[i][j] += units[i][j];
        equations.right[i] += i < 3 ? sums.twist[i] : sums.way[i - 3];
    }
    return equations;
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
template <IcpMetric metric>
Sums sums_of(const StepInput& input, const RigidTransform& present, const Vector3& center, const IcpOptions& options) {
    const float farthest_sq = trimmed_distance_sq(input.pairs, options.trim);
    double scale = options.kernel_scale;
    if (options.kernel != RobustKernel::none && scale == 0)
        scale = scale_from_median<metric>(input, present, center, options, farthest_sq);
    const double inverse_scale_sq = scale > 0 ? 1 / (scale * scale) : 0;
    const int64_t n = input.pairs.size();
    std::vector<Sums> sums(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        Sums sum;
        Block block;
        for (int64_t leaf = begin / kLeaf; leaf * kLeaf < end; ++leaf) {
            fill<metric>(block, input, present, center, leaf);
            for (int lane = 0; lane < kLeaf; ++lane) {
                if (block.slot[lane] < 0) continue;
                ++sum.within;
                sum.distance_sq += block.distance_sq[lane];
                if (input.pairs.distance_sq(leaf * kLeaf + lane) > farthest_sq) continue;
                if (metric != IcpMetric::point && !block.has_normal(lane)) continue;
                const double weight = weight_of(options.kernel, block.residual_sq[lane], inverse_scale_sq);
                if (weight == 0) continue;
                ++sum.used;
                switch (metric) {
                    case IcpMetric::point: add_point(sum, block, lane, weight); break;
                    case IcpMetric::plane: add_plane(sum, block, lane, weight); break;
                    case IcpMetric::generalised: add_generalised(sum, block, lane, weight); break;
                }
            }
        }
        sums[begin / kChunk] = sum;
    });
    Sums total;
    for (const Sums& sum : sums) total.add(sum);
    return total;
}

Sums sums_of(const StepInput& input, const RigidTransform& present, const Vector3& center, const IcpOptions& options) {
    switch (options.metric) {
        case IcpMetric::point: return sums_of<IcpMetric::point>(input, present, center, options);
        case IcpMetric::plane: return sums_of<IcpMetric::plane>(input, present, center, options);
        case IcpMetric::generalised: break;
    }
    return sums_of<IcpMetric::generalised>(input, present, center, options);
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

    const Equations equations = equations_of(total, options.metric);
    step.information = equations.matrix;
    const double radius = input.radius > 0 ? input.radius : 1;
    LeastMotion solved = solve_least_motion(equations.matrix, equations.right, radius);
    if (options.metric == IcpMetric::generalised) {
        // The covariances' thickness ties points to points a little, so that a plane seems to determine how far it
        // slides. What the normals leave open is open.
        const LeastMotion across = solve_least_motion(total.normal_matrix.matrix(), total.right_side, radius);
        if (across.undetermined > 0) solved = across;
    }
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

IcpEvidence evidence_of(const StepInput& input, const RigidTransform& present, double cell, double reach) {
    IcpEvidence evidence;
    const double near = input.normals.empty() ? 2 * cell : cell / 2;
    evidence.near = near;
    evidence.reach = reach;
    evidence.source_points = input.pairs.size();
    evidence.target_points = input.target.size();
    const double window = std::min(4 * near, reach);
    double along_sq = 0, all_sq = 0;
    Block block;
    for (int64_t leaf = 0; leaf * kLeaf < input.pairs.size(); ++leaf) {
        if (input.normals.empty())
            fill<IcpMetric::point>(block, input, present, {}, leaf);
        else
            fill<IcpMetric::plane>(block, input, present, {}, leaf);
        for (int lane = 0; lane < kLeaf; ++lane) {
            if (block.slot[lane] < 0) continue;
            double distance_sq = block.distance_sq[lane];
            if (!input.normals.empty()) {
                // From the disc: samples of one surface lie beside each other, whatever their distance.
                const double across_sq = block.residual_sq[lane];
                const double beside = std::sqrt(std::max(distance_sq - across_sq, 0.0)) - cell;
                along_sq += across_sq;
                distance_sq = across_sq + (beside > 0 ? beside * beside : 0);
            }
            evidence.close += distance_sq <= near * near;
            evidence.around += distance_sq <= window * window;
            all_sq += block.distance_sq[lane];
        }
    }
    if (all_sq > 0) evidence.across = along_sq / all_sq;
    return evidence;
}

}  // namespace stipple::geometry
