#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/core/terminal.h"
#include "stipple/io/image_file.h"
#include "stipple/io/las_summary.h"
#include "stipple/io/text.h"
#include "stipple/picture/picture_options.h"

namespace stipple::cli {
namespace {

struct PictureCommand {
    std::vector<std::string> inputs;
    std::string output, from;
    int64_t item = -1;
    picture::PictureOptions how;
};

/// Where the sensor of the first scan that knows it stood.
std::optional<std::array<double, 3>> sensor_of(const std::vector<Mesh>& meshes) {
    for (const Mesh& mesh : meshes)
        if (const auto& place = mesh.vertices.facts.viewpoint) return std::array{(*place)[0], (*place)[1], (*place)[2]};
    return std::nullopt;
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

Result run_picture(const PictureCommand& command, const Common& common) {
    const picture::PictureOptions& how = command.how;
    picture::FigureStyle style = picture::style_of(how, command.inputs.size());
    std::tie(style.panel_width, style.panel_height) = parse_size(how.size);
    require_one_stdin(command.inputs);
    require_free_stdout(command.output, common);
    const size_t dot = command.output.rfind('.');
    const bool is_png = dot != std::string::npos && io::lower_case(command.output.substr(dot)) == ".png";
    STIPPLE_REQUIRE(is_png || command.output == "-", "{}: pictures are PNG, name it .png", command.output);
    if (command.output != "-") require_writable(command.output, common.overwrite_mode());
    Result result;
    std::vector<Mesh> meshes;
    for (const std::string& path : command.inputs)
        meshes.push_back(load_with_progress(path, command.from, command.item, common, result.warnings));
    std::vector<picture::Panel> panels;
    for (size_t i = 0; i < meshes.size(); ++i) {
        picture::Panel panel;
        if (meshes[i].faces() > 0)
            panel.mesh = &meshes[i];
        else
            panel.cloud = &meshes[i].vertices;
        if (!how.captions.empty()) panel.caption = how.captions[i];
        if (!how.color_by.empty()) panel.color_by = how.color_by.size() == 1 ? how.color_by[0] : how.color_by[i];
        panels.push_back(std::move(panel));
    }
    picture::set_viewpoint(how, sensor_of(meshes), style.viewpoint);
    style.label_names = las_classes(panels);
    const picture::Figure figure = picture::draw_figure(panels, style);
    for (size_t i = 0; i < panels.size(); ++i)
        if (is_attribute(panels[i].color_by) && !find(meshes[i].vertices.attributes, panels[i].color_by) &&
            !find(meshes[i].face_attributes, panels[i].color_by))
            result.warnings.push_back(
                fmt::format("{} has no attribute {}: drawn plain", command.inputs[i], panels[i].color_by));
    result.fields["inputs"] = command.inputs;
    result.fields["outputs"] = Json::array({{{"path", command.output},
                                             {"format", "png"},
                                             {"width", figure.image.width()},
                                             {"height", figure.image.height()},
                                             {"written", !common.dry_run}}});
    result.fields.update(to_json(picture::figure_fields(), &figure));
    for (size_t i = 0; i < panels.size(); ++i) {
        const picture::PanelCounts& counts = figure.panels[i];
        const int64_t size = panels[i].cloud ? panels[i].cloud->size() : 0;
        if (how.zoom <= 1 && !style.viewpoint.eye && !style.viewpoint.aim && counts.points + counts.nonfinite < size)
            result.warnings.push_back(fmt::format("{}: {} stray points, far from all others, are not in the picture",
                                                  command.inputs[i], grouped(size - counts.points - counts.nonfinite)));
        if (counts.nonfinite)
            result.warnings.push_back(
                fmt::format("{}: {} non-finite points are not drawn", command.inputs[i], grouped(counts.nonfinite)));
    }
    result.text = fmt::format("{} {}: {} x {} pixels\n", common.dry_run ? "would write" : "wrote",
                              printable(command.output), figure.image.width(), figure.image.height());
    if (common.dry_run) return result;
    if (command.output == "-") {
        StdoutSink sink;
        io::write_png(figure.image, sink);
        result.stdout_taken = true;
        return result;
    }
    io::save_png(command.output, figure.image, common.overwrite_mode());
    return result;
}

}  // namespace

Command add_picture(Arguments& root, Common& common) {
    auto command = std::make_shared<PictureCommand>();
    Arguments& app = root.command("picture", "Draw clouds and meshes side by side into a PNG");
    Option input = app.option("INPUT", command->inputs, "Files; - is standard input");
    Option output = app.option("-o,--output", command->output, "The .png; - is standard output");
    app.add(picture::picture_fields(), &command->how);
    app.option("--item", command->item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
    app.option("--from", command->from, "Format of the inputs, when name and content do not tell");
    app.footer("Example:\n  stipple picture scan.ply dense.ply --captions input output --color-by z -o both.png");
    return {&app, [command, &common] { return run_picture(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
