#include "stipple/tasks/fit_likeness.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"

namespace stipple::tasks {
namespace {

PointCloud stretched_cloud(View<const float, 2> points, const LikenessSizes& sizes, uint64_t item) {
    constexpr uint64_t kStretch = 0x53545245ull << 32;  // keeps apart from other uses of the seed
    const Rng rng(sizes.seed, kStretch ^ item);
    double factors[3];
    for (uint64_t axis = 0; axis < 3; ++axis) factors[axis] = 1 + sizes.stretch * (2 * rng.uniform(axis) - 1);
    PointCloud cloud(points.size(0));
    for (int64_t i = 0; i < points.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.view()(i, axis) = static_cast<float>(factors[axis] * points(i, axis));
    return cloud;
}

}  // namespace

std::vector<int64_t> items_of_classes(const data::DataSet& set, const std::vector<std::string>& classes) {
    STIPPLE_REQUIRE(classes.empty() || static_cast<int64_t>(set.labels.size()) == set.size(),
                    "clouds of {} are wanted, and those of the data set have no classes", fmt::join(classes, ", "));
    std::vector<char> is_wanted(set.classes.size(), classes.empty());
    for (const std::string& name : classes) {
        const auto found = std::find(set.classes.begin(), set.classes.end(), name);
        STIPPLE_REQUIRE(found != set.classes.end(), "the data set has no class {}: it has {}", name,
                        fmt::join(set.classes, ", "));
        is_wanted[static_cast<size_t>(found - set.classes.begin())] = 1;
    }
    std::vector<int64_t> items;
    for (int64_t i = 0; i < set.size(); ++i)
        if (classes.empty() || is_wanted[static_cast<size_t>(set.labels[static_cast<size_t>(i)])]) items.push_back(i);
    return items;
}

std::vector<LikenessClouds> likeness_clouds(Reconstructor& reconstructor, const data::DataSet& set,
                                            const std::vector<int64_t>& items, const LikenessSizes& sizes,
                                            const std::function<void()>& advance) {
    STIPPLE_REQUIRE(sizes.stretch >= 0 && sizes.stretch <= 0.9, "likeness: a stretch of {}, 0 to 0.9 are possible",
                    sizes.stretch);
    std::vector<LikenessClouds> sets;
    for (const int64_t points : sizes.points) {
        STIPPLE_REQUIRE(points >= kFewestRebuilt, "likeness: clouds of {} points, {} are the fewest", points,
                        kFewestRebuilt);
        for (const char* sample : {"first", "random"}) {
            LikenessClouds clouds{points, {}};
            CloudBatch batch;
            const auto flush = [&] {
                if (batch.clouds() == 0) return;
                const std::vector<Gaps> gaps = reconstructor.run_and_compare(batch).gaps;
                clouds.gaps.insert(clouds.gaps.end(), gaps.begin(), gaps.end());
                batch.clear();
            };
            for (const int64_t item : items) {
                check_interrupted();
                if (set.clouds.size_of(item) >= points) {
                    const PointCloud cloud = stretched_cloud(set.points_of(item), sizes, static_cast<uint64_t>(item));
                    std::vector<int32_t> chosen;
                    network_points(cloud, {.points = points, .sample = sample, .seed = sizes.seed}, &chosen);
                    batch.add(seen_cloud(select(cloud, {chosen.data(), {static_cast<int64_t>(chosen.size())}})).points);
                }
                if (batch.clouds() == reconstructor.runner().max_batch()) flush();
                if (advance) advance();
            }
            flush();
            if (!clouds.gaps.empty()) sets.push_back(std::move(clouds));
        }
    }
    return sets;
}

}  // namespace stipple::tasks
