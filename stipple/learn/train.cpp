#include "stipple/learn/train.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <torch/torch.h>
#include <torch/version.h>

#include "stipple/core/checkpoint.h"
#include "stipple/core/failpoint.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/log.h"
#include "stipple/learn/distributed/exchange.h"
#include "stipple/learn/flows/lipschitz.h"
#include "stipple/learn/loop/device_steps.h"
#include "stipple/learn/loop/run_log.h"
#include "stipple/learn/loop/run_state.h"
#include "stipple/learn/loop/set_up.h"
#include "stipple/learn/loop/trouble.h"
#include "stipple/learn/optimizer.h"
#include "stipple/learn/profiler.h"

namespace stipple::learn {
namespace {

using torch::Tensor;
using Clock = std::chrono::steady_clock;

constexpr int kDepth = 3;  // batches that are made ahead
constexpr int64_t kSkipsInARow = 10;
constexpr double kSkippedShare = 0.01;
constexpr int64_t kWarmUpSteps = 5;  // before a profile: caches fill, and torch's pools of memory
constexpr const char* kState = "state.safetensors";
constexpr const char* kRecipe = "recipe.toml";

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

class Training {
public:
    Training(const Recipe& recipe, Objective& objective, RunFolder& folder, const TrainOptions& options);
    TrainReport run();

private:
    void resume();
    std::map<std::string, Tensor> tensors() const;
    void save(bool is_best);
    void save_once(bool is_best);
    RunOptions run_options(int64_t epoch) const;
    void step(const data::LoadedBatch& batch);
    void steps_on_device();
    void skip(const data::LoadedBatch& batch, const RunOptions& how, double loss);
    void begin_profile();
    void end_epoch();
    void evaluate(Scores& scores);
    network::Weights result() const;
    void save_weights(const std::string& name) const;
    bool has_average() const { return recipe_.run.average_decay > 0; }
    bool is_first() const { return !group_ || group_->rank() == 0; }  // which evaluates, logs and saves
    int64_t ranks() const { return group_ ? group_->size() : 1; }
    void join();

    const Recipe& recipe_;
    Objective& objective_;
    RunFolder& folder_;
    const TrainOptions& options_;
    ProcessGroup* group_;
    Module module_;
    Optimizer optimizer_;
    Average average_;
    std::vector<Tensor> trained_, statistics_;
    int64_t batch_;  // of all ranks together
    data::BatchLoader loader_;
    Counters counters_;
    TrainReport report_;
    std::unique_ptr<RunLog> log_;
    std::unique_ptr<Progress> progress_;
    Clock::time_point started_ = Clock::now(), epoch_started_ = Clock::now();
    int64_t epoch_steps_ = 0;                    // that this process made in the epoch
    std::unique_ptr<DeviceSteps> device_steps_;  // where steps are made there
    std::unique_ptr<Profiler> profiler_;
    int64_t profile_from_ = 0;  // step
    int64_t last_step_ = 0;     // of this process, counted from 1; 0: that of the recipe
    double signals_[2] = {};    // that the ranks have caught, as SharedStep::signals
};

Training::Training(const Recipe& recipe, Objective& objective, RunFolder& folder, const TrainOptions& options)
    : recipe_(recipe),
      objective_(objective),
      folder_(folder),
      options_(options),
      group_(options.group),
      module_(module_for(recipe, objective, first_weights(recipe, objective, options.initial), options.device)),
      optimizer_(recipe.optimizer, module_.parameters(), recipe.run.precision == Precision::fp16_weights),
      average_(recipe.run.average_decay, averaged(module_, optimizer_)),
      trained_(module_.trained()),
      batch_(shared_batch(std::min(recipe.run.batch, objective.items()), objective.items(), options.group)),
      loader_({.items = objective.items(),
               .batch_size = batch_,
               .seed = recipe.run.seed,
               .shuffle = true,
               .drop_last = true,
               .epochs = recipe.run.epochs,
               .threads = static_cast<int>(recipe.run.loader_threads),
               .depth = kDepth,
               .parts = ranks(),
               .part = group_ ? group_->rank() : 0,
               .checks_interrupts = !group_},
              [&objective](int64_t epoch, int64_t item, const data::LoaderSlot& slot) {
                  objective.make(epoch, item, slot);
              }) {
    for (const auto& [name, tensor] : module_.parameters())
        if (!tensor.requires_grad()) statistics_.push_back(tensor);
    objective.prepare(batch_ / ranks(), kDepth + 1, static_cast<int>(recipe.run.loader_threads), options.device);
    counters_.sums.assign(objective.sums().size(), 0);
    if (batch_ < recipe.run.batch)
        report_.warnings.push_back(fmt::format("batches of {} items: there are no more", batch_));
}

/// All ranks begin with what rank 0 has.
void Training::join() {
    if (!group_) return;
    counters_ = counters_from_json(broadcast_text(*group_, to_json(counters_)));
    share_tensors(*group_, tensors());
    if (is_first()) return;
    optimizer_.set_steps(counters_.optimizer_steps);
    average_.set_updates(counters_.average_updates);
    loader_.set_state({counters_.epoch, counters_.batch});
}

std::map<std::string, Tensor> Training::tensors() const {
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, tensor] : module_.parameters()) tensors.emplace("parameter." + name, tensor);
    for (const auto& [name, tensor] : optimizer_.state()) tensors.emplace("optimizer." + name, tensor);
    if (has_average())
        for (const auto& [name, tensor] : average_.values()) tensors.emplace("average." + name, tensor);
    return tensors;
}

