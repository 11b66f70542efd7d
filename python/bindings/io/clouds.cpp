// stipple.io: PointCloud, Mesh and their attributes.

#include <algorithm>
#include <cstring>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/module.h"

namespace stipple::python {
namespace {

struct BoundsResult {
    static constexpr auto name = py::detail::const_name("Bounds");
    static constexpr const char* fields[] = {"min", "max", "finite"};
};

// ---- attributes

void erase_attribute(const AttributesObject& o, const std::string& name) {
    o.held->require_free(name.c_str());
    Attributes& list = o.list();
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i].name() == name) {
            o.held->retire(std::move(list[i]));
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
            return;
        }
    throw py::key_error(name);
}

void set_attribute(const AttributesObject& o, const std::string& name, const ArrayLike& array) {
    // A copy: a column that shared the memory of another one of its cloud would keep the cloud alive for ever.
    Attribute made = attribute_argument(array, name, o.rows(), Sharing::copied);
    o.held->require_free(name.c_str());
    Attribute* old = find(o.list(), name);
    if (!old) {
        o.list().push_back(std::move(made));
    } else if (old->dtype() == made.dtype() && old->components() == made.components()) {
        if (made.rows() > 0) std::memcpy(old->data(), made.data(), static_cast<size_t>(made.rows() * made.row_bytes()));
    } else {
        o.held->retire(std::move(*old));
        *old = std::move(made);
    }
}

py::object attribute_or_none(const AttributesObject& o, const std::string& name) {
    Attribute* found = find(o.list(), name);
    return found ? view_of(o.held, *found) : py::none();
}

py::object get_attribute(const AttributesObject& o, const std::string& name) {
    py::object found = attribute_or_none(o, name);
    if (found.is_none()) throw py::key_error(name);
    return found;
}

py::list names_of(const AttributesObject& o) {
    py::list names;
    for (const Attribute& attribute : o.list()) names.append(attribute.name());
    return names;
}

/// The columns of a new cloud, which share the memory of the arrays.
void add_all(const AttributesObject& o, const py::object& attributes) {
    if (attributes.is_none()) return;
    const py::dict items(attributes);
    for (const auto& [key, array] : items) {
        const auto name = py::cast<std::string>(key);
        if (find(o.list(), name))
            set_attribute(o, name, py::reinterpret_borrow<ArrayLike>(array));
        else
            o.list().push_back(
                attribute_argument(py::reinterpret_borrow<py::object>(array), name, o.rows(), Sharing::allowed));
    }
}

std::string list_text(const AttributesObject& o) {
    std::string text;
    for (const Attribute& a : o.list())
        text += fmt::format("{}{} {}[{}]", text.empty() ? "" : ", ", a.name(), name_of(a.dtype()), a.components());
    return text.empty() ? "no attributes" : text;
}

// ---- facts

py::dict facts_of(const FileFacts& facts) {
    py::dict made;
    py::list records;
    for (const FileFacts::Record& record : facts.coordinate_system) {
        py::dict entry;
        entry["owner"] = record.owner;
        entry["id"] = record.id;
        entry["description"] = py::bytes(record.description);
        entry["bytes"] = py::bytes(record.bytes);
        records.append(entry);
    }
    made["coordinate_system"] = records;
    made["grid"] = py::none();
    if (facts.grid) {
        py::dict grid;
        grid["scale"] = tuple_of(facts.grid->scale);
        grid["offset"] = tuple_of(facts.grid->offset);
        made["grid"] = grid;
    }
    static const char* const kTimes[] = {"unknown", "gps_week_seconds", "gps_adjusted_standard"};
    made["time_type"] = kTimes[static_cast<int>(facts.time_type)];
    made["synthetic_returns"] = facts.synthetic_returns;
    made["viewpoint"] = facts.viewpoint ? py::object(tuple_of(*facts.viewpoint)) : py::none();
    return made;
}

// ---- clouds

CloudObject make_cloud(const ArrayLike& positions, const NumbersLike& origin, const py::object& attributes) {
    PointCloud cloud;
    cloud.positions = positions_argument(positions, "positions", Sharing::allowed);
    cloud.origin = numbers_of<3>(origin, "origin");
    CloudObject made = give(std::move(cloud));
    add_all({made.held, false}, attributes);
    return made;
}

py::object positions_of(const CloudObject& o) {
    const int64_t shape[] = {o.cloud().size(), 3};
    return view_of(o.held, o.cloud().positions.data(), DType::f32, shape);
}

