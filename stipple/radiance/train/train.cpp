#include "stipple/radiance/train.h"

#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/backend.h"
#include "stipple/radiance/train/grids.h"
#include "stipple/radiance/train/stopwatch.h"
#include "stipple/radiance/train/test_views.h"
#include "stipple/radiance/train/train_log.h"

namespace stipple::radiance {
namespace {

/// Uniform within 1 / sqrt(inputs), the last bias 0.
std::vector<float> initial_network(uint64_t seed) {
    std::vector<float> numbers(kNetworkNumbers);
    const Rng rng(seed, 5);
    for (int i = 0; i < kNetworkNumbers; ++i) {
        const int inputs = i < kWeight2 ? kFeatures + kViewInputs : kHidden;
        const float bound = 1 / std::sqrt(static_cast<float>(inputs));
        numbers[static_cast<size_t>(i)] = i < kBias3 ? bound * (2 * rng.uniform(static_cast<uint64_t>(i)) - 1) : 0.0f;
    }
    return numbers;
}

double psnr_of(const StepState& state) {
    const double mean = state.squared_error / (3 * static_cast<double>(std::max<int64_t>(state.rays, 1)));
    return mean > 0 ? -10 * std::log10(mean) : 100;
}

constexpr double kCheckpointSeconds = 60;

/// Steps between two reports: some tenths of a second on a GPU, a few seconds on two cores.
int64_t report_every(Device device) {
    return device.type == DeviceType::cuda ? 250 : 25;
}

/// The next multiple of `every` after `step`; far away for 0.
int64_t next_multiple(int64_t step, int64_t every) {
    return every > 0 ? (step / every + 1) * every : INT64_MAX;
}

bool is_stop(const Error& error) {
    return error.code() == ErrorCode::interrupted || error.code() == ErrorCode::terminated;
}

class Schedule {
public:
    Schedule(const Scene& scene, const TrainOptions& options, Device device, Backend& backend,
             const std::function<void(const TrainStep&)>& report, const TrainRun& run)
        : scene_(scene),
          options_(options),
          backend_(backend),
          report_(report),
          run_(run),
          report_every_(report_every(device)),
          all_steps_(int64_t{options.coarse.N_iters} + options.fine.N_iters) {
        if (run.folder) log_ = std::make_unique<TrainLog>(scene, options, device, run, result_.warnings);
    }

    TrainResult run() {
        std::optional<SavedTraining> saved;
        if (log_) saved = log_->resume();
        if (saved) {
            psnr_ = saved->psnr;
            if (saved->state.is_fine) {
                resume_fine(std::move(saved->state));
                return std::move(result_);
            }
        }
        Stopwatch part;
        const Box<float> box = scene_.box ? *scene_.box : box_of_cameras(scene_);
        result_.times.box = part.seconds();
        part = {};
        const GridShape grid = saved ? saved->state.grid : grid_of(box, options_.coarse.num_voxels);
        const StepConstants constants =
            constants_of(options_.coarse, options_, scene_, grid, shift_of(coarse_start(options_)), 0);
        stage_ = {"coarse", &options_.coarse, 0, grid, constants, saved ? saved->state.step.step : 0};
        if (saved) {
            backend_.restore(std::move(saved->state), constants);
        } else {
            backend_.begin_coarse(grid, constants);
        }
        result_.times.coarse_setup = part.seconds();
        if (saved) report();
        // What cannot be saved shows before anything is computed.
        if (log_ && !saved) save();
        if (!timed_loop(result_.times.coarse)) return std::move(result_);
        part = {};
        begin_fine(grid, opacities(backend_.coarse_density(), constants), backend_.coarse_seen(options_.bbox_seen));
        result_.times.fine_setup = part.seconds();
        fine();
        return std::move(result_);
    }

private:
    /// A stage and how far it is.
    struct Stage {
        const char* name = "";
        const StageOptions* options = nullptr;
        int64_t before = 0;  // steps of the stage before
        GridShape grid;
        StepConstants constants;
        int64_t done = 0;
    };

