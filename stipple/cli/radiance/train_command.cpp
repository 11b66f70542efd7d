#include <chrono>

#include "stipple/cli/radiance/commands.h"
#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/cli/radiance/train_report.h"
#include "stipple/core/log.h"
#include "stipple/core/terminal.h"
#include "stipple/radiance/train_keys.h"
#include "stipple/radiance/train_request.h"

namespace stipple::cli {
namespace {

/// What is trained, new or from a run folder.
struct TrainingPlan {
    radiance::TrainRequest request;
    Device device;
    radiance::TrainMode mode = radiance::TrainMode::automatic;
    radiance::TrainOptions training;
    std::optional<RunFolder> folder;  // of a resumed run
};

/// How it was trained, for who finds the file. Nothing that another run of the same training would say differently.
void add_notes(radiance::Field& field, const TrainingPlan& plan, const radiance::TrainStep& last) {
    const radiance::TrainOptions& training = plan.training;
    field.notes["scene"] = stem_of(plan.request.folder);
    field.notes["mode"] = radiance::kTrainModeWords[static_cast<int>(plan.mode)];
    field.notes["steps"] = fmt::format("{} + {}", training.coarse.N_iters, training.fine.N_iters);
    field.notes["seed"] = std::to_string(training.seed);
    field.notes["device"] = to_string(plan.device);
    field.notes["training PSNR"] = fmt::format("{:.2f}", last.psnr);
}

TrainingPlan new_training(const radiance::TrainRequest& given, const Common& common) {
    STIPPLE_REQUIRE(given.has_run() || (given.checkpoint_every == 0 && given.render_every == 0 && given.max_steps == 0),
                    "--checkpoint-every, --render-every and --max-steps are for --checkpoints and --resume");
    TrainingPlan plan;
    plan.request = given;
    plan.device = parse_device(common.device);
    plan.mode = radiance::mode_for(given.mode, plan.device);
    plan.training = radiance::train_options(given, plan.mode, common.seed);
    radiance::require_path(plan.training.path, plan.device);
    return plan;
}

TrainingPlan resumed(const radiance::TrainRequest& given, const Common& common) {
    const radiance::TrainRequest usual;
    STIPPLE_REQUIRE(given.checkpoints.empty(), "--resume goes on in its folder: --checkpoints is for new runs");
    STIPPLE_REQUIRE(given.mode == usual.mode && given.background == usual.background && given.settings.empty() &&
                        given.voxels == 0 && !given.deterministic && given.scene.reduce == usual.scene.reduce &&
                        given.scene.test_every == usual.scene.test_every,
                    "--resume takes the options of training from the run; FOLDER, -o, --device, --checkpoint-every, "
                    "--render-every, --render-views and --max-steps can be given");
    RunFolder folder = RunFolder::resume(given.resume);
    try {
        radiance::RecordedRun run = radiance::recorded_run(folder.config(), given);
        STIPPLE_REQUIRE(common.seed == 0 || common.seed == run.training.seed,
                        "--resume takes the seed from the run: {}", run.training.seed);
        const Device device = parse_device(common.device == "auto" ? run.device : common.device);
        return {run.request, device, run.mode, run.training, std::move(folder)};
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_config) throw;
        throw error.at_path(given.resume + "/config.toml");
    }
}

radiance::Scene load_training_scene(const TrainingPlan& plan, const Common& common) {
    radiance::Scene scene =
        load_photographs(plan.request.folder, plan.request.scene, common, plan.request.render_every == 0);
    if (scene.train.empty())
        throw Error(ErrorCode::bad_file, Place{plan.request.folder}, "has no pictures to train on");
    if (plan.request.render_every > 0 && scene.test.empty())
        throw Error(ErrorCode::bad_file, Place{plan.request.folder}, "has no test pictures for --render-every");
    return scene;
}

radiance::TrainResult run_plan(const TrainingPlan& plan, const radiance::Scene& scene, RunFolder* folder,
                               bool is_resumed, const Common& common, radiance::TrainStep& last) {
    radiance::TrainRun run = radiance::run_of(plan.request);
    run.folder = folder;
    run.is_resumed = is_resumed;
    return about_file(plan.request.folder, [&] {
        Progress bar("train", int64_t{plan.training.coarse.N_iters} + plan.training.fine.N_iters, progress_mode(common),
                     "steps");
        const auto show = [&](const radiance::TrainStep& step) {
            if (step.test_psnr && step.test_psnr != last.test_psnr && progress_mode(common) != ProgressMode::never)
                log_info("step {}: test views {:.2f} dB", grouped(step.step), *step.test_psnr);
            bar.tell(step_note(step), step.steps_per_second);
            bar.add(step.step - last.step);
            last = step;
        };
        return radiance::train(scene, plan.training, plan.device, show, run);
    });
}

Result run_radiance_train(const radiance::TrainRequest& given, const Common& common) {
    const bool is_resumed = !given.resume.empty();
    TrainingPlan plan = is_resumed ? resumed(given, common) : new_training(given, common);
    const radiance::TrainRequest& request = plan.request;
    require_writable(request.output, common.overwrite_mode());
    Result result;
    result.fields["inputs"] = Json::array({request.folder});
    const radiance::Scene scene = load_training_scene(plan, common);
    if (!is_resumed) plan.training.background = radiance::background_for(request.background, scene);
    Json scene_fields = Json::object(), time_fields = Json::object();
    const std::string facts = scene_text(scene, scene_fields);
    result.fields["scene"] = scene_fields;
    result.fields["mode"] = radiance::kTrainModeWords[static_cast<int>(plan.mode)];
    result.fields["outputs"] = Json::array({{{"path", request.output}, {"written", !common.dry_run}}});
    if (common.dry_run) {
        result.text = facts + fmt::format("would write {}\n", printable(request.output));
        return result;
    }
    const int64_t estimate = radiance::estimate_bytes(scene, plan.training);
    result.fields["estimated_bytes"] = estimate;
    if (!common.quiet && !common.json && common.table.empty())
        print(facts + fmt::format("memory at most {}\n\n", bytes_text(estimate)));
    if (!request.checkpoints.empty())
        plan.folder = RunFolder::create(
            request.checkpoints, radiance::run_config({request, plan.mode, to_string(plan.device), plan.training}));

    radiance::TrainStep last;
    radiance::TrainResult trained =
        run_plan(plan, scene, plan.folder ? &*plan.folder : nullptr, is_resumed, common, last);
    result.warnings = trained.warnings;
    if (plan.folder) result.fields["run"] = plan.folder->path();
    result.fields["complete"] = trained.is_complete;
    result.fields["psnr"] = last.psnr;
    if (last.test_psnr) result.fields["test_psnr"] = *last.test_psnr;
    if (!trained.is_complete) {
        result.fields["outputs"] = Json::array({{{"path", request.output}, {"written", false}}});
        result.text =
            fmt::format("stopped after step {} of {}, saved\n  go on with: stipple radiance train --resume {}\n",
                        grouped(last.step), grouped(last.steps), printable(plan.folder->path()));
        return result;
    }
    radiance::Field& field = trained.field;
    add_notes(field, plan, last);
    const auto start = std::chrono::steady_clock::now();
    radiance::save_field(request.output, field, common.overwrite_mode());
    const double save = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.text = times_text(trained.times, save, common.table, time_fields);
    if (!trained.profile.empty()) result.text += profile_text(trained.profile, time_fields, common.table);
    result.fields["times"] = time_fields;
    result.fields["field"] = describe_field(request.output, field).fields;
    if (common.table.empty())
        result.text +=
            fmt::format("\nwrote {}: {} x {} x {} nodes, {} bricks, {:.2f} dB on the pictures it learned from\n",
                        printable(request.output), field.grid.size[0], field.grid.size[1], field.grid.size[2],
                        grouped(field.stored_bricks()), last.psnr);
    return result;
}

}  // namespace

Command add_radiance_train(Arguments& group, Common& common) {
    auto request = std::make_shared<radiance::TrainRequest>();
    Arguments& app = group.command("train", "Learn a field from photographs with cameras");
    Option data = app.option("FOLDER", request->folder, "transforms_train.json, transforms.json, a COLMAP model");
    Option output = app.option("-o,--output", request->output, "The field").text("FILE");
    app.add(radiance::train_request_fields(), request.get());
    add_scene_options(app, request->scene);
    app.footer(radiance::train_keys_text() +
               "\n\nExample:\n  stipple radiance train nerf_synthetic/lego -o lego.field\n"
               "  stipple radiance train garden/ --reduce 4 --checkpoints runs/garden -o garden.field\n"
               "  stipple radiance train --resume runs/garden");
    const auto run = [request, &common, &app, data, output] {
        // Only a new training needs both: a run knows them.
        for (const Option& option : {data, output})
            if (request->resume.empty() && !option.given())
                throw Error(ErrorCode::bad_argument,
                            option.is_positional() ? "FOLDER is missing: which photographs?" : "--output is missing",
                            fmt::format("see: {}", app.help_call()));
        return run_radiance_train(*request, common);
    };
    return {&app, run, {}};
}

}  // namespace stipple::cli
