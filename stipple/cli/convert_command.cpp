#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"

namespace stipple::cli {
namespace {

struct ConvertOptions {
    std::vector<std::string> inputs;
    std::string output, format, from;
    int64_t item = -1;
    bool ascii = false, compressed = false, drop_nonfinite = false;
};

/// The output of each input: the one named, or one a file inside the folder named.
std::vector<std::string> output_paths(const ConvertOptions& options) {
    const bool folder =
        !options.output.empty() && options.output != "-" && (options.output.back() == '/' || is_folder(options.output));
    if (!folder) {
        STIPPLE_REQUIRE(options.inputs.size() == 1, "{} inputs need a folder as output, got {}", options.inputs.size(),
                        options.output);
        return {options.output};
    }
    STIPPLE_REQUIRE(!options.format.empty(), "-o {} is a folder: name the format with --format", options.output);
    const io::FormatInfo& info = io::info_of(io::format_by_name(options.format));
    std::vector<std::string> paths;
    for (const std::string& input : options.inputs) {
        const std::string separator = options.output.back() == '/' ? "" : "/";
        paths.push_back(options.output + separator + stem_of(input) + "." + std::string(info.extensions[0]));
        for (size_t i = 0; i + 1 < paths.size(); ++i)
            STIPPLE_REQUIRE(paths[i] != paths.back(), "{} and {} would both become {}", options.inputs[i], input,
                            paths[i]);
    }
    return paths;
}

Result run_convert(const ConvertOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    // Everything about the outputs is settled before the first byte is read.
    std::vector<OutputFile> outputs;
    std::vector<io::Format> formats;
    for (const std::string& path : output_paths(options)) {
        outputs.push_back({path, options.format, options.ascii, options.compressed});
        formats.push_back(require_output(outputs.back(), common));
    }
    Result result;
    result.fields["inputs"] = options.inputs;
    Table table{{"file", "format", "points", "faces", "written"}, {}};
    for_each_input(options.inputs.size(), "files", result, [&](size_t i) {
        Mesh mesh = load_with_progress(options.inputs[i], options.from, options.item, common, result.warnings);
        if (options.drop_nonfinite) {
            if (mesh.faces() > 0)
                throw Error(ErrorCode::bad_argument, Place{options.inputs[i]},
                            "--drop-nonfinite is for clouds, this has faces");
            const int64_t before = mesh.vertices.size();
            mesh.vertices = drop_nonfinite(mesh.vertices);
            if (mesh.vertices.size() == 0 && before > 0)
                throw Error(ErrorCode::bad_file, Place{options.inputs[i]}, "has no finite points");
            if (mesh.vertices.size() < before)
                result.warnings.push_back(fmt::format("{}: {} of {} points not finite, dropped", options.inputs[i],
                                                      grouped(before - mesh.vertices.size()), grouped(before)));
        }
        std::string what = fmt::format("{} points", grouped(mesh.vertices.size()));
        if (mesh.faces() > 0) what += fmt::format(", {} faces", grouped(mesh.faces()));
        save_output(mesh, outputs[i], formats[i], what, common, result);
        table.rows.push_back(
            {outputs[i].path, io::info_of(formats[i]).name, mesh.vertices.size(), mesh.faces(), !common.dry_run});
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_convert(Arguments& root, Common& common) {
    auto options = std::make_shared<ConvertOptions>();
    Arguments& app = root.command("convert", "Convert clouds and meshes between formats");
    Option input = app.option("INPUT", options->inputs, "Files; - is standard input");
    Option output = app.option("-o,--output", options->output, "File or folder; - is standard output");
    app.option("--format", options->format, "Format of the output, when its name does not tell");
    app.option("--from", options->from, "Format of the input, when its name and content do not tell");
    app.option("--item", options->item, "Which cloud of a file that holds many, from 0").from_zero();
    app.flag("--ascii", options->ascii, "Text instead of binary (PLY, PCD, STL)");
    app.flag("--compressed", options->compressed, "Compressed binary (PCD)");
    app.flag("--drop-nonfinite", options->drop_nonfinite, "Leave out points with NaN or infinite coordinates");
    app.footer(
        "Formats: ply xyz xyzn xyzrgb pts csv obj off stl pcd las kitti npy npz hdf5\n\n"
        "Example:\n  stipple convert scan.las -o scan.ply\n  stipple convert scan.ply -o - --format xyz | head");
    return {&app, [options, &common] { return run_convert(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
