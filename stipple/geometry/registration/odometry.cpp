#include "stipple/geometry/odometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/registration/small_linear.h"
#include "stipple/geometry/registration/sweep_map.h"

namespace stipple::geometry {
namespace {

constexpr double kMiddle = 0.5;  // of a sweep's time: what its pose is for

// Lengths in cells of the map.
constexpr double kThin = 0.25;        // between the points that enter the map
constexpr double kThinner = 1;        // between those that ICP looks at
constexpr double kFirstError = 2;     // of the guess, before anything is known
constexpr double kLaterError = 1;     // at most, when ICP has been there once
constexpr double kLeastMotion = 0.1;  // a guess that was better says nothing: the sensor stood still
constexpr double kFirstStride = 1.5;  // between starts for the second sweep
constexpr double kDone = 1e-4;        // a step that moves points in range by less is the last
constexpr double kClose = 0.15;       // from the map: a point lies on it
constexpr double kJump = 3;           // farther from the guess no vehicle gets

// What pairs weigh beside those across planes, whose residuals are the scanner's noise: the others have the gaps
// between points in them, and rings on the ground that travel with the sensor. From 0.01 to 0.2 and 0.005 to 0.1 the
// drift of a simulated drive stays between 0.02 and 0.04 %.
constexpr double kPoint = 0.05, kAlong = 0.02;

constexpr int kFirstStarts = 3, kFirstSteps = 15;  // starts each way, and steps of ICP from each
constexpr int64_t kFewestPoints = 30;              // that ICP is tried with
// Share of them that must lie on the map. Street, car park and simulated drive: 0.34 to 0.77; other places: to 0.18.
constexpr double kFewestClose = 0.25;
constexpr int kLost = 3;  // sweeps in a row

/// A sweep's points in range, as they were measured, and when: 0 at its beginning, 1 at its end.
struct Points {
    std::vector<Vector3> places;
    std::vector<double> moments;  // empty: not known
};

Points chosen(const Points& points, const std::vector<int32_t>& indices) {
    Points some;
    some.places.reserve(indices.size());
    for (const int32_t i : indices) some.places.push_back(points.places[i]);
    if (points.moments.empty()) return some;
    some.moments.reserve(indices.size());
    for (const int32_t i : indices) some.moments.push_back(points.moments[i]);
    return some;
}

Vector3 cross(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// A share of a motion whose turn and way grow evenly, as a vehicle's on a circle: R^share, V(share a) V(a)^-1 t share,
/// where V is the left Jacobian of the rotation by a. Shares may be negative and above 1.
RigidTransform share_of(const RigidTransform& motion, double share) {
    const std::array<double, 4> q = to_quaternion(motion);
    const double sine = std::hypot(q[1], q[2], q[3]), angle = 2 * std::atan2(sine, q[0]);
    const Vector3& t = motion.translation;
    RigidTransform part;
    if (sine == 0) {
        for (int i = 0; i < 3; ++i) part.translation[i] = share * t[i];
        return part;
    }
    const Vector3 axis = {q[1] / sine, q[2] / sine, q[3] / sine};
    part = rotation_about(axis, share * angle);
    // V^-1 t = t - a/2 (u x t) + (1 - a/2 cot(a/2)) u x (u x t)
    const Vector3 once = cross(axis, t), twice = cross(axis, once);
    const double half = angle / 2, cot = half > 1e-6 ? half / std::tan(half) : 1 - half * half / 3;
    Vector3 way;
    for (int i = 0; i < 3; ++i) way[i] = t[i] - half * once[i] + (1 - cot) * twice[i];
    // V(b) w = w + (1 - cos b)/b (u x w) + (1 - sin b / b) u x (u x w)
    const double b = share * angle;
    const double first = std::abs(b) > 1e-6 ? (1 - std::cos(b)) / b : b / 2;
    const double second = std::abs(b) > 1e-6 ? 1 - std::sin(b) / b : b * b / 6;
    const Vector3 along = cross(axis, way), back = cross(axis, along);
    for (int i = 0; i < 3; ++i) part.translation[i] = share * (way[i] + first * along[i] + second * back[i]);
    return part;
}

/// Where the sensor was at moments of a sweep, seen from its middle: a table, because turns take a sine for each.
class MotionTable {
public:
    explicit MotionTable(const RigidTransform& motion) {
        for (int k = 0; k <= kSteps; ++k) table_[k] = share_of(motion, static_cast<double>(k) / kSteps - kMiddle);
    }
    /// Turns differ so little over a step that between two the straight line serves.
    Vector3 operator()(const Vector3& place, double moment) const {
        const double scaled = std::clamp(moment, 0.0, 1.0) * kSteps;
        const int k = std::min(static_cast<int>(scaled), kSteps - 1);
        const double share = scaled - k;
        const Vector3 a = table_[k](place), b = table_[k + 1](place);
        return {a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), a[2] + share * (b[2] - a[2])};
    }

private:
    static constexpr int kSteps = 64;
    RigidTransform table_[kSteps + 1];
};

std::vector<Vector3> freed(const Points& points, const RigidTransform& motion) {
    if (points.moments.empty()) return points.places;
    const MotionTable table(motion);
    std::vector<Vector3> places(points.places.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = table(points.places[i], points.moments[i]);
    return places;
}

/// Least and greatest of the finite times; equal where there is nothing to free the sweep of.
std::pair<double, double> span_of(std::span<const double> times) {
    double least = std::numeric_limits<double>::infinity(), greatest = -least;
    for (const double time : times) {
        if (!std::isfinite(time)) continue;
        least = std::min(least, time);
        greatest = std::max(greatest, time);
    }
    return {least, greatest};
}

void require_times(const PointCloud& sweep, std::span<const double> times) {
    STIPPLE_REQUIRE(sweep.positions.device() == Device{}, "odometry: the sweep must be on the CPU");
    STIPPLE_REQUIRE(sweep.size() == 0 || sweep.positions.size(1) == 3, "odometry: the sweep must be [n, 3]");
    STIPPLE_REQUIRE(times.empty() || static_cast<int64_t>(times.size()) == sweep.size(),
                    "odometry: {} times for {} points", times.size(), sweep.size());
}

Points points_in_range(const PointCloud& sweep, std::span<const double> times, double nearest, double farthest) {
    const auto [begin, end] = span_of(times);
    Points points;
    points.places.reserve(static_cast<size_t>(sweep.size()));
    const bool is_timed = begin < end;
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const Vector3 place = {sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2)};
        const double range = std::hypot(place[0], place[1], place[2]);
        if (!(range >= nearest && range <= farthest)) continue;
        if (!times.empty() && !std::isfinite(times[i])) continue;
        points.places.push_back(place);
        if (is_timed) points.moments.push_back((times[i] - begin) / (end - begin));
    }
    return points;
}

/// The range that holds a share of the points; 0 without any but at the sensor itself.
double range_of(const PointCloud& sweep, double share) {
    std::vector<double> ranges;
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const double range = std::hypot(sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2));
        if (std::isfinite(range) && range > 0) ranges.push_back(range);
    }
    if (ranges.empty()) return 0;
    const auto k = static_cast<int64_t>(share * static_cast<double>(ranges.size() - 1));
    std::nth_element(ranges.begin(), ranges.begin() + k, ranges.end());
    return ranges[k];
}

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

