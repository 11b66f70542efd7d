#include <chrono>

#include "stipple/cli/radiance/commands.h"
#include "stipple/cli/radiance/train_report.h"
#include "stipple/cli/radiance/train_run.h"
#include "stipple/core/log.h"
#include "stipple/core/terminal.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::cli {
namespace {

/// The name of the mode: what is quick enough for the device.
std::string mode_of(const RadianceTrainOptions& options, Device device) {
    if (options.mode != "auto") return options.mode;
    return device.type == DeviceType::cuda ? "fast" : "small";
}

radiance::Background background_of(const RadianceTrainOptions& options, const radiance::Scene& scene) {
    if (options.background == "white") return radiance::Background::white;
    if (options.background == "random") return radiance::Background::random;
    if (options.background == "black") return radiance::Background::black;
    if (options.background == "learned") return radiance::Background::learned;
    return radiance::usual_background(scene);
}

/// How it was trained, for who finds the file. Nothing that another run of the same training would say differently.
void add_notes(radiance::Field& field, const RadianceTrainOptions& options, const std::string& mode,
               const radiance::TrainOptions& training, Device device, const radiance::TrainStep& last) {
    field.notes["scene"] = stem_of(options.scene.folder);
    field.notes["mode"] = mode;
    field.notes["steps"] = fmt::format("{} + {}", training.coarse.N_iters, training.fine.N_iters);
    field.notes["seed"] = std::to_string(training.seed);
    field.notes["device"] = to_string(device);
    field.notes["training PSNR"] = fmt::format("{:.2f}", last.psnr);
}

/// What is trained, new or from a run folder.
struct TrainingPlan {
    RadianceTrainOptions options;
    Device device;
    std::string mode;
    radiance::TrainOptions training;
    std::optional<RunFolder> folder;  // of a resumed run
};

TrainingPlan new_training(const RadianceTrainOptions& given, const Common& common) {
    STIPPLE_REQUIRE(given.voxels == 0 || (given.voxels >= 8 && given.voxels <= 800),
                    "--voxels must be 8 to 800, got {}", given.voxels);
    STIPPLE_REQUIRE(given.has_run() || (given.checkpoint_every == 0 && given.render_every == 0 && given.max_steps == 0),
                    "--checkpoint-every, --render-every and --max-steps are for --checkpoints and --resume");
    TrainingPlan plan = {given, parse_device(common.device), {}, {}, {}};
    plan.mode = mode_of(given, plan.device);
    plan.training = train_options(given, plan.mode, common);
    radiance::require_path(plan.training.path, plan.device);
    return plan;
}

TrainingPlan resumed(const RadianceTrainOptions& given, const Common& common) {
    const RadianceTrainOptions defaults;
    STIPPLE_REQUIRE(given.checkpoints.empty(), "--resume goes on in its folder: --checkpoints is for new runs");
    STIPPLE_REQUIRE(given.mode == defaults.mode && given.background == defaults.background && given.settings.empty() &&
                        given.voxels == 0 && !given.deterministic && given.scene.reduce == defaults.scene.reduce &&
                        given.scene.test_every == defaults.scene.test_every,
                    "--resume takes the options of training from the run; FOLDER, -o, --device, --checkpoint-every, "
                    "--render-every, --render-views and --max-steps can be given");
    RunFolder folder = RunFolder::resume(given.resume);
    try {
        ResumedTraining run = resumed_training(folder.config(), given);
        STIPPLE_REQUIRE(common.seed == 0 || common.seed == run.training.seed,
                        "--resume takes the seed from the run: {}", run.training.seed);
        const Device device = parse_device(common.device == "auto" ? run.device : common.device);
        return {run.options, device, run.mode, run.training, std::move(folder)};
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_config) throw;
        throw error.at_path(given.resume + "/config.toml");
    }
}

radiance::Scene load_training_scene(const TrainingPlan& plan, const Common& common) {
    radiance::Scene scene = load_photographs(plan.options.scene, common, plan.options.render_every == 0);
    if (scene.train.empty())
        throw Error(ErrorCode::bad_file, Place{plan.options.scene.folder}, "has no pictures to train on");
    if (plan.options.render_every > 0 && scene.test.empty())
        throw Error(ErrorCode::bad_file, Place{plan.options.scene.folder}, "has no test pictures for --render-every");
    return scene;
}

