#include "stipple/geometry/watertight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/geometry/decimate.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/watertight/shell_cleanup.h"

namespace stipple::geometry {
namespace {

void require_options(const WatertightOptions& options) {
    STIPPLE_REQUIRE(options.resolution >= 2 && options.resolution <= 2048,
                    "watertight: resolution {}, must be 2 to 2048", options.resolution);
    STIPPLE_REQUIRE(options.offset >= 0.01 && options.offset <= 0.5, "watertight: offset {}, must be 0.01 to 0.5",
                    options.offset);
    STIPPLE_REQUIRE(options.cap_holes >= 0 && options.cap_holes <= options.resolution,
                    "watertight: cap_holes {}, must be 0 to the resolution, {}", options.cap_holes, options.resolution);
    STIPPLE_REQUIRE(options.tolerance >= 0 && options.tolerance <= 1, "watertight: tolerance {}, must be 0 to 1",
                    options.tolerance);
    STIPPLE_REQUIRE(options.faces >= 0, "watertight: {} faces, must be at least 0", options.faces);
    STIPPLE_REQUIRE(options.cap_holes == 0 || !options.keep_inner,
                    "watertight: cap_holes fills the inside that keep_inner would keep, take one of them");
}

/// The edge of a voxel. Vertices must be able to differ by fractions of it.
double voxel_of(const MeshView& mesh, int32_t resolution) {
    double extent = 0, largest = 0;
    const Box<float> box = box_of_faces(mesh);
    for (int k = 0; k < 3; ++k) {
        extent = std::max(extent, double{box.high[k]} - double{box.low[k]});
        largest = std::max({largest, std::abs(double{box.low[k]}), std::abs(double{box.high[k]})});
    }
    STIPPLE_REQUIRE(extent > 0, "watertight: all faces are at one point");
    const double voxel = extent / resolution;
    STIPPLE_REQUIRE(
        voxel >= 0x1p-13 * largest,
        "watertight: voxels of {:g} are too small for float32 coordinates of {:g}: move the origin nearer or "
        "take a lower resolution",
        voxel, largest);
    return voxel;
}

}  // namespace

Mesh watertight(const MeshView& mesh, const WatertightOptions& options) {
    require_options(options);
    require_mesh("watertight", mesh);
    STIPPLE_REQUIRE(mesh.device().type == DeviceType::cpu, "watertight: the mesh is on {}, must be on the CPU",
                    to_string(mesh.device()));
    STIPPLE_REQUIRE(mesh.faces() > 0, "watertight: the mesh has no faces");
    const double voxel = voxel_of(mesh, options.resolution);

    // No point of a cell that the input touches is farther from it than the cell's diagonal: that is the tolerance.
    constexpr double kCellsPerVoxel = 1.75;
    ShellVoxels voxels = voxelize_shell(mesh, voxel / kCellsPerVoxel, options.cap_holes > 0);
    if (options.keep_inner) {
        reach_everything(voxels);
    } else if (options.cap_holes > 0) {
        reach_through_gaps(voxels, kCellsPerVoxel * options.cap_holes);
    } else {
        reach_from_outside(voxels);
    }
    const ShellSurface surface = extract_surface(voxels);
    ShellMesh shell = options.project ? project_surface(surface, voxels, mesh, options.offset * voxel)
                                      : place_surface(surface, voxels);
    if (options.project) collapse_short_edges(shell, 0.1 * voxels.step);

    Mesh out;
    out.vertices = PointCloud(static_cast<int64_t>(shell.positions.size()));
    for (size_t i = 0; i < 3 * shell.positions.size(); ++i)
        out.vertices.positions.data()[i] = static_cast<float>(shell.positions[i / 3][i % 3]);
    out.triangles = Array<int32_t, 2>({static_cast<int64_t>(shell.triangles.size()), 3});
    std::memcpy(out.triangles.data(), shell.triangles.data(), shell.triangles.size() * sizeof shell.triangles[0]);
    if (options.faces > 0) return std::move(decimate(out, options.faces).mesh);
    if (options.tolerance > 0) return std::move(decimate(out, 0, options.tolerance * voxel).mesh);
    return out;
}

}  // namespace stipple::geometry
