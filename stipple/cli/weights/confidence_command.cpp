#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/class_names.h"
#include "stipple/tasks/fit_confidence.h"
#include "stipple/tasks/fit_likeness.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct WeightsConfidenceOptions {
    std::string input, output;
    std::vector<std::string> classes;
    bool unseen = false;
    DataArguments data;
};

/// What a classifier's answers are worth; the clouds that it was measured on.
int64_t add_confidence(tasks::ModelOrEngine source, const data::DataSet& set, const Common& common,
                       network::Weights& weights) {
    tasks::Classifier classifier(std::move(source), {.device = common.device});
    const tasks::ConfidenceSizes sizes;
    Progress progress("fit confidence", set.size() * 2 * static_cast<int64_t>(sizes.points.size()),
                      progress_mode(common), "clouds");
    tasks::set_confidence(weights.metadata, tasks::fit_confidence(classifier, set, sizes, {}, [&] { progress.add(); }));
    progress.finish();
    return set.size();
}

/// What an autoencoder cannot rebuild, by clouds of the classes that are named, else of those that the weights name.
int64_t add_likeness(tasks::ModelOrEngine source, const data::DataSet& set, std::vector<std::string> classes,
                     const tasks::LikenessOptions& how, const Common& common, network::Weights& weights) {
    tasks::Reconstructor reconstructor(std::move(source), {.device = common.device, .points = tasks::kMostSeen});
    if (classes.empty()) classes = reconstructor.classes();
    const std::vector<int64_t> items = tasks::items_of_classes(set, classes);
    const tasks::LikenessSizes sizes;
    Progress progress("fit likeness", static_cast<int64_t>(2 * items.size() * sizes.points.size()),
                      progress_mode(common), "clouds");
    const std::vector<tasks::LikenessClouds> clouds =
        tasks::likeness_clouds(reconstructor, set, items, sizes, [&] { progress.add(); });
    tasks::set_likeness(weights.metadata, tasks::fit_likeness(clouds, how));
    progress.finish();
    if (classes.empty()) classes = set.classes;
    if (!classes.empty()) data::set_class_names(weights.metadata, classes);
    return static_cast<int64_t>(items.size());
}

Result run_weights_confidence(const WeightsConfidenceOptions& options, const Common& common) {
    require_writable(options.output, common.overwrite_mode());
    const std::string path = tasks::find_weights(options.input);
    network::Weights weights = network::load_weights(path);
    Result result;
    const data::DataSet set = load_data(options.data, options.data.split, 0, common, result.warnings);
    tasks::ModelOrEngine source = tasks::load_model_or_engine(path);
    const bool rebuilds = tasks::output_type(source, "reconstructed").has_value();
    STIPPLE_REQUIRE(rebuilds || (options.classes.empty() && !options.unseen),
                    "--classes and --unseen are for autoencoders: classifiers have their classes");
    tasks::LikenessOptions how;
    if (options.unseen) how.slack = 1;
    const int64_t clouds = rebuilds ? add_likeness(std::move(source), set, options.classes, how, common, weights)
                                    : add_confidence(std::move(source), set, common, weights);
    const auto stored = weights.metadata.find("stipple.storage");
    if (!common.dry_run)
        network::save_weights(options.output, weights,
                              network::parse_weight_storage(stored == weights.metadata.end() ? "f32" : stored->second),
                              common.overwrite_mode());
    result.fields["inputs"] = Json::array({options.input});
    result.fields["clouds"] = clouds;
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: confidence measured on {} clouds\n", common.dry_run ? "would write" : "wrote",
                              printable(options.output), grouped(clouds));
    return result;
}

}  // namespace

Command add_weights_confidence(Arguments& group, Common& common) {
    auto options = std::make_shared<WeightsConfidenceOptions>();
    options->data.split = "train";
    Arguments& app = group.command("confidence", "Measure on training clouds what a network's answers are worth");
    Option input = app.option("MODEL", options->input, "A .safetensors file, or the name of shipped weights");
    Option output = app.option("-o,--output", options->output, "The .safetensors file");
    Option data = app.option("--data", options->data.path, "Labelled training clouds: a folder or file");
    app.option("--split", options->data.split, "train, val or test; empty: all");
    app.option("--classes", options->classes, "autoencoders: those it was trained on, by name").text("NAME...");
    app.flag("--unseen", options->unseen, "autoencoders: it was not trained on these very clouds");
    add_layout(app, options->data);
    app.footer(
        "stipple train does it by itself; this is for weights from elsewhere, and other clouds. classify then tells "
        "how sure it is, and which clouds are unlike those it was trained on;\n"
        "reconstruct refuses such clouds.\n\n"
        "Example:\n  stipple weights confidence model.safetensors --data modelnet40_ply_hdf5_2048 -o sure.safetensors\n"
        "  stipple weights confidence autoencoder.safetensors --data modelnet40_ply_hdf5_2048 \\\n"
        "      --classes airplane car chair table -o sure.safetensors");
    return {&app, [options, &common] { return run_weights_confidence(*options, common); }, {input, output, data}};
}

}  // namespace stipple::cli
