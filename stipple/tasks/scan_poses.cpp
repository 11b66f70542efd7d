#include "stipple/tasks/scan_poses.h"

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

constexpr size_t kMostPoses = 1 << 24;  // bytes

std::string name_of_file(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

[[noreturn]] void bad_line(int64_t line, const std::string& what) {
    throw Error(ErrorCode::bad_file, Place{{}, line}, what);
}

/// The lines of a text one after the other, without comments.
class Lines {
public:
    explicit Lines(std::string_view text) : rest_(text) {}
    bool next(std::string_view& line) {
        if (rest_.empty()) return false;
        line = rest_.substr(0, rest_.find('\n'));
        rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
        line = line.substr(0, line.find('#'));
        ++number_;
        return true;
    }
    int64_t number() const { return number_; }

private:
    std::string_view rest_;
    int64_t number_ = 0;
};

RigidTransform pose_of_conf(std::string_view line, int64_t number) {
    double values[7] = {};  // tx ty tz qx qy qz qw
    for (double& value : values)
        if (!io::parse_number(io::next_word(line), value) || !std::isfinite(value))
            bad_line(number, "expected bmesh NAME and seven numbers: tx ty tz qx qy qz qw");
    try {
        return geometry::from_quaternion({values[6], -values[3], -values[4], -values[5]},
                                         {values[0], values[1], values[2]});
    } catch (const Error& error) {
        bad_line(number, error.message());
    }
}

RigidTransform pose_of_matrix(Lines& lines) {
    const int64_t first = lines.number();
    std::string matrix;
    std::string_view line;
    for (int row = 0; row < 4; ++row) {
        if (!lines.next(line)) bad_line(lines.number(), "the text ends within a matrix");
        matrix += std::string(line) + "\n";
    }
    try {
        return geometry::parse_transform(matrix);
    } catch (const Error& error) {
        bad_line(first, error.message());
    }
}

}  // namespace

std::string to_text(const std::vector<ScanPose>& poses) {
    std::string text;
    for (const ScanPose& one : poses) text += "scan " + one.name + "\n" + geometry::to_text(one.pose);
    return text;
}

bool has_scan_poses(std::string_view text) {
    Lines lines(text);
    std::string_view line;
    while (lines.next(line)) {
        const std::string_view word = io::next_word(line);
        if (word == "scan" || word == "bmesh") return true;
    }
    return false;
}

std::vector<ScanPose> parse_scan_poses(std::string_view text) {
    std::vector<ScanPose> poses;
    Lines lines(text);
    std::string_view line;
    while (lines.next(line)) {
        const std::string_view kind = io::next_word(line);
        if (kind != "scan" && kind != "bmesh") continue;
        const int64_t number = lines.number();
        ScanPose one;
        one.name = std::string(io::next_word(line));
        if (one.name.empty()) bad_line(number, "expected the name of a scan");
        if (find_pose(poses, one.name)) bad_line(number, fmt::format("the scan {} comes twice", in_quotes(one.name)));
        one.pose = kind == "bmesh" ? pose_of_conf(line, number) : pose_of_matrix(lines);
        poses.push_back(std::move(one));
    }
    return poses;
}

const ScanPose* find_pose(const std::vector<ScanPose>& poses, const std::string& path) {
    const std::string name = name_of_file(path);
    for (const ScanPose& one : poses)
        if (name_of_file(one.name) == name) return &one;
    return nullptr;
}

std::vector<ScanPose> load_scan_poses(const std::string& path) {
    const std::string text = load_text(path, kMostPoses, "poses of scans");
    try {
        std::vector<ScanPose> poses = parse_scan_poses(text);
        if (poses.empty())
            throw Error(ErrorCode::bad_file, "holds no poses of scans",
                        "lines \"scan NAME\" with a matrix, or a .conf");
        return poses;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

RigidTransform load_motion_between(const std::string& path, const std::string& from, const std::string& to) {
    const std::string text = load_text(path, kMostPoses, "a transform, or poses of scans");
    try {
        if (!has_scan_poses(text)) return geometry::parse_transform(text);
        const std::vector<ScanPose> poses = parse_scan_poses(text);
        const auto pose_of = [&](const std::string& scan) {
            const ScanPose* found = find_pose(poses, scan);
            if (!found) throw Error(ErrorCode::bad_file, fmt::format("holds no pose of {}", name_of_file(scan)));
            return found->pose;
        };
        return geometry::inverse(pose_of(to)) * pose_of(from);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::tasks
