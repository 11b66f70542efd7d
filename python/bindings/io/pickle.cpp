// Clouds and meshes for pickle: how multiprocessing and Dask send them. Nothing is lost, the facts of the file neither.

#include <cstring>

#include "python/bindings/common/cloud_object.h"

namespace stipple::python {
namespace {

constexpr int kVersion = 1;

py::list texts(const std::vector<std::string>& list) {
    py::list made;
    for (const std::string& each : list) made.append(py::bytes(each));
    return made;
}

std::vector<std::string> texts_from(const py::object& list) {
    std::vector<std::string> made;
    for (py::handle each : list) made.push_back(py::cast<std::string>(each));
    return made;
}

py::object facts_state(const FileFacts& facts) {
    py::list records;
    for (const FileFacts::Record& r : facts.coordinate_system)
        records.append(py::make_tuple(py::bytes(r.owner), r.id, py::bytes(r.description), py::bytes(r.bytes)));
    const py::object grid =
        facts.grid ? py::object(py::make_tuple(tuple_of(facts.grid->scale), tuple_of(facts.grid->offset))) : py::none();
    const py::object viewpoint = facts.viewpoint ? py::object(tuple_of(*facts.viewpoint)) : py::none();
    const py::object las = facts.las
                               ? py::object(py::make_tuple(py::bytes(facts.las->header), texts(facts.las->records),
                                                           py::bytes(facts.las->gap), texts(facts.las->extended)))
                               : py::none();
    return py::make_tuple(records, grid, static_cast<int>(facts.time_type), facts.synthetic_returns, viewpoint, las);
}

FileFacts facts_from(const py::tuple& state) {
    FileFacts facts;
    for (py::handle item : state[0]) {
        const auto r = py::cast<py::tuple>(item);
        facts.coordinate_system.push_back({py::cast<std::string>(r[0]), py::cast<uint16_t>(r[1]),
                                           py::cast<std::string>(r[2]), py::cast<std::string>(r[3])});
    }
    if (!state[1].is_none()) {
        const auto grid = py::cast<py::tuple>(state[1]);
        facts.grid = {numbers_of<3>(grid[0], "grid"), numbers_of<3>(grid[1], "grid")};
    }
    const int time = py::cast<int>(state[2]);
    STIPPLE_REQUIRE(time >= 0 && time <= 2, "a pickled cloud: no such time type");
    facts.time_type = static_cast<TimeType>(time);
    facts.synthetic_returns = py::cast<bool>(state[3]);
    if (!state[4].is_none()) facts.viewpoint = numbers_of<7>(state[4], "viewpoint");
    if (!state[5].is_none()) {
        const auto las = py::cast<py::tuple>(state[5]);
        facts.las = std::make_shared<const LasFacts>(LasFacts{py::cast<std::string>(las[0]), texts_from(las[1]),
                                                              py::cast<std::string>(las[2]), texts_from(las[3])});
    }
    return facts;
}

/// Bytes instead of arrays: numpy has no bfloat16.
py::list attributes_state(Attributes& attributes) {
    py::list made;
    for (Attribute& a : attributes)
        made.append(py::make_tuple(
            a.name(), static_cast<int>(a.dtype()), a.components(),
            py::bytes(reinterpret_cast<const char*>(a.data()), static_cast<size_t>(a.rows() * a.row_bytes()))));
    return made;
}

Attributes attributes_from(const py::object& list, int64_t rows) {
    Attributes made;
    for (py::handle item : list) {
        const auto parts = py::cast<py::tuple>(item);
        const int dtype = py::cast<int>(parts[1]);
        STIPPLE_REQUIRE(dtype >= 0 && dtype <= static_cast<int>(DType::boolean), "a pickled cloud: no such type");
        const auto bytes = py::cast<py::bytes>(parts[3]);
        Attribute a(py::cast<std::string>(parts[0]), static_cast<DType>(dtype), rows, py::cast<int64_t>(parts[2]));
        STIPPLE_REQUIRE(PyBytes_GET_SIZE(bytes.ptr()) == rows * a.row_bytes(), "a pickled cloud: {} is cut short",
                        a.name());
        if (rows > 0) std::memcpy(a.data(), PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(rows * a.row_bytes()));
        made.push_back(std::move(a));
    }
    return made;
}

}  // namespace

py::tuple state_of(const std::shared_ptr<Held>& held) {
    Mesh& mesh = held->mesh;
    PointCloud& cloud = mesh.vertices;
    const int64_t points[] = {cloud.size(), 3}, faces[] = {mesh.faces(), 3};
    return py::make_tuple(kVersion, view_of(held, cloud.positions.data(), DType::f32, points), tuple_of(cloud.origin),
                          attributes_state(cloud.attributes), facts_state(cloud.facts),
                          view_of(held, mesh.triangles.data(), DType::i32, faces),
                          attributes_state(mesh.face_attributes));
}

std::shared_ptr<Held> held_of(const py::tuple& state) {
    STIPPLE_REQUIRE(state.size() == 7 && py::cast<int>(state[0]) == kVersion, "a pickled cloud of another version");
    auto held = std::make_shared<Held>();
    Mesh& mesh = held->mesh;
    mesh.vertices.positions = positions_argument(state[1], "positions", Sharing::allowed);
    mesh.vertices.origin = numbers_of<3>(state[2], "origin");
    mesh.vertices.attributes = attributes_from(state[3], mesh.vertices.size());
    mesh.vertices.facts = facts_from(py::cast<py::tuple>(state[4]));
    mesh.triangles = triangles_argument(state[5], "triangles", mesh.vertices.size());
    mesh.face_attributes = attributes_from(state[6], mesh.faces());
    return held;
}

}  // namespace stipple::python
