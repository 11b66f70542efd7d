#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/packed.h"

namespace stipple::cli {
namespace {

struct PackArguments {
    DataArguments data;
    std::string output;
    data::PackOptions pack;
};

Result run_data_pack(const PackArguments& arguments, const Common& common) {
    STIPPLE_REQUIRE(arguments.output.ends_with(".stpk"), "{}: packed data sets are named .stpk", arguments.output);
    STIPPLE_REQUIRE(arguments.pack.bits >= 8 && arguments.pack.bits <= 16, "--bits must be 8 to 16, got {}",
                    arguments.pack.bits);
    require_writable(arguments.output, common.overwrite_mode());
    Result result;
    const std::vector<std::string> names =
        arguments.data.split.empty() ? data::recognise_data_set(arguments.data.path, arguments.data.layout).splits
                                     : std::vector<std::string>{arguments.data.split};
    std::vector<data::DataSet> splits;
    for (const std::string& name : names)
        splits.push_back(load_data(arguments.data, name, arguments.pack.points, common, result.warnings));
    if (!splits[0].normals.empty())
        result.warnings.push_back(fmt::format("{}: normals are left out", arguments.data.path));
    data::PackedFacts facts;
    about_file(arguments.data.path, [&] {
        if (!common.dry_run) {
            facts = data::save_packed(arguments.output, splits, arguments.pack, common.overwrite_mode());
        } else {
            MemorySink sink;
            facts = data::write_packed(splits, arguments.pack, sink);
        }
    });
    result.fields["inputs"] = Json::array({arguments.data.path});
    result.fields["outputs"] = Json::array(
        {{{"path", arguments.output}, {"format", "stpk"}, {"bytes", facts.bytes}, {"written", !common.dry_run}}});
    result.fields["splits"] = names;
    result.fields["items"] = facts.items;
    result.fields["points"] = facts.points;
    result.fields["bits"] = arguments.pack.bits;
    result.fields["largest_error"] = facts.largest_error;
    result.text =
        fmt::format("{} {}: {} clouds, {} points, {:.1f} MB; largest error {:.2g}\n",
                    common.dry_run ? "would write" : "wrote", printable(arguments.output), grouped(facts.items),
                    grouped(facts.points), static_cast<double>(facts.bytes) / 1e6, facts.largest_error);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "clouds", "points", "bytes", "largest_error", "written"},
             {{arguments.output, facts.items, facts.points, facts.bytes, facts.largest_error, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace

Command add_data_pack(Arguments& group, Common& common) {
    auto arguments = std::make_shared<PackArguments>();
    Arguments& app = group.command("pack", "Write a data set as one small file");
    Option input = app.option("DATA", arguments->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", arguments->output, "The file, named .stpk");
    app.option("--split", arguments->data.split, "train, val or test; else all splits");
    add_layout(app, arguments->data);
    app.option("--points", arguments->pack.points, "The first N of each cloud; 0: all").from_zero();
    app.option("--bits", arguments->pack.bits, "Of a coordinate, 8 to 16, over the box of its cloud");
    app.footer(
        "Order of points, labels, parts and names are kept; normals are not. Every command reads the file\n"
        "as a data set. The largest error is half a step: extent of the cloud / (2^bits - 1) / 2.\n\n"
        "Example:\n  stipple data pack modelnet40_ply_hdf5_2048 -o modelnet40.stpk --points 1024 --bits 10");
    return {&app, [arguments, &common] { return run_data_pack(*arguments, common); }, {input, output}};
}

}  // namespace stipple::cli
