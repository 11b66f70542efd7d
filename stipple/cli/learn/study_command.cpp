#include "stipple/cli/learn/study_command.h"

#include <algorithm>
#include <cmath>

#include "stipple/cli/common/child_program.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/learn/retrain_command.h"
#include "stipple/core/json.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/log.h"
#include "stipple/core/program_files.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/image_file.h"
#include "stipple/learn/recipe.h"
#include "stipple/picture/chart.h"

namespace stipple::cli {
namespace {

struct StudyArguments {
    std::string recipe, data, output = "runs/precision";
    std::vector<std::string> levels, settings;
    int64_t seeds = 3, epochs = 60;
};

/// What metrics.jsonl of a run says.
struct RunMetrics {
    std::string score_name;
    double score = NAN;
    std::vector<double> epoch_seconds;  // of all but the first
    int64_t epochs = 0, skipped = 0;
    double peak_bytes = 0;
    bool is_complete = false;
};

RunMetrics read_metrics(const std::string& folder) {
    RunMetrics metrics;
    if (!is_file(folder + "/config.toml")) return metrics;
    const auto batch = static_cast<double>(learn::load_recipe(folder + "/config.toml").run.batch);
    metrics.is_complete = is_file(folder + "/weights.safetensors");
    const std::string path = folder + "/metrics.jsonl";
    if (!is_file(path)) return metrics;
    io::FileSource source(path);
    io::ByteReader reader(source);
    int64_t steps_before = 0;
    while (const auto line = reader.line()) {
        std::string kind, name;
        double step = 0, clouds_per_second = 0, device = 0, host = 0, score = NAN;
        read_json(path, *line, [&](JsonField& field) {
            const std::string key(field.word());
            if (key == "kind")
                field.take(kind);
            else if (key == "step")
                field.take(step);
            else if (key == "clouds_per_second")
                field.take(clouds_per_second);
            else if (key == "device_peak_bytes")
                field.take(device);
            else if (key == "host_peak_bytes")
                field.take(host);
            else if (key == "accuracy" || key == "validation_accuracy" || key == "validation_instance_miou") {
                // A validation says more than the training clouds, and parts more than points.
                if (name != "validation_instance_miou") field.take(score), name = key;
            }
        });
        metrics.skipped += kind == "skipped";
        if (kind != "epoch") continue;
        const double steps = step - static_cast<double>(steps_before);
        steps_before = static_cast<int64_t>(step);
        if (++metrics.epochs > 1 && clouds_per_second > 0)
            metrics.epoch_seconds.push_back(steps * batch / clouds_per_second);
        metrics.score = score, metrics.score_name = name;
        metrics.peak_bytes = std::max(metrics.peak_bytes, device > 0 ? device : host);
    }
    return metrics;
}

double median(std::vector<double> values) {
    if (values.empty()) return NAN;
    std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

/// Begins a run, goes on with it, or leaves one that is complete alone.
int train_once(const StudyArguments& arguments, const Common& common, const std::string& level, int64_t seed,
               const std::string& folder) {
    std::vector<std::string> call = {
        arguments.recipe,     "--data", arguments.data,        "--epochs", std::to_string(arguments.epochs), "--seed",
        std::to_string(seed), "--set",  "run.confidence=false"};
    for (const std::string& setting : arguments.settings) call.insert(call.end(), {"--set", setting});
    call.insert(call.end(), {"--set", "run.precision=" + level});
    return train_in(folder, call, common);
}

/// All runs of a level.
struct LevelResult {
    std::string name, remark;
    std::vector<double> scores, epoch_seconds;
    double peak_bytes = 0;
    int64_t skipped = 0;

    double mean_score() const {
        double sum = 0;
        for (const double score : scores) sum += score;
        return scores.empty() ? NAN : sum / static_cast<double>(scores.size());
    }
    double deviation() const {
        double sum = 0;
        for (const double score : scores) sum += (score - mean_score()) * (score - mean_score());
        return scores.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(scores.size() - 1));
    }
};

Json number_or_null(double value, double digits) {
    return std::isfinite(value) ? Json(std::round(value * digits) / digits) : Json();
}

Image draw(const std::vector<LevelResult>& levels) {
    picture::BarChart chart;
    chart.title = "Training by precision";
    chart.y.label = "share of the first level";
    chart.series = {{.name = "time of an epoch"}, {.name = "peak memory"}, {.name = "score"}};
    const LevelResult& first = levels.front();
    for (const LevelResult& level : levels) {
        chart.groups.push_back(level.name);
        chart.series[0].values.push_back(median(level.epoch_seconds) / median(first.epoch_seconds));
        chart.series[1].values.push_back(level.peak_bytes / first.peak_bytes);
        chart.series[2].values.push_back(level.mean_score() / first.mean_score());
    }
    return picture::draw_chart(chart, {}).image;
}

Result run_precision(StudyArguments arguments, const Common& common) {
    if (arguments.levels.empty()) arguments.levels = {"fp32", "tf32", "bf16", "fp16", "fp16-weights", "fp16-pure"};
    STIPPLE_REQUIRE(!arguments.recipe.empty() && !arguments.data.empty(), "a recipe and --data are needed");
    {  // levels and settings are checked before hours are spent
        learn::Recipe recipe = learn::load_recipe(learn::find_recipe(arguments.recipe));
        for (const std::string& level : arguments.levels) learn::set_option(recipe, "run.precision", level);
    }
    // A score of clouds that were trained on says little.
    const bool is_scored =
        std::any_of(arguments.settings.begin(), arguments.settings.end(), [](const std::string& text) {
            return text.starts_with("data.held_out=") || text.starts_with("data.validation=");
        });
    if (!is_scored) arguments.settings.push_back("data.held_out=0.1");
    Result result;
    std::vector<LevelResult> levels;
    std::string score_name = "score";
    for (const std::string& name : arguments.levels) {
        LevelResult& level = levels.emplace_back();
        level.name = name;
        for (int64_t seed = 0; seed < arguments.seeds; ++seed) {
            const std::string folder = fmt::format("{}/{}-{}", arguments.output, name, seed);
            log_info("{}, seed {}: {}", name, seed, folder);
            const int status = train_once(arguments, common, name, seed, folder);
            const RunMetrics metrics = read_metrics(folder);
            level.skipped += metrics.skipped;
            level.peak_bytes = std::max(level.peak_bytes, metrics.peak_bytes);
            level.epoch_seconds.insert(level.epoch_seconds.end(), metrics.epoch_seconds.begin(),
                                       metrics.epoch_seconds.end());
            if (metrics.is_complete) {
                level.scores.push_back(metrics.score);
                score_name = metrics.score_name;
            } else {
                level.remark =
                    fmt::format("seed {} ended with status {} after {} epochs", seed, status, metrics.epochs);
                result.warnings.push_back(fmt::format("{}: {}", name, level.remark));
            }
        }
    }
    Table table{{"precision", "epoch (s)", score_name + " (%)", "deviation", "runs", "peak memory (MB)",
                 "skipped steps", "remark"},
                {}};
    Json rows = Json::array();
    for (const LevelResult& level : levels) {
        table.rows.push_back({level.name, number_or_null(median(level.epoch_seconds), 1e4),
                              number_or_null(100 * level.mean_score(), 100),
                              number_or_null(100 * level.deviation(), 100), level.scores.size(),
                              std::round(level.peak_bytes / 1e5) / 10, level.skipped, level.remark});
        rows.push_back({{"precision", level.name},
                        {"epoch_seconds", number_or_null(median(level.epoch_seconds), 1e6)},
                        {"scores", level.scores},
                        {"peak_bytes", level.peak_bytes},
                        {"skipped_steps", level.skipped},
                        {"remark", level.remark}});
    }
    result.fields["score"] = score_name;
    result.fields["levels"] = std::move(rows);
    result.text = format_table(table, common.table);
    const std::string picture = arguments.output + "/precision.png";
    io::save_png(picture, draw(levels), Overwrite::allow);
    result.fields["picture"] = picture;
    if (common.table.empty()) result.text += fmt::format("wrote {}\n", picture);
    return result;
}

}  // namespace

Command add_study(Arguments& root, Common& common) {
    auto arguments = std::make_shared<StudyArguments>();
    Arguments& app = root.command("study", "Train a recipe in several ways and compare");
    app.footer("Example:\n  stipple study precision pointnet-cls --data modelnet40.stpk");
    Arguments& precision = app.command("precision", "Time, score and memory of a training by precision");
    precision.option("RECIPE", arguments->recipe, "By name or path");
    precision.option("--data", arguments->data, "Data set: a folder or file").text("DIR");
    precision.option("-o,--output", arguments->output, "Folder of the runs; those in it are gone on with");
    precision.option("--levels", arguments->levels, "Of these: fp32,tf32,bf16,fp16,fp16-weights,fp16-pure [all]")
        .separated_by(',')
        .text("A,B,...");
    precision.option("--seeds", arguments->seeds, "Runs of each").between(1, 100);
    precision.option("--epochs", arguments->epochs, "Of each run").between(1, 1 << 24);
    precision.option("--set", arguments->settings, "A number of the recipe: data.validation=test")
        .text("KEY=VALUE")
        .one_word();
    precision.footer(
        "Scores are of a tenth of the training clouds, which are held out, unless --set names other clouds.\n\n"
        "Example:\n  stipple study precision pointnet-cls --data modelnet40.stpk");
    Command command{&app, {}, {}, {}};
    command.commands.push_back({&precision, [arguments, &common] { return run_precision(*arguments, common); }, {}});
    command.commands.push_back(add_retraining(app, common));
    return command;
}

}  // namespace stipple::cli
