#pragma once
// What clouds of different files need before they can be one: the same attributes of the same types.

#include <span>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// What becomes of an attribute that some clouds have and others lack.
enum class MissingAttributes { refuse, fill, drop };

/// The attributes of the clouds together.
struct MergePlan {
    struct Column {
        std::string name;
        DType dtype;
        int64_t components;
        bool full_range = false;  // a colour whose values go to color_full(dtype), whatever the cloud's own maximum
    };
    std::vector<Column> columns;
};

/// The columns that hold what all the clouds hold, in the order in which they are met. Types that differ become the
/// smallest that holds both exactly: integers a wider integer (float64 where none is), an integer of up to 16 bits and
/// float32 become float32, any other mixture float64. Colours of different ranges (8 bits, 16 bits, 0 to 1) become
/// float32 where one is, else uint16 to 65535, scaled by their maxima (color_maximum).
///
/// names  what messages call the clouds: their files
///
/// A cloud without points has no say. Throws Error{bad_argument} for different numbers of components, and where
/// `missing` is refuse for an attribute that a cloud lacks.
MergePlan plan_merge(std::span<const PointCloud* const> clouds, std::span<const std::string> names,
                     MissingAttributes missing);

/// One cloud, or a piece of it, with exactly the columns of the plan: values converted, what it lacks filled with 0
/// (integers), NaN (floats) or false. `color_maximum` is that of the whole cloud, as a piece may be dark.
PointCloud fitted(const PointCloud& piece, const MergePlan& plan, double color_maximum);

/// What two clouds that become one still say about their files: facts that both have alike. True: nothing that
/// mattered (coordinate system) was lost.
bool merge_facts(FileFacts& facts, const FileFacts& other);

}  // namespace stipple::geometry
