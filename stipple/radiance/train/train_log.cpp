#include "stipple/radiance/train/train_log.h"

#include <fmt/format.h>

#include <cmath>

#include "stipple/core/folder.h"
#include "stipple/core/json_writer.h"
#include "stipple/core/log.h"
#include "stipple/radiance/train/stopwatch.h"
#include "stipple/radiance/train/test_views.h"

namespace stipple::radiance {
namespace {

/// JSON has no infinity, which the PSNR of two equal pictures is.
void put(JsonWriter& json, const char* name, double value) {
    if (std::isfinite(value)) json.field(name, value);
}

}  // namespace

TrainLog::TrainLog(const Scene& scene, const TrainOptions& options, Device device, const TrainRun& run,
                   std::vector<std::string>& warnings)
    : scene_(scene), device_(device), run_(run), warnings_(warnings) {
    STIPPLE_REQUIRE(run.checkpoint_every >= 0 && run.render_every >= 0 && run.max_steps >= 0,
                    "checkpoints every {} steps, test views every {} steps, at most {} steps", run.checkpoint_every,
                    run.render_every, run.max_steps);
    const Stopwatch watch;
    origin_ = origin_of(scene, options, device);
    checkpoint_seconds_ += watch.seconds();
    if (run.render_every == 0) return;
    views_ = spread_views(scene.test.size(), run.render_views);
    STIPPLE_REQUIRE(!views_.empty(), "the scene has no test views to render");
    make_folder(run.folder->path() + "/renders");
}

std::optional<SavedTraining> TrainLog::resume() {
    if (!run_.is_resumed) return std::nullopt;
    const Stopwatch watch;
    const Damaged damaged = run_.refuses_damaged ? Damaged::refuse : Damaged::skip;
    const std::optional<Checkpoint> checkpoint = find_checkpoint(run_.folder->path(), damaged, warnings_);
    if (!checkpoint) {
        warnings_.push_back(fmt::format("{}: no checkpoint, begins anew", run_.folder->path()));
        run_.folder->rewind_metrics(-1);
        return std::nullopt;
    }
    SavedTraining training = load_training(*checkpoint, origin_);
    if (training.origin.model != origin_.model)
        warnings_.push_back(
            fmt::format("{}, {} before: the run will not end in the same bits", origin_.model, training.origin.model));
    run_.folder->rewind_metrics(checkpoint->info.step);
    test_psnr_ = training.test_psnr;
    saved_step_ = checkpoint->info.step;
    checkpoint_seconds_ += watch.seconds();
    return training;
}

void TrainLog::save(int64_t step, TrainState state, double psnr) {
    const Stopwatch watch;
    const bool is_first = saved_step_ < 0;
    try {
        run_.folder->sync_metrics();
        save_training(run_.folder->path(), step, {std::move(state), origin_, psnr, test_psnr_},
                      [](const Error& error) { log_warn("{}; one more attempt", error.what()); });
        saved_step_ = step;
        std::vector<std::string> told_before;
        if (is_first)
            if (const auto saved = find_checkpoint(run_.folder->path(), Damaged::skip, told_before))
                require_free_space(run_.folder->path(), saved->bytes(), kKeptCheckpoints);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::cannot_write || !run_.survives_save_errors) throw;
        log_warn("{}; the run goes on without this checkpoint", error.what());
    }
    checkpoint_seconds_ += watch.seconds();
}

void TrainLog::add_step(const TrainStep& step) {
    JsonWriter json;
    json.begin_object().field("kind", "step").field("step", step.step).field("stage", step.stage);
    put(json, "psnr", step.psnr);
    put(json, "seconds", step.seconds);
    put(json, "steps_per_second", step.steps_per_second);
    run_.folder->append_metrics(json.end_object().text());
}

void TrainLog::render_views(int64_t step, const Field& field) {
    const std::string folder = run_.folder->path() + "/renders";
    if (const std::string fault = fault_of(field); !fault.empty())
        throw Error(ErrorCode::not_finite, fmt::format("step {}: the field cannot be rendered: {}", step, fault));
    const ViewScores scores = render_test_views(field, scene_, views_, device_, folder, step);
    test_psnr_ = scores.psnr;
    JsonWriter json;
    json.begin_object().field("kind", "test").field("step", step);
    put(json, "psnr", scores.psnr);
    put(json, "ssim", scores.ssim);
    json.key("views").begin_array();
    for (size_t i = 0; i < views_.size(); ++i) {
        json.begin_object().field("view", views_[i]).field("file", std::string_view(scores.views[i].file));
        put(json, "psnr", scores.views[i].psnr);
        put(json, "ssim", scores.views[i].ssim);
        json.end_object();
    }
    run_.folder->append_metrics(json.end_array().end_object().text());
}

void TrainLog::render(int64_t step, const Field& field) {
    const Stopwatch watch;
    try {
        render_views(step, field);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::cannot_write || !run_.survives_save_errors) throw;
        log_warn("{}; the run goes on without these pictures", error.what());
    }
    test_seconds_ += watch.seconds();
}

}  // namespace stipple::radiance
