#include "python/bindings/common/any_cloud.h"

#include <cstring>

#include "python/bindings/common/small_values.h"

namespace stipple::python {
namespace {

/// A copy of rows [n, 3], on their device.
PointCloud copied(const View<const float, 2>& from) {
    PointCloud cloud(from.size(0), from.device());
    if (from.size(0) == 0) return cloud;
    constexpr int64_t kRow = 3 * sizeof(float);
    float* to = cloud.positions.data();
    if (from.stride(0) == 3) {
        copy_bytes(to, from.device(), from.data(), from.device(), kRow * from.size(0));
        return cloud;
    }
    STIPPLE_REQUIRE(from.device() == Device{}, "rows of points on a GPU must follow each other");
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
    made_ = without_gil([&] { return copied(rows.clouds.rows); });
}

AnyMesh::AnyMesh(const py::object& object, const char* name) {
    if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) {
        given_.emplace(object, name);
        return;
    }
    const std::string vertices_name = fmt::format("{}[0], vertices", name);
    const std::string triangles_name = fmt::format("{}[1], triangles", name);
    Call call;
    const CloudsArgument vertices =
        call.clouds(sequence_part(object, name, 2, 0), vertices_name.c_str(), py::none(), 3);
    STIPPLE_REQUIRE(vertices.form.is_single(), "{}: a batch; wanted is [n, 3]", vertices_name);
    STIPPLE_REQUIRE(call.device() == Device{}, "{}: on {}; wanted is a mesh on the CPU", name, call.device());
    const py::object triangles = sequence_part(object, name, 2, 1);
    made_.vertices = copied(vertices.clouds.rows);
    made_.triangles = copied_triangles(triangles, triangles_name.c_str(), made_.vertices.size());
}

}  // namespace stipple::python
