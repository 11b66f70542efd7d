#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/tasks/fit_confidence.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct WeightsConfidenceOptions {
    std::string input, output;
    DataArguments data;
};

Result run_weights_confidence(const WeightsConfidenceOptions& options, const Common& common) {
    require_writable(options.output, common.overwrite_mode());
    const std::string path = tasks::find_weights(options.input);
    network::Weights weights = network::load_weights(path);
    Result result;
    const data::DataSet set = load_data(options.data, options.data.split, 0, common, result.warnings);
    tasks::Classifier classifier(tasks::load_model_or_engine(path), {.device = common.device});
    const tasks::ConfidenceSizes sizes;
    Progress progress("fit confidence", set.size() * 2 * static_cast<int64_t>(sizes.points.size()),
                      progress_mode(common), "clouds");
    const tasks::Confidence fitted = tasks::fit_confidence(classifier, set, sizes, {}, [&] { progress.add(); });
    progress.finish();
    tasks::set_confidence(weights.metadata, fitted);
    const auto stored = weights.metadata.find("stipple.storage");
    if (!common.dry_run)
        network::save_weights(options.output, weights,
                              network::parse_weight_storage(stored == weights.metadata.end() ? "f32" : stored->second),
                              common.overwrite_mode());
    result.fields["inputs"] = Json::array({options.input});
    result.fields["clouds"] = set.size();
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: confidence measured on {} clouds\n", common.dry_run ? "would write" : "wrote",
                              printable(options.output), grouped(set.size()));
    return result;
}

}  // namespace

Command add_weights_confidence(Arguments& group, Common& common) {
    auto options = std::make_shared<WeightsConfidenceOptions>();
    options->data.split = "train";
    Arguments& app = group.command("confidence", "Measure on training clouds what a classifier's answers are worth");
    Option input = app.option("MODEL", options->input, "A .safetensors file, or the name of shipped weights");
    Option output = app.option("-o,--output", options->output, "The .safetensors file");
    Option data = app.option("--data", options->data.path, "Labelled training clouds: a folder or file");
    app.option("--split", options->data.split, "train, val or test; empty: all");
    add_layout(app, options->data);
    app.footer(
        "stipple train does it by itself; this is for weights from elsewhere, or other clouds. classify then tells "
        "how\n"
        "sure it is, and which clouds are unlike those it was trained on.\n\n"
        "Example:\n  stipple weights confidence model.safetensors --data modelnet40_ply_hdf5_2048 -o sure.safetensors");
    return {&app, [options, &common] { return run_weights_confidence(*options, common); }, {input, output, data}};
}

}  // namespace stipple::cli
