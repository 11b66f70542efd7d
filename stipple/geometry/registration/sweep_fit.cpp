#include "stipple/geometry/registration/sweep_fit.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/registration/small_linear.h"

namespace stipple::geometry {
namespace {

// Lengths in cells of the map.
constexpr double kDone = 1e-4;   // a step that moves points in range by less is the last
constexpr double kClose = 0.15;  // from the map: a point lies on it

// What pairs weigh beside those across planes, whose residuals are the scanner's noise: the others have the gaps
// between points in them, and rings on the ground that travel with the sensor. From 0.01 to 0.2 and 0.005 to 0.1 the
// drift of a simulated drive stays between 0.02 and 0.04 %.
constexpr double kPoint = 0.05, kAlong = 0.02;

/// The normal equations of a step and what they are made of.
struct Sums {
    Matrix6 matrix = {};  // upper triangle
    Vector6 right = {};
    double weight = 0, residual_sq = 0;
    int64_t pairs = 0, close = 0, flat = 0, flat_close = 0;

    void add(const Sums& other) {
        for (int i = 0; i < 6; ++i) {
            for (int j = i; j < 6; ++j) matrix[i][j] += other.matrix[i][j];
            right[i] += other.right[i];
        }
        weight += other.weight;
        residual_sq += other.residual_sq;
        pairs += other.pairs;
        close += other.close;
        flat += other.flat;
        flat_close += other.flat_close;
    }
    /// A pair whose residual along `way` is `residual`; `at` is from the center.
    void add_row(const Vector3& at, const Vector3& way, double residual, double w) {
        const double row[6] = {at[1] * way[2] - at[2] * way[1],
                               at[2] * way[0] - at[0] * way[2],
                               at[0] * way[1] - at[1] * way[0],
                               way[0],
                               way[1],
                               way[2]};
        for (int i = 0; i < 6; ++i) {
            const double weighted = w * row[i];
            for (int j = i; j < 6; ++j) matrix[i][j] += weighted * row[j];
            right[i] += weighted * residual;
        }
    }
};

/// The pairs of places under a pose. `scale` is where the kernel of Geman and McClure begins to doubt.
Sums sums_of(const std::vector<Vector3>& places, const SweepMap& map, const RigidTransform& pose, double reach,
             double scale, double close) {
    constexpr int64_t kChunk = 256;
    const auto n = static_cast<int64_t>(places.size());
    std::vector<Sums> sums(static_cast<size_t>((n + kChunk - 1) / kChunk));
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        Sums sum;
        for (int64_t i = begin; i < end; ++i) {
            const Vector3 place = pose(places[i]);
            const SweepMap::Nearest found = map.nearest(place, reach);
            if (!found.is_found) continue;
            ++sum.pairs;
            const Vector3 at = {place[0] - pose.translation[0], place[1] - pose.translation[1],
                                place[2] - pose.translation[2]};
            const Vector3& n3 = found.normal;
            double residual_sq = found.distance_sq, across = 0;
            if (found.is_flat) {
                across = found.gap[0] * n3[0] + found.gap[1] * n3[1] + found.gap[2] * n3[2];
                residual_sq = across * across + kAlong * (found.distance_sq - across * across);
            }
            sum.close += residual_sq < close * close;
            sum.flat += found.is_flat;
            sum.flat_close += found.is_flat && across * across < close * close;
            const double ratio = 1 + residual_sq / (scale * scale), weight = 1 / (ratio * ratio);
            const double every_way = found.is_flat ? kAlong * weight : kPoint * weight;
            sum.add_row(at, {1, 0, 0}, found.gap[0], every_way);
            sum.add_row(at, {0, 1, 0}, found.gap[1], every_way);
            sum.add_row(at, {0, 0, 1}, found.gap[2], every_way);
            if (found.is_flat) sum.add_row(at, n3, across, weight - every_way);
            sum.weight += weight;
            sum.residual_sq += weight * residual_sq;
        }
        sums[begin / kChunk] = sum;
    });
    Sums total;
    for (const Sums& sum : sums) total.add(sum);
    return total;
}

}  // namespace

SweepFit lay_on(const std::vector<Vector3>& places, const SweepMap& map, const RigidTransform& guess, double reach,
                double scale, const OdometryOptions& options) {
    SweepFit fit;
    fit.pose = guess;
    for (; fit.iterations < options.iterations; ++fit.iterations) {
        Sums sums = sums_of(places, map, fit.pose, reach, scale, kClose * options.voxel);
        fit.pairs = sums.pairs;
        fit.close = sums.close;
        fit.flat = sums.flat;
        fit.flat_close = sums.flat_close;
        if (sums.weight > 0) fit.rmse = std::sqrt(sums.residual_sq / sums.weight);
        if (sums.pairs < 6) break;
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < i; ++j) sums.matrix[i][j] = sums.matrix[j][i];
        const Vector6 x = solve_least_motion(sums.matrix, sums.right, options.max_range / 4).x;
        const double turn = std::hypot(x[0], x[1], x[2]), shift = std::hypot(x[3], x[4], x[5]);
        RigidTransform step;
        if (turn > 0) step = rotation_about({x[0], x[1], x[2]}, turn, fit.pose.translation);
        for (int axis = 0; axis < 3; ++axis) step.translation[axis] += x[3 + axis];
        fit.pose = step * fit.pose;
        if (shift + turn * options.max_range < kDone * options.voxel) break;
    }
    // Products of thousands of rotations drift from being one.
    fit.pose.rotation = nearest_orthogonal(fit.pose.rotation);
    return fit;
}

}  // namespace stipple::geometry
