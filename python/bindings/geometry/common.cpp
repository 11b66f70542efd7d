#include "python/bindings/geometry/common.h"

#include <fmt/format.h>

#include <cmath>

namespace stipple::python {
namespace {

py::array_t<double> numbers_2d(const py::object& matrix, const char* name, py::ssize_t side) {
    auto numbers = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(matrix);
    if (!numbers) {
        PyErr_Clear();
        throw py::type_error(fmt::format("{}: {}; wanted are {} x {} numbers", name, type_name(matrix), side, side));
    }
    STIPPLE_REQUIRE(numbers.ndim() == 2 && numbers.shape(0) == side && numbers.shape(1) == side,
                    "{}: wanted are {} x {} numbers", name, side, side);
    return numbers;
}

}  // namespace

SurfaceArgument::SurfaceArgument(Call& call, const py::object& object, const char* name) {
    if (py::isinstance<MeshObject>(object)) {
        reading_.emplace(object.cast<const MeshObject&>().held);
        call.set_device({}, name);
        view_.emplace(reading_->mesh());
        return;
    }
    if (!PyTuple_Check(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) != 2)
        throw py::type_error(fmt::format("{}: {}; wanted is a stipple.io.Mesh or a tuple (vertices, triangles)", name,
                                         type_name(object)));
    const auto part = [&](Py_ssize_t i) {
        return py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(object.ptr(), i));
    };
    const auto vertices = call.array<float, 2>(part(0), "vertices");
    view_.emplace(vertices, call.array<int32_t, 2>(part(1), "triangles"));
}

PointsArgument::PointsArgument(Call& call, const py::object& object, const char* name) {
    if (py::isinstance<CloudObject>(object)) {
        reading_.emplace(object.cast<const CloudObject&>().held);
        call.set_device({}, name);
        view_ = reading_->mesh().vertices.positions.view();
        return;
    }
    view_ = call.array<float, 2>(object, name);
    STIPPLE_REQUIRE(view_.size(1) == 3, "{}: {} numbers a row; wanted is [n, 3]", name, view_.size(1));
}

View<const uint8_t, 1> mask_argument(Call& call, const py::object& object, const char* name) {
    const ArrayInfo info = call.any(object, name);
    if (info.dtype != DType::boolean && info.dtype != DType::u8)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is bool", name, name_of(info.dtype)));
    STIPPLE_REQUIRE(info.rank == 1, "{}: an array of shape {}; wanted is [n]", name, shape_of(info));
    return {static_cast<const uint8_t*>(info.data), {info.shape[0]}, info.device};
}

geometry::AffineTransform affine_of(const py::object& matrix, const char* name) {
    geometry::AffineTransform made;
    if (matrix.is_none()) return made;
    const py::array_t<double> numbers = numbers_2d(matrix, name, 4);
    const double* m = numbers.data();
    STIPPLE_REQUIRE(m[12] == 0 && m[13] == 0 && m[14] == 0 && m[15] == 1, "{}: the last row is not 0 0 0 1", name);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) made.linear[i][j] = m[4 * i + j];
        made.translation[i] = m[4 * i + 3];
    }
    for (int i = 0; i < 12; ++i) STIPPLE_REQUIRE(std::isfinite(m[i]), "{}: a number that is not finite", name);
    return made;
}

geometry::RigidTransform rigid_of(const py::object& matrix, const char* name) {
    const geometry::AffineTransform affine = affine_of(matrix, name);
    try {
        return {geometry::nearest_rotation(affine.linear), affine.translation};
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", name, error.message()));
    }
}

py::object matrix_of(const geometry::AffineTransform& transform) {
    py::array_t<double> made({4, 4});
    double* m = made.mutable_data();
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) m[4 * i + j] = transform.linear[i][j];
        m[4 * i + 3] = transform.translation[i];
    }
    m[12] = m[13] = m[14] = 0;
    m[15] = 1;
    return made;
}

py::object matrix_of(const geometry::RigidTransform& transform) {
    return matrix_of(geometry::to_affine(transform));
}

py::object matrix_of(const std::array<std::array<double, 6>, 6>& numbers) {
    py::array_t<double> made({6, 6});
    for (size_t i = 0; i < 36; ++i) made.mutable_data()[i] = numbers[i / 6][i % 6];
    return made;
}

std::array<std::array<double, 6>, 6> six_by_six(const py::object& matrix, const char* name) {
    const py::array_t<double> numbers = numbers_2d(matrix, name, 6);
    std::array<std::array<double, 6>, 6> made;
    for (size_t i = 0; i < 36; ++i) made[i / 6][i % 6] = numbers.data()[i];
    return made;
}

}  // namespace stipple::python
