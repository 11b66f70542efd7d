#pragma once
// How well a segmenter does on a data set whose parts are known: intersection over union by the protocol of
// ShapeNet-part.

#include "stipple/metrics/segmentation.h"
#include "stipple/tasks/evaluate.h"
#include "stipple/tasks/segment.h"

namespace stipple::tasks {

/// What a category of a data set is to a network.
struct PartMatch {
    size_t category = 0;          // of the network's one-hot input
    int64_t shift = 0;            // from the set's number of a part to the network's
    metrics::PartCategory parts;  // in the network's numbers; none for a category without items that it does not know
};

/// One for each category of the set. A network with named categories knows them by name, in any case, and the numbers
/// of their parts must agree. One with categories that are not named must have as many, and all parts of the set. One
/// without categories labels all parts of the set, or those of its only category with items. Throws Error{bad_argument}
/// for a set without parts, for a category with items that the network does not know (named), and numbers that differ.
std::vector<PartMatch> match_parts(const data::DataSet& set, const Segmenter& segmenter);

/// The items of one category, by name in any case. Throws Error{bad_argument} that lists the names, and for no items.
data::DataSet items_of_category(const data::DataSet& set, const std::string& name);

struct PartScores {
    int64_t points = 0;            // as they were asked for
    int64_t fewest = 0, most = 0;  // that the network saw of a cloud
    int64_t draws = 1;
    Spread instance_iou;                            // mean over shapes
    Spread class_iou;                               // mean over the categories that have shapes of their means
    Spread accuracy;                                // share of points with the right part
    std::vector<metrics::PartCategory> categories;  // those that have shapes
    std::vector<int64_t> shapes;                    // of each of them
    std::vector<double> category_iou;               // mean over the shapes of each, and over draws
};
const Fields& part_scores_fields();

/// One category that has clouds.
struct CategoryScore {
    std::string name;
    int64_t clouds = 0, parts = 0;
    double iou = 0;
};
const Fields& category_score_fields();
std::vector<CategoryScore> category_scores(const PartScores& scores);

/// Scores for each of options.points, in their order, over the points that the network sees. A point's answer is the
/// best of the parts that the shape's category has; a part that neither answer nor truth of a shape has counts 1; the
/// IoU of a shape is the mean over its category's parts (metrics::part_iou). `advance` as for classifiers. Throws as
/// match_parts does, and Error{bad_argument} for clouds that are larger than an engine file was built for.
std::vector<PartScores> evaluate(Segmenter& segmenter, const data::DataSet& set, const EvaluateOptions& options,
                                 const std::function<void(int64_t clouds)>& advance = {});

}  // namespace stipple::tasks
