#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/io/cloud_stream.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

struct ConvertCommand {
    std::vector<std::string> inputs;
    std::string output, format, from, shard;
    int64_t item = -1;
    tasks::ConvertOptions how;
};

/// The output of each input: the one named, or one a file inside the folder named.
std::vector<std::string> output_paths(const ConvertCommand& command) {
    const bool folder =
        !command.output.empty() && command.output != "-" && (command.output.back() == '/' || is_folder(command.output));
    if (!folder) {
        STIPPLE_REQUIRE(command.inputs.size() == 1, "{} inputs need a folder as output, got {}", command.inputs.size(),
                        command.output);
        return {command.output};
    }
    STIPPLE_REQUIRE(!command.format.empty(), "-o {} is a folder: name the format with --format", command.output);
    const io::FormatInfo& info = io::info_of(io::format_by_name(command.format));
    std::vector<std::string> paths;
    for (const std::string& input : command.inputs) {
        const std::string separator = command.output.back() == '/' ? "" : "/";
        paths.push_back(command.output + separator + stem_of(input) + "." + std::string(info.extensions[0]));
        for (size_t i = 0; i + 1 < paths.size(); ++i)
            STIPPLE_REQUIRE(paths[i] != paths.back(), "{} and {} would both become {}", command.inputs[i], input,
                            paths[i]);
    }
    return paths;
}

/// From LAS to LAS: records pass as they are, in chunks.
int64_t stream_las(const std::string& input, const ConvertCommand& command, const OutputFile& output,
                   const Common& common, Result& result) {
    io::Warnings reading, writing;
    FileProgress progress(common);
    const io::Format from = command.from.empty() ? io::Format::las : io::format_by_name(command.from);
    io::StreamOptions stream;
    stream.attributes = false;
    stream.las_records = true;
    stream.format = command.from.empty() ? nullptr : &from;
    stream.reading.on_progress = [&](int64_t done, int64_t total) { progress.show(input, done, total); };
    const auto reader = io::CloudReader::open(input, stream, reading);
    std::unique_ptr<io::CloudWriter> writer;
    if (!common.dry_run) writer = io::CloudWriter::open(output.path, common.overwrite_mode(), output.writing, writing);
    int64_t points = 0;
    about_file(output.path, [&] {
        for (PointCloud chunk; reader->next(chunk);) {
            points += chunk.size();
            if (command.how.shift) shift_origin(chunk, *command.how.shift);
            if (writer) writer->write(std::move(chunk));
        }
        if (writer) writer->finish();
    });
    for (const std::string& warning : reading) result.warnings.push_back(fmt::format("{}: {}", input, warning));
    for (const std::string& warning : writing) result.warnings.push_back(fmt::format("{}: {}", output.path, warning));
    return points;
}

Result run_convert(const ConvertCommand& command, const Common& common) {
    require_one_stdin(command.inputs);
    const Shard shard = parse_shard(command.shard);
    // Everything about the outputs is settled before the first byte is read.
    std::vector<OutputFile> outputs;
    std::vector<io::Format> formats;
    const io::WriteOptions writing = tasks::writing_of(command.how);
    std::vector<std::string> inputs = command.inputs, paths = output_paths(command);
    keep_shard(shard, inputs, paths);
    if (inputs.empty()) return nothing_of_shard(command.shard, command.inputs.size());
    for (const std::string& path : paths) {
        outputs.push_back({path, command.format, writing});
        formats.push_back(require_output(outputs.back(), common));
        STIPPLE_REQUIRE((!writing.scale && !writing.offset) || formats.back() == io::Format::las,
                        "--scale and --offset are for LAS, {} is {}", path, io::info_of(formats.back()).name);
    }
    Result result;
    result.fields["inputs"] = command.inputs;
    Table table{{"file", "format", "points", "faces", "written"}, {}};
    for_each_input(inputs.size(), "files", result, [&](size_t i) {
        // What standard input holds is seen when it is read; a cloud of another format is gathered then.
        const bool piped = inputs[i] == "-" && command.item < 0 && !command.how.drop_nonfinite;
        if (formats[i] == io::Format::las && outputs[i].path != "-" && (piped || io::is_las(inputs[i], command.from))) {
            const int64_t points = stream_las(inputs[i], command, outputs[i], common, result);
            report_output(outputs[i], formats[i], points, 0, fmt::format("{} points", grouped(points)), common, result);
            table.rows.push_back({outputs[i].path, io::info_of(formats[i]).name, points, 0, !common.dry_run});
            return;
        }
        Mesh mesh = load_with_progress(inputs[i], command.from, command.item, common, result.warnings);
        io::Warnings of_input, of_output;
        about_file(inputs[i], [&] { tasks::convert(mesh, command.how, formats[i], of_input, of_output); });
        for (const std::string& warning : of_input)
            result.warnings.push_back(fmt::format("{}: {}", inputs[i], warning));
        for (const std::string& warning : of_output)
            result.warnings.push_back(fmt::format("{}: {}", outputs[i].path, warning));
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
    auto command = std::make_shared<ConvertCommand>();
    Arguments& app = root.command("convert", "Convert clouds and meshes between formats");
    Option input = app.option("INPUT", command->inputs, "Files; - is standard input");
    Option output = app.option("-o,--output", command->output, "File or folder; - is standard output");
    app.option("--format", command->format, "Format of the output, when its name does not tell");
    app.option("--from", command->from, "Format of the input, when its name and content do not tell");
    app.option("--item", command->item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
    add_shard(app, command->shard);
    const Fields& fields = tasks::convert_fields();
    app.add(fields, &command->how, {"ascii", "compressed", "drop_nonfinite", "keep_16_bit"});
    app.add(fields, &command->how, "scale").count(1, 3);
    app.add(fields, &command->how, {"offset", "shift"});
    app.footer(
        "Formats: ply xyz xyzn xyzrgb pts csv obj off stl pcd las kitti npy npz hdf5\n\n"
        "Example:\n  stipple convert scan.las -o scan.ply\n  stipple convert scan.ply -o - --format xyz | head");
    return {&app, [command, &common] { return run_convert(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
