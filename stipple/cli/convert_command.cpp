#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/io/cloud_stream.h"

namespace stipple::cli {
namespace {

struct ConvertOptions {
    std::vector<std::string> inputs;
    std::string output, format, from, shard;
    int64_t item = -1;
    bool ascii = false, compressed = false, drop_nonfinite = false, keep_16_bit = false;
    std::vector<double> scale, offset, shift;
};

/// Three numbers of an option, or one for all axes where `one` allows it; nothing when it was not given.
std::optional<std::array<double, 3>> axes_of(const std::vector<double>& values, const char* name, bool one) {
    if (values.empty()) return std::nullopt;
    STIPPLE_REQUIRE(values.size() == 3 || (one && values.size() == 1), "{} takes {}three numbers, got {}", name,
                    one ? "one number or " : "", values.size());
    std::array<double, 3> axes;
    for (size_t a = 0; a < 3; ++a) axes[a] = values[values.size() == 1 ? 0 : a];
    for (const double value : axes) STIPPLE_REQUIRE(std::isfinite(value), "{} {} is not finite", name, value);
    return axes;
}

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

/// From LAS to LAS: records pass as they are, in chunks.
int64_t stream_las(const std::string& input, const ConvertOptions& options, const OutputFile& output,
                   const Common& common, Result& result) {
    const auto shift = axes_of(options.shift, "--shift", false);
    io::Warnings reading, writing;
    FileProgress progress(common);
    const io::Format from = options.from.empty() ? io::Format::las : io::format_by_name(options.from);
    io::StreamOptions stream;
    stream.attributes = false;
    stream.las_records = true;
    stream.format = options.from.empty() ? nullptr : &from;
    stream.reading.on_progress = [&](int64_t done, int64_t total) { progress.show(input, done, total); };
    const auto reader = io::CloudReader::open(input, stream, reading);
    std::unique_ptr<io::CloudWriter> writer;
    if (!common.dry_run)
        writer = io::CloudWriter::open(output.path, common.overwrite_mode(), output.writing(), writing);
    int64_t points = 0;
    about_file(output.path, [&] {
        for (PointCloud chunk; reader->next(chunk);) {
            points += chunk.size();
            if (shift) shift_origin(chunk, *shift);
            if (writer) writer->write(std::move(chunk));
        }
        if (writer) writer->finish();
    });
    for (const std::string& warning : reading) result.warnings.push_back(fmt::format("{}: {}", input, warning));
    for (const std::string& warning : writing) result.warnings.push_back(fmt::format("{}: {}", output.path, warning));
    return points;
}

Result run_convert(const ConvertOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    const Shard shard = parse_shard(options.shard);
    // Everything about the outputs is settled before the first byte is read.
    std::vector<OutputFile> outputs;
    std::vector<io::Format> formats;
    const auto scale = axes_of(options.scale, "--scale", true), offset = axes_of(options.offset, "--offset", false),
               shift = axes_of(options.shift, "--shift", false);
    for (const double value : scale.value_or(std::array<double, 3>{1, 1, 1}))
        STIPPLE_REQUIRE(value > 0, "--scale {} is not above 0", value);
    std::vector<std::string> inputs = options.inputs, paths = output_paths(options);
    keep_shard(shard, inputs, paths);
    if (inputs.empty()) return nothing_of_shard(options.shard, options.inputs.size());
    for (const std::string& path : paths) {
        outputs.push_back(
            {path, options.format, options.ascii, options.compressed, scale, offset, options.keep_16_bit});
        formats.push_back(require_output(outputs.back(), common));
        STIPPLE_REQUIRE((!scale && !offset) || formats.back() == io::Format::las,
                        "--scale and --offset are for LAS, {} is {}", path, io::info_of(formats.back()).name);
    }
    Result result;
    result.fields["inputs"] = options.inputs;
    Table table{{"file", "format", "points", "faces", "written"}, {}};
    for_each_input(inputs.size(), "files", result, [&](size_t i) {
        // What standard input holds is seen when it is read; a cloud of another format is gathered then.
        const bool piped = inputs[i] == "-" && options.item < 0 && !options.drop_nonfinite;
        if (formats[i] == io::Format::las && outputs[i].path != "-" && (piped || io::is_las(inputs[i], options.from))) {
            const int64_t points = stream_las(inputs[i], options, outputs[i], common, result);
            report_output(outputs[i], formats[i], points, 0, fmt::format("{} points", grouped(points)), common, result);
            table.rows.push_back({outputs[i].path, io::info_of(formats[i]).name, points, 0, !common.dry_run});
            return;
        }
        Mesh mesh = load_with_progress(inputs[i], options.from, options.item, common, result.warnings);
        if (options.drop_nonfinite) {
            if (mesh.faces() > 0)
                throw Error(ErrorCode::bad_argument, Place{inputs[i]},
                            "--drop-nonfinite is for clouds, this has faces");
            const int64_t before = mesh.vertices.size();
            mesh.vertices = drop_nonfinite(mesh.vertices);
            if (mesh.vertices.size() == 0 && before > 0)
                throw Error(ErrorCode::bad_file, Place{inputs[i]}, "has no finite points");
            if (mesh.vertices.size() < before)
                result.warnings.push_back(fmt::format("{}: {} of {} points not finite, dropped", inputs[i],
                                                      grouped(before - mesh.vertices.size()), grouped(before)));
        }
        if (shift && formats[i] == io::Format::pcd) {  // which remembers it
            const double worst = move_origin(mesh.vertices, {0 - (*shift)[0], 0 - (*shift)[1], 0 - (*shift)[2]});
            double told = 0;  // half a unit of the file tells points apart
            if (mesh.vertices.facts.grid)
                told = 0.5 * *std::min_element(mesh.vertices.facts.grid->scale.begin(),
                                               mesh.vertices.facts.grid->scale.end());
            if (worst > told)
                result.warnings.push_back(fmt::format(
                    "{}: with this --shift float32 rounds coordinates by up to {:.3g}", outputs[i].path, worst));
        } else if (shift) {
            shift_origin(mesh.vertices, *shift);
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
    app.option("--item", options->item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
    add_shard(app, options->shard);
    app.flag("--ascii", options->ascii, "Text instead of binary (PLY, PCD, STL)");
    app.flag("--compressed", options->compressed, "Compressed binary (PCD)");
    app.flag("--drop-nonfinite", options->drop_nonfinite, "Leave out points with NaN or infinite coordinates");
    app.flag("--keep-16-bit", options->keep_16_bit,
             "Colors of 16 bits stay so (PLY, PCD, XYZRGB), not 8 bits as usual");
    app.option("--scale", options->scale, "LAS: unit of the integers, for all axes or each; that of the input")
        .count(1, 3)
        .text("S [S S]");
    app.option("--offset", options->offset, "LAS: coordinates of the integer 0; those of the input")
        .count(3)
        .text("X Y Z");
    app.option("--shift", options->shift, "Added to the coordinates, as -500000 -4649000 0 brings UTM near 0")
        .count(3)
        .text("X Y Z");
    app.footer(
        "Formats: ply xyz xyzn xyzrgb pts csv obj off stl pcd las kitti npy npz hdf5\n\n"
        "Example:\n  stipple convert scan.las -o scan.ply\n  stipple convert scan.ply -o - --format xyz | head");
    return {&app, [options, &common] { return run_convert(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