void Training::resume() {
    const auto damaged = options_.refuses_damaged ? Damaged::refuse : Damaged::skip;
    const std::optional<Checkpoint> checkpoint = find_checkpoint(folder_.path(), damaged, report_.warnings);
    if (!checkpoint) {
        report_.warnings.push_back(fmt::format("{}: no checkpoint, begins anew", folder_.path()));
        return;
    }
    const std::vector<Difference> differing = differences(load_recipe(checkpoint->file(kRecipe)), recipe_);
    if (!differing.empty())
        throw Error(ErrorCode::bad_config, Place{checkpoint->path},
                    fmt::format("the checkpoint is of another recipe: {}: {}, {}{}", differing[0].key,
                                differing[0].first, differing[0].second,
                                differing.size() > 1 ? fmt::format(" and {} more", differing.size() - 1) : ""));
    if (checkpoint->info.threads != torch::get_num_threads())
        report_.warnings.push_back(fmt::format("{} threads, {} before: the run will not end in the same bits",
                                               torch::get_num_threads(), checkpoint->info.threads));
    if (checkpoint->info.world_size != ranks())
        report_.warnings.push_back(fmt::format("{} ranks, {} before: the run will not end in the same bits", ranks(),
                                               checkpoint->info.world_size));
    const std::map<std::string, Tensor> stored = load_tensors(checkpoint->file(kState));
    counters_ = counters_from_json(checkpoint->info.extra);
    try {
        copy_tensors(stored, "", tensors());
    } catch (const Error& error) {
        throw error.at_path(checkpoint->file(kState));
    }
    optimizer_.set_steps(counters_.optimizer_steps);
    average_.set_updates(counters_.average_updates);
    loader_.set_state({counters_.epoch, counters_.batch});
}