struct Fit {
    RigidTransform pose;
    int64_t pairs = 0, close = 0, flat = 0, flat_close = 0;
    double rmse = 0;
    int iterations = 0;

    /// Pairs that lie on their planes, and the share they are: of poses the true one has most. Other points would tell
    /// of rings.
    double agreement() const {
        return flat > 0 ? static_cast<double>(flat_close) * static_cast<double>(flat_close) / static_cast<double>(flat)
                        : 0;
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

Fit lay_on(const std::vector<Vector3>& places, const SweepMap& map, const RigidTransform& guess, double reach,
           double scale, const OdometryOptions& options) {
    Fit fit;
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

/// The most that a motion moves a point in range.
double size_of(const RigidTransform& motion, double range) {
    const Vector3& t = motion.translation;
    return std::hypot(t[0], t[1], t[2]) + 2 * range * std::sin(rotation_angle(motion) / 2);
}

}  // namespace

const char* to_string(SweepTrouble trouble) {
    switch (trouble) {
        case SweepTrouble::none: break;
        case SweepTrouble::few_points: return "few_points";
        case SweepTrouble::elsewhere: return "elsewhere";
        case SweepTrouble::jump: return "jump";
    }
    return "none";
}

/// When sweeps began, where their times are those of one clock.
class Clock {
public:
    /// Before a sweep is registered. Times that begin anew with each sweep say nothing of the time between two.
    void tell(std::span<const double> times) {
        const auto [begin, end] = span_of(times);
        const double duration = end - begin, interval = begin - begin_;
        guess_ = lasts_ = 1;
        if (duration > 0 && has_begun_ && interval > duration / 2) {
            if (interval_ > 0) guess_ = std::clamp(interval / interval_, 0.02, 50.0);
            lasts_ = std::min(duration / interval, 1.0);
            interval_ = interval;
        } else {
            interval_ = 0;
        }
        has_begun_ = duration > 0;
        begin_ = begin;
    }
    /// The time since the sweep before, beside that between the two before it.
    double guess() const { return guess_; }
    /// The time of the sweep beside that since the one before.
    double lasts() const { return lasts_; }

private:
    bool has_begun_ = false;
    double begin_ = 0, interval_ = 0;
    double guess_ = 1, lasts_ = 1;
};

struct Odometry::State {
    OdometryOptions options;
    std::optional<SweepMap> map;
    Clock clock;
    RigidTransform pose, motion;  // the motion between the last two poses
    Points first;                 // until the second tells how the sensor moved
    int64_t sweeps = 0;           // that became part of the map
    double errors_sq = 0;         // of guesses, and how many
    int64_t guesses = 0;
    Vector3 cleaned = {};  // where the map was last cut
    int astray = 0;        // sweeps in a row

    void choose_lengths(const PointCloud& sweep);
    double guess_error() const;
    void put(const std::vector<Vector3>& places, const RigidTransform& at);
    RigidTransform first_guess(const Points& few) const;
    Fit place(const Points& few, const RigidTransform& guess, SweepPose& found);
};

void Odometry::State::choose_lengths(const PointCloud& sweep) {
    if (options.max_range == 0) {
        options.max_range = 1.2 * range_of(sweep, 0.99);
        if (options.max_range == 0)
            throw Error(ErrorCode::bad_file, "the first sweep has no points from which a range could follow");
        if (options.min_range == 0) options.min_range = options.max_range / 40;
    }
    if (options.voxel == 0) options.voxel = options.max_range / 100;
    map.emplace(options.voxel);
}

double Odometry::State::guess_error() const {
    return guesses > 0 ? std::sqrt(errors_sq / static_cast<double>(guesses)) : kFirstError * options.voxel;
}

void Odometry::State::put(const std::vector<Vector3>& places, const RigidTransform& at) {
    std::vector<Vector3> moved(places.size());
    for (size_t i = 0; i < places.size(); ++i) moved[i] = at(places[i]);
    map->add(moved);
    double away = 0;
    for (int axis = 0; axis < 3; ++axis) away = std::max(away, std::abs(at.translation[axis] - cleaned[axis]));
    // Not for every sweep: it looks at all cells.
    if (away < options.max_range / 20) return;
    cleaned = at.translation;
    map->forget(at.translation, 1.1 * options.max_range);
}

/// The second sweep's, of which no motion tells: rings on the ground move with the sensor and fit best where they do
/// not move at all, so ICP starts from many places, and the one counts where the planes agree best. Both
/// sweeps are still bent by the motion, and alike.
RigidTransform Odometry::State::first_guess(const Points& few) const {
    OdometryOptions quick = options;
    quick.iterations = std::min(options.iterations, kFirstSteps);
    Fit best;
    const auto look = [&](const Vector3& way) {
        RigidTransform start;
        start.translation = way;
        const Fit fit = lay_on(few.places, *map, start, 3 * options.voxel, options.voxel / 3, quick);
        if (fit.agreement() > best.agreement()) best = fit;
    };
    look({});
    for (int step = 1; step <= kFirstStarts; ++step)
        for (int axis = 0; axis < 3; ++axis)
            for (const double side : {1.0, -1.0}) {
                Vector3 way = {};
                way[axis] = side * step * kFirstStride * options.voxel;
                look(way);
            }
    return best.pose;
}

/// ICP from the guess. Where there are times, once with the motion of the guess and once with the one that was found.
Fit Odometry::State::place(const Points& few, const RigidTransform& guess, SweepPose& found) {
    const double error = guess_error(), later = std::min(error, kLaterError * options.voxel);
    found.reach = 3 * error;
    const RigidTransform back = inverse(pose);
    const auto straight = [&](const RigidTransform& at) { return freed(few, share_of(back * at, clock.lasts())); };
    Fit fit = lay_on(straight(guess), *map, guess, found.reach, error / 3, options);
    found.iterations += fit.iterations;
    if (few.moments.empty() && later == error) return fit;
    fit = lay_on(straight(fit.pose), *map, fit.pose, 3 * later, later / 3, options);
    found.iterations += fit.iterations;
    return fit;
}

Odometry::Odometry(const OdometryOptions& options) : state_(std::make_unique<State>()) {
    for (const double length : {options.max_range, options.min_range, options.voxel})
        STIPPLE_REQUIRE(length >= 0 && std::isfinite(length), "odometry: ranges and voxel must be from 0, got {}",
                        length);
    STIPPLE_REQUIRE(options.max_range == 0 || options.min_range < options.max_range,
                    "odometry: min_range {} is not below max_range {}", options.min_range, options.max_range);
    STIPPLE_REQUIRE(options.iterations >= 1, "odometry: iterations must be from 1, got {}", options.iterations);
    state_->options = options;
}

Odometry::~Odometry() = default;
Odometry::Odometry(Odometry&&) noexcept = default;
Odometry& Odometry::operator=(Odometry&&) noexcept = default;

SweepPose Odometry::add(const PointCloud& sweep, std::span<const double> times) {
    State& s = *state_;
    require_times(sweep, times);
    if (!s.map) s.choose_lengths(sweep);
    if (!s.options.deskew) times = {};
    s.clock.tell(times);
    const Points all = points_in_range(sweep, times, s.options.min_range, s.options.max_range);
    const Points some = chosen(all, first_of_cells(all.places, kThin * s.options.voxel));
    const Points few = chosen(some, first_of_cells(some.places, kThinner * s.options.voxel));

    SweepPose found;
    found.points = static_cast<int64_t>(all.places.size());
    found.used = static_cast<int64_t>(few.places.size());
    if (s.sweeps == 0 && found.used >= kFewestPoints) {
        s.put(some.places, {});
        if (!some.moments.empty()) s.first = some;
        s.sweeps = 1;
        s.cleaned = {};
        return found;
    }
    RigidTransform guess = s.pose * share_of(s.motion, s.clock.guess());
    if (found.used < kFewestPoints) {
        found.trouble = SweepTrouble::few_points;
    } else {
        if (s.sweeps == 1) guess = s.first_guess(few);
        Fit fit = s.place(few, guess, found);
        if (!s.first.places.empty()) {
            // The first sweep was bent by a motion that only the second tells; twice, since it bent that too.
            for (int turn = 0; turn < 2; ++turn) {
                s.map.emplace(s.options.voxel);
                s.put(freed(s.first, share_of(fit.pose, s.clock.lasts())), {});
                fit = s.place(few, fit.pose, found);
            }
            s.first = {};
        }
        found.pairs = fit.pairs;
        found.close = fit.close;
        found.rmse = fit.rmse;
        found.pose = fit.pose;
        found.deviation = size_of(inverse(guess) * fit.pose, s.options.max_range);
        if (static_cast<double>(fit.close) < kFewestClose * static_cast<double>(found.used))
            found.trouble = SweepTrouble::elsewhere;
        else if (s.sweeps > 1 && found.deviation > kJump * s.options.voxel)
            found.trouble = SweepTrouble::jump;
    }
    const bool has_pose = found.trouble == SweepTrouble::none || found.trouble == SweepTrouble::jump;
    if (!has_pose) found.pose = guess;
    s.motion = inverse(s.pose) * found.pose;
    s.pose = found.pose;
    found.motion = share_of(s.motion, s.clock.lasts());
    s.astray = has_pose ? 0 : s.astray + 1;
    found.is_lost = s.astray >= kLost;
    if (!has_pose) return found;
    s.put(freed(some, found.motion), found.pose);
    ++s.sweeps;
    if (found.deviation > kLeastMotion * s.options.voxel) {
        if (s.guesses == 0) {
            const double first = kFirstError * s.options.voxel;
            s.errors_sq = first * first;
            s.guesses = 1;
        }
        s.errors_sq += found.deviation * found.deviation;
        ++s.guesses;
    }
    return found;
}

const OdometryOptions& Odometry::options() const {
    return state_->options;
}

int64_t Odometry::map_points() const {
    return state_->map ? state_->map->points() : 0;
}

PointCloud deskewed(const PointCloud& sweep, std::span<const double> times, const RigidTransform& motion) {
    require_times(sweep, times);
    PointCloud straight = sweep.clone();
    const auto [begin, end] = span_of(times);
    if (!(begin < end)) return straight;
    const MotionTable table(motion);
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const double moment = std::isfinite(times[i]) ? (times[i] - begin) / (end - begin) : kMiddle;
        const Vector3 place = table({sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2)}, moment);
        for (int axis = 0; axis < 3; ++axis)
            straight.positions.data()[3 * i + axis] = static_cast<float>(place[axis] - sweep.origin[axis]);
    }
    return straight;
}

}  // namespace stipple::geometry
