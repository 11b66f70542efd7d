#include "python/bindings/common/any_cloud.h"

#include <cstring>

#include "python/bindings/common/small_values.h"

namespace stipple::python {
namespace {

/// A cloud around rows [n, 3] of an array, which it keeps. It may only be read.
PointCloud around(const View<const float, 2>& from, const py::object& array) {
    constexpr int64_t kRow = 3 * sizeof(float);
    PointCloud cloud;
    if (from.stride(0) == 3 || from.size(0) <= 1) {
        auto* data = const_cast<float*>(from.data());
        cloud.positions = {Buffer::borrowed(data, kRow * from.size(0), from.device(), keep(array)), {from.size(0), 3}};
        return cloud;
    }
    STIPPLE_REQUIRE(from.device() == Device{}, "rows of points on a GPU must follow each other");
    cloud = PointCloud(from.size(0));
    float* to = cloud.positions.data();
    for (int64_t i = 0; i < from.size(0); ++i) std::memcpy(to + 3 * i, from.data() + i * from.stride(0), kRow);
    return cloud;
}

}  // namespace

AnyCloud::AnyCloud(Call& call, const py::object& object, const char* name) {
    if (py::isinstance<CloudObject>(object)) {
        given_.emplace(object, name);
        return;
    }
    const CloudsArgument rows = call.clouds(object, name, py::none(), 3);
    STIPPLE_REQUIRE(rows.form.is_single(), "{}: a batch; wanted is one cloud, [n, 3]", name);
    made_ = around(rows.clouds.rows, object);
    trace_address(name, made_.positions.data());
}

AnyMesh::AnyMesh(const py::object& object, const char* name) {
    if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) {
        given_.emplace(object, name);
        return;
    }
    const std::string vertices_name = fmt::format("{}[0], vertices", name);
    const std::string triangles_name = fmt::format("{}[1], triangles", name);
    const py::object rows = sequence_part(object, name, 2, 0);
    const CloudsArgument vertices = call_.clouds(rows, vertices_name.c_str(), py::none(), 3);
    STIPPLE_REQUIRE(vertices.form.is_single(), "{}: a batch; wanted is [n, 3]", vertices_name);
    STIPPLE_REQUIRE(call_.device() == Device{}, "{}: on {}; wanted is a mesh on the CPU", name, call_.device());
    made_.vertices = around(vertices.clouds.rows, rows);
    trace_address(vertices_name.c_str(), made_.vertices.positions.data());
    made_.triangles =
        triangles_argument(sequence_part(object, name, 2, 1), triangles_name.c_str(), made_.vertices.size());
    trace_address(triangles_name.c_str(), made_.triangles.data());
}

}  // namespace stipple::python
