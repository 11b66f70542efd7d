#pragma once
// What the bindings of metrics share: clouds as Points.

#include "docstrings.h"
#include "python/bindings/common/any_cloud.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/small_values.h"
#include "python/bindings/module.h"
#include "stipple/metrics/normalise.h"

namespace stipple::python {

/// stipple.metrics.Points.
struct PointsObject {
    std::shared_ptr<const metrics::Points> points;
};

/// Points as they are; or a cloud or an array [n, 3], in the frame that is given.
std::shared_ptr<const metrics::Points> points_argument(Call& call, const py::object& object, const char* name,
                                                       const metrics::Frame& frame);

/// Two of them in one frame: about the origin of the first.
struct PointsPair {
    std::shared_ptr<const metrics::Points> a, b;
};
PointsPair points_pair(Call& call, const py::object& a, const char* a_name, const py::object& b, const char* b_name);

/// None: where the arrays are.
inline Device device_or(const py::object& device, const Call& call) {
    return device.is_none() ? call.device() : device_argument(device);
}

}  // namespace stipple::python
