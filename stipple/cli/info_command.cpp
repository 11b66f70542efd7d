#include "stipple/cli/commands.h"
#include "stipple/cli/common/description.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/core/parallel.h"
#include "stipple/core/terminal.h"
#include "stipple/ops/registry.h"

namespace stipple::cli {
namespace {

struct InfoOptions {
    std::vector<std::string> inputs;
    std::string from;
    int64_t item = -1;
    bool ops = false, markdown = false;
};

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // begins with its name
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

#ifdef STIPPLE_WITH_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
#endif
#ifdef STIPPLE_WITH_HDF5
constexpr bool kHasHdf5 = true;
#else
constexpr bool kHasHdf5 = false;
#endif

Json ops_json() {
    Json list = Json::array();
    for (const ops::OpInfo& op : ops::registry())
        list.push_back({{"name", op.name},
                        {"group", op.group},
                        {"summary", op.summary},
                        {"cpu", op.cpu},
                        {"cuda", op.cuda},
                        {"gradient", op.gradient},
                        {"cost", op.cost}});
    return list;
}

/// "21 ops" and a line of names for each group.
std::string ops_text() {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const ops::OpInfo& op : ops::registry()) {
        if (groups.empty() || groups.back().first != op.group) groups.push_back({op.group, ""});
        groups.back().second += (groups.back().second.empty() ? "" : ", ") + std::string(op.name);
    }
    return fmt::format("{} ops\n", ops::registry().size()) + format_pairs(groups, 2);
}

/// --ops: the registry.
Result describe_ops(bool markdown, const Common& common) {
    Result result;
    result.fields = {{"inputs", Json::array()}, {"ops", ops_json()}};
    if (markdown) {
        result.text = ops::registry_markdown();
        return result;
    }
    Table table{{"op", "group", "CPU", "CUDA", "gradient", "time"}, {}};
    const auto mark = [](bool has) { return has ? "yes" : "-"; };
    for (const ops::OpInfo& op : ops::registry())
        table.rows.push_back({op.name, op.group, mark(op.cpu), mark(op.cuda), mark(op.gradient), op.cost});
    result.text = format_table(table, common.table);
    return result;
}

/// Without a file: the build, the devices, the formats, the operations.
Result describe_program(const Common& common) {
    Result result;
    Table devices{{"device", "name", "memory", "units"}, {}};
    Json device_list = Json::array();
    for (const DeviceInfo& info : list_devices()) {
        devices.rows.push_back({to_string(info.device), info.name, bytes_text(info.memory_bytes), info.units});
        device_list.push_back({{"device", to_string(info.device)},
                               {"name", info.name},
                               {"memory_bytes", info.memory_bytes},
                               {"units", info.units}});
    }
    Table formats{{"format", "extensions", "holds"}, {}};
    Json format_list = Json::array();
    for (const io::FormatInfo& info : io::formats()) {
        std::string extensions;
        for (std::string_view extension : info.extensions)
            extensions += fmt::format("{}.{}", extensions.empty() ? "" : " ", extension);
        formats.rows.push_back({std::string(info.name), extensions, std::string(info.holds)});
        format_list.push_back({{"name", info.name}, {"extensions", info.extensions}, {"holds", info.holds}});
    }
    result.fields = {{"inputs", Json::array()},
                     {"build",
                      {{"version", STIPPLE_VERSION},
                       {"compiler", kCompiler},
                       {"cuda", kHasCuda},
                       {"hdf5", kHasHdf5},
                       {"threads", threads()}}},
                     {"devices", device_list},
                     {"formats", format_list},
                     {"ops", ops_json()}};
    if (!common.table.empty()) {
        result.text = format_table(formats, common.table);
        return result;
    }
    result.text = fmt::format("stipple {}\n", STIPPLE_VERSION) +
                  format_pairs({{"compiler", kCompiler},
                                {"CUDA", kHasCuda ? "yes" : "no"},
                                {"HDF5", kHasHdf5 ? "yes" : "no"},
                                {"threads", std::to_string(threads())}},
                               2) +
                  "\n" + format_table(devices, "") + "\n" + format_table(formats, "") + "\n" + ops_text();
    return result;
}

/// Fields of light are described by their own command.
bool describe_if_field(const std::string& path, Table& table, Result& result) {
    if (!radiance::is_field_file(path)) return false;
    Description description = describe_field(path, radiance::load_field(path));
    result.text += (result.text.empty() ? "" : "\n") + printable(path) + "\n" + format_pairs(description.pairs, 2);
    table.rows.push_back({path, "radiance field", nullptr, nullptr, nullptr, description.fields.value("packed_bytes"),
                          description.summary});
    result.fields["files"].push_back(std::move(description.fields));
    return true;
}

Result run_info(const InfoOptions& options, const Common& common) {
    if (options.ops || options.markdown) {
        STIPPLE_REQUIRE(options.inputs.empty(), "--ops describes the program: it takes no files");
        return describe_ops(options.markdown, common);
    }
    if (options.inputs.empty()) return describe_program(common);
    require_one_stdin(options.inputs);
    Result result;
    result.fields["inputs"] = options.inputs;
    result.fields["files"] = Json::array();
    Table table{{"file", "format", "points", "faces", "non-finite", "size (bytes)", "attributes"}, {}};
    for_each_input(options.inputs.size(), "files", result, [&](size_t i) {
        const std::string& path = options.inputs[i];
        FileProgress progress(common);
        if (options.from.empty() && describe_if_field(path, table, result)) return;
        io::ReadOptions reading;
        reading.item = options.item;
        reading.on_progress = [&](int64_t done, int64_t total) { progress.show(path, done, total); };
        const tasks::FileSummary file = tasks::describe_file(path, options.from, reading, result.warnings);
        Description description = description_of(path, file);
        result.text += (result.text.empty() ? "" : "\n") + printable(path) + "\n" + format_pairs(description.pairs, 2);
        table.rows.push_back({path, file.format, description.fields.value("points"), description.fields.value("faces"),
                              description.fields.value("non_finite"), description.fields.value("file_bytes"),
                              description.summary});
        result.fields["files"].push_back(std::move(description.fields));
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_info(Arguments& root, Common& common) {
    auto options = std::make_shared<InfoOptions>();
    Arguments& app = root.command("info", "Describe files; without one, this program");
    app.option("INPUT", options->inputs, "Clouds, meshes, images, .safetensors, .field; - is standard input");
    app.option("--from", options->from, "Format, when name and content do not tell");
    app.option("--item", options->item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
    app.flag("--ops", options->ops, "The point operations of this program");
    app.flag("--markdown", options->markdown, "With --ops: the page docs/ops.md");
    app.footer(
        "Example:\n  stipple info scan.ply\n  stipple info *.las --table md\n  stipple info scan.ply --json | jq "
        ".files[0].points");
    return {&app, [options, &common] { return run_info(*options, common); }};
}

}  // namespace stipple::cli
