#include "stipple/cli/learn/train_command.h"

#include <fmt/ranges.h>

#include <torch/torch.h>

#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/learn/processes.h"
#include "stipple/core/checkpoint.h"
#include "stipple/core/json.h"
#include "stipple/core/log.h"
#include "stipple/learn/distributed/c10d_group.h"
#include "stipple/learn/fine_tune.h"
#include "stipple/learn/finish.h"
#include "stipple/learn/loop/memory.h"
#include "stipple/learn/task.h"
#include "stipple/learn/train.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct TrainArguments {
    std::string recipe, data, output, resume, init, on_save_error = "stop", launcher = "auto", task, network;
    std::vector<std::string> settings;
    int64_t epochs = 0, batch = 0, max_steps = 0, profile = 0, processes = 1, rank_timeout = 600, count = 0;
    bool strict = false, prints_recipe = false, progressive = false;
};

/// "samplenet", "snet" and "gumbel-subset" are a recipe for each --task; S-NET's are SampleNet's without projection.
std::string recipe_name(const TrainArguments& arguments) {
    const std::string& name = arguments.recipe;
    const bool is_family = name == "samplenet" || name == "snet" || name == "gumbel-subset";
    STIPPLE_REQUIRE(is_family || arguments.task.empty(),
                    "--task is for the recipes samplenet, snet and gumbel-subset, not {}", name);
    STIPPLE_REQUIRE(!is_family || !arguments.task.empty(), "train {} needs --task cls, seg, reg or rec", name);
    if (!is_family) return name;
    return fmt::format("{}-{}", name == "snet" ? "samplenet" : name, arguments.task);
}

/// Options of samplers.
void set_sampler(learn::Recipe& recipe, const TrainArguments& arguments) {
    const bool is_sampler = recipe.task == learn::TrainingTask::sampling;
    STIPPLE_REQUIRE(is_sampler || (arguments.count == 0 && !arguments.progressive && arguments.network.empty()),
                    "--count, --progressive and --network are for samplers, not {}", recipe.name);
    if (arguments.count > 0) recipe.options["count"] = std::to_string(arguments.count);
    if (arguments.progressive) recipe.options["progressive"] = "true";
    if (arguments.recipe == "snet") recipe.options["neighbours"] = "0";
    if (!arguments.network.empty()) recipe.sampling.network = tasks::find_weights(arguments.network);
    // As published: the weights of the simplification that serve one size do not serve all of them.
    if (arguments.progressive && recipe.model == "samplenet" && recipe.options["shape"] == "classification") {
        recipe.sampling.gamma = 0.5;
        recipe.sampling.delta = 1.0 / 30;
    }
}

/// The recipe of a new run: the file, then --data, --epochs and so on, then --set, which has the last word.
learn::Recipe resolved(const TrainArguments& arguments, const Common& common, bool seed_given) {
    learn::Recipe recipe = learn::load_recipe(learn::find_recipe(recipe_name(arguments)));
    if (!arguments.data.empty()) recipe.data.folder = arguments.data;
    if (arguments.epochs > 0) recipe.run.epochs = arguments.epochs;
    if (arguments.batch > 0) recipe.run.batch = arguments.batch;
    if (seed_given) recipe.run.seed = common.seed;
    set_sampler(recipe, arguments);
    for (const std::string& setting : arguments.settings) {
        const size_t equals = setting.find('=');
        STIPPLE_REQUIRE(equals != std::string::npos && equals > 0, "--set {}: key=value expected", setting);
        learn::set_option(recipe, setting.substr(0, equals), setting.substr(equals + 1));
    }
    learn::validate(recipe);
    return recipe;
}

/// A GPU that is not named by its number is that of the rank.
torch::Device torch_device(const std::string& name, const learn::Launch& launch) {
    Device device = parse_device(name);
    if (name.find(':') == std::string::npos) device.index = launch.local_rank;
    if (device.type == DeviceType::cpu) return torch::kCPU;
    if (!torch::cuda::is_available())
        throw Error(ErrorCode::no_device, "this LibTorch has no CUDA, or there is no GPU", "use --device cpu");
    if (device.index >= static_cast<int>(torch::cuda::device_count()))
        throw Error(ErrorCode::no_device, fmt::format("rank {}: there is no GPU {}: this machine has {}", launch.rank,
                                                      device.index, torch::cuda::device_count()));
    return {torch::kCUDA, static_cast<c10::DeviceIndex>(device.index)};
}