void set_positions(const CloudObject& o, const ArrayLike& positions) {
    PointCloud& cloud = o.cloud();
    Array<float, 2> made = positions_argument(positions, "positions", Sharing::copied);
    const auto bytes = static_cast<size_t>(made.elements()) * sizeof(float);
    if (made.size(0) == cloud.size()) {
        if (bytes > 0) std::memcpy(cloud.positions.data(), made.data(), bytes);
        return;
    }
    o.held->require_free("positions");
    STIPPLE_REQUIRE(cloud.attributes.empty() && o.held->mesh.faces() == 0,
                    "positions: {} rows for a cloud of {} points with attributes or faces: make a new one",
                    made.size(0), cloud.size());
    o.held->retire(std::move(cloud.positions));
    cloud.positions = std::move(made);
}

py::object world_of(const CloudObject& o) {
    const Reading reading(o.held);
    const PointCloud& cloud = o.cloud();
    Array<double, 2> world({cloud.size(), 3});
    without_gil([&] {
        for (int64_t i = 0; i < cloud.size(); ++i)
            for (int axis = 0; axis < 3; ++axis) world.data()[3 * i + axis] = cloud.world(i, axis);
    });
    return numpy_of(std::move(world));
}

/// The points that a mask or indices choose.
std::vector<int32_t> chosen_points(const py::object& indices_, int64_t n) {
    std::vector<int32_t> chosen;
    const auto choose = [&](int64_t index) {
        STIPPLE_REQUIRE(index >= 0 && index < n, "indices: {} of {} points", index, n);
        chosen.push_back(static_cast<int32_t>(index));
    };
    if (PyList_Check(indices_.ptr()) || PyTuple_Check(indices_.ptr())) {
        for (int64_t index : whole_numbers(indices_, "indices")) choose(index);
        return chosen;
    }
    Call call;
    const ArrayInfo info = call.any(indices_, "indices");
    STIPPLE_REQUIRE(info.rank == 1 && info.device == Device{},
                    "indices: an array of shape {}; wanted is [k], on the CPU", shape_of(info));
    const int64_t count = info.shape[0];
    if (info.dtype == DType::boolean) {
        STIPPLE_REQUIRE(count == n, "indices: a mask of {} for {} points", count, n);
        for (int64_t i = 0; i < count; ++i)
            if (static_cast<const uint8_t*>(info.data)[i] != 0) choose(i);
    } else if (info.dtype == DType::i32) {
        for (int64_t i = 0; i < count; ++i) choose(static_cast<const int32_t*>(info.data)[i]);
    } else if (info.dtype == DType::i64) {
        for (int64_t i = 0; i < count; ++i) choose(static_cast<const int64_t*>(info.data)[i]);
    } else {
        throw py::type_error(
            fmt::format("indices: an array of {}; wanted is bool, int32 or int64", name_of(info.dtype)));
    }
    return chosen;
}

CloudObject select_points(const CloudObject& o, const ArrayLike& indices) {
    const std::vector<int32_t> chosen = chosen_points(indices, o.cloud().size());
    const Reading reading(o.held);
    return give(without_gil([&] {
        const View<const int32_t, 1> view(chosen.data(), {static_cast<int64_t>(chosen.size())});
        return select(reading.mesh().vertices, view);
    }));
}

Record<BoundsResult> bounds(const CloudObject& o) {
    const Reading reading(o.held);
    const Bounds found = without_gil([&] { return bounds_of(reading.mesh().vertices); });
    return record<BoundsResult>(tuple_of(found.min), tuple_of(found.max), py::int_(found.finite));
}

std::string repr_of(const CloudObject& o) {
    const auto& at = o.cloud().origin;
    return fmt::format("stipple.io.PointCloud({} points, origin ({}, {}, {}), {})", o.cloud().size(), at[0], at[1],
                       at[2], list_text({o.held, false}));
}

// ---- meshes

MeshObject make_mesh(const py::object& vertices, const ArrayLike& triangles, const NumbersLike& origin,
                     const py::object& attributes, const py::object& face_attributes) {
    Mesh mesh;
    if (py::isinstance<CloudObject>(vertices)) {
        mesh.vertices = vertices.cast<const CloudObject&>().cloud().clone();
    } else {
        mesh.vertices.positions = positions_argument(vertices, "vertices", Sharing::allowed);
        mesh.vertices.origin = numbers_of<3>(origin, "origin");
    }
    mesh.triangles = triangles_argument(triangles, "triangles", mesh.vertices.size());
    MeshObject made = give(std::move(mesh));
    add_all({made.held, false}, attributes);
    add_all({made.held, true}, face_attributes);
    return made;
}

py::object triangles_of(const MeshObject& o) {
    const int64_t shape[] = {o.mesh().faces(), 3};
    return view_of(o.held, o.mesh().triangles.data(), DType::i32, shape);
}

