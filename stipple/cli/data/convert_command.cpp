#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/save_data_set.h"

namespace stipple::cli {
namespace {

struct DataConvertCommand {
    DataArguments data;
    std::string output;
    data::ConvertOptions how;
};

Result run_data_convert(const DataConvertCommand& command, const Common& common) {
    data::require_writable_set(command.output, common.overwrite_mode());
    Result result;
    const std::vector<data::DataSet> splits = load_splits(command.data, command.how.points, common, result.warnings);
    const data::ConvertedSet converted = data::converted_set_of(splits);
    if (!common.dry_run) {
        Progress progress("convert", converted.items, progress_mode(common), "clouds");
        const data::SaveOptions how{common.overwrite_mode(), [&](int64_t, int64_t) { progress.add(); }};
        about_file(command.data.path,
                   [&] { data::save_data_set(command.output, splits, command.how.layout, how, result.warnings); });
        progress.finish();
    }
    result.fields["inputs"] = Json::array({command.data.path});
    result.fields.update(to_json(data::converted_set_fields(), &converted));
    result.fields["outputs"] =
        Json::array({{{"path", command.output}, {"format", command.how.layout}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: {} clouds, {} from {}\n", common.dry_run ? "would write" : "wrote",
                              printable(command.output), grouped(converted.items), command.how.layout, converted.from);
    if (!common.table.empty())
        result.text =
            format_table({{"folder", "layout", "from", "clouds", "written"},
                          {{command.output, command.how.layout, converted.from, converted.items, !common.dry_run}}},
                         common.table);
    return result;
}

}  // namespace

Command add_data_convert(Arguments& group, Common& common) {
    auto command = std::make_shared<DataConvertCommand>();
    Arguments& app = group.command("convert", "Write a data set in another layout");
    Option input = app.option("DATA", command->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", command->output, "The folder");
    Option to = app.add(data::convert_fields(), &command->how, "to");
    app.option("--split", command->data.split, "train, val or test; else all splits");
    add_layout(app, command->data);
    app.add(data::convert_fields(), &command->how, "points");
    app.footer(
        "--overwrite replaces a folder that this command has written, and no other.\n\n"
        "Example:\n  stipple data convert psb_parts_hdf5 --to part-folders -o parts");
    return {&app, [command, &common] { return run_data_convert(*command, common); }, {input, output, to}};
}

}  // namespace stipple::cli
