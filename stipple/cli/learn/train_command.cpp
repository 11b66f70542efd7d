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
#include "stipple/learn/train_request.h"

namespace stipple::cli {
namespace {

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
    result.fields.update(to_json(learn::train_report_fields(), &trained));
    result.fields["scores"] = std::move(scores);
    result.text = fmt::format("{}: {} epochs, {} steps in {:.1f} s\n{}", recipe.name, trained.epochs, trained.steps,
                              trained.seconds, line);
    result.text += trained.is_complete ? fmt::format("  weights                          {}\n", trained.weights)
                                       : fmt::format("  not complete; go on with: stipple train --resume {}\n", folder);
    return result;
}

Result run_rank(const learn::TrainRequest& request, const Common& common, bool seed_given, const learn::Launch& launch,
                learn::ProcessGroup* group) {
    const bool is_first = launch.rank == 0;
    const bool is_resumed = !request.resume.empty();
    learn::TrainOptions options;
    options.device = torch_device(common.device, launch);
    options.progress = is_first ? progress_mode(common) : ProgressMode::never;
    options.group = group;
    options.is_resumed = is_resumed;
    options.refuses_damaged = request.strict;
    options.survives_save_errors = request.on_save_error == learn::OnSaveError::warn;
    options.max_steps = request.max_steps;
    Profile profile;
    if (request.profile) options.profile = &profile;
    options.profile_steps = request.profile.value_or(0);

    std::optional<RunFolder> folder;
    learn::Recipe recipe;
    io::Warnings warnings;
    if (!is_first) {
        recipe = learn::parse_recipe(learn::broadcast_text(*group, ""));
    } else if (is_resumed) {
        STIPPLE_REQUIRE(
            !learn::changes_recipe(request) && !seed_given,
            "--resume takes recipe, data and options from the run; only --max-steps and --profile can be given");
        folder = RunFolder::resume(request.resume);
        try {
            recipe = learn::parse_recipe(folder->config());
        } catch (const Error& error) {
            throw error.at_path(request.resume + "/config.toml");
        }
    } else {
        STIPPLE_REQUIRE(!request.recipe.empty(), "a recipe or --resume is needed; recipes: {}",
                        fmt::join(learn::list_recipes(), ", "));
        recipe = learn::requested_recipe(request, seed_given ? std::optional(common.seed) : std::nullopt);
    }
    std::optional<network::Weights> init;
    std::vector<std::string> told_later;  // by train()
    if (is_first && !recipe.init.empty() && !(folder && find_checkpoint(folder->path(), Damaged::skip, told_later))) {
        init = network::load_weights(recipe.init);
        recipe = learn::recipe_for(recipe, *init);
    }
    if (request.prints_recipe) {
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
        folder =
            RunFolder::create(request.output.empty() ? "runs/" + recipe.name : request.output, learn::to_toml(recipe));
    learn::TrainReport trained = learn::train(recipe, *objective, *folder, options);
    if (!is_first) {
        Result nothing;
        nothing.stdout_taken = true;
        return nothing;
    }
    if (trained.is_complete)
        learn::finish_weights(recipe, task.labels.get(), trained,
                              {.command = learn::command_line(recipe),
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

Result run_train(const learn::TrainRequest& request, const Common& common, bool seed_given) {
    if (!is_started_rank() && request.processes > 1) return run_processes(request.processes, common);
    if (common.threads > 0) torch::set_num_threads(common.threads);
    learn::keep_freed_memory();
    learn::Launch launch = learn::find_launch(request.launcher, learn::process_environment());
    if (request.prints_recipe || common.dry_run) {  // rank 0 can do that alone
        Result nothing;
        nothing.stdout_taken = true;
        return launch.rank == 0 ? run_rank(request, common, seed_given, {}, nullptr) : nothing;
    }
    if (launch.world == 1) return run_rank(request, common, seed_given, launch, nullptr);
    learn::C10dGroup group(
        launch, {.device = torch_device(common.device, launch), .timeout = std::chrono::seconds(request.rank_timeout)});
    const LogLevel level = launch.rank == 0 ? LogLevel::info : LogLevel::debug;
    if (log_level() <= level)
        log_message(level, fmt::format("rank {} of {}, {}, rank 0 is at {}:{} (variables of {})", launch.rank,
                                       launch.world, group.backend(), launch.address, launch.port, launch.launcher));
    try {
        Result result = run_rank(request, common, seed_given, launch, &group);
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
    auto request = std::make_shared<learn::TrainRequest>();
    Arguments& app = root.command("train", "Train a network from a recipe");
    app.option("RECIPE", request->recipe, "By name or path: every number of the run (TOML)");
    const Fields& fields = learn::train_request_fields();
    for (const Field& field : fields) {
        const Option option = app.add(fields, request.get(), field.name);
        if (option.name() == "set") option.one_word();
    }
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
            [request, &common, seed_option, has_seed] {
                return run_train(*request, common, has_seed && seed_option.given());
            },
            {}};
}

}  // namespace stipple::cli
