#include "stipple/metrics/segmentation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stipple::metrics {
namespace {

void require_shape(size_t number, const SegmentedShape& shape, std::span<const PartCategory> categories) {
    STIPPLE_REQUIRE(shape.category >= 0 && shape.category < static_cast<int64_t>(categories.size()),
                    "part_iou: shape {} is of category {}, of {}", number, shape.category, categories.size());
    STIPPLE_REQUIRE(shape.predictions.size() == shape.truth.size(),
                    "part_iou: shape {} has {} predictions for {} labels", number, shape.predictions.size(),
                    shape.truth.size());
    STIPPLE_REQUIRE(!shape.truth.empty(), "part_iou: shape {} has no points", number);
    const PartCategory& category = categories[shape.category];
    STIPPLE_REQUIRE(!category.parts.empty(), "part_iou: category {} has no parts", category.name);
    for (size_t i = 0; i < shape.truth.size(); ++i)
        STIPPLE_REQUIRE(std::find(category.parts.begin(), category.parts.end(), shape.truth[i]) != category.parts.end(),
                        "part_iou: point {} of shape {} is of part {}, which category {} does not have", i, number,
                        shape.truth[i], category.name);
}

double iou_of(const SegmentedShape& shape, const PartCategory& category, AbsentPart absent) {
    double sum = 0;
    int64_t counted = 0;
    for (const int32_t part : category.parts) {
        int64_t both = 0, either = 0;
        for (size_t i = 0; i < shape.truth.size(); ++i) {
            const bool predicted = shape.predictions[i] == part, is = shape.truth[i] == part;
            both += predicted && is;
            either += predicted || is;
        }
        if (either == 0 && absent == AbsentPart::left_out) continue;
        sum += either == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(either);
        ++counted;
    }
    return sum / static_cast<double>(counted);
}

}  // namespace

PartIou part_iou(std::span<const SegmentedShape> shapes, std::span<const PartCategory> categories, AbsentPart absent) {
    STIPPLE_REQUIRE(!shapes.empty(), "part_iou: no shapes");
    PartIou result;
    result.categories.assign(categories.size(), 0);
    result.shape_count.assign(categories.size(), 0);
    int64_t points = 0, right = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
        const SegmentedShape& shape = shapes[i];
        require_shape(i, shape, categories);
        const double iou = iou_of(shape, categories[shape.category], absent);
        result.shapes.push_back(iou);
        result.instance += iou;
        result.categories[shape.category] += iou;
        ++result.shape_count[shape.category];
        points += static_cast<int64_t>(shape.truth.size());
        for (size_t j = 0; j < shape.truth.size(); ++j) right += shape.predictions[j] == shape.truth[j];
    }
    result.instance /= static_cast<double>(shapes.size());
    result.accuracy = static_cast<double>(right) / static_cast<double>(points);
    int64_t present = 0;
    for (size_t c = 0; c < categories.size(); ++c) {
        if (result.shape_count[c] == 0) {
            result.categories[c] = NAN;
            continue;
        }
        result.categories[c] /= static_cast<double>(result.shape_count[c]);
        result.category += result.categories[c];
        ++present;
    }
    result.category /= static_cast<double>(present);
    return result;
}

std::vector<int32_t> best_parts(View<const float, 2> scores, const PartCategory& category) {
    STIPPLE_REQUIRE(scores.device() == Device{}, "best_parts: scores on {}", scores.device());
    STIPPLE_REQUIRE(!category.parts.empty(), "best_parts: category {} has no parts", category.name);
    for (const int32_t part : category.parts)
        STIPPLE_REQUIRE(part >= 0 && part < scores.size(1), "best_parts: part {} of category {}, scores of {}", part,
                        category.name, scores.size(1));
    std::vector<int32_t> best(static_cast<size_t>(scores.size(0)));
    for (int64_t i = 0; i < scores.size(0); ++i) {
        int32_t winner = category.parts[0];
        float highest = -std::numeric_limits<float>::infinity();
        for (const int32_t part : category.parts) {
            if (!(scores(i, part) > highest)) continue;
            highest = scores(i, part);
            winner = part;
        }
        best[i] = winner;
    }
    return best;
}

}  // namespace stipple::metrics
