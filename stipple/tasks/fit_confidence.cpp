#include "stipple/tasks/fit_confidence.h"

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::tasks {
namespace {

PointCloud cloud_of(View<const float, 2> points) {
    PointCloud cloud(points.size(0));
    std::copy_n(points.data(), 3 * points.size(0), cloud.positions.data());
    return cloud;
}

/// Logits and measures of the clouds of a batch, behind those that are there.
void add_batch(Classifier& classifier, const CloudBatch& batch, ConfidenceClouds& to) {
    const std::vector<float> logits = classifier.run(batch);
    to.logits.insert(to.logits.end(), logits.begin(), logits.end());
    const size_t before = to.measures.size();
    to.measures.resize(before + static_cast<size_t>(batch.clouds()));
    parallel_for(batch.clouds(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Array<float, 2> points = batch.points_on(Device{}, i, i + 1);
            turn_points(points, turn(classifier.up(), Axis{}));
            to.measures[before + static_cast<size_t>(i)] = measure_shape(points.view());
        }
    });
}

}  // namespace

std::vector<ConfidenceClouds> confidence_clouds(Classifier& classifier, const data::DataSet& set,
                                                const ConfidenceSizes& sizes, const std::function<void()>& advance) {
    STIPPLE_REQUIRE(static_cast<int64_t>(set.labels.size()) == set.size(), "confidence: the data set has no labels");
    for (const int32_t label : set.labels)
        STIPPLE_REQUIRE(label >= 0 && label < classifier.classes(), "confidence: label {} of a network with {} classes",
                        label, classifier.classes());
    std::vector<ConfidenceClouds> sets;
    for (const int64_t points : sizes.points) {
        STIPPLE_REQUIRE(points >= 1, "confidence: clouds of {} points", points);
        for (const char* sample : {"first", "random"}) {
            ConfidenceClouds clouds;
            clouds.points = points;
            CloudBatch batch;
            for (int64_t i = 0; i < set.size(); ++i) {
                check_interrupted();
                if (set.clouds.size_of(i) >= points) {
                    const CloudOptions options{.points = points, .sample = sample, .seed = sizes.seed};
                    batch.add(network_points(cloud_of(set.points_of(i)), options));
                    clouds.labels.push_back(set.labels[static_cast<size_t>(i)]);
                }
                if (batch.clouds() == classifier.runner().max_batch() || (i + 1 == set.size() && batch.clouds() > 0)) {
                    add_batch(classifier, batch, clouds);
                    batch.clear();
                }
                if (advance) advance();
            }
            if (!clouds.labels.empty()) sets.push_back(std::move(clouds));
        }
    }
    return sets;
}

Confidence fit_confidence(Classifier& classifier, const data::DataSet& set, const ConfidenceSizes& sizes,
                          const ConfidenceOptions& options, const std::function<void()>& advance) {
    return fit_confidence(confidence_clouds(classifier, set, sizes, advance), classifier.classes(), options);
}

}  // namespace stipple::tasks
