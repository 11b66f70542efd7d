#include "stipple/metrics/normalise.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"

namespace stipple::metrics {
namespace {

/// The positions on the CPU: copied where they are not.
class OnCpu {
public:
    explicit OnCpu(const PointCloud& cloud) : data_(cloud.positions.data()) {
        STIPPLE_REQUIRE(cloud.positions.size(1) == 3 || cloud.size() == 0, "positions must be [n, 3], got {}",
                        shape_text(cloud.positions.shape().data(), 2));
        if (cloud.positions.device() == Device{}) return;
        copy_ = cloud.positions.to(Device{});
        data_ = copy_.data();
    }
    const float* operator[](int64_t i) const { return data_ + 3 * i; }

private:
    Array<float, 2> copy_;
    const float* data_;
};

bool is_finite(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

}  // namespace

Frame unit_sphere(const PointCloud& cloud) {
    const OnCpu points(cloud);
    std::array<double, 3> center = {};
    int64_t finite = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        if (!is_finite(points[i])) continue;
        ++finite;
        for (int axis = 0; axis < 3; ++axis) center[axis] += points[i][axis];
    }
    STIPPLE_REQUIRE(finite > 0, "unit_sphere: none of {} points is finite", cloud.size());
    for (double& c : center) c /= static_cast<double>(finite);
    double largest = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        if (!is_finite(points[i])) continue;
        double square = 0;
        for (int axis = 0; axis < 3; ++axis)
            square += (points[i][axis] - center[axis]) * (points[i][axis] - center[axis]);
        largest = std::max(largest, square);
    }
    Frame frame;
    for (int axis = 0; axis < 3; ++axis) frame.origin[axis] = cloud.origin[axis] + center[axis];
    if (largest > 0) frame.scale = std::sqrt(largest);
    return frame;
}

Points in_frame(const PointCloud& cloud, const Frame& frame) {
    STIPPLE_REQUIRE(frame.scale > 0 && std::isfinite(frame.scale), "in_frame: scale {}", frame.scale);
    const OnCpu positions(cloud);
    const int64_t n = cloud.size();
    std::array<double, 3> shift;
    for (int axis = 0; axis < 3; ++axis) shift[axis] = cloud.origin[axis] - frame.origin[axis];
    Points points{Array<double, 2>({n, 3}), Array<float, 2>({n, 3})};
    constexpr int64_t kGrain = 16384;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                const double x = (positions[i][axis] + shift[axis]) / frame.scale;
                points.exact.data()[3 * i + axis] = x;
                points.rounded.data()[3 * i + axis] = static_cast<float>(x);
            }
    });
    // Finite is what a search can find: a coordinate beyond float32 is not.
    for (int64_t i = 0; i < n; ++i) points.finite += is_finite(points.rounded.data() + 3 * i);
    return points;
}

}  // namespace stipple::metrics
