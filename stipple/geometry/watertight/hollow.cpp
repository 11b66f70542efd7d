#include <algorithm>
#include <cmath>

#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/watertight.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::geometry {

double hollow_share(const MeshView& input, const MeshView& solid) {
    if (input.faces() == 0 || solid.faces() == 0) return 0;
    const Box<float> box = box_of_faces(input);
    if (!(box.longest_side() > 0)) return 0;
    // The middles of cells that are cubes or less.
    constexpr float kSide = 24;
    int64_t cells[3];
    for (int axis = 0; axis < 3; ++axis)
        cells[axis] = std::max<int64_t>(1, std::lround(kSide * box.extent(axis) / box.longest_side()));
    const int64_t n = cells[0] * cells[1] * cells[2];
    Array<float, 2> places({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        const int64_t at[3] = {i % cells[0], i / cells[0] % cells[1], i / (cells[0] * cells[1])};
        for (int axis = 0; axis < 3; ++axis)
            places.data()[3 * i + axis] = box.low[axis] + box.extent(axis) * (static_cast<float>(at[axis]) + 0.5f) /
                                                              static_cast<float>(cells[axis]);
    }
    Array<float, 1> in_input({n}), in_solid({n});
    winding_number(WindingIndex(input), places.view(), in_input.view());
    winding_number(WindingIndex(solid), places.view(), in_solid.view());
    int64_t enclosed = 0, hollow = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (!(std::abs(in_input.data()[i]) > 0.5f)) continue;
        ++enclosed;
        hollow += in_solid.data()[i] < 0.5f;
    }
    constexpr int64_t kFewest = 30;
    return enclosed < kFewest ? 0 : static_cast<double>(hollow) / static_cast<double>(enclosed);
}

}  // namespace stipple::geometry