void Training::save_once(bool is_best) {
    counters_.optimizer_steps = optimizer_.steps();
    counters_.average_updates = average_.updates();
    const data::LoaderState next = loader_.state();
    counters_.epoch = next.epoch, counters_.batch = next.batch;
    CheckpointInfo info;
    info.step = counters_.step;
    info.threads = torch::get_num_threads();
    info.world_size = static_cast<int>(ranks());
    info.versions = {{"torch", TORCH_VERSION}};
    if (is_best) info.score = -counters_.best_score;
    info.extra = to_json(counters_);
    const std::map<std::string, Tensor> state = tensors();
    for (const auto& [name, tensor] : state)
        if (!torch::isfinite(tensor.detach()).all().item<bool>())
            throw Error(ErrorCode::not_finite,
                        fmt::format("step {}: {} is not finite, and not saved", counters_.step, name),
                        "the last checkpoint is sound; resume it with a smaller schedule.rate");
    const std::string recipe = to_toml(recipe_);
    const CheckpointFile files[] = {{kState, [&](ByteSink& sink) { write_tensors(state, sink); }},
                                    {kRecipe, [&](ByteSink& sink) { sink.write(recipe); }}};
    log_->sync();
    save_checkpoint(folder_.path(), info, files, {.last = static_cast<int>(recipe_.run.keep), .best = true});
}

void Training::save(bool is_best) {
    if (!is_first()) return;
    if (group_) group_->say(fmt::format("checkpoint after step {}", counters_.step));
    const ProfileMark mark(profiler_.get(), "checkpoint");
    try {
        save_once(is_best);
        return;
    } catch (const Error& error) {
        if (error.code() != ErrorCode::cannot_write) throw;
        log_warn("{}; one more attempt", error.what());
    }
    try {
        save_once(is_best);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::cannot_write || !options_.survives_save_errors) throw;
        log_warn("{}; the run goes on without this checkpoint", error.what());
    }
}

RunOptions Training::run_options(int64_t epoch) const {
    RunOptions how;
    how.is_training = true;
    how.seed = recipe_.run.seed;
    how.step = counters_.step;
    how.profiler = profiler_.get();
    how.group = group_;
    how.norm_momentum = norm_momentum_at(recipe_.schedule, epoch);
    how.products = type_of_products(recipe_.run.precision);
    return how;
}

void Training::step(const data::LoadedBatch& batch) {
    failpoint("train.step");
    RunOptions how = run_options(batch.epoch);
    const double scale = has_loss_scale(recipe_.run.precision) ? counters_.loss_scale.scale : 1;
    const double rate =
        rate_at(recipe_.schedule, counters_.step, loader_.batches(), recipe_.run.epochs, counters_.plateau);
    std::vector<Tensor> statistics;  // as they are now: a step that is skipped must not leave its own
    if (!statistics_.empty()) statistics = at::_foreach_mul(statistics_, 1);
    optimizer_.zero_gradients();
    const StepOutput output = objective_.step(module_, batch, how);
    ProfileMark backward(how.profiler, "backward");
    const double share = scale / static_cast<double>(ranks());  // the sum over the ranks is the gradient of their mean
    (share == 1 ? output.loss : output.loss * share).backward();
    backward.end();
    SharedStep seen = {output.loss.detach().to(torch::kFloat64).reshape({1}), output.sums.flatten(),
                       torch::empty({0}, output.sums.options())};
    if (group_) {
        const ProfileMark mark(how.profiler, "exchange");
        group_->say(fmt::format("step {}", counters_.step + 1));
        sum_gradients(*group_, trained_);
        seen = share_step(*group_, output, caught_signal());
        group_->settle();
    }
    ProfileMark clip(how.profiler, "clip");
    const Tensor norm = gradient_norm(trained_);
    // The only wait for the device: all numbers of the step in one copy.
    const Tensor numbers =
        torch::cat({seen.sums, norm.to(torch::kFloat64).reshape({1}), seen.loss, seen.signals}).cpu();
    const double* number = numbers.data_ptr<double>();
    const size_t sums = counters_.sums.size();
    if (group_) std::copy_n(number + sums + 2, 2, signals_);
    const double gradient = number[sums] / scale, loss = number[sums + 1];
    ++counters_.step;
    ++epoch_steps_;
    if (!std::isfinite(gradient) || !std::isfinite(loss)) {
        const torch::NoGradGuard no_gradients;
        for (size_t i = 0; i < statistics.size(); ++i) statistics_[i].copy_(statistics[i]);
        clip.end();
        how.profiler = nullptr;
        how.group = nullptr;
        const bool is_blamed = has_loss_scale(recipe_.run.precision) && std::isfinite(loss);
        if (!is_blamed || !counters_.loss_scale.observe(false)) skip(batch, how, loss);
        return;
    }
    if (has_loss_scale(recipe_.run.precision)) counters_.loss_scale.observe(true);
    counters_.skipped_in_a_row = 0;
    const bool is_clipped = recipe_.run.clip > 0 && gradient > recipe_.run.clip;
    clip.end();
    ProfileMark update(how.profiler, "optimizer");
    optimizer_.step(rate, (is_clipped ? recipe_.run.clip / gradient : 1) / scale);
    if (has_residual_steps(module_.network())) {
        bound_residual_steps(module_.network(), optimizer_.masters());
        bound_residual_steps(module_.network(), module_.parameters());
    }
    update.end();
    if (has_average()) {
        const ProfileMark mark(how.profiler, "average");
        average_.update();
    }
    for (size_t i = 0; i < sums; ++i) counters_.sums[i] += number[i];
    ++counters_.summed_steps;
    if (log_ && (counters_.step % recipe_.run.log_every == 0 || counters_.step == 1))
        log_->add_step(counters_.step, batch.epoch, loss, rate, gradient);
}