    void begin_fine(const GridShape& coarse, const std::vector<float>& opaque, const std::vector<uint8_t>& seen) {
        const StageOptions& stage = options_.fine;
        const Box<float> box = box_of_content(coarse, opaque, seen, options_.bbox_thres, options_.world_bound_scale);
        const GridShape grid = grid_of(box, stage.num_voxels >> stage.pg_scale.size());
        const std::vector<uint8_t> occupied = occupied_nodes(grid, coarse, pooled(coarse, opaque), options_.bbox_thres);
        set_fine(grid, shift_of(stage.alpha_init), 0);
        backend_.begin_fine(grid, stage_.constants, occupied, initial_network(options_.seed));
    }

    void resume_fine(TrainState state) {
        const Stopwatch part;
        set_fine(state.grid, state.shift, state.step.step);
        const SampleCounts counts = state.counts;
        backend_.restore(std::move(state), stage_.constants);
        if (stage_.done >= options_.fine.N_iters) counts_ = counts;
        result_.times.fine_setup = part.seconds();
        report();
        fine();
    }

    void set_fine(const GridShape& grid, float shift, int64_t done) {
        stage_ = {"fine",
                  &options_.fine,
                  options_.coarse.N_iters,
                  grid,
                  constants_of(options_.fine, options_, scene_, grid, shift, 1),
                  done};
    }

    void fine() {
        const int64_t from = stage_.done;
        if (!timed_loop(result_.times.fine)) return;
        result_.times.ms_per_fine_step =
            1000 * result_.times.fine / static_cast<double>(std::max<int64_t>(stage_.done - from, 1));
        const Stopwatch part;
        const SampleCounts counts = counts_ ? *counts_ : backend_.last_samples();
        result_.times.in_box = static_cast<double>(counts.in_box);
        result_.times.in_mask = static_cast<double>(counts.in_mask);
        result_.times.opaque = static_cast<double>(counts.opaque);
        result_.times.kept = static_cast<double>(counts.kept);
        result_.field = field_now();
        result_.times.pack = part.seconds();
        if (options_.profile_steps > 0) result_.profile = backend_.profile(options_.profile_steps);
        finish_times();
    }

    Field field_now() {
        const StageOptions& stage = *stage_.options;
        Field field;
        field.grid = stage_.grid;
        field.density_shift = stage_.constants.shift;
        field.voxel_ratio = stage_.constants.voxel_ratio;
        field.step = stage.stepsize;
        field.least_weight = stage.fast_color_thres;
        field.near = scene_.near;
        field.background = options_.background;
        field.origin = scene_.origin;
        if (is_fine()) {
            backend_.pack(field);
        } else {
            pack_coarse(backend_.save(), field);
        }
        return field;
    }

    /// Returns whether the stage came to its end. `seconds`: without checkpoints and test views.
    bool timed_loop(double& seconds) {
        const Stopwatch part;
        const double apart = seconds_apart();
        rate_watch_ = {};
        rate_step_ = step();
        const bool is_done = loop();
        seconds = part.seconds() - (seconds_apart() - apart);
        if (is_done) return true;
        result_.is_complete = false;
        finish_times();
        return false;
    }

    /// Steps to N_iters, which count from 1, with what happens before some of them. False: max_steps came before.
    bool loop() {
        const StageOptions& options = *stage_.options;
        try {
            while (stage_.done < options.N_iters) {
                check_interrupted();
                if (run_.folder && run_.max_steps > 0 && step() >= run_.max_steps) {
                    if (!log_->is_saved(step())) save();
                    report();
                    return false;
                }
                before_step(stage_.done + 1);
                stage_.done += backend_.steps(next_stop() - stage_.done);
                const bool is_end = stage_.done == options.N_iters;
                if (stage_.done % report_every_ == 0 || is_end) take_report();
                if (!log_ || caught_signal() != 0) continue;
                if (run_.render_every > 0 && step() % run_.render_every == 0) {
                    log_->render(step(), field_now());
                    report();
                }
                if (is_checkpoint_due() || (is_end && is_fine())) save();
            }
            check_interrupted();
        } catch (const Error& error) {
            if (!log_ || !is_stop(error)) throw;
            if (!log_->is_saved(step())) save();
            const bool is_saved = log_->is_saved(step());  // not where errors of saving are survived
            throw Error(error.code(),
                        fmt::format("stopped after step {}, {}", step(), is_saved ? "saved" : "not saved"),
                        fmt::format("go on with: stipple radiance train --resume {}", run_.folder->path()));
        }
        backend_.take_state();
        return true;
    }

