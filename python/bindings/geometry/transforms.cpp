// stipple.geometry: rigid and affine transforms, 4 x 4 matrices of float64.

#include "python/bindings/geometry/common.h"

namespace stipple::python {
namespace {

using geometry::AffineTransform;
using geometry::RigidTransform;

py::object transformed(const py::object& shape_, const py::object& transform_) {
    const AffineTransform transform = affine_of(transform_, "transform");
    const ShapeArgument shape(shape_, "mesh");
    Mesh made = without_gil([&] { return geometry::transformed(shape.mesh(), transform); });
    if (shape.is_cloud()) return py::cast(give(std::move(made.vertices)));
    return py::cast(give(std::move(made)));
}

py::object nearest_rotation(const py::object& matrix) {
    auto numbers = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(matrix);
    PyErr_Clear();
    STIPPLE_REQUIRE(numbers && numbers.ndim() == 2 && numbers.shape(0) == 3 && numbers.shape(1) == 3,
                    "matrix: wanted are 3 x 3 numbers");
    geometry::Matrix3 from;
    for (size_t i = 0; i < 9; ++i) from[i / 3][i % 3] = numbers.data()[i];
    const geometry::Matrix3 found = geometry::nearest_rotation(from);
    py::array_t<double> made({3, 3});
    for (size_t i = 0; i < 9; ++i) made.mutable_data()[i] = found[i / 3][i % 3];
    return made;
}

py::object best_fit(const ArrayLike& from_, const ArrayLike& to_, const ArrayLike& weights_) {
    Call call;
    const PointsArgument from(call, from_, "from"), to(call, to_, "to");
    const auto weights = call.array_or_none<double, 1>(weights_, "weights");
    RigidTransform found;
    call.run([&](Stream) {
        found = geometry::best_fit(from.view(), to.view(),
                                   {weights.data(), static_cast<size_t>(weights.data() ? weights.size(0) : 0)});
    });
    return matrix_of(found);
}

}  // namespace

void bind_transforms(py::module_& g) {
    const py::tuple zero = py::make_tuple(0.0, 0.0, 0.0);
    g.def("transformed", &transformed, py::arg("mesh"), py::arg("transform"),
          noted("Of an io.PointCloud or an io.Mesh, by any matrix of 4 x 4; returns a new one of its kind.",
                doc::geometry::transformed)
              .c_str());
    g.def("nearest_rotation", &nearest_rotation, py::arg("matrix"), doc::geometry::nearest_rotation);
    g.def("best_fit", &best_fit, py::arg("from_points"), py::arg("to_points"), py::arg("weights") = py::none(),
          noted("Returns 4 x 4. weights are float64 [n].", doc::geometry::best_fit).c_str());
    g.def(
        "inverse", [](const py::object& t) { return matrix_of(geometry::inverse(affine_of(t, "transform"))); },
        py::arg("transform"), doc::geometry::inverse);
    g.def(
        "determinant", [](const py::object& t) { return geometry::determinant(affine_of(t, "transform")); },
        py::arg("transform"), "Of the 3 x 3 part of a 4 x 4 matrix.");
    g.def(
        "about",
        [](const py::object& t, const NumbersLike& point) {
            return matrix_of(geometry::about(affine_of(t, "transform"), numbers_of<3>(point, "point")));
        },
        py::arg("transform"), py::arg("point"), doc::geometry::about);
    g.def(
        "axis_swap", [](std::string_view text) { return matrix_of(geometry::axis_swap(text)); }, py::arg("text"),
        doc::geometry::axis_swap);
    g.def(
        "rotation_angle", [](const py::object& t) { return geometry::rotation_angle(rigid_of(t, "transform")); },
        py::arg("transform"), doc::geometry::rotation_angle);
    g.def(
        "to_quaternion",
        [](const py::object& t) { return tuple_of(geometry::to_quaternion(rigid_of(t, "transform"))); },
        py::arg("transform"), doc::geometry::to_quaternion);
    g.def(
        "from_quaternion",
        [](const NumbersLike& wxyz, const NumbersLike& translation) {
            return matrix_of(
                geometry::from_quaternion(numbers_of<4>(wxyz, "wxyz"), numbers_of<3>(translation, "translation")));
        },
        py::arg("wxyz"), py::arg("translation") = zero, doc::geometry::from_quaternion);
    g.def(
        "rotation_about",
        [](const NumbersLike& axis, double radians, const NumbersLike& center) {
            return matrix_of(
                geometry::rotation_about(numbers_of<3>(axis, "axis"), radians, numbers_of<3>(center, "center")));
        },
        py::arg("axis"), py::arg("radians"), py::arg("center") = zero, doc::geometry::rotation_about);
    g.def(
        "between_origins",
        [](const py::object& world, const NumbersLike& from, const NumbersLike& to) {
            return matrix_of(geometry::between_origins(rigid_of(world, "world"), numbers_of<3>(from, "from_origin"),
                                                       numbers_of<3>(to, "to_origin")));
        },
        py::arg("world"), py::arg("from_origin"), py::arg("to_origin"), doc::geometry::between_origins);
    g.def(
        "in_world",
        [](const py::object& local, const NumbersLike& from, const NumbersLike& to) {
            return matrix_of(geometry::in_world(rigid_of(local, "local"), numbers_of<3>(from, "from_origin"),
                                                numbers_of<3>(to, "to_origin")));
        },
        py::arg("local"), py::arg("from_origin"), py::arg("to_origin"),
        "The inverse of between_origins: a motion of positions about two origins as one of the world.");
    g.def(
        "to_text", [](const py::object& t) { return geometry::to_text(affine_of(t, "transform")); },
        py::arg("transform"), doc::geometry::to_text);
    g.def(
        "parse_transform", [](std::string_view text) { return matrix_of(geometry::parse_transform(text)); },
        py::arg("text"), doc::geometry::parse_transform);
    g.def(
        "parse_affine", [](std::string_view text) { return matrix_of(geometry::parse_affine(text)); }, py::arg("text"),
        doc::geometry::parse_affine);
}

}  // namespace stipple::python
