// stipple.geometry: parts of clouds (planes, ground, regions, expressions), clouds together, pose graphs.

#include "python/bindings/geometry/common.h"
#include "stipple/geometry/ground.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/geometry/mesh_parts.h"
#include "stipple/geometry/planes.h"
#include "stipple/geometry/point_filter.h"
#include "stipple/geometry/pose_graph.h"
#include "stipple/geometry/region.h"
#include "stipple/geometry/split_cloud.h"
#include "stipple/geometry/sweep_rings.h"

namespace stipple::python {
namespace {

struct PlaneResult {
    static constexpr auto name = py::detail::const_name("PlaneSegment");
    static constexpr const char* fields[] = {"normal", "offset", "points", "rms"};
};
struct PlanesResult {
    static constexpr auto name = py::detail::const_name("PlaneSegments");
    static constexpr const char* fields[] = {"planes", "labels"};
};
struct GroundResult {
    static constexpr auto name = py::detail::const_name("Ground");
    static constexpr const char* fields[] = {"is_ground", "height", "cell", "columns", "rows"};
};
struct SweepResult {
    static constexpr auto name = py::detail::const_name("SweepRings");
    static constexpr const char* fields[] = {"sensor", "rings", "step"};
};
struct EdgeResult {
    static constexpr auto name = py::detail::const_name("PoseEdge");
    static constexpr const char* fields[] = {"from_scan", "to_scan", "transform", "information", "center", "strength"};
};
struct GraphResult {
    static constexpr auto name = py::detail::const_name("PoseGraphResult");
    static constexpr const char* fields[] = {"poses", "is_placed", "residuals", "is_dropped", "iterations", "rms"};
};

Record<PlanesResult> find_planes(const CloudLike& cloud_, double distance, int64_t count, int64_t min_points,
                                 int trials, uint64_t seed) {
    const CloudArgument cloud(cloud_, "cloud");
    const geometry::PlaneOptions options{distance, count, min_points, trials, seed};
    auto found = without_gil([&] { return geometry::find_planes(cloud.cloud(), options); });
    py::list planes;
    for (const geometry::PlaneSegment& plane : found.planes)
        planes.append(
            record<PlaneResult>(tuple_of(plane.normal), number(plane.offset), number(plane.points), number(plane.rms)));
    return record<PlanesResult>(planes, numpy_of(std::move(found.labels)));
}

Record<GroundResult> find_ground(const CloudLike& cloud_, double cell, double window, double slope, double step,
                                 double height) {
    const CloudArgument cloud(cloud_, "cloud");
    const geometry::GroundOptions options{cell, window, slope, step, height};
    auto found = without_gil([&] { return geometry::find_ground(cloud.cloud(), options); });
    return record<GroundResult>(numpy_mask(std::move(found.is_ground)), numpy_of(std::move(found.height)),
                                number(found.cell), number(found.columns), number(found.rows));
}

py::object find_sweep_rings(const CloudLike& cloud_) {
    const CloudArgument cloud(cloud_, "cloud");
    auto found = without_gil([&] { return geometry::find_sweep_rings(cloud.cloud()); });
    if (!found) return py::none();
    py::list rings;
    for (std::vector<int32_t>& ring : found->rings) rings.append(numpy_of(std::move(ring)));
    const Vec3d sensor = found->sensor;
    return record<SweepResult>(py::make_tuple(sensor.x, sensor.y, sensor.z), rings, number(found->step));
}

geometry::Region region_of(const py::object& box, const py::object& sphere, const py::object& polygon) {
    geometry::Region region;
    if (!box.is_none()) {
        const py::sequence corners(box);
        STIPPLE_REQUIRE(corners.size() == 2, "box: wanted is (min, max), three numbers each");
        region.box = {numbers_of<3>(py::object(corners[0]), "box"), numbers_of<3>(py::object(corners[1]), "box")};
    }
    if (!sphere.is_none()) {
        const py::sequence parts(sphere);
        STIPPLE_REQUIRE(parts.size() == 2, "sphere: wanted is (centre, radius)");
        region.sphere = {numbers_of<3>(py::object(parts[0]), "sphere"), py::float_(py::object(parts[1]))};
    }
    if (!polygon.is_none())
        for (py::handle corner : polygon) region.polygon.push_back(numbers_of<2>(corner, "polygon"));
    geometry::require_region(region);
    return region;
}

py::object sides_of(const CloudLike& cloud_, const py::object& box, const py::object& sphere,
                    const py::object& polygon) {
    const CloudArgument cloud(cloud_, "cloud");
    const geometry::Region region = region_of(box, sphere, polygon);
    std::vector<uint8_t> sides = without_gil([&] {
        const std::vector<geometry::Side> found = geometry::sides_of(cloud.cloud(), region);
        std::vector<uint8_t> numbers(found.size());
        for (size_t i = 0; i < found.size(); ++i) numbers[i] = static_cast<uint8_t>(found[i]);
        return numbers;
    });
    return numpy_of(std::move(sides));
}

py::list parse_polygon(std::string_view text) {
    py::list corners;
    for (const auto& corner : geometry::parse_polygon(text)) corners.append(tuple_of(corner));
    return corners;
}

py::object filter_mask(const geometry::PointFilter& filter, const CloudLike& cloud_) {
    const CloudArgument cloud(cloud_, "cloud");
    return numpy_mask(without_gil([&] { return filter.mask(cloud.cloud()); }));
}

CloudObject merge_clouds(const py::list& clouds_, std::string_view missing_) {
    constexpr Word<geometry::MissingAttributes> kMissing[] = {{"refuse", geometry::MissingAttributes::refuse},
                                                              {"fill", geometry::MissingAttributes::fill},
                                                              {"drop", geometry::MissingAttributes::drop}};
    const auto missing = choice(missing_, "missing", kMissing);
    std::vector<CloudArgument> clouds;
    clouds.reserve(clouds_.size());
    for (py::handle item : clouds_) clouds.emplace_back(py::reinterpret_borrow<py::object>(item), "clouds");
    return give(without_gil([&] {
        std::vector<geometry::CloudSchema> schemas(clouds.size());
        for (size_t i = 0; i < clouds.size(); ++i) {
            schemas[i].name = fmt::format("cloud {}", i);
            schemas[i].add(clouds[i].cloud());
        }
        const geometry::MergePlan plan = geometry::plan_merge(schemas, missing);
        std::vector<Mesh> fitted(clouds.size());
        std::vector<const Mesh*> pointers;
        FileFacts facts;
        for (size_t i = 0; i < clouds.size(); ++i) {
            fitted[i].vertices = geometry::fitted(clouds[i].cloud(), plan, schemas[i].color_maximum());
            if (i == 0)
                facts = clouds[i].cloud().facts;
            else
                geometry::merge_facts(facts, clouds[i].cloud().facts);
            pointers.push_back(&fitted[i]);
        }
        PointCloud made = std::move(geometry::merge_meshes(pointers).vertices);
        made.facts = std::move(facts);
        return made;
    }));
}

geometry::PoseEdge edge_argument(py::handle item) {
    const py::sequence parts(py::reinterpret_borrow<py::object>(item));
    STIPPLE_REQUIRE(parts.size() == 6, "edges: a tuple of {}; wanted are the six parts of edge_of", parts.size());
    geometry::PoseEdge edge;
    edge.from = py::cast<int32_t>(py::object(parts[0]));
    edge.to = py::cast<int32_t>(py::object(parts[1]));
    edge.transform = rigid_of(py::object(parts[2]), "edges");
    edge.information = six_by_six(py::object(parts[3]), "edges");
    edge.center = numbers_of<3>(py::object(parts[4]), "edges");
    edge.strength = py::cast<double>(py::object(parts[5]));
    return edge;
}

Record<EdgeResult> edge_of(int32_t from, int32_t to, const geometry::IcpResult& found, double radius, double strength) {
    const geometry::PoseEdge edge = geometry::edge_of(from, to, found, radius, strength);
    return record<EdgeResult>(number(edge.from), number(edge.to), matrix_of(edge.transform),
                              matrix_of(edge.information), tuple_of(edge.center), number(edge.strength));
}

Record<GraphResult> optimise_poses(int32_t nodes, const py::list& edges_, double tolerance, int iterations) {
    std::vector<geometry::PoseEdge> edges;
    for (py::handle item : edges_) edges.push_back(edge_argument(item));
    auto found = without_gil([&] { return geometry::optimise_poses(nodes, edges, {tolerance, iterations}); });
    py::list poses;
    for (const auto& pose : found.poses) poses.append(matrix_of(pose));
    std::vector<double> residuals;
    std::vector<uint8_t> dropped;
    for (const auto& edge : found.edges) {
        residuals.push_back(edge.residual);
        dropped.push_back(edge.is_dropped ? 1 : 0);
    }
    return record<GraphResult>(poses, numpy_mask(std::move(found.is_placed)), numpy_of(std::move(residuals)),
                               numpy_mask(std::move(dropped)), number(found.iterations), number(found.rms));
}

void bind_splitting(py::module_& g) {
    using geometry::CloudSplitter;
    py::class_<CloudSplitter>(g, "CloudSplitter", doc::geometry::CloudSplitter)
        .def_static("by_attribute", &CloudSplitter::by_attribute, py::arg("name"),
                    "One part for each value of an attribute of one component. -0 is 0, and all NaN are one value.")
        .def_static("by_tile", &CloudSplitter::by_tile, py::arg("size"),
                    "Squares of x and y that begin at multiples of size in the world.")
        .def_static("by_count", &CloudSplitter::by_count, py::arg("count"), "So many points each, in their order.")
        .def(
            "assign",
            [](CloudSplitter& o, const CloudLike& piece, int64_t most) {
                const CloudArgument cloud(piece, "piece");
                return numpy_of(without_gil([&] { return o.assign(cloud.cloud(), most); }));
            },
            py::arg("piece"), py::arg("most") = 10'000, "[n] parts of a cloud or a piece of one; -1: none.")
        .def_property_readonly(
            "names",
            [](const CloudSplitter& o) {
                py::list names;
                for (const std::string& name : o.names()) names.append(name);
                return names;
            },
            "A name for each part so far, fit for a file.");
    g.def(
        "members",
        [](const ArrayLike& parts_, int64_t count) {
            Call call;
            const auto parts = call.array<int32_t, 1>(parts_, "parts");
            STIPPLE_REQUIRE(count >= 0 && count <= INT32_MAX, "count: {}; wanted is 0 to 2^31 - 1", count);
            STIPPLE_REQUIRE(parts.device() == Device{}, "parts: on {}; wanted are numbers on the CPU", parts.device());
            for (int64_t i = 0; i < parts.size(0); ++i)
                STIPPLE_REQUIRE(parts.data()[i] < count, "parts: part {} of {}", parts.data()[i], count);
            auto found = without_gil([&] {
                return geometry::members({parts.data(), parts.data() + parts.size(0)}, static_cast<size_t>(count));
            });
            py::list made;
            for (auto& part : found) made.append(numpy_of(std::move(part)));
            return made;
        },
        py::arg("parts"), py::arg("count"), doc::geometry::members);
}

}  // namespace

void bind_scans(py::module_& g) {
    add_record<PlaneResult>(g);
    add_record<PlanesResult>(g);
    add_record<GroundResult>(g);
    add_record<EdgeResult>(g);
    add_record<GraphResult>(g);
    add_record<SweepResult>(g);
    bind_splitting(g);
    const py::none none;
    const geometry::PlaneOptions planes;
    const geometry::GroundOptions ground;
    g.def("find_planes", &find_planes, py::arg("cloud"), py::kw_only(), py::arg("distance"),
          py::arg("count") = planes.count, py::arg("min_points") = planes.min_points, py::arg("trials") = planes.trials,
          py::arg("seed") = planes.seed, doc::geometry::find_planes);
    g.def("find_sweep_rings", &find_sweep_rings, py::arg("cloud"),
          noted("Returns None for a cloud that is no sweep.", doc::geometry::find_sweep_rings).c_str());
    g.def("find_ground", &find_ground, py::arg("cloud"), py::kw_only(), py::arg("cell") = ground.cell,
          py::arg("window") = ground.window, py::arg("slope") = ground.slope, py::arg("step") = ground.step,
          py::arg("height") = ground.height, doc::geometry::find_ground);
    g.def("sides_of", &sides_of, py::arg("cloud"), py::kw_only(), py::arg("box") = none, py::arg("sphere") = none,
          py::arg("polygon") = none,
          noted("Returns uint8 [n]: 0 outside, 1 inside, 2 nowhere. box is (min, max), sphere (centre, radius), "
                "polygon a list of (x, y).",
                doc::geometry::sides_of)
              .c_str());
    g.def("parse_polygon", &parse_polygon, py::arg("text"), doc::geometry::parse_polygon);
    py::class_<geometry::PointFilter>(g, "PointFilter", doc::geometry::PointFilter)
        .def(py::init([](std::string_view expression) { return geometry::PointFilter(expression); }),
             py::arg("expression"), "Parses; an ArgumentError names the column.")
        .def("mask", &filter_mask, py::arg("cloud"), "[n] bool: the points of an io.PointCloud that it chooses.")
        .def_property_readonly(
            "text", [](const geometry::PointFilter& o) { return o.text(); }, "The expression.")
        .def_property_readonly(
            "names",
            [](const geometry::PointFilter& o) {
                py::list names;
                for (const std::string& name : o.names()) names.append(name);
                return names;
            },
            "Of the attributes that it looks at.");
    g.def("merge_clouds", &merge_clouds, py::arg("clouds"), py::arg("missing") = "refuse",
          "All points in one cloud, in the order of the clouds, with the attributes that plan_merge of merge_clouds.h "
          "finds: types that hold all values exactly; what some clouds lack is refused, filled or dropped.");
    g.def("edge_of", &edge_of, py::arg("from_scan"), py::arg("to_scan"), py::arg("found"), py::arg("radius"),
          py::arg("strength") = 1.0, doc::geometry::edge_of);
    g.def("optimise_poses", &optimise_poses, py::arg("nodes"), py::arg("edges"), py::kw_only(), py::arg("tolerance"),
          py::arg("iterations") = 100,
          noted("edges are what edge_of returns, or tuples of the same parts.", doc::geometry::optimise_poses).c_str());
}

}  // namespace stipple::python
