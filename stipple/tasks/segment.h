#pragma once
// Parts of clouds: a label for each point.

#include <optional>
#include <span>

#include "stipple/data/part_categories.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"
#include "stipple/tasks/pose.h"

namespace stipple::tasks {

/// The parts of a cloud, point by point.
struct Segments {
    std::vector<int32_t> labels;
    std::vector<float> probabilities;  // of the label, among the parts of the category
};

/// A network that labels points.
class Segmenter {
public:
    /// Throws Error{bad_argument} unless the network takes points [B, N, 3], and at most a category [B, categories]
    /// beside them, and gives logits [B, N, parts], and as NetworkRunner does. `batch` clouds at a time are possible;
    /// options.batch does not count.
    Segmenter(ModelOrEngine source, RunnerOptions options, int64_t batch = 1);

    const NetworkRunner& runner() const { return runner_; }
    int64_t parts() const { return parts_; }
    /// What the network asks to be told of a cloud; empty: nothing.
    const std::vector<data::PartCategory>& categories() const { return categories_; }

    /// The parts of a category, an index into categories(); all parts where there are none.
    data::PartCategory parts_of(size_t category) const;
    /// The upward axis of the clouds that it was trained on.
    Axis up() const { return up_; }
    /// Points of these clouds, which a network with local features wants to see again; 0: any number.
    int64_t points() const { return points_; }

    /// The likeliest part of each of the points [n, 3], of those that the category has; `category` is 0 where there are
    /// none. Ties go to the lower part.
    Segments run(const Array<float, 2>& points, size_t category = 0);

    /// Logits [points, parts] on the CPU, of at most runner().max_batch() clouds, each with its category, an index into
    /// categories(); these are left alone where there are none.
    Array<float, 2> logits(const CloudBatch& batch, std::span<const size_t> categories);

private:
    NetworkRunner runner_;
    int64_t parts_ = 0, points_ = 0;
    std::vector<data::PartCategory> categories_;
    Axis up_;
};

/// A label for every point of a cloud of finite points: where the network sees fewer, that of the nearest one it saw.
/// options.points 0: as many as segmenter.points(), or all.
Segments segment(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options, size_t category = 0,
                 const Pose& pose = {});

/// What a cloud may show, and how it may lie.
struct PartsView {
    size_t category = 0, pose = 0;
    double confidence = 0;  // 0 for parts at random, 1 for parts without doubt
};
/// The most confident view of a cloud, of all pairs of these categories and poses: the mean probability of its labels
/// between 1 / parts and 1. Ties go to the earlier category, then the earlier pose. Looks at no more than
/// 512 points, or segmenter.points().
PartsView choose_view(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options,
                      const std::vector<size_t>& categories, const std::vector<Pose>& poses);

/// What segment_cloud() is asked.
struct SegmentOptions {
    std::string model;     // weights by path or name, or an engine; "": the shipped ones
    std::string category;  // what the clouds show; "": what fits best
    std::string names;     // a file with names of the parts; "": those in the model
    PoseChoice pose;
    CloudOptions clouds{.points = 0, .sample_faces = false};  // the file's own points get labels
    RunnerOptions runner;
};
const Fields& segment_fields();

/// The points of one part.
struct PartSummary {
    int64_t label = 0;
    std::string name;
    int64_t points = 0;
    double confidence = 0;  // mean probability of the label
};
/// What is said about one cloud.
struct SegmentedCloud {
    int64_t points = 0;
    std::vector<PartSummary> parts;  // by label
    std::optional<std::string> category;
    std::optional<bool> category_guessed;
    size_t index_of_category = 0, pose = 0;  // of the segmenter's, and of those that were tried
};
const Fields& segmented_fields();

/// A segmenter with what was asked of it.
class CloudSegmenter {
public:
    /// Loads the network. Throws as Segmenter does, and Error{bad_argument} for a category that it does not know.
    CloudSegmenter(const SegmentOptions& options);

    const Segmenter& segmenter() const { return segmenter_; }
    const std::vector<Pose>& poses() const { return poses_; }
    const std::string& name_of_part(int64_t label) const { return names_[static_cast<size_t>(label)]; }
    bool guesses_category() const { return categories_.size() > 1; }

    /// Gives every point of a cloud of finite points an attribute "label".
    SegmentedCloud segment(PointCloud& cloud);

private:
    SegmentOptions options_;
    Segmenter segmenter_;
    std::vector<size_t> categories_;
    std::vector<Pose> poses_;
    std::vector<std::string> names_;
};

/// Attribute "label", int32, in place of one that is there.
void put_labels(PointCloud& cloud, const std::vector<int32_t>& labels);

}  // namespace stipple::tasks
