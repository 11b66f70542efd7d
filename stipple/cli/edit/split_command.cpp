#include <sys/resource.h>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/io/text.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

struct SplitCommand {
    InputFile input;
    OutputFile output;
    tasks::SplitOptions how;
};

/// "tiles/scan_label2.las" of "tiles/", "scan.las" and "label2".
std::string part_path(const SplitCommand& command, const std::string& extension, const std::string& name) {
    const std::string& folder = command.output.path;
    const std::string stem = command.input.path == "-" ? "part" : stem_of(command.input.path);
    return fmt::format("{}{}{}_{}{}.{}", folder, folder.back() == '/' ? "" : "/", stem, command.how.by, name,
                       extension);
}

/// The extension of the outputs: that of --format, of the input, or .ply where that tells none.
std::string part_extension(const SplitCommand& command) {
    if (!command.output.format.empty())
        return std::string(io::info_of(io::format_by_name(command.output.format)).extensions[0]);
    const size_t dot = command.input.path.rfind('.');
    const std::string extension =
        dot == std::string::npos ? std::string() : io::lower_case(command.input.path.substr(dot + 1));
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

Result run_split(const SplitCommand& command, const Common& common) {
    tasks::splitter_of(command.how);  // wrong options are told first
    STIPPLE_REQUIRE(!command.output.path.empty() && command.output.path != "-", "-o must be a folder");
    STIPPLE_REQUIRE(is_folder(command.output.path) || command.output.path.back() == '/',
                    "-o {}: the parts go into a folder; if it shall be made, end it with /", command.output.path);
    STIPPLE_REQUIRE(command.how.by.find('/') == std::string::npos, "--by {}: no file can have this name",
                    command.how.by);
    Result result;
    result.fields["inputs"] = Json::array({command.input.path});
    const std::string extension = part_extension(command);
    const bool is_las = io::format_by_extension("part." + extension) == io::Format::las;
    CloudInput input(command.input, common, result,
                     {is_las, command.how.by.empty() ? std::vector<std::string>{} : std::vector{command.how.by}});
    if (input.is_streamed() && !command.how.by.empty())  // a wrong name is answered with what there is
        about_file(command.input.path,
                   [&] { return tasks::splitter_of(command.how).assign(input.first(), command.how.most); });
    // Two rounds: which parts there are, then their points. All names are settled before the first file is written.
    int64_t points = 0, nowhere = 0;
    geometry::CloudSplitter splitter = tasks::splitter_of(command.how);
    input.for_each([&](const Mesh& piece) {
        warn_of_faces(piece, command.input.path, result);
        const std::vector<int32_t> part = splitter.assign(piece.vertices, command.how.most);
        points += piece.vertices.size();
        nowhere += std::count(part.begin(), part.end(), -1);
    });
    const size_t parts = splitter.names().size();
    if (parts == 0) throw Error(ErrorCode::bad_file, Place{command.input.path}, "holds no points to split");
    if (nowhere > 0)
        result.warnings.push_back(
            fmt::format("{}: {} points are not finite and in no tile: left out", command.input.path, grouped(nowhere)));
    const tasks::SplitParts found{points, static_cast<int64_t>(parts)};
    result.fields.update(to_json(tasks::split_parts_fields(), &found));
    if (common.dry_run && !is_folder(command.output.path)) {
        result.text = fmt::format("would write {} files into the new folder {}\n", parts, command.output.path);
        return result;
    }
    make_folder(command.output.path);
    allow_open_files(parts);
    std::vector<CloudOutput> outputs;
    for (const std::string& name : splitter.names()) {
        OutputFile file = command.output;
        file.path = part_path(command, extension, name);
        outputs.emplace_back(file, common);
    }
    splitter = tasks::splitter_of(command.how);  // the same parts in the same order
    input.for_each([&](const Mesh& piece) {
        const std::vector<std::vector<int32_t>> indices =
            geometry::members(splitter.assign(piece.vertices, command.how.most), parts);
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
                                  outputs.size(), printable(command.output.path), grouped(points - nowhere));
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_split(Arguments& root, Common& common) {
    auto command = std::make_shared<SplitCommand>();
    Arguments& app = root.command("split", "Make many files of one cloud");
    Option input = app.option("INPUT", command->input.path, "The file; - is standard input");
    Option output = app.option("-o,--output", command->output.path, "A folder for the parts").text("FOLDER/");
    app.add(tasks::split_fields(), &command->how);
    add_output_format(app, command->output);
    add_input_format(app, command->input);
    app.footer(
        "Files are named after the input: scan_label2.las, scan_637000_851000.las (the lower left corner\n"
        "of the tile), scan_0001.las. Without --format they have the format of the input.\n\n"
        "Example:\n  stipple split scan.las --tile 100 -o tiles/\n"
        "  stipple split scan.las --by label -o classes/ --format ply");
    return {&app, [command, &common] { return run_split(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