/// That makes the same run again, for the card: without the places of files on this machine.
std::string command_line(const learn::Recipe& recipe) {
    std::string line = fmt::format("stipple train {} --data DIR", recipe.name);
    if (!recipe.init.empty()) line += " --init WEIGHTS";
    if (!recipe.sampling.network.empty()) line += " --network WEIGHTS";
    learn::Recipe shipped = recipe;
    try {
        shipped = learn::load_recipe(learn::find_recipe(recipe.name));
    } catch (const Error&) {  // a recipe of the user's: its name must do
    }
    shipped.data.folder = recipe.data.folder;
    shipped.init = recipe.init;
    shipped.sampling.network = recipe.sampling.network;
    for (const learn::Difference& difference : learn::differences(shipped, recipe))
        line += fmt::format(" --set {}={}", difference.key, difference.second);
    return line;
}

Result report(const learn::Recipe& recipe, const learn::TrainReport& trained, const std::string& folder) {
    Result result;
    result.warnings = trained.warnings;
    Json scores = Json::object();
    std::string line;
    for (const auto& [name, value] : trained.scores) {
        scores[name] = value;
        line += fmt::format("  {:<32} {:.4f}\n", name, value);
    }
    result.fields["recipe"] = recipe.name;
    result.fields["run"] = folder;
    result.fields["epochs"] = trained.epochs;
    result.fields["steps"] = trained.steps;
    result.fields["skipped_steps"] = trained.skipped;
    result.fields["complete"] = trained.is_complete;
    result.fields["stopped_early"] = trained.stopped_early;
    result.fields["scores"] = std::move(scores);
    result.fields["weights"] = trained.weights;
    result.text = fmt::format("{}: {} epochs, {} steps in {:.1f} s\n{}", recipe.name, trained.epochs, trained.steps,
                              trained.seconds, line);
    result.text += trained.is_complete ? fmt::format("  weights                          {}\n", trained.weights)
                                       : fmt::format("  not complete; go on with: stipple train --resume {}\n", folder);
    return result;
}