    void before_step(int64_t next) {
        const StageOptions& options = *stage_.options;
        if ((next + options.refresh / 2) % options.refresh == 0) backend_.refresh_occupancy();
        for (size_t i = 0; i < options.pg_scale.size(); ++i) {
            if (options.pg_scale[i] != next) continue;
            const GridShape grid = grid_of(stage_.grid.box, options.num_voxels >> (options.pg_scale.size() - 1 - i));
            set_fine(grid, stage_.constants.shift - 1, stage_.done);
            if (options_.occupancy_returns) backend_.refresh_occupancy();
            backend_.grow(grid, stage_.constants);
        }
    }

    /// The step of the stage after which something other than a step happens.
    int64_t next_stop() const {
        const StageOptions& options = *stage_.options;
        const int64_t done = stage_.done, half = options.refresh / 2;
        int64_t until = std::min<int64_t>(options.N_iters, next_multiple(done, report_every_));
        for (const int at : options.pg_scale) {
            if (at - 1 > done) until = std::min<int64_t>(until, at - 1);
        }
        // The next step before which nodes are looked at again.
        until = std::min(until, ((done + 1 + half) / options.refresh + 1) * options.refresh - half - 1);
        if (!log_) return until;
        until = std::min(until, next_multiple(step(), run_.checkpoint_every) - stage_.before);
        until = std::min(until, next_multiple(step(), run_.render_every) - stage_.before);
        return run_.max_steps > 0 ? std::min(until, run_.max_steps - stage_.before) : until;
    }

    /// The errors since the last report, whether anybody listens or not: sums must not depend on it.
    void take_report() {
        psnr_ = psnr_of(backend_.take_state());
        const double seconds = rate_watch_.seconds();
        const auto steps = static_cast<double>(step() - rate_step_);
        if (steps > 0 && seconds > 0) {
            // The last few reports count most: steps become slower as the grid grows.
            const double now = steps / seconds;
            rate_ = rate_ > 0 ? 0.5 * rate_ + 0.5 * now : now;
        }
        rate_watch_ = {};
        rate_step_ = step();
        const TrainStep now = report();
        if (log_) log_->add_step(now);
    }

    TrainStep report() {
        TrainStep now;
        now.stage = stage_.name;
        now.step = step();
        now.steps = all_steps_;
        now.psnr = psnr_;
        if (log_) now.test_psnr = log_->test_psnr();
        now.seconds = watch_.seconds() - seconds_apart();
        now.steps_per_second = rate_;
        now.seconds_left = rate_ > 0 ? static_cast<double>(all_steps_ - now.step) / rate_ : 0;
        if (report_) report_(now);
        return now;
    }

    bool is_checkpoint_due() const {
        if (run_.checkpoint_every > 0) return step() % run_.checkpoint_every == 0;
        return since_save_.seconds() >= kCheckpointSeconds;
    }
    void save() {
        log_->save(step(), backend_.save(), psnr_);
        since_save_ = {};
    }
    void finish_times() {
        if (log_) result_.times.checkpoints = log_->checkpoint_seconds();
        if (log_) result_.times.test_views = log_->test_seconds();
        result_.times.peak_bytes = backend_.peak_bytes();
    }
    bool is_fine() const { return stage_.options == &options_.fine; }
    int64_t step() const { return stage_.before + stage_.done; }  // over both stages
    double seconds_apart() const { return log_ ? log_->checkpoint_seconds() + log_->test_seconds() : 0; }

