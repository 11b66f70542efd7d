#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/radiance/view_images.h"

namespace stipple::cli {
namespace {

struct RadianceInfoOptions {
    std::vector<std::string> inputs;
};

std::string world_box_text(const radiance::Field& field, int axis) {
    const double origin = field.origin[static_cast<size_t>(axis)];
    return fmt::format("{:.4g} to {:.4g}", origin + field.grid.box.low[axis], origin + field.grid.box.high[axis]);
}

Result run_radiance_info(const RadianceInfoOptions& options, const Common& common) {
    Result result;
    result.fields["inputs"] = options.inputs;
    result.fields["files"] = Json::array();
    Table table{{"file", "nodes", "voxel", "bricks", "stored", "cameras", "size (bytes)"}, {}};
    for_each_input(options.inputs.size(), "files", result, [&](size_t i) {
        const std::string& path = options.inputs[i];
        const radiance::Field field = radiance::load_field(path);
        Description description = describe_field(path, field);
        result.text += (result.text.empty() ? "" : "\n") + printable(path) + "\n" + format_pairs(description.pairs, 2);
        const auto value = [&](const char* key) { return description.fields.value(key); };
        table.rows.push_back({path, value("nodes"), value("voxel"), value("bricks"), value("stored_bricks"),
                              value("cameras"), value("packed_bytes")});
        result.fields["files"].push_back(std::move(description.fields));
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Description describe_field(const std::string& path, const radiance::Field& field) {
    const radiance::FieldSummary summary = radiance::summarise(field);
    const radiance::GridShape& grid = field.grid;
    const char* background = radiance::kBackgroundWords[static_cast<int>(field.background)];
    const int32_t side = field.environment.side;
    Description description;
    description.summary = fmt::format("{} x {} x {} nodes", grid.size[0], grid.size[1], grid.size[2]);
    auto& pairs = description.pairs;
    pairs = {
        {"format", "radiance field"},
        {"nodes", fmt::format("{} x {} x {} = {}", grid.size[0], grid.size[1], grid.size[2], grouped(grid.nodes()))},
        {"x", world_box_text(field, 0)},
        {"y", world_box_text(field, 1)},
        {"z", world_box_text(field, 2)},
        {"voxel", fmt::format("{:.4g}", grid.voxel)},
        {"bricks", fmt::format("{} of {} stored, {:.1f} % of the nodes occupied", grouped(summary.stored_bricks),
                               grouped(summary.bricks),
                               100 * static_cast<double>(summary.occupied_nodes) / static_cast<double>(summary.nodes))},
        {"colour", field.network.weight1.empty() ? "of the nodes alone" : "by a network, with the view"},
        {"background", side > 0 ? fmt::format("learned, {} x {} by direction", side, side) : background},
        {"cameras", field.cameras.empty() ? "none" : grouped(static_cast<int64_t>(field.cameras.size()))},
        {"size", bytes_text(summary.packed_bytes)},
        {"memory", fmt::format("{} to render it on the CPU", bytes_text(summary.render_bytes))}};
    for (const auto& [key, value] : field.notes) pairs.push_back({printable(key), printable(value)});
    Json box = Json::array();
    for (int end = 0; end < 2; ++end)
        for (int axis = 0; axis < 3; ++axis)
            box.push_back(field.origin[static_cast<size_t>(axis)] + (end ? grid.box.high[axis] : grid.box.low[axis]));
    description.fields = {{"path", path},
                          {"format", "radiance field"},
                          {"size", grid.size},
                          {"nodes", grid.nodes()},
                          {"box", box},
                          {"voxel", grid.voxel},
                          {"near", field.near},
                          {"background", background},
                          {"environment_side", side},
                          {"bricks", summary.bricks},
                          {"stored_bricks", summary.stored_bricks},
                          {"occupied_nodes", summary.occupied_nodes},
                          {"network", !field.network.weight1.empty()},
                          {"cameras", field.cameras.size()},
                          {"packed_bytes", summary.packed_bytes},
                          {"render_bytes", summary.render_bytes},
                          {"notes", field.notes}};
    return description;
}

Command add_radiance_info(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceInfoOptions>();
    Arguments& app = group.command("info", "Describe fields: box, grid, sizes, how they were trained");
    Option input = app.option("FIELD", options->inputs, "Files that stipple radiance train wrote");
    app.footer("Example:\n  stipple radiance info lego.field");
    return {&app, [options, &common] { return run_radiance_info(*options, common); }, {input}};
}

}  // namespace stipple::cli
