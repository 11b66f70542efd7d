#include "stipple/tasks/sweep_poses.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "stipple/core/error.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

constexpr size_t kMostText = 1 << 28;  // bytes: a million poses
constexpr double kDegrees = 180 / M_PI;

/// Twelve numbers of a line.
RigidTransform parse_row(std::string_view text, int64_t line) {
    const auto fail = [&](const std::string& what) { throw Error(ErrorCode::bad_file, Place{{}, line}, what); };
    RigidTransform pose;
    for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 4; ++column) {
            double& number = column < 3 ? pose.rotation[row][column] : pose.translation[row];
            if (!io::parse_number(io::next_word(text), number) || !std::isfinite(number))
                fail("expected twelve numbers: the rows of [R t]");
        }
    if (!io::next_word(text).empty()) fail("more than twelve numbers");
    try {
        pose.rotation = geometry::nearest_rotation(pose.rotation);
    } catch (const Error& error) {
        fail(error.message());
    }
    return pose;
}

/// Calls body(line, number) for every line.
template <class Body>
void for_each_line(std::string_view text, Body&& body) {
    for (int64_t number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        body(line, number);
    }
}

double distance(const geometry::Vector3& a, const geometry::Vector3& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace

std::string to_kitti_poses(std::span<const RigidTransform> poses) {
    std::string text;
    for (const RigidTransform& pose : poses)
        for (int row = 0; row < 3; ++row) {
            for (const double number : pose.rotation[row]) {
                io::append_number(text, number);
                text += ' ';
            }
            io::append_number(text, pose.translation[row]);
            text += row < 2 ? ' ' : '\n';
        }
    return text;
}

std::vector<RigidTransform> parse_kitti_poses(std::string_view text) {
    std::vector<RigidTransform> poses;
    for_each_line(text, [&](std::string_view line, int64_t number) {
        std::string_view rest = line;
        if (!io::next_word(rest).empty()) poses.push_back(parse_row(line, number));
    });
    return poses;
}

std::vector<RigidTransform> load_kitti_poses(const std::string& path) {
    const std::string text = load_text(path, kMostText, "poses of sweeps");
    try {
        std::vector<RigidTransform> poses = parse_kitti_poses(text);
        if (poses.empty()) throw Error(ErrorCode::bad_file, "holds no poses", "lines of twelve numbers, as KITTI's");
        return poses;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

RigidTransform load_kitti_calibration(const std::string& path) {
    const std::string text = load_text(path, 1 << 20, "a calibration");
    try {
        std::optional<RigidTransform> found;
        for_each_line(text, [&](std::string_view line, int64_t number) {
            std::string_view rest = line;
            const std::string_view name = io::next_word(rest);
            if (name == "Tr:" || name == "Tr_velo_to_cam:") found = parse_row(rest, number);
        });
        if (!found) throw Error(ErrorCode::bad_file, "has no line \"Tr:\"", "calib.txt of a sequence of KITTI");
        return *found;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

Drift pose_drift(std::span<const RigidTransform> poses, std::span<const RigidTransform> truth) {
    STIPPLE_REQUIRE(poses.size() == truth.size(), "{} true poses for {} sweeps", truth.size(), poses.size());
    Drift drift;
    std::vector<double> along = {0};
    for (size_t i = 1; i < truth.size(); ++i)
        along.push_back(along.back() + distance(truth[i].translation, truth[i - 1].translation));
    drift.path = along.back();
    if (poses.empty()) return drift;
    const auto off = [&](size_t a, size_t b) {
        return geometry::inverse(geometry::inverse(poses[a]) * poses[b]) * (geometry::inverse(truth[a]) * truth[b]);
    };
    const RigidTransform end = off(0, poses.size() - 1);
    drift.end_translation = distance(end.translation, {});
    drift.end_degrees = kDegrees * geometry::rotation_angle(end);

    drift.is_kitti = drift.path > 100;
    std::vector<double> lengths;
    if (drift.is_kitti) {
        for (double length = 100; length <= 800 && length < drift.path; length += 100) lengths.push_back(length);
    } else {
        // Of fewer steps a segment would be far longer than its length says.
        const double least = 4 * drift.path / static_cast<double>(std::max<size_t>(poses.size() - 1, 1));
        for (const double parts : {8.0, 4.0, 2.0})
            if (drift.path / parts >= least && drift.path > 0) lengths.push_back(drift.path / parts);
    }
    const size_t step = poses.size() < 200 ? 1 : 10;
    for (const double length : lengths) {
        DriftRow row;
        row.length = length;
        size_t last = 0;
        for (size_t first = 0; first < poses.size(); first += step) {
            while (last < poses.size() && along[last] <= along[first] + length) ++last;
            if (last == poses.size()) break;
            const RigidTransform error = off(first, last);
            const double way = drift.is_kitti ? length : along[last] - along[first];
            ++row.segments;
            row.translation += distance(error.translation, {}) / way;
            row.degrees += 100 * kDegrees * geometry::rotation_angle(error) / way;
        }
        if (row.segments == 0) continue;
        drift.all.segments += row.segments;
        drift.all.translation += row.translation;
        drift.all.degrees += row.degrees;
        row.translation /= static_cast<double>(row.segments);
        row.degrees /= static_cast<double>(row.segments);
        drift.rows.push_back(row);
    }
    if (drift.all.segments > 0) {
        drift.all.translation /= static_cast<double>(drift.all.segments);
        drift.all.degrees /= static_cast<double>(drift.all.segments);
    }
    return drift;
}

}  // namespace stipple::tasks
