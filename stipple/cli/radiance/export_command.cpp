#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/io/npy.h"
#include "stipple/radiance/export.h"

namespace stipple::cli {
namespace {

struct RadianceExportOptions {
    std::string field;
    OutputFile output;
    bool points = false, mesh = false, density = false;
    radiance::PointsOptions point_options;
    radiance::MeshOptions mesh_options;
    std::vector<double> box;
    Option count, spacing, confidence, level, least_part;
};

void require_one_product(const RadianceExportOptions& options) {
    STIPPLE_REQUIRE(options.points + options.mesh + options.density == 1,
                    "export what? Give one of --points, --mesh and --density");
    const auto only = [](const Option& option, bool allowed, const char* with) {
        STIPPLE_REQUIRE(!option.given() || allowed, "--{} is for {}", option.name(), with);
    };
    only(options.count, options.points, "--points");
    only(options.spacing, options.points, "--points");
    only(options.confidence, options.points, "--points");
    only(options.level, options.mesh, "--mesh");
    only(options.least_part, options.mesh, "--mesh");
    STIPPLE_REQUIRE(!options.count.given() || !options.spacing.given(), "--count and --spacing: give one of them");
    STIPPLE_REQUIRE(!options.density || options.box.empty(), "--box is for --points and --mesh");
}

void export_points_of(const radiance::Field& field, const RadianceExportOptions& options, io::Format format,
                      const Common& common, Result& result) {
    radiance::PointsOptions wanted = options.point_options;
    wanted.box = parse_box(options.box);
    wanted.seed = common.seed;
    if (options.spacing.given()) wanted.count = 0;
    if (field.cameras.empty())
        throw Error(ErrorCode::bad_argument, Place{options.field}, "has no cameras: nothing tells what was seen of it",
                    "--mesh needs none");
    std::optional<Progress> bar;
    Mesh cloud;
    cloud.vertices = about_file(options.field, [&] {
        return radiance::export_points(field, wanted, parse_device(common.device), [&](int64_t done, int64_t total) {
            if (done == 1) bar.emplace("export", total, progress_mode(common), "views");
            bar->add();
        });
    });
    bar.reset();
    const int64_t points = cloud.vertices.size();
    if (points == 0)
        throw Error(ErrorCode::bad_file, Place{options.field}, "its cameras see no surface there",
                    "--confidence 0 keeps points that few cameras agree on");
    if (wanted.count > points)
        result.warnings.push_back(
            fmt::format("{}: {} points, fewer than the {} asked for: its cameras have no more pixels", options.field,
                        grouped(points), grouped(wanted.count)));
    result.fields["points"] = points;
    save_output(cloud, options.output, format,
                fmt::format("{} points with normals, colours and confidence, seen by {} cameras", grouped(points),
                            field.cameras.size()),
                common, result);
}

void export_mesh_of(const radiance::Field& field, const RadianceExportOptions& options, io::Format format,
                    const Common& common, Result& result) {
    radiance::MeshOptions wanted = options.mesh_options;
    wanted.box = parse_box(options.box);
    const Mesh mesh = about_file(options.field, [&] { return radiance::export_mesh(field, wanted); });
    if (mesh.faces() == 0)
        throw Error(ErrorCode::bad_file, Place{options.field},
                    fmt::format("no voxel there has an opacity of {}", wanted.level), "try a lower --level");
    const geometry::MeshCheck check = geometry::check_mesh(mesh);
    result.fields["faces"] = mesh.faces();
    result.fields["components"] = check.components;
    save_output(mesh, options.output, format,
                fmt::format("{} vertices, {} faces in {} part{}, with colours", grouped(mesh.vertices.size()),
                            grouped(mesh.faces()), grouped(check.components), check.components == 1 ? "" : "s"),
                common, result);
}

void export_density_of(const radiance::Field& field, const RadianceExportOptions& options, const Common& common,
                       Result& result) {
    Array<float, 3> grid = radiance::export_density(field);
    io::NpyArray array;
    for (int64_t extent : grid.shape()) array.shape.push_back(extent);
    array.data = Buffer(grid.elements() * static_cast<int64_t>(sizeof(float)));
    copy_bytes(array.data.data(), {}, grid.data(), {}, array.data.bytes());
    if (!common.dry_run) {
        AtomicFile file(options.output.path, common.overwrite_mode());
        io::write_npy_array(array, file);
        file.commit();
    }
    const Json described = describe_field(options.field, field).fields;
    result.fields["box"] = described.value("box");
    result.fields["outputs"] = Json::array(
        {{{"path", options.output.path}, {"format", "npy"}, {"shape", grid.shape()}, {"written", !common.dry_run}}});
    const auto corner = [&](const float* ends) {
        return fmt::format("{:.6g} {:.6g} {:.6g}", field.origin[0] + ends[0], field.origin[1] + ends[1],
                           field.origin[2] + ends[2]);
    };
    result.text += fmt::format("{} {}: density at {} x {} x {} nodes from {} to {}\n",
                               common.dry_run ? "would write" : "wrote", printable(options.output.path), grid.size(0),
                               grid.size(1), grid.size(2), corner(field.grid.box.low), corner(field.grid.box.high));
}

Result run_radiance_export(const RadianceExportOptions& options, const Common& common) {
    require_one_product(options);
    parse_box(options.box);
    std::optional<io::Format> format;
    if (options.density) {
        STIPPLE_REQUIRE(options.output.path.ends_with(".npy"), "{}: a grid of densities is NPY, name it .npy",
                        options.output.path);
        require_writable(options.output.path, common.overwrite_mode());
    } else {
        format = require_output(options.output, common);
    }
    Result result;
    result.fields["inputs"] = Json::array({options.field});
    const radiance::Field field = radiance::load_field(options.field);
    if (options.points) export_points_of(field, options, *format, common, result);
    if (options.mesh) export_mesh_of(field, options, *format, common, result);
    if (options.density) export_density_of(field, options, common, result);
    return result;
}

}  // namespace

Command add_radiance_export(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceExportOptions>();
    Arguments& app = group.command("export", "Points, a mesh or the grid of densities of a field");
    Option input = app.option("FIELD", options->field, "A file that stipple radiance train wrote");
    Option output = add_output(app, options->output);
    app.flag("--points", options->points, "Coloured points with normals and confidence, of what its cameras see");
    app.flag("--mesh", options->mesh, "A closed surface with colours, by marching cubes");
    app.flag("--density", options->density, "Densities at the nodes, NPY [X, Y, Z]");
    const Fields &points = radiance::point_export_fields(), &mesh = radiance::mesh_export_fields();
    options->count = app.add(points, &options->point_options, "count");
    options->spacing = app.add(points, &options->point_options, "spacing");
    options->confidence = app.add(points, &options->point_options, "confidence");
    options->level = app.add(mesh, &options->mesh_options, "level");
    options->least_part = app.add(mesh, &options->mesh_options, "least_part");
    app.option("--box", options->box, "Only what is in it; inf: no end").count(6).text("X0 Y0 Z0 X1 Y1 Z1");
    add_output_format(app, options->output);
    app.footer(
        "Example:\n  stipple radiance export lego.field --points --count 500000 -o lego.ply\n"
        "  stipple radiance export lego.field --mesh --level 0.3 -o lego_mesh.ply");
    return {&app, [options, &common] { return run_radiance_export(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