/// The rest of the epoch, or as much of it as is made at a time.
void Training::steps_on_device() {
    const data::LoaderState from = loader_.state();
    int64_t count = std::min(loader_.batches() - from.batch, DeviceSteps::kMostSteps);
    if (last_step_ > 0) count = std::min(count, last_step_ - counters_.step);
    std::vector<double> rates;
    for (int64_t i = 0; i < count; ++i)
        rates.push_back(
            rate_at(recipe_.schedule, counters_.step + i, loader_.batches(), recipe_.run.epochs, counters_.plateau));
    std::vector<int64_t> order(static_cast<size_t>(objective_.items()));
    data::epoch_order(recipe_.run.seed, from.epoch, order);
    objective_.set_order(order);
    RunOptions how = run_options(from.epoch);
    const int64_t first_step = counters_.step;
    device_steps_->begin(counters_, from.epoch, from.batch * batch_, rates, how);
    device_steps_->launch(count, loader_, [&] { progress_->add(batch_); });
    const std::vector<StepRecord> records = device_steps_->finish(counters_);
    const auto made = static_cast<int64_t>(records.size());
    epoch_steps_ += made;
    const bool is_end = from.batch + made == loader_.batches();
    const data::LoaderState next = {is_end ? from.epoch + 1 : from.epoch, is_end ? 0 : from.batch + made};
    for (int64_t i = 0; i < made; ++i) {
        const StepRecord& record = records[static_cast<size_t>(i)];
        const int64_t step = first_step + i + 1;
        const bool is_blamed =
            has_loss_scale(recipe_.run.precision) && std::isfinite(record.loss) && record.scale > LossScale::kLeast;
        if (record.is_made) {
            counters_.skipped_in_a_row = 0;
            if (step % recipe_.run.log_every == 0 || step == 1)
                log_->add_step(step, from.epoch, record.loss, rates[static_cast<size_t>(i)], record.gradient);
        } else if (!is_blamed) {  // the batch once more, with the weights of now, to see where
            loader_.set_state({from.epoch, from.batch + i});
            how.step = step - 1;
            skip(*loader_.next(), how, record.loss);
        }
    }
    if (loader_.state() != next) loader_.set_state(next);
    if (is_end) end_epoch();
}

