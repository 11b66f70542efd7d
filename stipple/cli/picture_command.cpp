#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/core/terminal.h"
#include "stipple/io/image_file.h"
#include "stipple/io/las_summary.h"
#include "stipple/io/text.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct PictureOptions {
    std::vector<std::string> inputs, captions, color_by;
    std::string output, from, size = "1024x1024", color_map = "viridis", up = "z", view = "auto", title, unit,
                              eye_dome = "auto";
    std::vector<double> range, inset, aim, eye;
    double azimuth = NAN, elevation = NAN, zoom = 1, point_size = 0;
    int64_t item = -1, columns = 0;
    bool dark = false, flat = false, edges = false, orthographic = false, own_scale = false, scale_bar = false,
         no_legend = false, axes = false;
};

/// Where the sensor of the first scan that knows it stood.
std::array<double, 3> sensor_of(const std::vector<Mesh>& meshes) {
    for (const Mesh& mesh : meshes)
        if (const auto& place = mesh.vertices.facts.viewpoint) return {(*place)[0], (*place)[1], (*place)[2]};
    throw Error(ErrorCode::bad_argument, "--view sensor: the files do not say where the sensor stood",
                "--eye X Y Z says it");
}

void set_viewpoint(const PictureOptions& options, const std::vector<Mesh>& meshes, picture::Viewpoint& viewpoint) {
    const std::vector<std::string>& names = picture::view_names();
    const auto view =
        static_cast<picture::ViewName>(std::find(names.begin(), names.end(), options.view) - names.begin());
    viewpoint.up = picture::up_axis_by_name(options.up);
    const auto place = [](const std::vector<double>& given) { return std::array{given[0], given[1], given[2]}; };
    if (!options.eye.empty())
        viewpoint.eye = place(options.eye);
    else
        set_view(viewpoint, view, view == picture::ViewName::sensor ? sensor_of(meshes) : std::array<double, 3>{});
    if (!std::isnan(options.azimuth)) viewpoint.azimuth = options.azimuth;
    if (!std::isnan(options.elevation)) viewpoint.elevation = options.elevation;
    if (!options.aim.empty()) viewpoint.aim = place(options.aim);
    viewpoint.zoom = options.zoom;
    if (options.orthographic) viewpoint.projection = picture::Projection::orthographic;
}

picture::FigureStyle style_of(const PictureOptions& options, size_t panels) {
    picture::FigureStyle style;
    std::tie(style.panel_width, style.panel_height) = parse_size(options.size);
    style.columns = options.columns;
    style.title = options.title;
    STIPPLE_REQUIRE(options.zoom > 0, "--zoom must be above 0, got {}", options.zoom);
    style.point_radius = options.point_size / 2;
    style.eye_dome = options.eye_dome == "on"    ? picture::EyeDome::on
                     : options.eye_dome == "off" ? picture::EyeDome::off
                                                 : picture::EyeDome::automatic;
    style.dark = options.dark;
    style.smooth = !options.flat;
    style.edges = options.edges;
    style.axes = options.axes;
    style.shared_camera = !options.own_scale;
    style.color_map = picture::color_map_by_name(options.color_map);
    style.legend = !options.no_legend;
    style.scale_bar = options.scale_bar || !options.unit.empty();
    style.length_unit = options.unit;
    if (!options.range.empty()) style.range = {options.range[0], options.range[1]};
    if (!options.inset.empty()) {
        picture::Inset inset;
        inset.x = options.inset[0];
        inset.y = options.inset[1];
        if (options.inset.size() > 2) inset.size = options.inset[2];
        style.inset = inset;
    }
    STIPPLE_REQUIRE(options.captions.empty() || options.captions.size() == panels, "{} captions for {} input{}",
                    options.captions.size(), panels, panels == 1 ? "" : "s");
    STIPPLE_REQUIRE(options.color_by.size() <= 1 || options.color_by.size() == panels, "{} x --color-by for {} input{}",
                    options.color_by.size(), panels, panels == 1 ? "" : "s");
    STIPPLE_REQUIRE(options.point_size >= 0, "--point-size must be from 0, got {}", options.point_size);
    STIPPLE_REQUIRE(options.columns >= 0, "--columns must be from 0, got {}", options.columns);
    return style;
}

/// Whether --color-by names an attribute rather than a coordinate or a constant.
bool is_attribute(const std::string& color_by) {
    for (const char* other : {"", "x", "y", "z", "depth", "constant"})
        if (color_by == other) return false;
    return color_by[0] != '#';
}

/// Where labels are the classes of LAS files, what these mean; else nothing.
std::map<int64_t, std::string> las_classes(const std::vector<picture::Panel>& panels) {
    std::map<int64_t, std::string> names;
    for (const picture::Panel& panel : panels) {
        if (panel.color_by != "label" || !panel.cloud) continue;
        if (!panel.cloud->facts.las) return {};
        for (int number = 0; number < 256 && names.size() < 256; ++number)
            names[number] = fmt::format("{} {}", number, io::las_class_name(number));
    }
    return names;
}