Result run_rank(const TrainArguments& arguments, const Common& common, bool seed_given, const learn::Launch& launch,
                learn::ProcessGroup* group) {
    const bool is_first = launch.rank == 0;
    const bool is_resumed = !arguments.resume.empty();
    learn::TrainOptions options;
    options.device = torch_device(common.device, launch);
    options.progress = is_first ? progress_mode(common) : ProgressMode::never;
    options.group = group;
    options.is_resumed = is_resumed;
    options.refuses_damaged = arguments.strict;
    options.survives_save_errors = arguments.on_save_error == "warn";
    options.max_steps = arguments.max_steps;
    Profile profile;
    if (arguments.profile > 0) options.profile = &profile;
    options.profile_steps = arguments.profile;

    std::optional<RunFolder> folder;
    learn::Recipe recipe;
    io::Warnings warnings;
    if (!is_first) {
        recipe = learn::parse_recipe(learn::broadcast_text(*group, ""));
    } else if (is_resumed) {
        STIPPLE_REQUIRE(
            arguments.recipe.empty() && arguments.data.empty() && arguments.output.empty() && arguments.init.empty() &&
                arguments.settings.empty() && arguments.task.empty() && arguments.network.empty() &&
                arguments.count == 0 && !arguments.progressive && arguments.epochs == 0 && arguments.batch == 0 &&
                !seed_given,
            "--resume takes recipe, data and options from the run; only --max-steps and --profile can be given");
        folder = RunFolder::resume(arguments.resume);
        try {
            recipe = learn::parse_recipe(folder->config());
        } catch (const Error& error) {
            throw error.at_path(arguments.resume + "/config.toml");
        }
    } else {
        STIPPLE_REQUIRE(!arguments.recipe.empty(), "a recipe or --resume is needed; recipes: {}",
                        fmt::join(learn::list_recipes(), ", "));
        recipe = resolved(arguments, common, seed_given);
        if (!arguments.init.empty()) recipe.init = tasks::find_weights(arguments.init);
    }
    std::optional<network::Weights> init;
    std::vector<std::string> told_later;  // by train()
    if (is_first && !recipe.init.empty() && !(folder && find_checkpoint(folder->path(), Damaged::skip, told_later))) {
        init = network::load_weights(recipe.init);
        recipe = learn::recipe_for(recipe, *init);
    }
    if (arguments.prints_recipe) {
        Result result;
        result.text = learn::to_toml(recipe);
        result.fields["recipe_toml"] = result.text;
        return result;
    }
    if (is_first && group) learn::broadcast_text(*group, learn::to_toml(recipe));
    const learn::LoadedTask task = learn::load_task(recipe, warnings, options.progress);
    const std::unique_ptr<learn::Objective>& objective = task.objective;
    if (init) {
        learn::FineTuned start = learn::start_from(*init, objective->network(), recipe.run.seed);
        warnings.push_back(start.fresh.empty() ? fmt::format("{}: all tensors are taken", recipe.init)
                                               : fmt::format("{}: {} tensors are taken; new are {}", recipe.init,
                                                             start.taken, fmt::join(start.fresh, ", ")));
        options.initial = std::move(start.weights);
    }
    if (common.dry_run) {
        Result result;
        result.warnings = warnings;
        result.text = fmt::format("{}: {} items to train on, {} parameters\n", recipe.name, objective->items(),
                                  network::parameters_of(objective->network()).size());
        return result;
    }
    if (!is_first)
        folder = RunFolder::elsewhere();
    else if (!is_resumed)
        folder = RunFolder::create(arguments.output.empty() ? "runs/" + recipe.name : arguments.output,
                                   learn::to_toml(recipe));
    learn::TrainReport trained = learn::train(recipe, *objective, *folder, options);
    if (!is_first) {
        Result nothing;
        nothing.stdout_taken = true;
        return nothing;
    }
    if (trained.is_complete)
        learn::finish_weights(recipe, task.labels.get(), trained,
                              {.command = command_line(recipe),
                               .commit = STIPPLE_COMMIT,
                               .device = common.device,
                               .progress = options.progress});
    trained.warnings.insert(trained.warnings.begin(), warnings.begin(), warnings.end());
    Result result = report(recipe, trained, folder->path());
    if (options.profile) {
        if (trained.profiled == 0) result.warnings.push_back("no step was profiled: the run had ended before");
        report_profile(profile, folder->path() + "/profile.json", Overwrite::allow, common, result);
        if (!common.table.empty()) result.text = format_table(profile_table(profile, common.table), common.table);
    }
    return result;
}

Result run_train(const TrainArguments& arguments, const Common& common, bool seed_given) {
    if (!is_started_rank() && arguments.processes > 1) return run_processes(arguments.processes, common);
    if (common.threads > 0) torch::set_num_threads(common.threads);
    learn::keep_freed_memory();
    learn::Launch launch = learn::find_launch(learn::parse_launcher(arguments.launcher), learn::process_environment());
    if (arguments.prints_recipe || common.dry_run) {  // rank 0 can do that alone
        Result nothing;
        nothing.stdout_taken = true;
        return launch.rank == 0 ? run_rank(arguments, common, seed_given, {}, nullptr) : nothing;
    }
    if (launch.world == 1) return run_rank(arguments, common, seed_given, launch, nullptr);
    learn::C10dGroup group(launch, {.device = torch_device(common.device, launch),
                                    .timeout = std::chrono::seconds(arguments.rank_timeout)});
    const LogLevel level = launch.rank == 0 ? LogLevel::info : LogLevel::debug;
    if (log_level() <= level)
        log_message(level, fmt::format("rank {} of {}, {}, rank 0 is at {}:{} (variables of {})", launch.rank,
                                       launch.world, group.backend(), launch.address, launch.port, launch.launcher));
    try {
        Result result = run_rank(arguments, common, seed_given, launch, &group);
        group.finish();
        return result;
    } catch (const Error& error) {
        group.fail(error);
        throw;
    } catch (const std::exception& error) {
        group.fail(Error(ErrorCode::internal, error.what()));
        throw;
    }
}

}  // namespace

