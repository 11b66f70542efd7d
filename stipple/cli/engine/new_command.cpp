#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/models/registry.h"

namespace stipple::cli {
namespace {

struct EngineNewOptions {
    std::string model, output, storage = "f32";
    std::vector<std::string> settings;
};

Result run_new(const EngineNewOptions& options, const Common& common) {
    require_writable(options.output, common.overwrite_mode());
    const network::Network net = models::build_model(options.model, model_options(options.settings));
    network::Weights weights = network::initial_weights(net, common.seed);
    weights.metadata["stipple.trained"] = "false";
    const network::WeightStorage storage = network::parse_weight_storage(options.storage);
    if (!common.dry_run) network::save_weights(options.output, weights, storage, common.overwrite_mode());
    int64_t parameters = 0;
    for (const auto& [name, tensor] : weights.tensors) parameters += static_cast<int64_t>(tensor.values.size());
    Result result;
    result.fields["model"] = net.name;
    result.fields["config"] = net.config;
    result.fields["parameters"] = parameters;
    result.fields["trained"] = false;
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    result.text =
        fmt::format("{} {}: {}, {} numbers, all random (seed {}): for timing and tests, it has learned nothing\n",
                    common.dry_run ? "would write" : "wrote", printable(options.output), net.name, grouped(parameters),
                    common.seed);
    return result;
}

}  // namespace

Command add_engine_new(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineNewOptions>();
    Arguments& app = group.command("new", "A model with random weights, for timing and tests");
    std::string names;
    for (const models::ModelEntry& entry : models::model_table())
        names += fmt::format("\n  {:26}{}", entry.name, entry.summary);
    Option model = app.option("NAME", options->model, "Which architecture, see below");
    Option output = app.option("-o,--output", options->output, "The .safetensors file");
    app.option("--set", options->settings, "Its configuration, e.g. classes=10").text("KEY=VALUE...");
    app.option("--storage", options->storage, "How the numbers are stored")
        .one_of({"f32", "f16", "bf16", "int8-rows"})
        .text("f32|f16|bf16|int8-rows");
    app.footer(
        "Models:" + names +
        "\n\nExample:\n  stipple engine new pointnet-classifier --set classes=40 --seed 1 -o random.safetensors");
    return {&app, [options, &common] { return run_new(*options, common); }, {model, output}};
}

}  // namespace stipple::cli
