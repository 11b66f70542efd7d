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
    check_fields(watertight_fields(), &options);
    STIPPLE_REQUIRE(options.cap_holes <= options.resolution, "cap_holes must be 0 to the resolution, {}, got {}",
                    options.resolution, options.cap_holes);
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

const Fields& watertight_fields() {
    using Options = WatertightOptions;
    static const Fields fields = {
        field<&Options::resolution>("resolution", "Voxels along the longest side, 2 to 2048").between(2, 2048),
        field<&Options::cap_holes>("cap_holes", "Close gaps narrower than this many voxels; 0 closes none").from(0),
        field<&Options::offset>("offset", "Voxels between surface and input; a sheet becomes twice as thick")
            .between(0.01, 0.5),
        field<&Options::tolerance>("tolerance", "Voxels that leaving out faces may cost; 0 leaves out none")
            .between(0, 1),
        field<&Options::faces>("faces", "At most so many faces, whatever that costs").from(0).shown("N").no_default(),
        field<&Options::keep_inner>("keep_inner", "Keep walls of cavities that the outside does not reach"),
        field<&Options::project>("project", "Leave the steps of the voxels")};
    return fields;
}

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