void Training::skip(const data::LoadedBatch& batch, const RunOptions& how, double loss) {
    ++counters_.skipped;
    ++counters_.skipped_in_a_row;
    std::string trouble =
        fmt::format("{}; items {}", find_trouble(module_, objective_, batch, how), objective_.describe(batch.items));
    if (group_) trouble = share_trouble(*group_, trouble);
    const std::string reason =
        fmt::format("{} is not finite: {}", std::isfinite(loss) ? "the gradient" : "the loss", trouble);
    if (is_first()) {
        log_warn("epoch {}, step {}: skipped, {}", batch.epoch + 1, how.step + 1, reason);
        log_->add_skipped(how.step + 1, batch.epoch, reason);
    }
    const bool is_often = counters_.skipped > kSkipsInARow &&
                          static_cast<double>(counters_.skipped) > kSkippedShare * static_cast<double>(counters_.step);
    if (counters_.skipped_in_a_row >= kSkipsInARow || is_often)
        throw Error(ErrorCode::not_finite,
                    fmt::format("{} of {} steps were skipped; the last: {}", counters_.skipped, counters_.step, reason),
                    fmt::format("the last checkpoint is sound; a smaller schedule.rate than {} may help",
                                recipe_.schedule.rate));
}

void Training::evaluate(Scores& scores) {
    const ProfileMark mark(profiler_.get(), "evaluation");
    Scores validation = {{"", 0}};
    if (is_first()) {
        if (group_) group_->say(fmt::format("evaluation after step {}", counters_.step));
        std::map<std::string, Tensor> averages = average_.values();
        if (has_average()) module_.exchange(averages);
        validation = objective_.evaluate(module_);
        if (has_average()) module_.exchange(averages);
    }
    counters_.last_score = validation.front().second;
    if (group_) counters_.last_score = broadcast_number(*group_, counters_.last_score);
    observe(recipe_.schedule, counters_.plateau, counters_.last_score);
    scores.insert(scores.end(), validation.begin(), validation.end());
}

void Training::begin_profile() {
    last_step_ = options_.max_steps;
    if (!options_.profile) return;
    profiler_ = std::make_unique<Profiler>(*options_.profile, options_.device);
    const int64_t left = recipe_.run.epochs * loader_.batches() - counters_.step;
    profile_from_ = counters_.step + std::clamp<int64_t>(left - options_.profile_steps, 0, kWarmUpSteps);
    const int64_t end = profile_from_ + options_.profile_steps;
    if (last_step_ == 0 || end < last_step_) last_step_ = end;
}

void Training::end_epoch() {
    const int64_t epoch = loader_.state().epoch - 1;
    const bool is_last = epoch + 1 == recipe_.run.epochs;
    std::vector<double> sums = counters_.sums;
    if (counters_.summed_steps > 0) sums[0] /= static_cast<double>(counters_.summed_steps);  // the loss is a mean
    Scores scores = objective_.scores(sums);
    const double rate = static_cast<double>(epoch_steps_ * batch_) / std::max(seconds_since(epoch_started_), 1e-9);
    bool is_best = false;
    if (objective_.has_validation() && ((epoch + 1) % recipe_.run.evaluate_every == 0 || is_last)) {
        evaluate(scores);
        is_best = counters_.best_epoch < 0 || counters_.last_score > counters_.best_score;
        if (is_best) {
            counters_.best_score = counters_.last_score;
            counters_.best_epoch = epoch;
            save_weights("best.safetensors");
        }
        counters_.evaluations_without_better = is_best ? 0 : counters_.evaluations_without_better + 1;
        report_.stopped_early =
            recipe_.run.patience > 0 && counters_.evaluations_without_better >= recipe_.run.patience && !is_last;
    }
    counters_.is_finished = is_last || report_.stopped_early;
    const double next_rate =
        rate_at(recipe_.schedule, counters_.step - 1, loader_.batches(), recipe_.run.epochs, counters_.plateau);
    if (log_) log_->add_epoch(counters_.step, epoch, scores, next_rate, rate, memory_use(options_.device));
    std::string line;
    for (const auto& [name, value] : scores) line += fmt::format(", {} {:.4f}", name, value);
    if (options_.progress != ProgressMode::never && is_first())
        log_info("epoch {} of {}{}, {:.0f} clouds/s", epoch + 1, recipe_.run.epochs, line, rate);
    std::fill(counters_.sums.begin(), counters_.sums.end(), 0);
    counters_.summed_steps = 0;
    failpoint("train.epoch");
    if ((epoch + 1) % recipe_.run.save_every == 0 || counters_.is_finished || is_best) save(is_best);
    epoch_started_ = Clock::now();
    epoch_steps_ = 0;
}

