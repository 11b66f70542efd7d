#pragma once
// Parts of clouds: a label for each point.

#include <span>

#include "stipple/data/part_categories.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::tasks {

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

    /// The likeliest part of each of the points [n, 3], of those that the category has: an index into categories(), 0
    /// where there are none. Ties go to the lower part.
    std::vector<int32_t> run(const Array<float, 2>& points, size_t category = 0);

    /// Logits [points, parts] on the CPU, of at most runner().max_batch() clouds, each with its category, an index into
    /// categories(); these are left alone where there are none.
    Array<float, 2> logits(const CloudBatch& batch, std::span<const size_t> categories);

private:
    NetworkRunner runner_;
    int64_t parts_ = 0;
    std::vector<data::PartCategory> categories_;
};

/// A label for every point of a cloud of finite points: where the network sees fewer, that of the nearest one it saw.
std::vector<int32_t> segment(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options,
                             size_t category = 0);

/// Attribute "label", int32, in place of one that is there.
void put_labels(PointCloud& cloud, const std::vector<int32_t>& labels);

}  // namespace stipple::tasks
