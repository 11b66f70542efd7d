#include "stipple/tasks/register_sequence.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"

namespace stipple::tasks {
namespace {

using geometry::RegistrationState;
using geometry::RigidTransform;
using geometry::SweepPose;
using geometry::SweepTrouble;

/// The cells of the map near the sensor.
class MapCells {
public:
    MapCells(double voxel, double range) : voxel_(voxel), range_(range) { seen_.reserve(1 << 20); }

    /// The points of a sweep in cells that nothing was in, moved into the map's frame.
    PointCloud fresh(const PointCloud& sweep, const RigidTransform& pose, double nearest, double farthest) {
        std::vector<float> places;
        for (int64_t i = 0; i < sweep.size(); ++i) {
            const geometry::Vector3 at = {sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2)};
            const double away = std::hypot(at[0], at[1], at[2]);
            if (!(away >= nearest && away <= farthest)) continue;
            const geometry::Vector3 place = pose(at);
            if (!seen_.insert(key(place)).second) continue;
            for (const double axis : place) places.push_back(static_cast<float>(axis));
        }
        forget(pose.translation);
        PointCloud points(static_cast<int64_t>(places.size() / 3));
        std::copy(places.begin(), places.end(), points.positions.data());
        return points;
    }

private:
    static constexpr int kBits = 21;
    static constexpr int64_t kHalf = 1 << (kBits - 1);

    /// Cells a million apart share a key: so far away nothing is remembered.
    uint64_t key(const geometry::Vector3& place) const {
        uint64_t key = 0;
        for (const double axis : place) {
            const double cell = std::fmod(std::floor(axis / voxel_), 2.0 * kHalf);
            key = key << kBits | (static_cast<uint64_t>(static_cast<int64_t>(cell) + 2 * kHalf) & (2 * kHalf - 1));
        }
        return key;
    }
    double place_of(uint64_t key, int axis) const {
        const auto number = static_cast<int64_t>(key >> (kBits * (2 - axis)) & (2 * kHalf - 1));
        return static_cast<double>(number >= kHalf ? number - 2 * kHalf : number) * voxel_;
    }
    void forget(const geometry::Vector3& place) {
        if (std::hypot(place[0] - cut_[0], place[1] - cut_[1], place[2] - cut_[2]) < range_ / 4) return;
        cut_ = place;
        const double period = 2 * kHalf * voxel_;
        std::erase_if(seen_, [&](uint64_t cell) {
            double away_sq = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const double away = std::remainder(place_of(cell, axis) - place[axis], period);
                away_sq += away * away;
            }
            return away_sq > 1.21 * range_ * range_;
        });
    }

    double voxel_, range_;
    std::unordered_set<uint64_t> seen_;
    geometry::Vector3 cut_ = {};  // where the sensor was when cells were forgotten last
};

std::string reason_of(const SweepPose& found, const std::string& name) {
    switch (found.trouble) {
        case SweepTrouble::none: break;
        case SweepTrouble::few_points:
            return fmt::format("{}: {} points in range are too few, its pose is a guess", name, found.points);
        case SweepTrouble::elsewhere:
            return fmt::format("{}: {:.0f} % of it lies on the sweeps before, its pose is a guess", name,
                               100 * static_cast<double>(found.close) / static_cast<double>(found.used));
        case SweepTrouble::jump:
            return fmt::format("{}: off by {:.3g} from steady motion, sweeps may be missing", name, found.deviation);
    }
    return {};
}

/// Whether its pose is no more than the guess.
bool is_guessed(const SweepPose& found) {
    return found.trouble == SweepTrouble::few_points || found.trouble == SweepTrouble::elsewhere;
}

int64_t count_non_finite(const PointCloud& cloud) {
    return cloud.size() - bounds_of(cloud).finite;
}

}  // namespace

std::vector<double> sweep_times(const PointCloud& sweep) {
    for (const char* name : {"time", "t", "timestamp", "time_stamp", "offset_time", "time_offset"}) {
        const Attribute* attribute = find(sweep.attributes, name);
        if (!attribute || attribute->components() != 1) continue;
        std::vector<double> times(static_cast<size_t>(sweep.size()));
        for (int64_t i = 0; i < sweep.size(); ++i) times[i] = attribute->value(i);
        return times;
    }
    return {};
}

