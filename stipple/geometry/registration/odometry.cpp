#include "stipple/geometry/odometry.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "stipple/core/error.h"
#include "stipple/geometry/registration/sweep_fit.h"
#include "stipple/geometry/registration/sweep_map.h"
#include "stipple/geometry/registration/sweep_points.h"

namespace stipple::geometry {
namespace {

// Lengths in cells of the map.
constexpr double kThin = 0.25;        // between the points that enter the map
constexpr double kThinner = 1;        // between those that ICP looks at
constexpr double kFirstError = 2;     // of the guess, before anything is known
constexpr double kLaterError = 1;     // at most, when ICP has been there once
constexpr double kLeastMotion = 0.1;  // a guess that was better says nothing: the sensor stood still
constexpr double kFirstStride = 1.5;  // between starts for the second sweep
constexpr double kJump = 3;           // farther from the guess no vehicle gets

constexpr int kFirstStarts = 3, kFirstSteps = 15;  // starts each way, and steps of ICP from each
constexpr int64_t kFewestPoints = 30;              // that ICP is tried with
// Share of them that must lie on the map. Two real streets and simulated drives: 0.34 to 0.77; other places: to 0.18.
constexpr double kFewestClose = 0.25;
constexpr int kLost = 3;  // sweeps in a row

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

struct Odometry::State {
    OdometryOptions options;
    std::optional<SweepMap> map;
    SweepClock clock;
    RigidTransform pose, motion;  // the motion between the last two poses
    SweepPoints first;            // until the second tells how the sensor moved
    int64_t sweeps = 0;           // that became part of the map
    double errors_sq = 0;         // of guesses, and how many
    int64_t guesses = 0;
    Vector3 cleaned = {};  // where the map was last cut
    int astray = 0;        // sweeps in a row

    void choose_lengths(const PointCloud& sweep);
    double guess_error() const;
    void put(const std::vector<Vector3>& places, const RigidTransform& at);
    RigidTransform first_guess(const SweepPoints& few) const;
    SweepFit place(const SweepPoints& few, const RigidTransform& guess, SweepPose& found);
};

void Odometry::State::choose_lengths(const PointCloud& sweep) {
    if (options.max_range == 0) {
        options.max_range = 1.2 * range_of(sweep, 0.99);
        if (options.max_range == 0)
            throw Error(ErrorCode::bad_file, "the first sweep has no points from which a range could follow");
    }
    if (options.min_range == 0) options.min_range = options.max_range / 40;
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
RigidTransform Odometry::State::first_guess(const SweepPoints& few) const {
    OdometryOptions quick = options;
    quick.iterations = std::min(options.iterations, kFirstSteps);
    SweepFit best;
    const auto look = [&](const Vector3& way) {
        RigidTransform start;
        start.translation = way;
        const SweepFit fit = lay_on(few.places, *map, start, 3 * options.voxel, options.voxel / 3, quick);
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
SweepFit Odometry::State::place(const SweepPoints& few, const RigidTransform& guess, SweepPose& found) {
    const double error = guess_error(), later = std::min(error, kLaterError * options.voxel);
    found.reach = 3 * error;
    const RigidTransform back = inverse(pose);
    const auto straight = [&](const RigidTransform& at) { return freed(few, share_of(back * at, clock.lasts())); };
    SweepFit fit = lay_on(straight(guess), *map, guess, found.reach, error / 3, options);
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
    const SweepPoints all = points_in_range(sweep, times, s.options.min_range, s.options.max_range);
    const SweepPoints some = chosen(all, first_of_cells(all.places, kThin * s.options.voxel));
    const SweepPoints few = chosen(some, first_of_cells(some.places, kThinner * s.options.voxel));

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
        SweepFit fit = s.place(few, guess, found);
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

}  // namespace stipple::geometry