Command add_train(Arguments& root, Common& common) {
    auto arguments = std::make_shared<TrainArguments>();
    Arguments& app = root.command("train", "Train a network from a recipe");
    app.option("RECIPE", arguments->recipe, "By name or path: every number of the run (TOML)");
    app.option("--data", arguments->data, "Data set: docs/data.md; upsamplers: meshes, scans or patches").text("DIR");
    app.option("-o,--output", arguments->output, "Run folder; runs/RECIPE without it").text("DIR");
    app.option("--resume", arguments->resume, "Go on with a run, bit for bit").text("DIR");
    app.option("--init", arguments->init, "Start from weights; a head for other classes is new").text("WEIGHTS");
    app.option("--set", arguments->settings, "A number of the recipe: run.batch=32").text("KEY=VALUE").one_word();
    app.option("--task", arguments->task, "Samplers: what for, cls, seg, reg or rec")
        .one_of({"cls", "seg", "reg", "rec"})
        .text("TASK");
    app.option("-n,--count", arguments->count, "Samplers: points that come out")
        .between(1, 65536)
        .text("N")
        .no_default();
    app.flag("--progressive", arguments->progressive, "Samplers: in an order whose beginnings serve too");
    app.option("--network", arguments->network, "Samplers: the frozen network of the task").text("WEIGHTS");
    app.option("--epochs", arguments->epochs, "As --set run.epochs").between(1, 1 << 24).no_default();
    app.option("--batch", arguments->batch, "As --set run.batch").between(1, 1 << 20).no_default();
    app.option("--max-steps", arguments->max_steps, "Save and end after so many steps of the run")
        .from_zero()
        .no_default();
    app.option("--profile", arguments->profile, "Time N steps by layer, write DIR/profile.json, save and end")
        .between(1, 10000)
        .text("N")
        .no_default();
    app.option("--on-save-error", arguments->on_save_error, "A checkpoint that cannot be written")
        .one_of({"stop", "warn"});
    app.option("--processes", arguments->processes, "Train in N processes of this machine").between(1, 4096).text("N");
    app.option("--launcher", arguments->launcher, "Whose variables tell that there are several processes")
        .one_of({"auto", "torchrun", "mpi", "slurm", "none"})
        .text("WHOSE");
    app.option("--rank-timeout", arguments->rank_timeout, "After which another process counts as lost")
        .between(1, 86400)
        .text("SECONDS");
    app.flag("--strict", arguments->strict, "A damaged checkpoint is an error, not skipped");
    app.flag("--print-recipe", arguments->prints_recipe, "Print the resolved recipe and end");
    app.footer(
        "Example:\n  stipple train pointnet-cls --data modelnet40_ply_hdf5_2048 -o runs/cls\n"
        "  stipple train pointnet-cls --init pointnet-cls --data my_classes/ --epochs 40 -o runs/mine\n"
        "  stipple train samplenet --task cls -n 32 --data modelnet40_ply_hdf5_2048 -o runs/sampler\n"
        "  stipple train gumbel-subset --task seg -n 64 --data psb_parts_hdf5 -o runs/parts\n"
        "  stipple train --resume runs/cls");
    const std::vector<Option> options = root.options();
    const auto seed = std::find_if(options.begin(), options.end(), [](const Option& o) { return o.name() == "seed"; });
    const Option seed_option = seed == options.end() ? Option() : *seed;
    const bool has_seed = seed != options.end();
    return {&app,
            [arguments, &common, seed_option, has_seed] {
                return run_train(*arguments, common, has_seed && seed_option.given());
            },
            {}};
}

}  // namespace stipple::cli
