#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/network/diagram.h"
#include "stipple/tasks/model_file.h"

namespace stipple::cli {
namespace {

struct EngineInspectOptions {
    std::string model, diagram;
    PrecisionArgument precision;
    engine::Options how;  // but for its precision
};

Json layers_json(const network::Network& net) {
    Json list = Json::array();
    for (const network::Layer& layer : net.layers) {
        Json inputs = Json::array();
        for (const network::Tensor input : layer.inputs) inputs.push_back(net[input].name);
        list.push_back({{"name", layer.name},
                        {"kind", name_of(layer.kind)},
                        {"inputs", std::move(inputs)},
                        {"type", to_string(layer.type)}});
    }
    return list;
}

Json steps_json(const engine::Program& program, const std::vector<std::string>& kernels) {
    Json list = Json::array();
    for (size_t i = 0; i < program.steps.size(); ++i) {
        const engine::Step& step = program.steps[i];
        Json layers = Json::array();
        for (const engine::Dense& layer : step.layers)
            layers.push_back({{"name", layer.name},
                              {"in", layer.in},
                              {"out", layer.out},
                              {"precision", name_of(layer.precision)},
                              {"input_range", layer.input_range}});
        Json item = {{"name", step.name}, {"output", to_string(program.values[static_cast<size_t>(step.output)].type)}};
        if (!step.layers.empty()) item["layers"] = std::move(layers);
        if (i < kernels.size()) item["kernel"] = kernels[i];
        list.push_back(std::move(item));
    }
    return list;
}

std::string rate_text(double value) {
    return value >= 1e9 ? fmt::format("{:.3f} G", value / 1e9) : fmt::format("{:.3f} M", value / 1e6);
}

Result run_inspect(const EngineInspectOptions& options, const Common& common) {
    if (!options.diagram.empty()) {
        STIPPLE_REQUIRE(options.diagram.size() > 4 && options.diagram.substr(options.diagram.size() - 4) == ".svg",
                        "{}: diagrams are SVG, name it .svg", options.diagram);
        require_writable(options.diagram, common.overwrite_mode());
    }
    const tasks::ModelOrEngine source = tasks::load_model_or_engine(options.model);
    STIPPLE_REQUIRE(options.diagram.empty() || source.model,
                    "--diagram draws the network: give the model, not what was built from it");
    engine::Options wanted = options.how;
    wanted.device = tasks::device_for(source, common.device);
    const std::optional<engine::Precision> precision = options.precision.wanted();
    wanted.precision = precision.value_or(engine::Precision::fp32);
    const engine::Engine engine = tasks::compile(source, wanted, precision.has_value());
    const engine::Program& program = engine.program();
    const engine::Options& used = engine.options();
    const int64_t points = used.max_points, computed = engine::multiply_adds(program, points);

    Result result;
    std::vector<std::pair<std::string, std::string>> pairs = {{"model", source.name()}};
    result.fields["inputs"] = Json::array({options.model});
    result.fields["model"] = source.name();
    if (source.model) {
        int64_t numbers = 0;
        for (const auto& [name, tensor] : source.model->weights.tensors)
            numbers += static_cast<int64_t>(tensor.values.size());
        const int64_t written = network::multiply_adds(source.model->network, points);
        pairs.emplace_back("parameters", grouped(numbers));
        pairs.emplace_back("as written", fmt::format("{} multiply-adds a cloud of {} points",
                                                     rate_text(static_cast<double>(written)), grouped(points)));
        result.fields["config"] = source.model->network.config;
        result.fields["parameters"] = numbers;
        result.fields["multiply_adds"] = written;
        result.fields["layers"] = layers_json(source.model->network);
        result.fields["calibrated"] = engine::has_calibration(source.model->weights);
        result.text = network::to_text(source.model->network) + "\n";
    } else {
        pairs.emplace_back("built from", fmt::format("weights {:016x}", source.file->source));
        result.fields["source"] = fmt::format("{:016x}", source.file->source);
    }
    pairs.emplace_back("as compiled", fmt::format("{} multiply-adds a cloud of {} points",
                                                  rate_text(static_cast<double>(computed)), grouped(points)));
    pairs.emplace_back("precision", fmt::format("{} on {}", name_of(used.precision), used.device));
    pairs.emplace_back("batch", fmt::format("up to {} clouds of {} points", grouped(used.max_batch), grouped(points)));
    pairs.emplace_back("weights", bytes_text(engine.weight_bytes()));
    pairs.emplace_back("a context", bytes_text(engine.context_bytes()));
    const std::vector<std::string> kernels = engine.describe();
    result.text += engine::to_text(program) + "\n";
    for (const std::string& line : kernels) result.text += line + "\n";
    result.text += "\n" + format_pairs(pairs, 0);
    result.fields["compiled_multiply_adds"] = computed;
    result.fields["precision"] = name_of(used.precision);
    result.fields["max_batch"] = used.max_batch;
    result.fields["max_points"] = points;
    result.fields["weight_bytes"] = engine.weight_bytes();
    result.fields["context_bytes"] = engine.context_bytes();
    result.fields["steps"] = steps_json(program, kernels);
    if (!options.diagram.empty())
        save_text(options.diagram, network::to_svg(source.model->network), "svg", common, result);
    return result;
}

}  // namespace

Command add_engine_inspect(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineInspectOptions>();
    Arguments& app = group.command("inspect", "Show layers, steps, kernels, cost and memory of a network");
    Option model = app.option("MODEL", options->model, "Weights (.safetensors) or a built engine");
    add_precision(app, options->precision);
    app.add(engine::option_fields(), &options->how, "max_batch").help("Clouds at a time, which memory is planned for");
    app.add(engine::option_fields(), &options->how, "max_points").help("Points of a cloud, for memory and cost");
    app.option("--diagram", options->diagram, "Draw the network into this .svg");
    app.footer(
        "Example:\n  stipple engine inspect pointnet.safetensors --diagram pointnet.svg\n"
        "  stipple engine inspect pointnet.engine");
    return {&app, [options, &common] { return run_inspect(*options, common); }, {model}};
}

}  // namespace stipple::cli
