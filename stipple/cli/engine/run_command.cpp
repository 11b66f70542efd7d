#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/io/npz.h"
#include "stipple/tasks/run_engine.h"
namespace stipple::cli {
namespace {

struct EngineRunCommand {
    std::string engine, output, profile, shard;
    std::vector<std::string> inputs;
    CloudArguments clouds;
};

void save_arrays(const std::string& path, const tasks::EngineRun& run, const Common& common) {
    std::vector<io::NpyView> arrays;
    for (const tasks::EngineOutput& output : run.outputs)
        arrays.push_back({output.name,
                          {output.rows(), output.columns()},
                          output.type.is_index ? DType::i32 : DType::f32,
                          output.type.is_index ? static_cast<const void*>(output.indices.data())
                                               : static_cast<const void*>(output.values.data())});
    arrays.push_back({"offsets", {static_cast<int64_t>(run.offsets.size())}, DType::i64, run.offsets.data()});
    AtomicFile file(path, common.overwrite_mode());
    io::write_npz_views(arrays, file);
    file.commit();
}

/// For people: the class of each cloud, the ranges of all outputs, times.
std::string text_of(const tasks::EngineRun& run, size_t clouds, const Common& common) {
    std::string text;
    if (common.table.empty())
        for (const tasks::CloudClass& cloud : run.classes)
            text += fmt::format("{}: {}\n", printable(cloud.path), cloud.name);
    Table table{{"output", "type", "rows", "min", "max"}, {}};
    for (size_t i = 0; i < run.ranges.size(); ++i) {
        const tasks::OutputRange& range = run.ranges[i];
        const auto number = [&](double value) {
            return run.outputs[i].type.is_index ? Json(static_cast<int64_t>(value)) : Json(static_cast<float>(value));
        };
        table.rows.push_back({range.name, range.type, range.rows, number(range.least), number(range.most)});
    }
    text += format_table(table, common.table);
    if (common.table.empty())
        text +=
            fmt::format("loaded in {:.2f} ms, made ready in {:.2f} ms; {} clouds in {} batches, {:.2f} ms\n",
                        run.load_ms, run.compile_ms, grouped(static_cast<int64_t>(clouds)), run.batches, run.run_ms);
    return text;
}

Result run_run(const EngineRunCommand& command, const Common& common) {
    require_one_stdin(command.inputs);
    const Shard shard = parse_shard(command.shard);
    tasks::RunEngineOptions options{.device = common.device, .clouds = cloud_options(command.clouds, common)};
    if (!command.output.empty()) {
        STIPPLE_REQUIRE(command.output.size() > 4 && command.output.ends_with(".npz"),
                        "{}: outputs are written as .npz", command.output);
        require_writable(command.output, common.overwrite_mode());
    }
    require_profile(command.profile, common);
    std::vector<data::CloudEntry> entries = data::list_clouds(command.inputs);
    const size_t all = entries.size();
    keep_shard(shard, entries);
    if (entries.empty()) return nothing_of_shard(command.shard, all);

    Result result;
    result.fields["inputs"] = command.inputs;
    Profile profile;
    if (!command.profile.empty()) options.profile = &profile;
    Progress progress("run", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    options.advance = [&] { progress.add(); };
    FileProgress file_progress(common);
    const tasks::EngineRun run =
        tasks::run_engine(command.engine, entries, options, reading(command.clouds, file_progress), result.warnings);
    progress.finish();
    result.fields.update(to_json(tasks::engine_run_fields(), &run));
    result.text = text_of(run, entries.size(), common);
    if (!command.output.empty()) {
        if (!common.dry_run) save_arrays(command.output, run, common);
        result.fields["outputs"] =
            Json::array({{{"path", command.output}, {"format", "npz"}, {"written", !common.dry_run}}});
        if (common.table.empty())
            result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(command.output));
    }
    report_profile(profile, command.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_engine_run(Arguments& group, Common& common) {
    auto command = std::make_shared<EngineRunCommand>();
    Arguments& app = group.command("run", "Run a built engine on clouds");
    Option engine = app.option("ENGINE", command->engine, "What `stipple engine build` wrote");
    Option input = app.option("INPUT", command->inputs, "Clouds, meshes, folders of them, HDF5 sets");
    app.option("-o,--output", command->output, "All outputs, as arrays of this .npz");
    add_cloud_options(app, command->clouds);
    add_shard(app, command->shard);
    add_profile(app, command->profile);
    app.footer("Example:\n  stipple engine run pointnet.engine scans/ -o logits.npz");
    return {&app, [command, &common] { return run_run(*command, common); }, {engine, input}};
}

}  // namespace stipple::cli
