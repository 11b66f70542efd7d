#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/tasks/measure_confidence.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct WeightsConfidenceCommand {
    std::string input, output;
    DataArguments data;
    tasks::MeasureConfidenceOptions how;
};

Result run_weights_confidence(const WeightsConfidenceCommand& command, const Common& common) {
    require_writable(command.output, common.overwrite_mode());
    const std::string path = tasks::find_weights(command.input);
    network::Weights weights = network::load_weights(path);
    Result result;
    const data::DataSet set = load_data(command.data, command.data.split, 0, common, result.warnings);
    tasks::MeasureConfidenceOptions how = command.how;
    how.device = common.device;
    std::optional<Progress> progress;
    const auto advance = [&](int64_t total) {
        if (!progress) progress.emplace("fit confidence", total, progress_mode(common), "clouds");
        progress->add();
    };
    const tasks::MeasuredConfidence measured =
        tasks::measure_confidence(tasks::load_model_or_engine(path), set, how, weights, advance);
    if (progress) progress->finish();
    const auto stored = weights.metadata.find("stipple.storage");
    if (!common.dry_run)
        network::save_weights(command.output, weights,
                              network::parse_weight_storage(stored == weights.metadata.end() ? "f32" : stored->second),
                              common.overwrite_mode());
    result.fields["inputs"] = Json::array({command.input});
    result.fields.update(to_json(tasks::measured_confidence_fields(), &measured));
    result.fields["outputs"] = Json::array({{{"path", command.output}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: confidence measured on {} clouds\n", common.dry_run ? "would write" : "wrote",
                              printable(command.output), grouped(measured.clouds));
    return result;
}

}  // namespace

Command add_weights_confidence(Arguments& group, Common& common) {
    auto command = std::make_shared<WeightsConfidenceCommand>();
    command->data.split = "train";
    Arguments& app = group.command("confidence", "Measure on training clouds what a network's answers are worth");
    Option input = app.option("MODEL", command->input, "A .safetensors file, or the name of shipped weights");
    Option output = app.option("-o,--output", command->output, "The .safetensors file");
    Option data = app.option("--data", command->data.path, "Labelled training clouds: a folder or file");
    app.option("--split", command->data.split, "train, val or test; empty: all");
    app.add(tasks::measure_confidence_fields(), &command->how);
    add_layout(app, command->data);
    app.footer(
        "stipple train does it by itself; this is for weights from elsewhere, and other clouds. classify then tells "
        "how sure it is, and which clouds are unlike those it was trained on;\n"
        "reconstruct refuses such clouds.\n\n"
        "Example:\n  stipple weights confidence model.safetensors --data modelnet40_ply_hdf5_2048 -o sure.safetensors\n"
        "  stipple weights confidence autoencoder.safetensors --data modelnet40_ply_hdf5_2048 \\\n"
        "      --classes airplane car chair table -o sure.safetensors");
    return {&app, [command, &common] { return run_weights_confidence(*command, common); }, {input, output, data}};
}

}  // namespace stipple::cli
