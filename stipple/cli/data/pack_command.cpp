#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/packed.h"

namespace stipple::cli {
namespace {

struct PackCommand {
    DataArguments data;
    std::string output;
    data::PackOptions how;
};

Result run_data_pack(const PackCommand& command, const Common& common) {
    STIPPLE_REQUIRE(command.output.ends_with(".stpk"), "{}: packed data sets are named .stpk", command.output);
    require_writable(command.output, common.overwrite_mode());
    Result result;
    const std::vector<data::DataSet> splits = load_splits(command.data, command.how.points, common, result.warnings);
    if (!splits[0].normals.empty())
        result.warnings.push_back(fmt::format("{}: normals are left out", command.data.path));
    const data::PackedFacts facts = about_file(command.data.path, [&] {
        if (!common.dry_run) return data::save_packed(command.output, splits, command.how, common.overwrite_mode());
        MemorySink sink;
        return data::write_packed(splits, command.how, sink);
    });
    result.fields["inputs"] = Json::array({command.data.path});
    result.fields["outputs"] = Json::array(
        {{{"path", command.output}, {"format", "stpk"}, {"bytes", facts.bytes}, {"written", !common.dry_run}}});
    result.fields.update(to_json(data::packed_facts_fields(), &facts));
    result.text = fmt::format("{} {}: {} clouds, {} points, {:.1f} MB; largest error {:.2g}\n",
                              common.dry_run ? "would write" : "wrote", printable(command.output), grouped(facts.items),
                              grouped(facts.points), static_cast<double>(facts.bytes) / 1e6, facts.largest_error);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "clouds", "points", "bytes", "largest_error", "written"},
             {{command.output, facts.items, facts.points, facts.bytes, facts.largest_error, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace

Command add_data_pack(Arguments& group, Common& common) {
    auto command = std::make_shared<PackCommand>();
    Arguments& app = group.command("pack", "Write a data set as one small file");
    Option input = app.option("DATA", command->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", command->output, "The file, named .stpk");
    app.option("--split", command->data.split, "train, val or test; else all splits");
    add_layout(app, command->data);
    app.add(data::pack_fields(), &command->how);
    app.footer(
        "Order of points, labels, parts and names are kept; normals are not. Every command reads the file\n"
        "as a data set. The largest error is half a step: extent of the cloud / (2^bits - 1) / 2.\n\n"
        "Example:\n  stipple data pack modelnet40_ply_hdf5_2048 -o modelnet40.stpk --points 1024 --bits 10");
    return {&app, [command, &common] { return run_data_pack(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