void bind_attributes(py::module_& io) {
    py::class_<AttributesObject>(
        io, "Attributes",
        "The columns of a cloud or of the faces of a mesh, by name: a mapping of views, [n] or "
        "[n, c], without a copy.\n\nWhat is assigned is copied once, of any element type; into "
        "the column's own memory where type and shape are the same. A view keeps the cloud "
        "alive, also when its column is gone.")
        .def("__getitem__", &get_attribute, py::arg("name"))
        .def("__setitem__", &set_attribute, py::arg("name"), py::arg("array"))
        .def("__delitem__", &erase_attribute, py::arg("name"))
        .def("__contains__",
             [](const AttributesObject& o, const py::object& name) {
                 return PyUnicode_Check(name.ptr()) && find(o.list(), name.cast<std::string>()) != nullptr;
             })
        .def("__len__", [](const AttributesObject& o) { return o.list().size(); })
        .def("__iter__", [](const AttributesObject& o) { return py::iter(names_of(o)); })
        .def("keys", &names_of, "Names, in the order of the file.")
        .def(
            "values",
            [](const AttributesObject& o) {
                py::list made;
                for (Attribute& attribute : o.list()) made.append(view_of(o.held, attribute));
                return made;
            },
            "Views of all columns.")
        .def(
            "items",
            [](const AttributesObject& o) {
                py::list made;
                for (Attribute& attribute : o.list())
                    made.append(py::make_tuple(attribute.name(), view_of(o.held, attribute)));
                return made;
            },
            "Names with views.")
        .def(
            "get",
            [](const AttributesObject& o, const std::string& name, const py::object& otherwise) {
                py::object found = attribute_or_none(o, name);
                return found.is_none() ? otherwise : found;
            },
            py::arg("name"), py::arg("default") = py::none(), "The column, or something else where there is none.")
        .def("update", &add_all, py::arg("attributes"), "Sets every column of a dict.")
        .def("__repr__", [](const AttributesObject& o) { return "stipple.io.Attributes(" + list_text(o) + ")"; });
}

/// A column under a property of its own; None deletes it.
template <class Class>
void add_column(Class& class_, const char* property, const char* name, const char* documentation) {
    class_.def_property(
        property,
        [name](const CloudObject& o) {
            return attribute_or_none({o.held, false}, name);
        },
        [name](const CloudObject& o, const ArrayLike& array) {
            if (!array.is_none())
                set_attribute({o.held, false}, name, array);
            else if (find(o.cloud().attributes, name))
                erase_attribute({o.held, false}, name);
        },
        documentation);
}

}  // namespace

