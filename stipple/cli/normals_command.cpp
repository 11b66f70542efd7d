#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/orient.h"
#include "stipple/cli/common/table.h"
#include "stipple/geometry/normals.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct NormalsOptions {
    InputFile input;
    OutputFile output;
    std::string orient = "auto", picture;
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

/// In place of an attribute of the same name, or at the end.
void put(Attributes& attributes, const std::string& name, const float* values, int64_t rows, int64_t components) {
    Attribute column(name, DType::f32, rows, components);
    std::copy(values, values + rows * components, column.as<float>().data());
    if (Attribute* old = find(attributes, name))
        *old = std::move(column);
    else
        attributes.push_back(std::move(column));
}

Image before_and_after(const PointCloud& before, const PointCloud& after, const NormalsOptions& options) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("normals, k = {}", options.k), .color_by = "normal"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

Result run_normals(const NormalsOptions& options, const Common& common) {
    require_orientation(options);
    const io::Format format = require_output(options.output, common, "normal");
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    Mesh mesh = load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    PointCloud& cloud = mesh.vertices;
    const int64_t n = cloud.size();
    const PointCloud before = options.picture.empty() ? PointCloud() : cloud.clone();
    const Found found =
        about_file(options.input.path, [&] { return normals_of(cloud, options, parse_device(common.device)); });
    put(cloud.attributes, "normal", found.normals.data(), n, 3);
    if (options.curvature) put(cloud.attributes, "curvature", found.curvatures.data(), n, 1);
    if (found.missing > 0)
        result.warnings.push_back(
            fmt::format("{}: {} of {} points get the normal 0 0 0: their neighbours span no plane", options.input.path,
                        grouped(found.missing), grouped(n)));
    result.fields["points"] = n;
    result.fields["without_normal"] = found.missing;
    result.fields["k"] = options.k;
    result.fields["radius"] = options.radius > 0 ? Json(options.radius) : Json();
    result.fields["orient"] = found.orient;
    save_output(mesh, options.output, format,
                fmt::format("normals of {} points, {}", grouped(n),
                            found.orient == "none" ? "not oriented" : "oriented by " + found.orient),
                common, result);
    save_picture(
        options.picture, [&] { return before_and_after(before, cloud, options); }, common, result);
    if (!common.table.empty()) {
        const Table table{
            {"file", "format", "points", "without_normal", "orient", "written"},
            {{options.output.path, io::info_of(format).name, n, found.missing, found.orient, !common.dry_run}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_normals(Arguments& root, Common& common) {
    auto options = std::make_shared<NormalsOptions>();
    Arguments& app = root.command("normals", "Normals of a cloud, and which way they point");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
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
    app.option("--picture", options->picture, "Draw input and normals side by side into this .png");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple normals scan.ply -o normals.ply --picture normals.png\n"
        "  stipple normals sweep.bin -o sweep.ply\n  stipple normals scan.las --viewpoint 512030 5403210 180 -o "
        "scan.ply");
    return {&app, [options, &common] { return run_normals(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
