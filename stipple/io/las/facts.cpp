// What the kept header of a LAS file tells: for those who put files together or move their points.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/io/las.h"

namespace stipple::io {

std::optional<Bounds> las_box(const LasFacts& las) {
    constexpr size_t kBox = 179;  // max and min of x, y and z in turn
    double box[3][2];
    if (las.header.size() < kBox + sizeof box) return std::nullopt;
    std::memcpy(box, las.header.data() + kBox, sizeof box);
    return Bounds{.min = {box[0][1], box[1][1], box[2][1]}, .max = {box[0][0], box[1][0], box[2][0]}, .finite = 1};
}

bool have_same_records(const LasFacts& a, const LasFacts& b) {
    constexpr size_t kLayout = 104, kBytes = 3;  // point format, and the length of a record
    return a.header.size() >= kLayout + kBytes && b.header.size() >= kLayout + kBytes &&
           a.header.compare(kLayout, kBytes, b.header, kLayout, kBytes) == 0;
}

FileFacts::Grid grid_for(const Bounds& box, FileFacts::Grid grid) {
    for (size_t axis = 0; axis < 3 && box.finite > 0; ++axis) {
        const double farthest =
            std::max(std::abs(box.min[axis] - grid.offset[axis]), std::abs(box.max[axis] - grid.offset[axis]));
        if (farthest / grid.scale[axis] <= kMostOfGrid) continue;
        grid.offset[axis] = std::floor(0.5 * (box.min[axis] + box.max[axis]));
        grid.scale[axis] = std::max(grid.scale[axis], 0.5 * (box.max[axis] - box.min[axis] + 2) / kMostOfGrid);
    }
    return grid;
}

}  // namespace stipple::io