network::Weights Training::result() const {
    return has_average() ? module_.weights(average_.values()) : module_.weights();
}

void Training::save_weights(const std::string& name) const {
    if (!is_first()) return;
    network::save_weights(folder_.path() + "/" + name, result(), recipe_.run.storage, Overwrite::allow);
}

TrainReport Training::run() {
    if (options_.is_resumed && is_first()) resume();
    join();
    if (is_first()) log_ = std::make_unique<RunLog>(folder_, recipe_.name, counters_.step);
    if (counters_.step == 0 && !counters_.is_finished && is_first()) {
        save(false);  // what cannot be saved shows before anything is computed
        const std::optional<Checkpoint> first = find_checkpoint(folder_.path(), Damaged::skip, report_.warnings);
        if (first) require_free_space(folder_.path(), first->bytes(), recipe_.run.keep + 1);
    }
    const int64_t left = (recipe_.run.epochs * loader_.batches() - counters_.step) * batch_;
    progress_ = std::make_unique<Progress>("train " + recipe_.name, left,
                                           is_first() ? options_.progress : ProgressMode::never, "clouds");
    begin_profile();
    if (objective_.has_device_batches() && !profiler_ && !group_)
        device_steps_ =
            std::make_unique<DeviceSteps>(recipe_, objective_, module_, optimizer_, average_, batch_, options_.device);
    while (!counters_.is_finished && (last_step_ == 0 || counters_.step < last_step_)) {
        try {
            if (!group_) check_interrupted();
            if (device_steps_) {
                run_or_explain_memory(recipe_.run.batch, [&] { steps_on_device(); });
                continue;
            }
            if (profiler_) profiler_->set_kept(counters_.step >= profile_from_);
            ProfileMark whole(profiler_.get(), "step");
            ProfileMark wait(profiler_.get(), "wait for data");
            const data::LoadedBatch* batch = loader_.next();
            wait.end();
            STIPPLE_ASSERT(batch != nullptr);
            const bool is_last = batch->is_last;
            run_or_explain_memory(recipe_.run.batch, [&] { step(*batch); });
            whole.end();
            progress_->add(batch_);
            if (is_last) end_epoch();
            check_signals(signals_);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::interrupted && error.code() != ErrorCode::terminated) throw;
            save(false);
            throw Error(error.code(), fmt::format("stopped after step {}, saved", counters_.step),
                        is_first() ? fmt::format("go on with: stipple train --resume {}", folder_.path()) : "");
        }
    }
    if (log_) report_.scores = log_->last_scores();
    report_.epochs = loader_.state().epoch;
    report_.steps = counters_.step;
    report_.skipped = counters_.skipped;
    if (profiler_) report_.profiled = std::max<int64_t>(0, counters_.step - profile_from_);
    report_.is_complete = counters_.is_finished;
    report_.seconds = seconds_since(started_);
    if (counters_.is_finished) {
        save_weights("weights.safetensors");
        if (is_first()) report_.weights = folder_.path() + "/weights.safetensors";
        progress_->finish("wrote " + report_.weights);
    } else {
        save(false);
        progress_->finish("saved");
    }
    return std::move(report_);
}

}  // namespace

TrainReport train(const Recipe& recipe, Objective& objective, RunFolder& folder, const TrainOptions& options) {
    validate(recipe);
    set_arithmetic(recipe);
    return Training(recipe, objective, folder, options).run();
}

}  // namespace stipple::learn