Result run_picture(const PictureOptions& options, const Common& common) {
    picture::FigureStyle style = style_of(options, options.inputs.size());
    require_one_stdin(options.inputs);
    require_free_stdout(options.output, common);
    const size_t dot = options.output.rfind('.');
    const bool is_png = dot != std::string::npos && io::lower_case(options.output.substr(dot)) == ".png";
    STIPPLE_REQUIRE(is_png || options.output == "-", "{}: pictures are PNG, name it .png", options.output);
    if (options.output != "-") require_writable(options.output, common.overwrite_mode());
    Result result;
    std::vector<Mesh> meshes;
    for (const std::string& path : options.inputs)
        meshes.push_back(load_with_progress(path, options.from, options.item, common, result.warnings));
    std::vector<picture::Panel> panels;
    for (size_t i = 0; i < meshes.size(); ++i) {
        picture::Panel panel;
        if (meshes[i].faces() > 0)
            panel.mesh = &meshes[i];
        else
            panel.cloud = &meshes[i].vertices;
        if (!options.captions.empty()) panel.caption = options.captions[i];
        if (!options.color_by.empty())
            panel.color_by = options.color_by.size() == 1 ? options.color_by[0] : options.color_by[i];
        panels.push_back(std::move(panel));
    }
    set_viewpoint(options, meshes, style.viewpoint);
    style.label_names = las_classes(panels);
    const picture::Figure figure = picture::draw_figure(panels, style);
    for (size_t i = 0; i < panels.size(); ++i)
        if (is_attribute(panels[i].color_by) && !find(meshes[i].vertices.attributes, panels[i].color_by) &&
            !find(meshes[i].face_attributes, panels[i].color_by))
            result.warnings.push_back(
                fmt::format("{} has no attribute {}: drawn plain", options.inputs[i], panels[i].color_by));
    result.fields["inputs"] = options.inputs;
    result.fields["outputs"] = Json::array({{{"path", options.output},
                                             {"format", "png"},
                                             {"width", figure.image.width()},
                                             {"height", figure.image.height()},
                                             {"written", !common.dry_run}}});
    result.fields["panels"] = Json::array();
    for (size_t i = 0; i < panels.size(); ++i) {
        const picture::PanelCounts& counts = figure.panels[i];
        result.fields["panels"].push_back({{"points", counts.points}, {"non_finite", counts.nonfinite}});
        const int64_t size = panels[i].cloud ? panels[i].cloud->size() : 0;
        if (options.zoom <= 1 && !style.viewpoint.eye && !style.viewpoint.aim &&
            counts.points + counts.nonfinite < size)
            result.warnings.push_back(fmt::format("{}: {} stray points, far from all others, are not in the picture",
                                                  options.inputs[i], grouped(size - counts.points - counts.nonfinite)));
        if (counts.nonfinite)
            result.warnings.push_back(
                fmt::format("{}: {} non-finite points are not drawn", options.inputs[i], grouped(counts.nonfinite)));
    }
    result.text = fmt::format("{} {}: {} x {} pixels\n", common.dry_run ? "would write" : "wrote",
                              printable(options.output), figure.image.width(), figure.image.height());
    if (common.dry_run) return result;
    if (options.output == "-") {
        StdoutSink sink;
        io::write_png(figure.image, sink);
        result.stdout_taken = true;
        return result;
    }
    io::save_png(options.output, figure.image, common.overwrite_mode());
    return result;
}

}  // namespace

Command add_picture(Arguments& root, Common& common) {
    auto options = std::make_shared<PictureOptions>();
    Arguments& app = root.command("picture", "Draw clouds and meshes side by side into a PNG");
    Option input = app.option("INPUT", options->inputs, "Files; - is standard input");
    Option output = app.option("-o,--output", options->output, "The .png; - is standard output");
    app.option("--size", options->size, "Pixels of one panel, WIDTHxHEIGHT");
    app.option("--columns", options->columns, "Panels in a row; 0 chooses");
    app.option("--captions", options->captions, "One for each input");
    app.option("--title", options->title, "Above all panels");
    app.option("--color-by", options->color_by, "Attribute, x, y, z, depth, #rrggbb; one, or one for each input");
    app.option("--colormap", options->color_map, "viridis, turbo, magma, inferno, plasma, grey, coolwarm");
    app.option("--range", options->range, "Values at the ends of the color map").count(2);
    app.option("--view", options->view, "auto goes by the content; sensor: from where a scan was taken")
        .one_of(picture::view_names());
    app.option("--azimuth", options->azimuth, "Degrees about the up axis, instead of the view's");
    app.option("--elevation", options->elevation, "Degrees above the horizon, instead of the view's");
    app.option("--aim", options->aim, "X Y Z that is in the middle of the picture").count(3);
    app.option("--eye", options->eye, "X Y Z to look from, instead of a view").count(3);
    app.option("--zoom", options->zoom, "Larger than what fits, about the middle");
    app.option("--up", options->up, "Up axis").one_of(picture::up_axis_names());
    app.option("--point-size", options->point_size, "Diameter in pixels; 0 chooses by density");
    app.option("--eye-dome", options->eye_dome, "Darken behind outlines; auto: scenes without normals")
        .one_of({"auto", "on", "off"});
    app.option("--inset", options->inset, "Zoom: middle x and y and size, fractions of a panel").count(2, 3);
    app.option("--unit", options->unit, "Draw a scale bar with this unit of length");
    app.option("--item", options->item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
    app.option("--from", options->from, "Format of the inputs, when name and content do not tell");
    app.flag("--dark", options->dark, "Dark background");
    app.flag("--flat", options->flat, "Flat faces instead of smooth ones");
    app.flag("--edges", options->edges, "Lines along the triangles");
    app.flag("--orthographic", options->orthographic, "Parallel projection");
    app.flag("--own-scale", options->own_scale, "Each panel fits its own content");
    app.flag("--axes", options->axes, "Draw the directions of x, y and z");
    app.flag("--scale-bar", options->scale_bar, "Draw a scale bar");
    app.flag("--no-legend", options->no_legend, "No color bar");
    app.footer("Example:\n  stipple picture scan.ply dense.ply --captions input output --color-by z -o both.png");
    return {&app, [options, &common] { return run_picture(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
