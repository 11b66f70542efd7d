#include "stipple/cli/learn/retrain_command.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stipple/cli/common/child_program.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/folder.h"
#include "stipple/core/log.h"
#include "stipple/core/program_files.h"
#include "stipple/learn/recipe.h"
#include "stipple/tasks/upsampling_study/ablations.h"
#include "stipple/tasks/upsampling_study/conditions.h"

namespace stipple::cli {
namespace {

constexpr const char* kRecipe = "puflow";

struct RetrainArguments {
    std::string data, training, output = "runs/upsampling-ablation", stored;
    std::vector<std::string> only, settings;
    int64_t shapes = 0, seeds = 5, epochs = 0;
    bool is_quick = false, retrain = false;
};

/// All, or those of --only in the order of the table. Throws Error{bad_argument} for other names.
std::vector<const study::Ablation*> chosen_ablations(const std::vector<std::string>& only) {
    std::vector<std::string> names;
    for (const study::Ablation& ablation : study::ablations()) names.emplace_back(ablation.name);
    for (const std::string& name : only)
        STIPPLE_REQUIRE(std::find(names.begin(), names.end(), name) != names.end(),
                        "--only {}: there is no such variant; there are {}", name, fmt::join(names, ", "));
    std::vector<const study::Ablation*> chosen;
    for (const study::Ablation& ablation : study::ablations())
        if (only.empty() || std::find(only.begin(), only.end(), ablation.name) != only.end())
            chosen.push_back(&ablation);
    return chosen;
}

/// Throws Error{bad_config} or Error{bad_argument} for what this program's recipes and models do not know.
void check_settings(const study::Ablation& ablation, const std::vector<std::string>& settings) {
    learn::Recipe recipe = learn::load_recipe(learn::find_recipe(kRecipe));
    const auto set = [&](const std::string& setting) {
        const size_t equals = setting.find('=');
        STIPPLE_REQUIRE(equals != std::string::npos && equals > 0, "--set {}: key=value expected", setting);
        learn::set_option(recipe, setting.substr(0, equals), setting.substr(equals + 1));
    };
    for (const std::string& setting : settings) set(setting);
    for (const std::string& setting : study::words_of(ablation.settings)) set(setting);
    learn::validate_with_model(recipe);
}

/// --stored, or the file of the checkout.
std::string stored_path(const RetrainArguments& arguments) {
    if (!arguments.stored.empty()) return arguments.stored;
    const std::vector<std::string> folders = shared_folders("bench/results", "STIPPLE_RESULTS");
    for (const std::string& folder : folders)
        if (is_file(folder + "/" + study::kStoredResults)) return folder + "/" + study::kStoredResults;
    for (const std::string& folder : folders)
        if (is_folder(folder)) return folder + "/" + study::kStoredResults;
    throw Error(ErrorCode::bad_argument, "no folder bench/results to store rows in", "name a file with --stored");
}

/// That makes a row again, without the places of files on this machine.
std::string row_command(const RetrainArguments& arguments, const study::Ablation& ablation,
                        const study::StudyPlan& plan) {
    std::string line =
        fmt::format("stipple study upsampling-ablation --retrain --only {} --training DIR --data DIR", ablation.name);
    if (arguments.epochs > 0) line += fmt::format(" --epochs {}", arguments.epochs);
    for (const std::string& setting : arguments.settings) line += " --set " + setting;
    line += fmt::format(" --seeds {}", plan.seeds);
    if (plan.first_seed != 0) line += fmt::format(" --seed {}", plan.first_seed);
    return line;
}

bool has_rows(const std::vector<study::Mean>& stored, const study::Ablation& ablation, const study::StudyPlan& plan) {
    return std::all_of(plan.conditions.begin(), plan.conditions.end(), [&](const study::Condition& condition) {
        return std::any_of(stored.begin(), stored.end(), [&](const study::Mean& mean) {
            return mean.method == ablation.name && mean.input == condition.id;
        });
    });
}

/// Trains what is not trained; returns the weights, "" where there are none, which is then told.
std::string trained_weights(const RetrainArguments& arguments, const study::Ablation& ablation, const Common& common,
                            Result& result) {
    const bool is_own = ablation.weights[0] == '\0';
    const study::Ablation& trained = is_own ? ablation : study::find_ablation(ablation.weights);
    const std::string folder = fmt::format("{}/trained/{}", arguments.output, trained.name);
    if (is_own && common.overwrite && is_file(folder + "/config.toml")) remove_tree(folder);
    std::vector<std::string> call = {kRecipe, "--data", arguments.training, "--seed", std::to_string(common.seed)};
    if (arguments.epochs > 0) call.insert(call.end(), {"--epochs", std::to_string(arguments.epochs)});
    for (const std::string& setting : arguments.settings) call.insert(call.end(), {"--set", setting});
    for (const std::string& setting : study::words_of(trained.settings)) call.insert(call.end(), {"--set", setting});
    study::make_folders(arguments.output + "/trained");
    log_info("{}: {}", trained.name, folder);
    const int status = train_in(folder, call, common);
    const std::string weights = folder + "/weights.safetensors";
    if (is_file(weights)) return weights;
    result.warnings.push_back(fmt::format("{}: its training ended with status {}", trained.name, status));
    return "";
}

std::vector<study::Mean> measure(study::StudyPlan plan, const study::Ablation& ablation, const std::string& weights,
                                 const Common& common) {
    study::Method method{study::MethodKind::network, ablation.name, weights};
    for (const std::string& word : study::words_of(ablation.overrides))
        method.overrides[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    method.temperature = ablation.temperature;
    plan.methods = {std::move(method)};
    Progress progress(fmt::format("measure {}", ablation.name), study::study_rows(plan), progress_mode(common),
                      "outputs");
    plan.advance = [&](int64_t rows) { progress.add(rows); };
    return study::means_of(study::run_study(plan));
}

Result run_retraining(const RetrainArguments& arguments, const Common& common) {
    STIPPLE_REQUIRE(arguments.retrain, "upsampling-ablation of this program wants --retrain");
    Result result;
    std::vector<const study::Ablation*> chosen = chosen_ablations(arguments.only);
    std::erase_if(chosen, [&](const study::Ablation* ablation) {  // mistakes are told before hours are spent
        try {
            check_settings(*ablation, arguments.settings);
        } catch (const Error& error) {
            if (!arguments.only.empty() || ablation->settings[0] == '\0') throw;
            result.warnings.push_back(fmt::format("{}: left out: {}", ablation->name, error.what()));
            return true;
        }
        return false;
    });
    require_study_folder(arguments.output, common);
    study::StudyPlan plan =
        shapes_plan(arguments.data, arguments.is_quick ? 2 : arguments.shapes, arguments.output, common, result);
    plan.seeds = arguments.is_quick ? 1 : arguments.seeds;
    plan.conditions = study::ablation_conditions();
    if (const size_t dropped = drop_given_truths(plan); dropped > 0)
        result.warnings.push_back(fmt::format("{} inputs are left out: no gt_8192 comes with the shapes", dropped));
    const std::string file = stored_path(arguments);
    std::vector<study::Mean> stored;
    if (is_file(file)) stored = study::load_stored(file);
    std::erase_if(chosen, [&](const study::Ablation* ablation) {
        return !common.overwrite && has_rows(stored, *ablation, plan);
    });
    Table table{{"method", "input", "CD", "HD", "P2F"}, {}};
    std::vector<std::string> names;
    for (const study::Ablation* ablation : chosen) names.emplace_back(ablation->name);
    result.fields["stored"] = file;
    result.fields["retrained"] = names;
    if (common.dry_run) {
        result.text = fmt::format("would train and measure {} variants: {}\n", names.size(), fmt::join(names, ", "));
        return result;
    }
    for (const study::Ablation* ablation : chosen) {
        const std::string weights = trained_weights(arguments, *ablation, common, result);
        if (weights.empty()) continue;
        std::vector<study::Mean> means = measure(plan, *ablation, weights, common);
        for (study::Mean& mean : means) {
            mean.commit = STIPPLE_COMMIT;
            mean.command = row_command(arguments, *ablation, plan);
            table.rows.push_back({mean.method, mean.input, 1e3 * mean.mean[0], 1e3 * mean.mean[1], 1e3 * mean.mean[4]});
        }
        study::store_means(file, means);
    }
    result.text = format_table(table, common.table);
    if (common.table.empty()) result.text += fmt::format("stored {} rows in {}\n", table.rows.size(), file);
    return result;
}

}  // namespace

Command add_retraining(Arguments& group, Common& common) {
    auto arguments = std::make_shared<RetrainArguments>();
    Arguments& app = group.command("upsampling-ablation", "Train variants of PU-Flow and store their rows");
    app.flag("--retrain", arguments->retrain, "Wanted: without it, the study is of the program stipple");
    Option data = app.option("--data", arguments->data, "Shapes to measure: meshes/, and perhaps gt_8192/").text("DIR");
    Option training =
        app.option("--training", arguments->training, "What is trained on, as of stipple train").text("DIR");
    app.option("-o,--output", arguments->output, "Folder of runs and rows; those in it are gone on with");
    app.option("--only", arguments->only, "Of the variants these [all]").separated_by(',').text("NAME,...");
    app.option("--stored", arguments->stored, "Where rows go [bench/results/upsampling_ablation.csv]").text("FILE.csv");
    app.option("--epochs", arguments->epochs, "Of each training [as the recipe puflow says]")
        .between(1, 1 << 24)
        .no_default();
    app.option("--set", arguments->settings, "A number of the recipe, for all").text("KEY=VALUE").one_word();
    app.option("--shapes", arguments->shapes, "The first N; 0: all").from_zero().text("N");
    app.option("--seeds", arguments->seeds, "Draws of every input").between(1, 1000).text("N");
    app.flag("--quick", arguments->is_quick, "Two shapes and one draw");
    app.footer(
        "Variants that have their rows are passed over, unless --overwrite is given. Interrupted, it goes on where it "
        "was.\n\nExample:\n  stipple study upsampling-ablation --retrain --training meshes/ --data upsample_dev "
        "--only residual,no-likelihood");
    return {&app, [arguments, &common] { return run_retraining(*arguments, common); }, {data, training}};
}

}  // namespace stipple::cli
