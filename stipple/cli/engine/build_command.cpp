#include "stipple/cli/common/network_options.h"
#include "stipple/cli/engine/calibration_report.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/engine/engine_file.h"
#include "stipple/models/registry.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct EngineBuildOptions {
    std::string model, output, precision = "fp32", method = "entropy", save_model;
    int64_t max_batch = 32, max_points = 1024, calibrate_clouds = 256;
    double percentile = 99.99, max_error = 0.05;
    std::vector<std::string> settings, calibrate;
    CloudArguments clouds;
};

engine::CalibrationOptions calibration_options(const EngineBuildOptions& options, engine::Precision precision) {
    engine::CalibrationOptions wanted;
    wanted.precision = precision;
    wanted.method = engine::parse_range_method(options.method);
    wanted.percentile = options.percentile;
    wanted.max_logit_error = options.max_error;
    return wanted;
}

Result run_build(const EngineBuildOptions& options, const Common& common) {
    const engine::Precision precision = engine::parse_precision(options.precision);
    const bool scaled = precision == engine::Precision::int8 || precision == engine::Precision::fp8;
    STIPPLE_REQUIRE(scaled || options.calibrate.empty(), "--calibrate is for --precision int8 and fp8");
    STIPPLE_REQUIRE(options.save_model.empty() || !options.calibrate.empty(),
                    "--save-model keeps a new calibration: it needs --calibrate");
    const engine::CalibrationOptions how = calibration_options(options, scaled ? precision : engine::Precision::int8);
    const tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    require_writable(options.output, common.overwrite_mode());
    if (!options.save_model.empty()) require_writable(options.save_model, common.overwrite_mode());
    models::Model model = models::load_model(tasks::find_weights(options.model), model_options(options.settings));

    Result result;
    result.fields["inputs"] = Json::array({options.model});
    engine::Options wanted;
    wanted.device = parse_device(common.device);
    wanted.precision = precision;
    wanted.max_batch = options.max_batch;
    wanted.max_points = options.max_points;
    if (!options.calibrate.empty()) {
        const tasks::CloudBatch batch = load_clouds(data::list_clouds(options.calibrate), options.calibrate_clouds,
                                                    clouds, options.clouds, common, result.warnings)
                                            .clouds;
        wanted.calibration = engine::calibrate(model.network, model.weights, {batch.view(), batch.batch()}, how);
        engine::set_calibration(model.weights, *wanted.calibration);
    } else if (scaled) {
        if (!engine::has_calibration(model.weights))
            throw Error(ErrorCode::bad_argument,
                        fmt::format("{} needs a calibration, and {} has none", options.precision, options.model),
                        "--calibrate FOLDER makes one from clouds such as the network will see");
        wanted.calibration = engine::calibration_of(model.weights);
    }
    const engine::Engine engine = engine::compile(model.network, model.weights, wanted);
    const engine::EngineFile file = engine::engine_file_of(engine, model.weights);
    if (!common.dry_run) {
        engine::save_engine(options.output, file, common.overwrite_mode());
        if (!options.save_model.empty())
            network::save_weights(options.save_model, model.weights, network::WeightStorage::f32,
                                  common.overwrite_mode());
    }
    const int64_t written = network::multiply_adds(model.network, options.max_points),
                  computed = engine::multiply_adds(engine.program(), options.max_points);
    const char* verb = common.dry_run ? "would write" : "wrote";
    result.fields["model"] = model.network.name;
    result.fields["precision"] = options.precision;
    result.fields["layers"] = model.network.layers.size();
    result.fields["steps"] = engine.program().steps.size();
    result.fields["multiply_adds"] = written;
    result.fields["compiled_multiply_adds"] = computed;
    result.fields["weight_bytes"] = engine.weight_bytes();
    result.fields["context_bytes"] = engine.context_bytes();
    result.fields["source"] = fmt::format("{:016x}", file.source);
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    if (wanted.calibration) {
        result.fields["calibration"] = calibration_fields(*wanted.calibration);
        result.text += calibration_text(*wanted.calibration, common.table) + "\n";
    }
    for (const std::string& line : engine.describe()) result.text += line + "\n";
    result.text += fmt::format(
        "\n{} layers became {} steps, {:.1f} of {:.1f} million multiply-adds are left (one cloud of {} points)\n",
        model.network.layers.size(), engine.program().steps.size(), 1e-6 * static_cast<double>(computed),
        1e-6 * static_cast<double>(written), grouped(options.max_points));
    result.text += fmt::format("{} {}: {} in {} for {}, up to {} clouds of {} points\n", verb,
                               printable(options.output), model.network.name, options.precision, wanted.device,
                               grouped(options.max_batch), grouped(options.max_points));
    if (!options.save_model.empty())
        result.text += fmt::format("{} {}: the model with its calibration\n", verb, printable(options.save_model));
    return result;
}

}  // namespace

Command add_engine_build(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineBuildOptions>();
    Arguments& app = group.command("build", "Compile a model into one file that loads in milliseconds");
    Option model = app.option("MODEL", options->model, "Weights (.safetensors)");
    Option output = app.option("-o,--output", options->output, "The engine file");
    app.option("--set", options->settings, "Options that training does not fix, e.g. ratio=8").text("KEY=VALUE...");
    app.option("--precision", options->precision, "fp32, tf32, fp16, bf16, int8, fp8");
    app.option("--max-batch", options->max_batch, "Clouds at a time").between(1, 1 << 24).text("N");
    app.option("--max-points", options->max_points, "Points of a cloud").between(1, 1 << 24).text("N");
    app.option("--calibrate", options->calibrate, "int8, fp8: clouds such as the network will see").text("PATH...");
    app.option("--calibrate-clouds", options->calibrate_clouds, "How many of them, at most")
        .between(1, 1 << 20)
        .text("N");
    app.option("--method", options->method, "Ranges: max, percentile, entropy");
    app.option("--percentile", options->percentile, "Of magnitudes, for --method percentile");
    app.option("--max-error", options->max_error, "Layers that alone add more stay in higher precision");
    app.option("--save-model", options->save_model, "The model with its calibration, for export and bench");
    add_cloud_options(app, options->clouds);
    app.footer(
        "Example:\n  stipple engine build pointnet.safetensors -o pointnet.engine --precision bf16\n"
        "  stipple engine build pointnet.safetensors -o p8.engine --precision int8 --calibrate scans/");
    return {&app, [options, &common] { return run_build(*options, common); }, {model, output}};
}

}  // namespace stipple::cli
