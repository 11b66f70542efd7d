#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/engine/calibration.h"
#include "stipple/models/registry.h"
#include "stipple/network/onnx.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct EngineExportOptions {
    std::string model, output;
    std::vector<std::string> settings;
    bool int8 = false, keep_norm = false, convolutions = false;
};

Result run_export(const EngineExportOptions& options, const Common& common) {
    require_writable(options.output, common.overwrite_mode());
    const models::Model model = models::load_model(tasks::find_weights(options.model), model_options(options.settings));
    network::OnnxOptions onnx;
    onnx.fold_norm = !options.keep_norm;
    onnx.convolutions = options.convolutions;
    if (options.int8) {
        const engine::Calibration calibration =
            about_file(options.model, [&] { return engine::calibration_of(model.weights); });
        std::map<std::string, float> ranges;
        for (const auto& [name, layer] : calibration.layers)
            if (!layer.keep_higher) ranges[name] = layer.range;
        onnx.ranges = network::ranges_for_onnx(model.network, ranges);
    }
    if (common.dry_run)
        network::to_onnx(model.network, model.weights, onnx);
    else
        network::save_onnx(options.output, model.network, model.weights, onnx, common.overwrite_mode());
    Result result;
    result.fields["inputs"] = Json::array({options.model});
    result.fields["model"] = model.network.name;
    result.fields["quantised_layers"] = onnx.ranges.size();
    result.fields["outputs"] =
        Json::array({{{"path", options.output}, {"format", "onnx"}, {"written", !common.dry_run}}});
    result.text =
        fmt::format("{} {}: {}{}\n", common.dry_run ? "would write" : "wrote", printable(options.output),
                    model.network.name, options.int8 ? fmt::format(", {} layers in int8", onnx.ranges.size()) : "");
    return result;
}

}  // namespace

Command add_engine_export(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineExportOptions>();
    Arguments& app = group.command("export", "Write a model as ONNX, for other runtimes");
    Option model = app.option("MODEL", options->model, "Weights (.safetensors)");
    Option output = app.option("-o,--output", options->output, "The .onnx file");
    app.option("--set", options->settings, "Options that training does not fix, e.g. ratio=8").text("KEY=VALUE...");
    app.flag("--int8", options->int8, "Quantise layers as the model's calibration says");
    app.flag("--keep-norm", options->keep_norm, "Batch norm as nodes of its own, not folded");
    app.flag("--convolutions", options->convolutions, "Layers of points as convolutions: faster in onnxruntime");
    app.footer("Example:\n  stipple engine export pointnet.safetensors -o pointnet.onnx");
    return {&app, [options, &common] { return run_export(*options, common); }, {model, output}};
}

}  // namespace stipple::cli
