#include "stipple/metrics/normalise.h"

#include <cmath>

namespace stipple::metrics {

UnitSphere unit_sphere_of(View<const float, 2> points) {
    UnitSphere sphere;
    int64_t finite = 0;
    const auto is_finite = [&](int64_t i) {
        return std::isfinite(points(i, 0)) && std::isfinite(points(i, 1)) && std::isfinite(points(i, 2));
    };
    for (int64_t i = 0; i < points.size(0); ++i) {
        if (!is_finite(i)) continue;
        ++finite;
        for (int axis = 0; axis < 3; ++axis) sphere.center[axis] += points(i, axis);
    }
    STIPPLE_REQUIRE(finite > 0, "normalise: none of {} points is finite", points.size(0));
    for (double& c : sphere.center) c /= static_cast<double>(finite);
    double largest = 0;
    for (int64_t i = 0; i < points.size(0); ++i) {
        if (!is_finite(i)) continue;
        double square = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = points(i, axis) - sphere.center[axis];
            square += d * d;
        }
        largest = std::max(largest, square);
    }
    if (largest > 0) sphere.radius = std::sqrt(largest);
    return sphere;
}

Array<float, 2> normalised(View<const float, 2> points, const UnitSphere& sphere) {
    Array<float, 2> result({points.size(0), 3});
    for (int64_t i = 0; i < points.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis)
            result.data()[3 * i + axis] = static_cast<float>((points(i, axis) - sphere.center[axis]) / sphere.radius);
    return result;
}

}  // namespace stipple::metrics
