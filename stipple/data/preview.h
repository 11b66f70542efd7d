#pragma once
// Some clouds of a data set, to be looked at.

#include "stipple/core/fields.h"
#include "stipple/data/data_set.h"

namespace stipple::data {

struct PreviewOptions {
    std::string only = {};  // clouds of this class, in any case; "": of all
    int64_t each = 0;       // clouds of a class; 0: as many as look well
    int64_t points = 2048;  // the first so many of each cloud, 0: all
    int64_t size = 220;     // pixels of one cloud
    int64_t columns = 0;    // clouds in a row; 0: as fits
};
const Fields& preview_fields();

/// What is shown of a set.
struct Preview {
    std::string layout, split;
    std::vector<int64_t> items = {};
};
const Fields& preview_result_fields();

/// The first items of each class, or of all where there are no classes; of one class when it is named. Throws
/// Error{bad_argument} for a class that there is not, with those that there are, and for more than kMostPreviews.
Preview choose_preview(const DataSet& set, const PreviewOptions& options);
inline constexpr size_t kMostPreviews = 400;

/// An item with its parts, counted within its category, as attribute label.
PointCloud cloud_of(const DataSet& set, int64_t item);

}  // namespace stipple::data
