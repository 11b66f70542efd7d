#include "stipple/cli/commands.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/data/class_names.h"
#include "stipple/tasks/classify.h"

namespace stipple::cli {
namespace {

struct ClassifyOptions {
    std::string model, names;
    std::vector<std::string> inputs;
    CloudArguments clouds;
    PrecisionArgument precision;
    int64_t top = 1, batch = 32;
};

/// The likeliest classes of each cloud, for people and for --json.
void report(const std::vector<data::CloudEntry>& entries, const std::vector<tasks::Classified>& answers,
            const std::vector<std::string>& names, int64_t top, const Common& common, Result& result) {
    Table table{{"file", "points"}, {}};
    for (int64_t i = 0; i < top; ++i) {
        table.columns.push_back(i == 0 ? "class" : fmt::format("class {}", i + 1));
        table.columns.push_back(i == 0 ? "probability" : fmt::format("probability {}", i + 1));
    }
    Json list = Json::array();
    for (size_t i = 0; i < entries.size(); ++i) {
        const std::string file = entries[i].name();
        const tasks::Classified& answer = answers[i];
        if (answer.error) {
            list.push_back({{"path", file}, {"error", answer.error->message()}});
            result.errors.push_back(*answer.error);
            continue;
        }
        std::vector<Json> row = {file, answer.points};
        Json likeliest = Json::array();
        for (int64_t k = 0; k < top; ++k) {
            const auto [index, probability] = answer.guesses[static_cast<size_t>(k)];
            const std::string& name = names[static_cast<size_t>(index)];
            row.insert(row.end(), {name, std::round(1e4 * probability) / 1e4});
            likeliest.push_back({{"class", name}, {"index", index}, {"probability", probability}});
        }
        table.rows.push_back(std::move(row));
        list.push_back({{"path", file}, {"points", answer.points}, {"top", std::move(likeliest)}});
    }
    result.text = format_table(table, common.table);
    count_errors(static_cast<int64_t>(entries.size()), "clouds", result);
    result.fields["files"] = std::move(list);
}

Result run_classify(const ClassifyOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    const tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    STIPPLE_REQUIRE(options.batch >= 1 && options.batch <= 65536, "--batch must be 1 to 65536, got {}", options.batch);
    tasks::Classifier classifier(tasks::load_model_or_engine(options.model),
                                 {.device = common.device,
                                  .precision = options.precision.wanted(),
                                  .batch = options.batch,
                                  .points = clouds.points > 0 ? clouds.points : 1024});
    STIPPLE_REQUIRE(options.top >= 1 && options.top <= classifier.classes(), "--top must be 1 to {}, got {}",
                    classifier.classes(), options.top);
    const tasks::ModelOrEngine& source = classifier.runner().source();
    const std::vector<data::CloudEntry> entries = data::list_clouds(options.inputs);
    const std::vector<std::string> names = data::class_names(source.metadata(), options.names, classifier.classes());
    Result result;
    result.fields["inputs"] = options.inputs;
    FileProgress file_progress(common);
    Progress progress("classify", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    const std::vector<tasks::Classified> answers = tasks::classify(
        classifier, entries, clouds, reading(options.clouds, file_progress), result.warnings, [&] { progress.add(); });
    progress.finish();
    result.fields["model"] = source.name();
    result.fields["precision"] = name_of(classifier.runner().precision());
    report(entries, answers, names, options.top, common, result);
    const auto trained = source.metadata().find("stipple.trained");
    if (trained != source.metadata().end() && trained->second == "false")
        result.warnings.push_back(fmt::format("{}: weights are random, so are the classes", options.model));
    return result;
}

}  // namespace

Command add_classify(Arguments& root, Common& common) {
    auto options = std::make_shared<ClassifyOptions>();
    Arguments& app = root.command("classify", "Say what clouds show");
    Option model = app.option("--model", options->model, "Weights (.safetensors), by path or name, or an engine");
    Option input = app.option("INPUT", options->inputs, "Clouds, meshes, folders of them, HDF5 sets");
    app.option("--top", options->top, "The likeliest classes of each").show_default();
    app.option("--names", options->names, "Names of the classes, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    add_precision(app, options->precision);
    app.option("--batch", options->batch, "Clouds at a time").show_default();
    app.footer(
        "Example:\n  stipple classify --model pointnet-modelnet40 scans/ --top 3\n"
        "  stipple classify --model pointnet.engine *.ply --table csv > classes.csv");
    return {&app, [options, &common] { return run_classify(*options, common); }, {model, input}};
}

}  // namespace stipple::cli
