#include "stipple/cli/common/network_options.h"
#include "stipple/cli/engine/calibration_report.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/engine/engine_file.h"
#include "stipple/models/registry.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct EngineBuildCommand {
    std::string model, output, save_model;
    engine::Options how;
    engine::CalibrationOptions calibration;
    int64_t calibrate_clouds = 256;
    std::vector<std::string> settings, calibrate;
    CloudArguments clouds;
};

/// The calibration that int8 and fp8 need: made of --calibrate and kept with the model, or the one that it has.
engine::Calibration calibration_for(const EngineBuildCommand& command, models::Model& model, const Common& common,
                                    io::Warnings& warnings) {
    if (command.calibrate.empty()) {
        if (!engine::has_calibration(model.weights))
            throw Error(
                ErrorCode::bad_argument,
                fmt::format("{} needs a calibration, and {} has none", name_of(command.how.precision), command.model),
                "--calibrate FOLDER makes one from clouds such as the network will see");
        return engine::calibration_of(model.weights);
    }
    engine::CalibrationOptions how = command.calibration;
    how.precision = command.how.precision;
    const tasks::CloudBatch batch = load_clouds(data::list_clouds(command.calibrate), command.calibrate_clouds,
                                                cloud_options(command.clouds, common), command.clouds, common, warnings)
                                        .clouds;
    engine::Calibration made = engine::calibrate(model.network, model.weights, {batch.view(), batch.batch()}, how);
    engine::set_calibration(model.weights, made);
    return made;
}

Result run_build(const EngineBuildCommand& command, const Common& common) {
    const bool scaled =
        command.how.precision == engine::Precision::int8 || command.how.precision == engine::Precision::fp8;
    STIPPLE_REQUIRE(scaled || command.calibrate.empty(), "--calibrate is for --precision int8 and fp8");
    STIPPLE_REQUIRE(command.save_model.empty() || !command.calibrate.empty(),
                    "--save-model keeps a new calibration: it needs --calibrate");
    cloud_options(command.clouds, common);
    require_writable(command.output, common.overwrite_mode());
    if (!command.save_model.empty()) require_writable(command.save_model, common.overwrite_mode());
    models::Model model = models::load_model(tasks::find_weights(command.model), model_options(command.settings));

    Result result;
    result.fields["inputs"] = Json::array({command.model});
    engine::Options wanted = command.how;
    wanted.device = parse_device(common.device);
    if (scaled) wanted.calibration = calibration_for(command, model, common, result.warnings);
    const engine::Engine engine = engine::compile(model.network, model.weights, wanted);
    const engine::EngineFile file = engine::engine_file_of(engine, model.weights);
    if (!common.dry_run) {
        engine::save_engine(command.output, file, common.overwrite_mode());
        if (!command.save_model.empty())
            network::save_weights(command.save_model, model.weights, network::WeightStorage::f32,
                                  common.overwrite_mode());
    }
    const int64_t written = network::multiply_adds(model.network, wanted.max_points),
                  computed = engine::multiply_adds(engine.program(), wanted.max_points);
    const char* verb = common.dry_run ? "would write" : "wrote";
    result.fields["model"] = model.network.name;
    result.fields["precision"] = name_of(wanted.precision);
    result.fields["layers"] = model.network.layers.size();
    result.fields["steps"] = engine.program().steps.size();
    result.fields["multiply_adds"] = written;
    result.fields["compiled_multiply_adds"] = computed;
    result.fields["weight_bytes"] = engine.weight_bytes();
    result.fields["context_bytes"] = engine.context_bytes();
    result.fields["source"] = fmt::format("{:016x}", file.source);
    result.fields["outputs"] = Json::array({{{"path", command.output}, {"written", !common.dry_run}}});
    if (wanted.calibration) {
        result.fields["calibration"] = calibration_fields(*wanted.calibration);
        result.text += calibration_text(*wanted.calibration, common.table) + "\n";
    }
    for (const std::string& line : engine.describe()) result.text += line + "\n";
    result.text += fmt::format(
        "\n{} layers became {} steps, {:.1f} of {:.1f} million multiply-adds are left (one cloud of {} points)\n",
        model.network.layers.size(), engine.program().steps.size(), 1e-6 * static_cast<double>(computed),
        1e-6 * static_cast<double>(written), grouped(wanted.max_points));
    result.text += fmt::format("{} {}: {} in {} for {}, up to {} clouds of {} points\n", verb,
                               printable(command.output), model.network.name, name_of(wanted.precision), wanted.device,
                               grouped(wanted.max_batch), grouped(wanted.max_points));
    if (!command.save_model.empty())
        result.text += fmt::format("{} {}: the model with its calibration\n", verb, printable(command.save_model));
    return result;
}

}  // namespace

Command add_engine_build(Arguments& group, Common& common) {
    auto command = std::make_shared<EngineBuildCommand>();
    Arguments& app = group.command("build", "Compile a model into one file that loads in milliseconds");
    Option model = app.option("MODEL", command->model, "Weights (.safetensors)");
    Option output = app.option("-o,--output", command->output, "The engine file");
    app.option("--set", command->settings, "Options that training does not fix, e.g. ratio=8").text("KEY=VALUE...");
    app.add(engine::option_fields(), &command->how);
    app.option("--calibrate", command->calibrate, "int8, fp8: clouds such as the network will see").text("PATH...");
    app.option("--calibrate-clouds", command->calibrate_clouds, "How many of them, at most")
        .between(1, 1 << 20)
        .text("N");
    app.add(engine::calibration_option_fields(), &command->calibration);
    app.option("--save-model", command->save_model, "The model with its calibration, for export and bench");
    add_cloud_options(app, command->clouds);
    app.footer(
        "Example:\n  stipple engine build pointnet.safetensors -o pointnet.engine --precision bf16\n"
        "  stipple engine build pointnet.safetensors -o p8.engine --precision int8 --calibrate scans/");
    return {&app, [command, &common] { return run_build(*command, common); }, {model, output}};
}

}  // namespace stipple::cli
