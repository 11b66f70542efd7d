#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/data/commands.h"
#include "stipple/data/preview.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct PreviewCommand {
    DataArguments data;
    std::string output, up = "z";
    data::PreviewOptions how;
};

Image draw_sheet(const data::DataSet& set, const std::vector<int64_t>& items, const PreviewCommand& command) {
    std::vector<PointCloud> clouds;
    for (const int64_t item : items) clouds.push_back(data::cloud_of(set, item));
    std::vector<picture::Panel> panels;
    for (size_t i = 0; i < items.size(); ++i) {
        picture::Panel& panel = panels.emplace_back();
        panel.cloud = &clouds[i];
        const auto at = static_cast<size_t>(items[i]);
        if (!set.labels.empty() && command.how.only.empty())
            panel.caption = set.classes[static_cast<size_t>(set.labels[at])];
        else
            panel.caption = set.names.empty() ? std::to_string(at) : set.names[at];
        panel.color_by = set.parts.empty() ? "depth" : "label";
    }
    picture::FigureStyle style;
    style.panel_width = style.panel_height = command.how.size;
    style.columns = command.how.columns;
    style.shared_camera = false;
    style.viewpoint.up = picture::up_axis_by_name(command.up);
    style.legend = false;
    if (!set.parts.empty() && !command.how.only.empty()) {  // all panels have the same parts
        const data::PartCategory& category =
            set.categories[static_cast<size_t>(set.labels[static_cast<size_t>(items[0])])];
        style.legend = true;
        style.legend_title = "part";
        for (int64_t part = category.begin; part < category.end; ++part)
            if (part < static_cast<int64_t>(set.part_names.size()))
                style.label_names[part - category.begin] = set.part_names[static_cast<size_t>(part)];
    }
    return picture::draw_figure(panels, style).image;
}

Result run_data_preview(const PreviewCommand& command, const Common& common) {
    require_picture(command.output, common);
    Result result;
    const data::RecognisedSet found = data::recognise_data_set(command.data.path, command.data.layout);
    const bool is_pairs = found.layout == "patches-hdf5" || found.layout == "pair-folders";  // they are read whole
    const data::DataSet set = load_data(command.data, command.data.split.empty() ? found.splits[0] : command.data.split,
                                        is_pairs ? 0 : command.how.points, common, result.warnings);
    const data::Preview preview = about_file(command.data.path, [&] { return data::choose_preview(set, command.how); });
    result.fields["inputs"] = Json::array({command.data.path});
    result.fields.update(to_json(data::preview_result_fields(), &preview));
    save_picture(
        command.output, [&] { return draw_sheet(set, preview.items, command); }, common, result);
    return result;
}

}  // namespace

Command add_data_preview(Arguments& group, Common& common) {
    auto command = std::make_shared<PreviewCommand>();
    Arguments& app = group.command("preview", "Draw some clouds of each class into one picture");
    Option input = app.option("DATA", command->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", command->output, "The .png");
    app.add(data::preview_fields(), &command->how, {"class", "each", "points"});
    app.option("--split", command->data.split, "train, val or test; else the first that there is");
    add_layout(app, command->data);
    app.add(data::preview_fields(), &command->how, {"size", "columns"});
    add_up(app, command->up);
    app.footer("Example:\n  stipple data preview psb_parts_hdf5 --class Chair -o chairs.png");
    return {&app, [command, &common] { return run_data_preview(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
