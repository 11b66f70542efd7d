// stipple.geometry: surfaces of points and grids, closed meshes, voxels, Morton codes.

#include "python/bindings/geometry/common.h"
#include "stipple/geometry/marching_cubes.h"
#include "stipple/geometry/morton.h"
#include "stipple/geometry/reconstruct.h"
#include "stipple/geometry/voxelize.h"
#include "stipple/geometry/watertight.h"

namespace stipple::python {
namespace {

MeshObject reconstruct_surface(const ArrayLike& points_, const ArrayLike& normals_, int resolution, int k,
                               float softening, float thinnest, float accuracy, double min_component) {
    const geometry::ReconstructOptions options{resolution, k, softening, thinnest, accuracy, min_component};
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.array<float, 2>(normals_, "normals");
    Mesh made = without_gil([&] { return geometry::reconstruct_surface(points.view(), normals, options); });
    if (py::isinstance<CloudObject>(points_)) {  // in the frame of the points: the cloud's origin is the mesh's too
        const PointCloud& cloud = points_.cast<const CloudObject&>().cloud();
        for (int i = 0; i < 3; ++i) made.vertices.origin[i] += cloud.origin[i];
    }
    return give(std::move(made));
}

MeshObject watertight(const SurfaceLike& mesh_, int32_t resolution, double offset, bool project, int32_t cap_holes,
                      bool keep_inner, double tolerance, int64_t faces) {
    const geometry::WatertightOptions options{resolution, offset, project, cap_holes, keep_inner, tolerance, faces};
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    Mesh made = without_gil([&] { return geometry::watertight(mesh.view(), options); });
    if (py::isinstance<MeshObject>(mesh_)) {  // positions are relative to the input's origin
        const Mesh& input = mesh_.cast<const MeshObject&>().mesh();
        for (int i = 0; i < 3; ++i) made.vertices.origin[i] += input.vertices.origin[i];
    }
    return give(std::move(made));
}

double hollow_share(const SurfaceLike& input_, const SurfaceLike& solid_) {
    Call call;
    const SurfaceArgument input(call, input_, "input"), solid(call, solid_, "solid");
    return without_gil([&] { return geometry::hollow_share(input.view(), solid.view()); });
}

MeshObject marching_cubes(const ArrayLike& values_, float level, const NumbersLike& low, double step,
                          const ArrayLike& blocks_) {
    Call call;
    const auto corner = numbers_of<3>(low, "low");
    if (!blocks_.is_none()) {
        const auto values = call.array<float, 2>(values_, "values");
        const auto blocks = call.array<int32_t, 2>(blocks_, "blocks");
        STIPPLE_REQUIRE(blocks.size(1) == 3 && values.size(0) == blocks.size(0) &&
                            values.size(1) == geometry::SparseGrid::kCorners && values.device() == Device{},
                        "values, blocks: wanted are [blocks, {}] values and [blocks, 3] blocks on the CPU",
                        geometry::SparseGrid::kCorners);
        return give(without_gil([&] {
            geometry::SparseGrid grid;
            grid.low = corner;
            grid.step = step;
            grid.values.assign(values.data(), values.data() + values.elements());
            grid.blocks.resize(static_cast<size_t>(blocks.size(0)));
            for (int64_t i = 0; i < 3 * blocks.size(0); ++i)
                grid.blocks[static_cast<size_t>(i / 3)][static_cast<size_t>(i % 3)] = blocks.data()[i];
            return geometry::marching_cubes(grid, level);
        }));
    }
    const auto values = call.array<float, 3>(values_, "values");
    STIPPLE_REQUIRE(values.device() == Device{}, "values: on {}; wanted are numbers on the CPU", values.device());
    return give(without_gil([&] {
        geometry::ScalarGrid grid;
        grid.size = {values.size(2), values.size(1), values.size(0)};
        grid.low = corner;
        grid.step = step;
        grid.values.assign(values.data(), values.data() + values.elements());
        return geometry::marching_cubes(grid, level);
    }));
}

ArrayResult voxelize_mesh(const SurfaceLike& mesh_, double size, const NumbersLike& origin_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    const auto origin = numbers_of<3>(origin_, "origin");
    Array<int32_t, 2> found;
    call.run([&](Stream) { found = geometry::voxelize_mesh(mesh.view(), size, origin); });
    return call.give(std::move(found));
}

ArrayResult boundary_voxels(const ArrayLike& voxels_) {
    Call call;
    const auto voxels = call.array<int32_t, 2>(voxels_, "voxels");
    Array<int32_t, 1> found;
    call.run([&](Stream) { found = geometry::boundary_voxels(voxels); });
    return call.give(std::move(found));
}

MeshObject voxel_mesh(const ArrayLike& voxels_, double size, const NumbersLike& origin_, double gap) {
    Call call;
    const auto voxels = call.array<int32_t, 2>(voxels_, "voxels");
    const auto origin = numbers_of<3>(origin_, "origin");
    return give(without_gil([&] { return geometry::voxel_mesh(voxels, size, origin, gap); }));
}

int64_t flood_fill(const ArrayLike& grid_, const OffsetsLike& start_, int32_t value) {
    Call call;
    const auto grid = call.writable<int32_t, 3>(grid_, "grid");
    const std::vector<int64_t> start = whole_numbers(start_, "start");
    STIPPLE_REQUIRE(start.size() == 3, "start: {} numbers; wanted are 3", start.size());
    return without_gil([&] { return geometry::flood_fill(grid, {start[0], start[1], start[2]}, value); });
}

ArrayResult morton_encode(const ArrayLike& cells_) {
    Call call;
    const auto cells = call.array<int32_t, 2>(cells_, "cells");
    STIPPLE_REQUIRE(cells.size(1) == 3 && cells.device() == Device{}, "cells: wanted is [n, 3] on the CPU");
    Buffer codes(cells.size(0) * int64_t{8});
    call.run([&](Stream) {
        auto* to = reinterpret_cast<uint64_t*>(codes.data());
        const int32_t* at = cells.data();
        for (int64_t i = 0; i < cells.size(0); ++i)
            to[i] = geometry::morton_encode(at[3 * i], at[3 * i + 1], at[3 * i + 2]);
    });
    const int64_t shape[] = {cells.size(0)};
    return call.give(std::move(codes), DType::u64, shape);
}

ArrayResult morton_decode(const ArrayLike& codes_) {
    Call call;
    const auto codes = call.array<uint64_t, 1>(codes_, "codes");
    STIPPLE_REQUIRE(codes.device() == Device{}, "codes: on {}; wanted are numbers on the CPU", codes.device());
    auto cells = call.make<int32_t, 2>({codes.size(0), 3});
    call.run([&](Stream) {
        for (int64_t i = 0; i < codes.size(0); ++i) {
            const auto cell = geometry::morton_decode(codes.data()[i]);
            for (size_t axis = 0; axis < 3; ++axis) cells.data()[3 * i + static_cast<int64_t>(axis)] = cell[axis];
        }
    });
    return call.give(std::move(cells));
}

}  // namespace

void bind_surfaces(py::module_& g) {
    const py::tuple zero = py::make_tuple(0.0, 0.0, 0.0);
    g.def("reconstruct_surface", &reconstruct_surface, py::arg("points"), py::arg("normals"), py::kw_only(),
          py::arg("resolution") = 0, py::arg("k") = 16, py::arg("softening") = 2.5f, py::arg("thinnest") = 2.0f,
          py::arg("accuracy") = 2.0f, py::arg("min_component") = 0.0, doc::geometry::reconstruct_surface);
    g.def("watertight", &watertight, py::arg("mesh"), py::kw_only(), py::arg("resolution") = 64,
          py::arg("offset") = 0.05, py::arg("project") = true, py::arg("cap_holes") = 0, py::arg("keep_inner") = false,
          py::arg("tolerance") = 0.0, py::arg("faces") = 0, doc::geometry::watertight);
    g.def("hollow_share", &hollow_share, py::arg("input"), py::arg("solid"), doc::geometry::hollow_share);
    g.def(
        "marching_cubes", &marching_cubes, py::arg("values"), py::arg("level"), py::kw_only(), py::arg("low") = zero,
        py::arg("step") = 1.0, py::arg("blocks") = py::none(),
        noted("values [z, y, x] of a ScalarGrid; or of a SparseGrid values [blocks, 64] with blocks [blocks, 3] int32.",
              doc::geometry::marching_cubes)
            .c_str());
    g.def("voxelize_mesh", &voxelize_mesh, py::arg("mesh"), py::arg("size"), py::arg("origin") = zero,
          doc::geometry::voxelize_mesh);
    g.def("boundary_voxels", &boundary_voxels, py::arg("voxels"), doc::geometry::boundary_voxels);
    g.def("voxel_mesh", &voxel_mesh, py::arg("voxels"), py::arg("size"), py::arg("origin") = zero, py::arg("gap") = 0.0,
          doc::geometry::voxel_mesh);
    g.def("flood_fill", &flood_fill, py::arg("grid"), py::arg("start"), py::arg("value"),
          noted("The grid is changed in place; start is (i, j, k) in the order of its dimensions.",
                doc::geometry::flood_fill)
              .c_str());
    g.def("morton_encode", &morton_encode, py::arg("cells"), doc::geometry::morton_encode);
    g.def("morton_decode", &morton_decode, py::arg("codes"), "The cells [n, 3] int32 of codes [n] uint64.");
}

}  // namespace stipple::python
