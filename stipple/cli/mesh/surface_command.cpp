#include <cmath>

#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/reconstruct.h"
#include "stipple/tasks/normals.h"

namespace stipple::cli {
namespace {

struct MeshSurfaceOptions {
    InputFile input;
    OutputFile output;
    geometry::ReconstructOptions reconstruction;
    int k = 16;
};

/// Those of the cloud, or estimated ones that agree with each other and point outwards.
Array<float, 2> normals_of(const PointCloud& cloud, const MeshSurfaceOptions& options, const Common& common,
                           Result& result) {
    Array<float, 2> normals({cloud.size(), 3});
    const Attribute* given = find(cloud.attributes, "normal");
    result.fields["normals"] = given ? "given" : "estimated";
    if (given) {
        if (given->components() != 3)
            throw Error(ErrorCode::bad_file, Place{options.input.path}, "its normals have not three components");
        for (int64_t i = 0; i < 3 * cloud.size(); ++i)
            normals.data()[i] = static_cast<float>(given->value(i / 3, i % 3));
        return normals;
    }
    const Device device = parse_device(common.device);
    const Array<float, 2> points = cloud.positions.to(device);
    Array<float, 2> estimated({cloud.size(), 3}, device);
    geometry::estimate_normals(points.view(), estimated.view(), {}, options.k);
    normals = estimated.to(Device{});
    const bool faces_sensor = tasks::orient_normals(cloud, normals.view(), options.k) == tasks::Orientation::viewpoint;
    result.warnings.push_back(fmt::format("{}: has no normals: estimated from {} neighbours and turned {}",
                                          options.input.path, options.k,
                                          faces_sensor ? "towards the sensor" : "outwards"));
    return normals;
}

/// Says how many points have no usable normal, which reconstruct_surface leaves out.
void count_normals(const Array<float, 2>& normals, const MeshSurfaceOptions& options, Result& result) {
    int64_t without = 0;
    const int64_t n = normals.size(0);
    for (int64_t i = 0; i < n; ++i) {
        const float* v = normals.data() + 3 * i;
        const double length = std::hypot(v[0], v[1], v[2]);
        without += !(length > 0) || !std::isfinite(length);
    }
    constexpr int64_t kFewest = 4;
    if (without > 0 && n - without < kFewest)
        throw Error(ErrorCode::bad_file, Place{options.input.path},
                    fmt::format("{} of {} points are finite with a normal, a surface needs at least {}",
                                grouped(n - without), grouped(n), kFewest));
    if (without > 0)
        result.warnings.push_back(fmt::format("{}: {} of {} points have no usable normal, left out", options.input.path,
                                              grouped(without), grouped(n)));
    result.fields["without_normal"] = without;
}

Result run_surface(const MeshSurfaceOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.k >= 3 && options.k <= 127, "--k must be 3 to 127, got {}", options.k);
    const io::Format format = require_output(options.output, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    PointCloud cloud = load_points(options.input, common, result);
    recentre(cloud);
    const Mesh mesh = about_file(options.input.path, [&] {
        const Array<float, 2> normals = normals_of(cloud, options, common, result);
        count_normals(normals, options, result);
        Mesh surface = geometry::reconstruct_surface(cloud.positions.view(), normals.view(), options.reconstruction);
        surface.vertices.origin = cloud.origin;
        return surface;
    });
    if (mesh.faces() == 0)
        throw Error(ErrorCode::bad_file, Place{options.input.path},
                    fmt::format("{} points are too few or too far apart: they make no surface", grouped(cloud.size())));
    const geometry::MeshCheck check = geometry::check_mesh(mesh);
    result.fields["surface"] = check_json(mesh, check);
    save_output(mesh, options.output, format,
                fmt::format("{} vertices, {} faces of {} points; watertight: {}", grouped(mesh.vertices.size()),
                            grouped(mesh.faces()), grouped(cloud.size()), watertight_text(mesh, check)),
                common, result);
    if (!common.table.empty())
        result.text = format_table({{"file", "points", "vertices", "faces", "watertight", "components", "written"},
                                    {{options.output.path, cloud.size(), mesh.vertices.size(), mesh.faces(),
                                      check.is_watertight(mesh) ? "yes" : "no", check.components, !common.dry_run}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_mesh_surface(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshSurfaceOptions>();
    geometry::ReconstructOptions& reconstruction = options->reconstruction;
    Arguments& app = group.command("surface", "Make a closed surface of points");
    Option input = app.option("CLOUD", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--resolution", reconstruction.resolution, "Cells along the longest side; 0: by the points' spacing")
        .from_zero();
    app.option("--softening", reconstruction.softening, "More is smoother, less keeps detail and noise");
    app.option("--min-component", reconstruction.min_component, "Leave out parts of less than this share of the area");
    app.option("--k", options->k, "Neighbours that tell a normal, where the cloud has none");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Normals must point outwards; a cloud without normals gets estimated ones, and a warning says so.\n\n"
        "Example:\n  stipple mesh surface scan.ply -o scan_mesh.ply");
    return {&app, [options, &common] { return run_surface(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
