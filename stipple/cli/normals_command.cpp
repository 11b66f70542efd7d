#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/common/orient.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/normals.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct NormalsOptions {
    std::string orient = "auto";
    std::vector<double> viewpoint;
    double radius = 0;
    int k = 16;
    bool curvature = false;
};

void require_orientation(const NormalsOptions& options) {
    STIPPLE_REQUIRE(options.k >= 3 && options.k <= 128, "--k must be 3 to 128, got {}", options.k);
    STIPPLE_REQUIRE(options.radius >= 0 && std::isfinite(options.radius) &&
                        (options.radius == 0 || static_cast<float>(options.radius) > 0),
                    "--radius must be above 0, or 0 for none, got {}", options.radius);
    STIPPLE_REQUIRE(options.viewpoint.empty() || options.orient == "viewpoint" || options.orient == "auto",
                    "--viewpoint is for --orient viewpoint");
    for (const double x : options.viewpoint) STIPPLE_REQUIRE(std::isfinite(x), "--viewpoint must be finite, got {}", x);
}

struct Found {
    Array<float, 2> normals;
    Array<float, 1> curvatures;
    int64_t missing = 0;  // points without a normal
    std::string orient;   // none, mst or viewpoint
};

Found normals_of(const PointCloud& cloud, const NormalsOptions& options, Device device) {
    const int64_t n = cloud.size();
    const float radius = options.radius > 0 ? static_cast<float>(options.radius) : HUGE_VALF;
    const Array<float, 2> points = cloud.positions.to(device);
    Array<float, 2> normals({n, 3}, device);
    Array<float, 1> curvatures({n}, device);
    geometry::estimate_normals(points.view(), normals.view(), curvatures.view(), options.k, radius);
    Found found{.normals = normals.to({}), .curvatures = curvatures.to({}), .orient = options.orient};
    if (!options.viewpoint.empty()) {
        std::array<double, 3> viewpoint{};
        for (size_t axis = 0; axis < 3; ++axis) viewpoint[axis] = options.viewpoint[axis] - cloud.origin[axis];
        geometry::orient_towards(cloud.positions.view(), found.normals.view(), viewpoint);
        found.orient = "viewpoint";
    } else if (options.orient == "mst") {
        geometry::orient_consistently(cloud.positions.view(), found.normals.view(), options.k);
    } else if (options.orient != "none") {
        STIPPLE_REQUIRE(options.orient == "auto" || cloud.facts.viewpoint,
                        "--orient viewpoint needs --viewpoint X Y Z: the file does not say where its sensor stood");
        found.orient = orient_normals(cloud, found.normals.view(), options.k);
    }
    for (const float curvature : found.curvatures.span()) found.missing += std::isnan(curvature);
    return found;
}

Attribute float_attribute(const std::string& name, const float* values, int64_t rows, int64_t components) {
    Attribute column(name, DType::f32, rows, components);
    std::copy(values, values + rows * components, column.as<float>().data());
    return column;
}

StepReport put_normals(PointCloud& cloud, const NormalsOptions& options, Device device) {
    const int64_t n = cloud.size();
    const Found found = normals_of(cloud, options, device);
    put_attribute(cloud.attributes, float_attribute("normal", found.normals.data(), n, 3));
    if (options.curvature) put_attribute(cloud.attributes, float_attribute("curvature", found.curvatures.data(), n, 1));
    StepReport report{fmt::format("normals of {} points, {}", grouped(n),
                                  found.orient == "none" ? "not oriented" : "oriented by " + found.orient)};
    if (found.missing > 0)
        report.warnings.push_back(fmt::format("{} of {} points get the normal 0 0 0: their neighbours span no plane",
                                              grouped(found.missing), grouped(n)));
    report.fields["points"] = n;
    report.fields["without_normal"] = found.missing;
    report.fields["k"] = options.k;
    report.fields["radius"] = options.radius > 0 ? Json(options.radius) : Json();
    report.fields["orient"] = found.orient;
    return report;
}

Image before_and_after(const PointCloud& before, const PointCloud& after, const NormalsOptions& options) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("normals, k = {}", options.k), .color_by = "normal"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

using NormalsCommand = CloudCommand<NormalsOptions>;

Result run_normals(const NormalsCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    require_orientation(*command.how);
    const io::Format format = require_output(output, common, "normal");
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    PointCloud& cloud = mesh.vertices;
    const PointCloud before = command.picture.empty() ? PointCloud() : cloud.clone();
    const StepReport report =
        about_file(input.path, [&] { return put_normals(cloud, *command.how, parse_device(common.device)); });
    tell(report, input.path, result);
    save_output(mesh, output, format, report.what, common, result);
    save_picture(
        command.picture, [&] { return before_and_after(before, cloud, *command.how); }, common, result);
    if (!common.table.empty()) {
        const Table table{{"file", "format", "points", "without_normal", "orient", "written"},
                          {{output.path, io::info_of(format).name, cloud.size(), report.fields.value("without_normal"),
                            report.fields.value("orient"), !common.dry_run}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

std::shared_ptr<NormalsOptions> add_normals_options(Arguments& app) {
    auto options = std::make_shared<NormalsOptions>();
    app.option("--k", options->k, "Nearest points that tell a normal, itself among them, 3 to 128");
    app.option("--radius", options->radius, "Of those only the ones within it; 0: all");
    app.option("--orient", options->orient, "auto: viewpoint where it is known, else mst: outwards, neighbours agree")
        .one_of({"auto", "none", "mst", "viewpoint"})
        .text("auto|none|mst|viewpoint");
    app.option("--viewpoint", options->viewpoint,
               "Where the scanner stood, in the file's coordinates; PCD and KITTI know it")
        .count(3)
        .text("X Y Z");
    app.flag("--curvature", options->curvature, "Also an attribute curvature, 0 flat to 1/3");
    return options;
}

}  // namespace

MakeStep add_normals_step(Arguments& app, const Common& common) {
    return [options = add_normals_options(app), &common] {
        require_orientation(*options);
        Step step{.product = "normal"};
        step.run = [options, &common](Mesh& mesh) {
            return put_normals(mesh.vertices, *options, parse_device(common.device));
        };
        return step;
    };
}

Command add_normals(Arguments& root, Common& common) {
    auto command = std::make_shared<NormalsCommand>();
    Arguments& app = root.command("normals", "Normals of a cloud, and which way they point");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_normals_options(app);
    app.option("--picture", command->picture, "Draw input and normals side by side into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple normals scan.ply -o normals.ply --picture normals.png\n"
        "  stipple normals sweep.bin -o sweep.ply\n  stipple normals scan.las --viewpoint 512030 5403210 180 -o "
        "scan.ply");
    return {&app, [command, &common] { return run_normals(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
