#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/save_data_set.h"

namespace stipple::cli {
namespace {

struct DataConvertArguments {
    DataArguments data;
    std::string output, to;
    int64_t points = 0;
};

Result run_data_convert(const DataConvertArguments& arguments, const Common& common) {
    data::require_writable_set(arguments.output, common.overwrite_mode());
    Result result;
    const std::vector<std::string> names =
        arguments.data.split.empty() ? data::recognise_data_set(arguments.data.path, arguments.data.layout).splits
                                     : std::vector<std::string>{arguments.data.split};
    std::vector<data::DataSet> splits;
    int64_t items = 0;
    for (const std::string& name : names) {
        splits.push_back(load_data(arguments.data, name, arguments.points, common, result.warnings));
        items += splits.back().size();
    }
    if (!common.dry_run) {
        Progress progress("convert", items, progress_mode(common), "clouds");
        data::SaveOptions how{common.overwrite_mode(), [&](int64_t, int64_t) { progress.add(); }};
        about_file(arguments.data.path,
                   [&] { data::save_data_set(arguments.output, splits, arguments.to, how, result.warnings); });
        progress.finish();
    }
    result.fields["inputs"] = Json::array({arguments.data.path});
    result.fields["from"] = splits[0].layout;
    result.fields["splits"] = names;
    result.fields["items"] = items;
    result.fields["outputs"] =
        Json::array({{{"path", arguments.output}, {"format", arguments.to}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: {} clouds, {} from {}\n", common.dry_run ? "would write" : "wrote",
                              printable(arguments.output), grouped(items), arguments.to, splits[0].layout);
    if (!common.table.empty())
        result.text = format_table({{"folder", "layout", "from", "clouds", "written"},
                                    {{arguments.output, arguments.to, splits[0].layout, items, !common.dry_run}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_data_convert(Arguments& group, Common& common) {
    auto arguments = std::make_shared<DataConvertArguments>();
    Arguments& app = group.command("convert", "Write a data set in another layout");
    Option input = app.option("DATA", arguments->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", arguments->output, "The folder");
    std::vector<std::string> layouts;
    std::string shown;
    for (const std::string_view name : data::writable_layouts()) {
        layouts.emplace_back(name);
        shown += (shown.empty() ? "" : ", ") + layouts.back();
    }
    Option to = app.option("--to", arguments->to, shown).one_of(layouts).text("LAYOUT REQUIRED");
    app.option("--split", arguments->data.split, "train, val or test; else all splits");
    add_layout(app, arguments->data);
    app.option("--points", arguments->points, "The first N of each cloud; 0: all").from_zero();
    app.footer(
        "--overwrite replaces a folder that this command has written, and no other.\n\n"
        "Example:\n  stipple data convert psb_parts_hdf5 --to part-folders -o parts");
    return {&app, [arguments, &common] { return run_data_convert(*arguments, common); }, {input, output, to}};
}

}  // namespace stipple::cli