radiance::TrainResult run_plan(const TrainingPlan& plan, const radiance::Scene& scene, RunFolder* folder,
                               bool is_resumed, const Common& common, radiance::TrainStep& last) {
    radiance::TrainRun run;
    run.folder = folder;
    run.is_resumed = is_resumed;
    run.checkpoint_every = plan.options.checkpoint_every;
    run.render_every = plan.options.render_every;
    run.render_views = plan.options.render_views;
    run.max_steps = plan.options.max_steps;
    run.refuses_damaged = plan.options.strict;
    run.survives_save_errors = plan.options.on_save_error == "warn";
    return about_file(plan.options.scene.folder, [&] {
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

Result run_radiance_train(const RadianceTrainOptions& given, const Common& common) {
    const bool is_resumed = !given.resume.empty();
    TrainingPlan plan = is_resumed ? resumed(given, common) : new_training(given, common);
    const RadianceTrainOptions& options = plan.options;
    require_writable(options.output, common.overwrite_mode());
    Result result;
    result.fields["inputs"] = Json::array({options.scene.folder});
    const radiance::Scene scene = load_training_scene(plan, common);
    if (!is_resumed) plan.training.background = background_of(options, scene);
    Json scene_fields = Json::object(), time_fields = Json::object();
    const std::string facts = scene_text(scene, scene_fields);
    result.fields["scene"] = scene_fields;
    result.fields["mode"] = plan.mode;
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    if (common.dry_run) {
        result.text = facts + fmt::format("would write {}\n", printable(options.output));
        return result;
    }
    const int64_t estimate = radiance::estimate_bytes(scene, plan.training);
    result.fields["estimated_bytes"] = estimate;
    if (!common.quiet && !common.json && common.table.empty())
        print(facts + fmt::format("memory at most {}\n\n", bytes_text(estimate)));
    if (!options.checkpoints.empty())
        plan.folder =
            RunFolder::create(options.checkpoints, run_config(options, plan.mode, plan.device, plan.training));

    radiance::TrainStep last;
    radiance::TrainResult trained =
        run_plan(plan, scene, plan.folder ? &*plan.folder : nullptr, is_resumed, common, last);
    result.warnings = trained.warnings;
    if (plan.folder) result.fields["run"] = plan.folder->path();
    result.fields["complete"] = trained.is_complete;
    result.fields["psnr"] = last.psnr;
    if (last.test_psnr) result.fields["test_psnr"] = *last.test_psnr;
    if (!trained.is_complete) {
        result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", false}}});
        result.text =
            fmt::format("stopped after step {} of {}, saved\n  go on with: stipple radiance train --resume {}\n",
                        grouped(last.step), grouped(last.steps), printable(plan.folder->path()));
        return result;
    }
    radiance::Field& field = trained.field;
    add_notes(field, options, plan.mode, plan.training, plan.device, last);
    const auto start = std::chrono::steady_clock::now();
    radiance::save_field(options.output, field, common.overwrite_mode());
    const double save = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.text = times_text(trained.times, save, common.table, time_fields);
    if (!trained.profile.empty()) result.text += profile_text(trained.profile, time_fields, common.table);
    result.fields["times"] = time_fields;
    result.fields["field"] = describe_field(options.output, field).fields;
    if (common.table.empty())
        result.text +=
            fmt::format("\nwrote {}: {} x {} x {} nodes, {} bricks, {:.2f} dB on the pictures it learned from\n",
                        printable(options.output), field.grid.size[0], field.grid.size[1], field.grid.size[2],
                        grouped(field.stored_bricks()), last.psnr);
    return result;
}

}  // namespace

Command add_radiance_train(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceTrainOptions>();
    Arguments& app = group.command("train", "Learn a field from photographs with cameras");
    Option data = app.option("FOLDER", options->scene.folder, "transforms_train.json, transforms.json, a COLMAP model");
    Option output = app.option("-o,--output", options->output, "The field").text("FILE");
    app.option("--mode", options->mode, "parity: as published; small: for CPUs; auto: fast or small, by the device")
        .one_of({"auto", "fast", "quality", "parity", "small"})
        .text("auto|fast|quality|parity|small");
    app.option("--voxels", options->voxels, "Along an edge of a cube with as many; 0: by the mode").from_zero();
    app.option("--background", options->background,
               "Behind everything; auto: white where pictures are transparent, else learned by direction")
        .one_of({"auto", "white", "black", "random", "learned"})
        .text("auto|white|black|random|learned");
    app.option("--set", options->settings, "Options of training: fine.N_iters=5000").text("KEY=VALUE...");
    app.flag("--deterministic", options->deterministic, "The same bits in every run, for some time more");
    app.option("--checkpoints", options->checkpoints, "New run folder: checkpoints, metrics, test views").text("DIR");
    app.option("--checkpoint-every", options->checkpoint_every, "Steps between checkpoints; without it a minute")
        .from_zero()
        .text("N")
        .no_default();
    app.option("--resume", options->resume, "Go on with a run, bit for bit").text("DIR");
    app.option("--render-every", options->render_every, "Steps between pictures of test views in DIR/renders")
        .from_zero()
        .text("N")
        .no_default();
    app.option("--render-views", options->render_views, "How many of them at most").between(1, 1000).text("N");
    app.option("--max-steps", options->max_steps, "Save and end after so many steps of the run")
        .from_zero()
        .text("N")
        .no_default();
    app.option("--on-save-error", options->on_save_error, "A checkpoint that cannot be written")
        .one_of({"stop", "warn"});
    app.flag("--strict", options->strict, "A damaged checkpoint is an error, not skipped");
    add_scene_options(app, options->scene);
    app.footer(radiance::train_keys_text() +
               "\n\nExample:\n  stipple radiance train nerf_synthetic/lego -o lego.field\n"
               "  stipple radiance train garden/ --reduce 4 --checkpoints runs/garden -o garden.field\n"
               "  stipple radiance train --resume runs/garden");
    const auto run = [options, &common, &app, data, output] {
        // Only a new training needs both: a run knows them.
        for (const Option& option : {data, output})
            if (options->resume.empty() && !option.given())
                throw Error(ErrorCode::bad_argument,
                            option.is_positional() ? "FOLDER is missing: which photographs?" : "--output is missing",
                            fmt::format("see: {}", app.help_call()));
        return run_radiance_train(*options, common);
    };
    return {&app, run, {}};
}

}  // namespace stipple::cli
