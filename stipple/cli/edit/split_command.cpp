#include <sys/resource.h>

#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/split_cloud.h"
#include "stipple/io/text.h"

namespace stipple::cli {
namespace {

struct SplitOptions {
    InputFile input;
    OutputFile output;
    std::string by;
    double tile = 0;
    int64_t count = 0, most = 1000;
};

geometry::CloudSplitter splitter_of(const SplitOptions& options) {
    STIPPLE_REQUIRE(!options.by.empty() + (options.tile != 0) + (options.count != 0) == 1,
                    "split how? Give one of --by ATTRIBUTE, --tile SIZE and --count N");
    if (!options.by.empty()) return geometry::CloudSplitter::by_attribute(options.by);
    if (options.count != 0) return geometry::CloudSplitter::by_count(options.count);
    STIPPLE_REQUIRE(options.tile > 0 && std::isfinite(options.tile), "--tile must be above 0, got {}", options.tile);
    return geometry::CloudSplitter::by_tile(options.tile);
}

/// "tiles/scan_label2.las" of "tiles/", "scan.las" and "label2".
std::string part_path(const SplitOptions& options, const std::string& extension, const std::string& name) {
    const std::string& folder = options.output.path;
    const std::string stem = options.input.path == "-" ? "part" : stem_of(options.input.path);
    return fmt::format("{}{}{}_{}{}.{}", folder, folder.back() == '/' ? "" : "/", stem, options.by, name, extension);
}

/// The extension of the outputs: that of --format, of the input, or .ply where that tells none.
std::string part_extension(const SplitOptions& options) {
    if (!options.output.format.empty())
        return std::string(io::info_of(io::format_by_name(options.output.format)).extensions[0]);
    const size_t dot = options.input.path.rfind('.');
    const std::string extension =
        dot == std::string::npos ? std::string() : io::lower_case(options.input.path.substr(dot + 1));
    for (const io::FormatInfo& info : io::formats())
        for (const std::string_view known : info.extensions)
            if (known == extension) return extension;
    return "ply";
}

/// Parts of a LAS file are all open at once.
void allow_open_files(size_t files) {
    constexpr rlim_t kOthers = 64;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files + kOthers) return;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, files + kOthers);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result run_split(const SplitOptions& options, const Common& common) {
    splitter_of(options);  // wrong options are told first
    STIPPLE_REQUIRE(!options.output.path.empty() && options.output.path != "-", "-o must be a folder");
    STIPPLE_REQUIRE(is_folder(options.output.path) || options.output.path.back() == '/',
                    "-o {}: the parts go into a folder; if it shall be made, end it with /", options.output.path);
    STIPPLE_REQUIRE(options.by.find('/') == std::string::npos, "--by {}: no file can have this name", options.by);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    const std::string extension = part_extension(options);
    const bool is_las = io::format_by_extension("part." + extension) == io::Format::las;
    CloudInput input(options.input, common, result,
                     {is_las, options.by.empty() ? std::vector<std::string>{} : std::vector{options.by}});
    if (input.is_streamed() && !options.by.empty())  // a wrong name is answered with what there is
        about_file(options.input.path, [&] { return splitter_of(options).assign(input.first(), options.most); });
    // Two rounds: which parts there are, then their points. All names are settled before the first file is written.
    int64_t points = 0, nowhere = 0;
    geometry::CloudSplitter splitter = splitter_of(options);
    input.for_each([&](const Mesh& piece) {
        warn_of_faces(piece, options.input.path, result);
        const std::vector<int32_t> part = splitter.assign(piece.vertices, options.most);
        points += piece.vertices.size();
        nowhere += std::count(part.begin(), part.end(), -1);
    });
    const size_t parts = splitter.names().size();
    if (parts == 0) throw Error(ErrorCode::bad_file, Place{options.input.path}, "holds no points to split");
    if (nowhere > 0)
        result.warnings.push_back(
            fmt::format("{}: {} points are not finite and in no tile: left out", options.input.path, grouped(nowhere)));
    result.fields["points"] = points;
    result.fields["parts"] = parts;
    if (common.dry_run && !is_folder(options.output.path)) {
        result.text = fmt::format("would write {} files into the new folder {}\n", parts, options.output.path);
        return result;
    }
    make_folder(options.output.path);
    allow_open_files(parts);
    std::vector<CloudOutput> outputs;
    for (const std::string& name : splitter.names()) {
        OutputFile file = options.output;
        file.path = part_path(options, extension, name);
        outputs.emplace_back(file, common);
    }
    splitter = splitter_of(options);  // the same parts in the same order
    input.for_each([&](const Mesh& piece) {
        const std::vector<std::vector<int32_t>> indices =
            geometry::members(splitter.assign(piece.vertices, options.most), parts);
        for (size_t i = 0; i < parts; ++i) {
            if (indices[i].empty()) continue;
            Mesh part;
            part.vertices = select(
                piece.vertices, View<const int32_t, 1>(indices[i].data(), {static_cast<int64_t>(indices[i].size())}));
            outputs[i].add(std::move(part));
        }
    });
    Table table{{"file", "points", "written"}, {}};
    for (size_t i = 0; i < outputs.size(); ++i) {
        outputs[i].finish(fmt::format("{} points", grouped(outputs[i].points())), "it has no points", result);
        table.rows.push_back({outputs[i].path(), outputs[i].points(), !common.dry_run});
    }
    constexpr size_t kListed = 20;
    if (outputs.size() > kListed && !common.verbose)
        result.text = fmt::format("{} {} files into {}: {} points\n", common.dry_run ? "would write" : "wrote",
                                  outputs.size(), printable(options.output.path), grouped(points - nowhere));
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_split(Arguments& root, Common& common) {
    auto options = std::make_shared<SplitOptions>();
    Arguments& app = root.command("split", "Make many files of one cloud");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    Option output = app.option("-o,--output", options->output.path, "A folder for the parts").text("FOLDER/");
    app.option("--by", options->by, "A file for each value of this attribute").text("ATTRIBUTE");
    app.option("--tile", options->tile, "A file for each square of the ground plan, this wide")
        .text("SIZE")
        .no_default();
    app.option("--count", options->count, "So many points a file, in their order").from_zero().text("N").no_default();
    app.option("--most", options->most, "Refuse to make more files than this").from_zero();
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Files are named after the input: scan_label2.las, scan_637000_851000.las (the lower left corner\n"
        "of the tile), scan_0001.las. Without --format they have the format of the input.\n\n"
        "Example:\n  stipple split scan.las --tile 100 -o tiles/\n"
        "  stipple split scan.las --by label -o classes/ --format ply");
    return {&app, [options, &common] { return run_split(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
