#include "stipple/tasks/fit_likeness.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stipple/core/interrupt.h"

namespace stipple::tasks {
namespace {

PointCloud as_cloud(View<const float, 2> points) {
    PointCloud cloud(points.size(0));
    std::copy_n(points.data(), 3 * points.size(0), cloud.positions.data());
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
                    const PointCloud cloud = as_cloud(set.points_of(item));
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