std::vector<RigidTransform> RegisteredSequence::poses() const {
    std::vector<RigidTransform> all;
    for (const SweepPose& sweep : sweeps) all.push_back(sweep.pose);
    return all;
}

RegisteredSequence register_sequence(size_t sweeps, const SequenceOptions& options, const SequenceFiles& files) {
    STIPPLE_REQUIRE(sweeps >= 2, "a sequence has two sweeps or more, not {}", sweeps);
    STIPPLE_REQUIRE(options.map_voxel >= 0 && std::isfinite(options.map_voxel),
                    "the map's voxel must be from 0, got {}", options.map_voxel);
    geometry::Odometry odometry(options.odometry);
    RegisteredSequence result;
    std::optional<MapCells> cells;
    PointCloud first;
    std::vector<double> first_times;
    for (size_t i = 0; i < sweeps; ++i) {
        check_interrupted();
        const std::string name = files.name ? files.name(i) : fmt::format("sweep {}", i);
        PointCloud sweep;
        try {
            sweep = files.load(i);
        } catch (const Error& error) {
            // Lengths follow from the first sweep: without it there is nothing to go on with.
            if (!options.keep_going || error.code() != ErrorCode::bad_file || i == 0) throw;
            result.unread.emplace_back(error.what());
            sweep = PointCloud(0);
        }
        result.points += sweep.size();
        result.non_finite += count_non_finite(sweep);
        const std::vector<double> times = sweep_times(sweep);
        SweepPose found;
        try {
            found = odometry.add(sweep, times);
        } catch (const Error& error) {
            throw error.place().path.empty() ? error.at_path(name) : error;
        }
        result.timed += !times.empty();
        result.sweeps.push_back(found);
        if (found.trouble != SweepTrouble::none) {
            result.verdict.reasons.push_back(reason_of(found, name));
            if (result.verdict.state == RegistrationState::good) result.verdict.state = RegistrationState::doubtful;
        }
        if (found.is_lost && result.verdict.state != RegistrationState::failed) {
            result.verdict.state = RegistrationState::failed;
            result.verdict.reasons.insert(result.verdict.reasons.begin(),
                                          fmt::format("lost at {}: three sweeps in a row have no pose", name));
        }
        if (files.done) files.done();
        if (found.is_lost && !options.keep_going) break;
        if (!files.map) continue;
        const geometry::OdometryOptions& chosen = odometry.options();
        if (!cells) {
            result.map_voxel = options.map_voxel > 0 ? options.map_voxel : chosen.voxel / 4;
            cells.emplace(result.map_voxel, chosen.max_range);
        }
        const auto put = [&](size_t number, const PointCloud& points, const RigidTransform& pose) {
            PointCloud fresh = cells->fresh(points, pose, chosen.min_range, chosen.max_range);
            if (fresh.size() == 0) return;
            Attribute scan("scan", DType::u32, fresh.size(), 1);
            std::fill_n(scan.as<uint32_t>().data(), fresh.size(), static_cast<uint32_t>(number));
            fresh.attributes.push_back(std::move(scan));
            files.map(std::move(fresh), result.map_voxel);
        };
        const bool is_bent = !times.empty() && chosen.deskew;
        if (i == 0 && is_bent) {  // by a motion that the second sweep tells
            first = std::move(sweep);
            first_times = times;
            continue;
        }
        if (i == 1 && first.size() > 0) {
            put(0, geometry::deskewed(first, first_times, found.motion), result.sweeps[0].pose);
            first = {};
        }
        if (is_guessed(found)) continue;
        if (is_bent) sweep = geometry::deskewed(sweep, times, found.motion);
        put(i, sweep, found.pose);
    }
    result.odometry = odometry.options();
    const auto guessed = std::count_if(result.sweeps.begin(), result.sweeps.end(), is_guessed);
    const auto others = static_cast<int64_t>(result.sweeps.size()) - 1;
    if (2 * guessed > others && result.verdict.state != RegistrationState::failed) {
        result.verdict.state = RegistrationState::failed;
        result.verdict.reasons.insert(
            result.verdict.reasons.begin(),
            fmt::format("{} of {} sweeps have no pose of their own: they do not follow each other", guessed, others));
    }
    return result;
}

}  // namespace stipple::tasks