void bind_clouds(py::module_& io) {
    add_record<BoundsResult>(io);
    bind_warning(io);
    bind_attributes(io);
    const py::tuple nowhere = py::make_tuple(0.0, 0.0, 0.0);
    py::class_<CloudObject> cloud(io, "PointCloud", doc::core::PointCloud);
    cloud
        .def(
            py::init(&make_cloud), py::arg("positions"), py::kw_only(), py::arg("origin") = nowhere,
            py::arg("attributes") = py::none(),
            "positions [n, 3] float32, any strides; attributes a dict of [n] or [n, c] arrays. The cloud is made "
            "around the arrays, without a copy: who changes one changes the other. Arrays that are read-only, or whose "
            "numbers are not adjacent, are copied; copy() makes a cloud that shares nothing. CPU.")
        .def_property("positions", &positions_of, &set_positions,
                      "[n, 3] float32 about the origin: a view that keeps the cloud alive. Assigning copies into it.")
        .def_property(
            "origin", [](const CloudObject& o) { return tuple_of(o.cloud().origin); },
            [](const CloudObject& o, const NumbersLike& origin) { o.cloud().origin = numbers_of<3>(origin, "origin"); },
            "Added to every position: assigning it moves all points in the world. (move_origin keeps their places.)")
        .def_property_readonly(
            "attributes",
            [](const CloudObject& o) {
                return AttributesObject{o.held, false};
            },
            "The columns by name: cloud.attributes[\"intensity\"]. Views, without a copy.")
        .def_property_readonly(
            "facts", [](const CloudObject& o) { return facts_of(o.cloud().facts); },
            "What the file said about all points together: a dict, made anew each time.")
        .def(
            "forget_place", [](const CloudObject& o) { o.cloud().facts.forget_place(); },
            "For points that were moved: drops what told their place (coordinate system, grid, viewpoint).")
        .def("world", &world_of, "origin + positions, [n, 3] float64, a new array.")
        .def("select", &select_points, py::arg("indices"),
             "The points at indices (int32 or int64 [k]), or where a mask [n] is true, with all that they carry.")
        .def("bounds", &bounds, doc::core::bounds_of)
        .def(
            "drop_nonfinite",
            [](const CloudObject& o) {
                const Reading reading(o.held);
                return give(without_gil([&] { return drop_nonfinite(reading.mesh().vertices); }));
            },
            doc::core::drop_nonfinite)
        .def(
            "shift_origin",
            [](const CloudObject& o, const NumbersLike& by) { shift_origin(o.cloud(), numbers_of<3>(by, "by")); },
            py::arg("by"), doc::core::shift_origin)
        .def(
            "move_origin",
            [](const CloudObject& o, const NumbersLike& origin) {
                return move_origin(o.cloud(), numbers_of<3>(origin, "origin"));
            },
            py::arg("origin"), doc::core::move_origin)
        .def(
            "copy",
            [](const CloudObject& o) {
                const Reading reading(o.held);
                return give(without_gil([&] { return reading.mesh().vertices.clone(); }));
            },
            "A cloud of its own memory.")
        .def("__copy__", [](const CloudObject& o) { return give(o.cloud().clone()); })
        .def("__deepcopy__", [](const CloudObject& o, const py::object&) { return give(o.cloud().clone()); })
        .def(py::pickle([](const CloudObject& o) { return state_of(o.held); },
                        [](const py::tuple& state) { return CloudObject{held_of(state)}; }))
        .def("__len__", [](const CloudObject& o) { return o.cloud().size(); })
        .def("__repr__", &repr_of);
    add_column(cloud, "normals", "normal", "attributes[\"normal\"], float32 [n, 3], or None.");
    add_column(cloud, "colors", "color", "attributes[\"color\"], uint8, uint16 or float32 [n, 3 or 4], or None.");

    py::class_<MeshObject>(io, "Mesh", "A cloud with triangles, and attributes of its faces.")
        .def(py::init(&make_mesh), py::arg("vertices"), py::arg("triangles"), py::kw_only(),
             py::arg("origin") = nowhere, py::arg("attributes") = py::none(), py::arg("face_attributes") = py::none(),
             "vertices [n, 3] float32 or a PointCloud, triangles [m, 3] int32 or int64, each index in [0, n); "
             "attributes "
             "as PointCloud takes them, and shared in the same way; indices of int64 and a PointCloud are copied. CPU.")
        .def_property_readonly(
            "vertices", [](const MeshObject& o) { return CloudObject{o.held}; },
            "The points, with their attributes and origin: a PointCloud of the same memory.")
        .def_property_readonly(
            "positions", [](const MeshObject& o) { return positions_of({o.held}); },
            "Of the vertices, [n, 3] float32: a view.")
        .def_property_readonly(
            "origin", [](const MeshObject& o) { return tuple_of(o.mesh().vertices.origin); }, "Of the vertices.")
        .def_property_readonly(
            "attributes",
            [](const MeshObject& o) {
                return AttributesObject{o.held, false};
            },
            "Of the vertices.")
        .def_property_readonly("triangles", &triangles_of, "[m, 3] int32: a view that keeps the mesh alive.")
        .def_property_readonly(
            "face_attributes",
            [](const MeshObject& o) {
                return AttributesObject{o.held, true};
            },
            "Of the faces, each with m rows.")
        .def_property_readonly(
            "faces", [](const MeshObject& o) { return o.mesh().faces(); }, "How many triangles.")
        .def(
            "bounds", [](const MeshObject& o) { return bounds({o.held}); }, doc::core::bounds_of)
        .def(
            "validate", [](const MeshObject& o) { validate(o.mesh()); }, doc::core::validate)
        .def(
            "copy",
            [](const MeshObject& o) {
                const Reading reading(o.held);
                return give(without_gil([&] { return reading.mesh().clone(); }));
            },
            "A mesh of its own memory.")
        .def("__copy__", [](const MeshObject& o) { return give(o.mesh().clone()); })
        .def("__deepcopy__", [](const MeshObject& o, const py::object&) { return give(o.mesh().clone()); })
        .def(py::pickle([](const MeshObject& o) { return state_of(o.held); },
                        [](const py::tuple& state) { return MeshObject{held_of(state)}; }))
        .def("__repr__", [](const MeshObject& o) {
            return fmt::format("stipple.io.Mesh({} vertices, {} faces, {}; of faces: {})", o.mesh().vertices.size(),
                               o.mesh().faces(), list_text({o.held, false}), list_text({o.held, true}));
        });
}

}  // namespace stipple::python
