#pragma once
// What clouds of different files need before they can be one: the same attributes of the same types.

#include <span>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// What becomes of an attribute that some clouds have and others lack.
enum class MissingAttributes { refuse, fill, drop };

/// What one of the clouds holds, gathered from its pieces.
struct CloudSchema {
    struct Column {
        std::string name;
        DType dtype;
        int64_t components;
        double maximum = 1;  // of a colour: color_maximum of what was seen
    };
    std::string name;  // what messages call it: its file
    int64_t points = 0;
    std::vector<Column> columns;

    /// A piece; all pieces have the same attributes. O(columns), and the values of a colour.
    void add(const PointCloud& piece);
    /// Of its colour; 1 without one.
    double color_maximum() const;
};

/// The attributes of the clouds together.
struct MergePlan {
    struct Column {
        std::string name;
        DType dtype;
        int64_t components;
        bool full_range = false;  // a colour that is scaled to the whole range of its type
    };
    std::vector<Column> columns;
};

/// The columns that hold what all the clouds hold, in the order in which they are met. Types that differ become the
/// smallest that holds both exactly: integers a wider integer (float64 where none is), an integer of up to 16 bits and
/// float32 become float32, any other mixture float64. Colours of different ranges (8 bits, 16 bits, 0 to 1) become
/// float32 where one is, else uint16 to 65535, scaled by their maxima (color_maximum).
///
/// A cloud without points has no say. Throws Error{bad_argument} for different numbers of components, and where
/// `missing` is refuse for an attribute that a cloud lacks.
MergePlan plan_merge(std::span<const CloudSchema> clouds, MissingAttributes missing);

/// One cloud, or a piece of it, with exactly the columns of the plan: values converted, what it lacks filled with 0
/// (integers), NaN (floats) or false. `color_maximum` is that of the whole cloud, as a piece may be dark.
PointCloud fitted(const PointCloud& piece, const MergePlan& plan, double color_maximum);

/// What two clouds that become one still say about their files: facts that both have alike. True: nothing that
/// mattered (coordinate system) was lost.
bool merge_facts(FileFacts& facts, const FileFacts& other);

}  // namespace stipple::geometry