    const Scene& scene_;
    const TrainOptions& options_;
    Backend& backend_;
    const std::function<void(const TrainStep&)>& report_;
    const TrainRun& run_;
    const int64_t report_every_, all_steps_;
    TrainResult result_;
    std::unique_ptr<TrainLog> log_;
    Stage stage_;
    std::optional<SampleCounts> counts_;  // of a run that had ended
    double psnr_ = 0;                     // of the last report
    Stopwatch watch_, rate_watch_, since_save_;
    int64_t rate_step_ = 0;
    double rate_ = 0;  // steps a second
};

void require_trainable(const Scene& scene, const TrainOptions& options) {
    STIPPLE_REQUIRE(!scene.train.empty(), "a scene without photographs to learn from");
    int64_t pixels = 0;
    for (const Photograph& photo : scene.train) pixels += photo.pixels.width() * photo.pixels.height();
    STIPPLE_REQUIRE(pixels < (int64_t{1} << 32), "{} pixels: at most 2^32 are supported; reduce the images", pixels);
    if (options.background == Background::learned) {
        STIPPLE_REQUIRE(scene.alpha_is_unknown || !scene.has_alpha,
                        "background learned: these pictures have transparency, behind which there is nothing");
        STIPPLE_REQUIRE(options.environment_side >= kLeastEnvironment && options.environment_side <= kMostEnvironment,
                        "environment_side {}: {} to {} are possible", options.environment_side, kLeastEnvironment,
                        kMostEnvironment);
    }
    STIPPLE_REQUIRE(scene.box || scene.far > scene.near, "neither a box nor near and far depths are known");
    for (const StageOptions* stage : {&options.coarse, &options.fine}) {
        STIPPLE_REQUIRE(stage->N_iters >= 0 && stage->N_rand > 0, "N_iters {} and N_rand {}", stage->N_iters,
                        stage->N_rand);
        STIPPLE_REQUIRE(stage->num_voxels >> stage->pg_scale.size() >= 8 && stage->num_voxels < (int64_t{1} << 31),
                        "num_voxels {}", stage->num_voxels);
        STIPPLE_REQUIRE(stage->refresh > 1 && stage->stepsize > 0 && stage->alpha_init > 0 && stage->alpha_init < 1,
                        "stepsize {} and alpha_init {}", stage->stepsize, stage->alpha_init);
    }
}

}  // namespace

int64_t estimate_bytes(const Scene& scene, const TrainOptions& options) {
    int64_t pixels = 0;
    for (const Photograph& photo : scene.train) pixels += photo.pixels.width() * photo.pixels.height();
    const int64_t gradient = options.deterministic ? 8 : 4;
    const int64_t of_node = (1 + kFeatures) * (3 * int64_t{sizeof(float)} + gradient);
    // A side of the grid ends within a brick.
    const double side = std::cbrt(static_cast<double>(options.fine.num_voxels)) + kBrick;
    const int64_t nodes = static_cast<int64_t>(side * side * side);
    const int64_t samples = static_cast<int64_t>(std::sqrt(3.0) * side / options.fine.stepsize) + 2;
    const int64_t rays = options.fine.N_rand;
    if (options.path != StepPath::final) {
        // Dense grids with masks; of all samples of a step five lists, of those with a colour the network's layers.
        const int64_t of_dense = (1 + kFeatures) * (4 * int64_t{sizeof(float)} + 1 + (options.deterministic ? 8 : 0));
        return pixels * 9 + nodes * of_dense + rays * samples * 140 + rays * 128 * 3000;
    }
    const int64_t texels = options.background == Background::learned ? options.environment_side : 0;
    const int64_t environment = 3 * texels * texels * (3 * int64_t{sizeof(float)} + gradient);
    return pixels * 8 + nodes * of_node + environment + rays * samples * 10 + rays * 128 * 68;
}

TrainResult train(const Scene& scene, const TrainOptions& options, Device device,
                  const std::function<void(const TrainStep&)>& report, const TrainRun& run) {
    require_trainable(scene, options);
    require_path(options.path, device);
    const bool is_final = options.path == StepPath::final;
    STIPPLE_REQUIRE(is_final || !run.folder, "checkpoints are not part of the step-by-step paths: use path=final");
    std::unique_ptr<Backend> backend;
    switch (device.type) {
        case DeviceType::cpu: backend = make_cpu_backend(scene); break;
        case DeviceType::cuda:
            if (is_final) {
                STIPPLE_CUDA_CALL(cuda::make_backend, scene, options, device, backend);
            } else {
                STIPPLE_CUDA_CALL(cuda::make_reference_backend, scene, options, device, backend);
            }
            break;
    }
    TrainResult result = train_on(*backend, scene, options, device, report, run);
    if (result.is_complete && result.field.cameras.empty())
        for (const Photograph& photo : scene.train) result.field.cameras.push_back(photo.camera);
    return result;
}

TrainResult train_on(Backend& backend, const Scene& scene, const TrainOptions& options, Device device,
                     const std::function<void(const TrainStep&)>& report, const TrainRun& run) {
    return Schedule(scene, options, device, backend, report, run).run();
}

}  // namespace stipple::radiance
