#pragma once
// A SensorView tells how far the surface lies in each direction from a sensor, and so where nothing is.
//
// Depth cameras give a scan in coordinates whose origin is the sensor. Whether that is so, the scan itself tells: all
// of it lies in a cone, little hides behind something else, and surfaces turn their backs to the origin at far fewer
// places than to places elsewhere around the scan.

#include <optional>
#include <vector>

#include "stipple/core/view.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

class SensorView {
public:
    /// Takes points and normals (any side) thinned to cells of edge `voxel`, and gives nothing where they do not look
    /// as if they were seen from `place`. O(n log n). CPU.
    static std::optional<SensorView> of(View<const float, 2> points, View<const float, 2> normals, const Vector3& place,
                                        double voxel);

    const Vector3& place() const { return place_; }

    /// measured: surface was seen in this direction; free: and it is clearly farther away than the point.
    struct Sight {
        bool is_measured = false, is_free = false;
    };
    Sight look_at(const Vector3& point) const;

private:
    SensorView(const Vector3& place, double voxel, int side);
    /// The cell of a direction, -1 for none.
    int64_t cell_of(const Vector3& way, int& u, int& v) const;
    void widen();

    Vector3 place_ = {};
    double voxel_ = 0;
    int side_ = 0;                // cells along an edge of each of the six faces of a cube around the place
    std::vector<float> nearest_;  // depth, infinite where nothing was seen
    std::vector<float> around_;   // the same, the least of the cell and its eight neighbours on the face; 0 where few
};

}  // namespace stipple::geometry
