#include "stipple/io/common/polygons.h"

#include <algorithm>

namespace stipple::io {

void PolygonCollector::add(std::span<const int32_t> corners) {
    if (corners.size() != 3 && !tracked_) {
        tracked_ = true;
        for (int64_t i = 0; i < polygons_; ++i) sources_.push_back(static_cast<int32_t>(i));
    }
    for (size_t i = 2; i < corners.size(); ++i) {
        corners_.insert(corners_.end(), {corners[0], corners[i - 1], corners[i]});
        if (tracked_) sources_.push_back(static_cast<int32_t>(polygons_));
    }
    degenerate_ += corners.size() < 3;
    ++polygons_;
}

Array<int32_t, 2> PolygonCollector::finish(int64_t vertices, Warnings& warnings) {
    for (size_t i = 0; i < corners_.size(); ++i)
        if (corners_[i] < 0 || corners_[i] >= vertices) {
            const size_t triangle = i / 3;
            const int64_t face = tracked_ ? sources_[triangle] : static_cast<int64_t>(triangle);
            throw Error(ErrorCode::bad_file, fmt::format("face {} uses vertex {}, the file has {} vertices (0 to {})",
                                                         face, corners_[i], vertices, vertices - 1));
        }
    if (degenerate_) warnings.push_back(fmt::format("{} faces of fewer than three corners were left out", degenerate_));
    Array<int32_t, 2> triangles({static_cast<int64_t>(corners_.size() / 3), 3});
    std::copy(corners_.begin(), corners_.end(), triangles.data());
    return triangles;
}

Attribute PolygonCollector::per_triangle(Attribute per_polygon) const {
    if (!tracked_) return per_polygon;
    return select(per_polygon, View<const int32_t, 1>(sources_.data(), {static_cast<int64_t>(sources_.size())}));
}

}  // namespace stipple::io
