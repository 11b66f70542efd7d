#pragma once

#include <span>
#include <string>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::metrics {

struct PartCategory {
    std::string name;
    std::vector<int32_t> parts;  // global part ids, e.g. Chair {12, 13, 14, 15}
};

struct SegmentedShape {
    int32_t category = 0;
    std::span<const int32_t> predictions, truth;  // a part id for each point
};

/// A part of the category that neither prediction nor truth of a shape has.
enum class AbsentPart {
    counts_one,  // ShapeNet part: IoU 1, as PointNet, PointNet++ and everyone since
    left_out,    // the shape's mean is over the parts that occur
};

struct PartIou {
    double instance = 0;               // mean over shapes of the shape's IoU
    double category = 0;               // "class mIoU": mean over the categories that have shapes of their means
    std::vector<double> categories;    // mean over the category's shapes; NaN without shapes
    std::vector<double> shapes;        // mean over the category's parts
    std::vector<int64_t> shape_count;  // of each category
    double accuracy = 0;               // share of points with the right part
};

/// Intersection over union of parts, ShapeNet part protocol. Only the parts of the shape's category are scored; a
/// predicted id outside of them is wrong for its point and enters no part's union. Throws Error{bad_argument} for no
/// shapes, a shape without points, lengths that differ, a category out of range or without parts, and a true part that
/// is not of the category. left_out: a shape none of whose parts occur cannot be.
PartIou part_iou(std::span<const SegmentedShape> shapes, std::span<const PartCategory> categories,
                 AbsentPart absent = AbsentPart::counts_one);

/// The protocol's arg-max: for each point the best of the category's parts; ties to the lower place in the list, NaN
/// never wins. scores [n, parts of all categories] on the CPU.
std::vector<int32_t> best_parts(View<const float, 2> scores, const PartCategory& category);

}  // namespace stipple::metrics
