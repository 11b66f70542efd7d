#include "stipple/bench/multiply_peak.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/engine/bench_report.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/parallel.h"

namespace stipple::cli {
namespace {

struct EngineBenchCommand {
    std::string model, profile;
    std::vector<std::string> data;
    tasks::BenchEngineOptions how;
    CloudArguments clouds;
    Option precision, batch, points;
};

tasks::MachineLimit measure_limit(Device device, engine::Precision precision) {
    if (device.type == DeviceType::cuda)
        return {engine::gemm_peak(device, precision),
                fmt::format("a large product by cuBLASLt in {}", name_of(precision))};
    // Of whatever precision: the instructions of the others have no peak that can be measured as simply.
    const bench::MultiplyPeak peak = bench::multiply_peak();
    return {peak.operations_per_second, fmt::format("float32 {} on {} threads", peak.instruction, threads())};
}

/// Clouds of --data, with labels where all are known.
tasks::ComparedClouds load_compared(const EngineBenchCommand& command, const Common& common, int64_t points,
                                    io::Warnings& warnings) {
    const std::vector<data::CloudEntry> entries = data::list_clouds(command.data);
    tasks::CloudOptions how = cloud_options(command.clouds, common);
    how.points = points;
    tasks::LoadedBatch loaded = load_clouds(entries, command.how.compared, how, command.clouds, common, warnings);
    tasks::ComparedClouds compared{std::move(loaded.clouds)};
    for (const int64_t chosen : loaded.chosen)
        if (const auto label = entries[static_cast<size_t>(chosen)].label()) compared.labels.push_back(*label);
    if (compared.labels.size() != loaded.chosen.size()) compared.labels.clear();
    return compared;
}

Result run_engine_bench(const EngineBenchCommand& command, const Common& common) {
    require_profile(command.profile, common);
    const tasks::ModelOrEngine source = tasks::load_model_or_engine(command.model);
    const Device device = tasks::device_for(source, common.device);
    Result result;
    result.fields["inputs"] = Json::array({command.model});
    result.fields["model"] = source.name();
    tasks::BenchEngineOptions how = command.how;
    // An engine is timed as it was built, unless something else is asked for.
    if (!command.precision.given()) how.precisions.clear();
    if (!command.batch.given()) how.batches.clear();
    if (!command.points.given()) how.points.clear();
    how.seed = common.seed;
    how.limit = [&](engine::Precision precision) { return measure_limit(device, precision); };
    if (!command.data.empty())
        how.clouds = [&](int64_t points) { return load_compared(command, common, points, result.warnings); };
    Profile profile;
    if (!command.profile.empty()) how.profile = &profile;
    std::optional<Progress> progress;
    how.advance = [&](int64_t, int64_t all) {
        if (!progress) progress.emplace("bench", all, progress_mode(common), "engines");
        progress->add();
    };
    const tasks::EngineBench bench = tasks::bench_engine(source, device, how);
    if (progress) progress->finish();
    result.warnings.insert(result.warnings.end(), bench.warnings.begin(), bench.warnings.end());
    Json rows = Json::array();
    for (const tasks::EngineBenchRow& row : bench.rows) rows.push_back(bench_json(row, device));
    result.fields["rows"] = std::move(rows);
    result.fields.update(to_json(tasks::engine_bench_fields(), &bench));
    if (common.table.empty() && bench.rows.size() == 1)
        result.text = bench_summary(bench.rows[0], device);
    else
        result.text = bench_table(bench.rows, common.table);
    if (common.table.empty())
        result.text += fmt::format("\n{} on {} ({}), {} threads; compared with fp32 on {} clouds\n", source.name(),
                                   device, bench.device_name, bench.threads,
                                   bench.compared_on == tasks::ComparedOn::data ? "real" : "synthetic");
    report_profile(profile, command.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_engine_bench(Arguments& group, Common& common) {
    auto command = std::make_shared<EngineBenchCommand>();
    Arguments& app = group.command("bench", "Time a network: throughput, latency, memory, what precisions cost");
    const Option model = app.option("MODEL", command->model, "Weights (.safetensors) or a built engine");
    const Fields& fields = tasks::bench_engine_fields();
    command->precision = app.add(fields, &command->how, "precision").separated_by(',');
    command->batch = app.add(fields, &command->how, "batch").separated_by(',');
    command->points = app.add(fields, &command->how, "points").separated_by(',');
    app.option("--data", command->data, "Real clouds for the comparison with fp32; accuracy if labelled")
        .text("PATH...");
    app.add(fields, &command->how, {"compare", "warm_up", "seconds", "repeat"});
    add_profile(app, command->profile);
    app.footer(
        "Example:\n  stipple engine bench pointnet.safetensors --precision fp32,bf16,int8 --batch 1,32,1024\n"
        "  stipple engine bench pointnet.engine --table md");
    return {&app, [command, &common] { return run_engine_bench(*command, common); }, {model}};
}

}  // namespace stipple::cli
