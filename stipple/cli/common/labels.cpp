#include "stipple/cli/common/labels.h"

#include "stipple/cli/common/draw_values.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {

Image draw_labels(const PointCloud& cloud, std::span<const int32_t> labels, const std::string& caption,
                  const std::string& up) {
    PointCloud painted;
    painted.positions = cloud.positions.clone();
    painted.origin = cloud.origin;
    Attribute color("color", DType::u8, cloud.size(), 3);
    const View<uint8_t, 2> rgb = color.as<uint8_t>();
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const int32_t label = labels[static_cast<size_t>(i)];
        const picture::Rgb c = label < 0 ? picture::Rgb{205, 205, 205} : picture::category_color(label);
        rgb(i, 0) = c.r, rgb(i, 1) = c.g, rgb(i, 2) = c.b;
    }
    painted.attributes.push_back(std::move(color));
    const picture::Panel panels[] = {{.cloud = &painted, .caption = caption, .color_by = "color"}};
    picture::FigureStyle style;
    style.panel_width = 640, style.panel_height = 480;
    style.viewpoint.up = picture::up_axis_by_name(up);
    return picture::draw_figure(panels, style).image;
}

Result run_labels(const LabelCommand& command, const std::string& attribute, const Common& common,
                  const std::function<Labelled(PointCloud& cloud)>& find_labels) {
    const auto& [input, output] = command.files;
    io::Format format{};
    if (!output.path.empty()) format = require_output(output, common, attribute);
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    PointCloud& cloud = mesh.vertices;
    const Labelled found = about_file(input.path, [&] { return find_labels(cloud); });
    tell(found.report, input.path, result);
    result.text = found.text;
    if (!output.path.empty()) save_output(mesh, output, format, found.saved, common, result);
    const auto draw = [&] {
        const int32_t* labels = find(cloud.attributes, attribute)->as<int32_t>().data();
        return draw_labels(cloud, {labels, static_cast<size_t>(cloud.size())}, found.report.what, command.up);
    };
    save_picture(command.picture, draw, common, result);
    if (!common.table.empty()) result.text = format_table(found.table, common.table);
    return result;
}

void add_label_options(Arguments& app, LabelCommand& command, const std::string& what) {
    app.option("--picture", command.picture, fmt::format("Draw the {} in colours into this .png", what));
    add_up(app, command.up);
    add_output_format(app, command.files.output);
    add_input_format(app, command.files.input);
}

}  // namespace stipple::cli
