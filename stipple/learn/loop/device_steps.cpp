#include "stipple/learn/loop/device_steps.h"

#include <torch/torch.h>

#include "stipple/core/failpoint.h"
#include "stipple/core/interrupt.h"
#include "stipple/learn/evaluate/layer.h"
#include "stipple/learn/flows/lipschitz.h"
#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/stream.h"
#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/update_rules.h"

namespace stipple::learn {
namespace {

using ops::ControlSlot;
using ops::LogSlot;
using ops::StepSlot;
using torch::Tensor;

ops::UpdateRules rules_of(const Recipe& recipe) {
    return {.clip = recipe.run.clip,
            .average_decay = recipe.run.average_decay,
            .beta1 = recipe.optimizer.beta1,
            .beta2 = recipe.optimizer.beta2,
            .has_loss_scale = has_loss_scale(recipe.run.precision),
            .least_scale = LossScale::kLeast,
            .most_scale = LossScale::kMost,
            .scale_good_steps = LossScale::kGoodSteps};
}

/// Null where a signal came while its items were made: steps that are queued must be counted first.
const data::LoadedBatch* next_unless_stopped(data::BatchLoader& loader) {
    try {
        return loader.next();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::interrupted && error.code() != ErrorCode::terminated) throw;
        return nullptr;
    }
}

}  // namespace

DeviceSteps::DeviceSteps(const Recipe& recipe, Objective& objective, Module& module, Optimizer& optimizer,
                         Average& average, int64_t batch, torch::Device device)
    : recipe_(recipe),
      objective_(objective),
      module_(module),
      optimizer_(optimizer),
      average_(average),
      graph_(device, can_be_recorded(module.network()) && objective.can_be_recorded(), [this] { step(); }) {
    for (const auto& [name, tensor] : module.parameters())
        if (!tensor.requires_grad()) statistics_.push_back(tensor);
    for (const Tensor& tensor : statistics_) statistics_before_.push_back(tensor.detach().clone());
    const auto whole = torch::TensorOptions(device).dtype(torch::kInt64);
    const auto numbers = torch::TensorOptions(device).dtype(torch::kFloat64);
    clock_numbers_ = torch::zeros({3}, whole);
    clock_ = {clock_numbers_.narrow(0, 0, 1), clock_numbers_.narrow(0, 1, 1), clock_numbers_.narrow(0, 2, 1)};
    advance_ = torch::tensor({int64_t{1}, int64_t{0}, batch}, torch::kInt64).to(device);
    state_ = torch::zeros({StepSlot::count}, numbers);
    control_ = torch::zeros({ControlSlot::count}, numbers);
    log_ = torch::zeros({kMostSteps, LogSlot::count}, numbers);
    rates_ = torch::zeros({kMostSteps}, numbers);
    first_step_ = torch::zeros({1}, numbers);
    sums_ = torch::zeros({static_cast<int64_t>(objective.sums().size())}, numbers);
    graph_.wait();
}

void DeviceSteps::begin(const Counters& counters, int64_t epoch, int64_t first_item, const std::vector<double>& rates,
                        const RunOptions& how) {
    STIPPLE_REQUIRE(rates.size() <= static_cast<size_t>(kMostSteps), "{} steps at a time", rates.size());
    if (how.norm_momentum != how_.norm_momentum) graph_.forget();  // it is a number of the host
    how_ = how;
    how_.step_on_device = clock_.step;
    std::vector<double> state(StepSlot::count);
    state[StepSlot::steps] = static_cast<double>(counters.step);
    state[StepSlot::updates] = static_cast<double>(optimizer_.steps());
    state[StepSlot::average_updates] = static_cast<double>(average_.updates());
    state[StepSlot::loss_scale] = counters.loss_scale.scale;
    state[StepSlot::good_steps] = static_cast<double>(counters.loss_scale.good_steps);
    state_.copy_(torch::tensor(state, torch::kFloat64));
    rates_.narrow(0, 0, static_cast<int64_t>(rates.size())).copy_(torch::tensor(rates, torch::kFloat64));
    first_step_.fill_(static_cast<double>(counters.step));
    clock_numbers_.copy_(torch::tensor({counters.step, epoch, first_item}, torch::kInt64));
    sums_.zero_();
    torch::cuda::synchronize(state_.get_device());  // the steps are on a stream of their own
}

void DeviceSteps::launch(int64_t count, data::BatchLoader& loader, const std::function<void()>& advance) {
    for (int64_t i = 0; i < count && caught_signal() == 0; ++i) {
        failpoint("train.step");
        if (objective_.has_staged_batches()) {
            const data::LoadedBatch* batch = next_unless_stopped(loader);
            if (!batch) return;
            graph_.run([&] { objective_.stage(*batch); });
        }
        graph_.launch();
        advance();
    }
}

void DeviceSteps::step() {
    if (!statistics_.empty()) {
        const torch::NoGradGuard no_gradients;  // a copy, in two launches for all
        at::_foreach_zero_(statistics_before_);
        at::_foreach_add_(statistics_before_, statistics_, 1);
    }
    optimizer_.zero_gradients();
    const StepOutput output = objective_.step_on_device(module_, clock_, how_);
    const bool is_scaled = has_loss_scale(recipe_.run.precision);
    (is_scaled ? output.loss * state_[StepSlot::loss_scale] : output.loss).backward();

    const torch::NoGradGuard no_gradients;
    const Stream stream = current_stream(state_);
    const Tensor norm = optimizer_.gradient_norm();
    const Tensor loss = output.loss.detach().to(torch::kFloat64).reshape({1});
    ops::update_rules(rules_of(recipe_), view_of<const double, 1>(rates_), view_of<const double, 1>(first_step_),
                      view_of<const float, 1>(norm), view_of<const double, 1>(loss), view_of<double, 1>(state_),
                      view_of<double, 1>(control_), view_of<double, 2>(log_), stream);
    optimizer_.step_on_device(control_);
    if (has_residual_steps(module_.network())) {
        bound_residual_steps(module_.network(), optimizer_.masters());
        bound_residual_steps(module_.network(), module_.parameters());
    }
    std::vector<ops::RestoredTensor> restored;
    for (size_t i = 0; i < statistics_.size(); ++i)
        restored.push_back(
            {statistics_[i].data_ptr(), statistics_before_[i].data_ptr(), DType::f32, statistics_[i].numel()});
    ops::restore_skipped(restored, view_of<const double, 1>(control_), stream);
    if (recipe_.run.average_decay > 0) average_.update_on_device(control_);
    const Tensor is_made = control_.narrow(0, ControlSlot::is_made, 1) > 0;
    sums_.add_(torch::where(is_made, output.sums, torch::zeros_like(output.sums)));  // not 0 times: it may be NaN
    clock_numbers_.add_(advance_);
}

std::vector<StepRecord> DeviceSteps::finish(Counters& counters) {
    graph_.wait();
    const Tensor state = state_.cpu();
    const double* value = state.data_ptr<double>();
    const auto steps = static_cast<int64_t>(value[StepSlot::steps]) - counters.step;
    const Tensor log = log_.narrow(0, 0, steps).cpu(), sums = sums_.cpu();
    std::vector<StepRecord> records;
    for (int64_t i = 0; i < steps; ++i) {
        const double* row = log.data_ptr<double>() + i * LogSlot::count;
        records.push_back(
            {row[LogSlot::loss], row[LogSlot::gradient_norm], row[LogSlot::loss_scale], row[LogSlot::is_made] > 0});
        if (records.back().is_made) ++counters.summed_steps;
    }
    for (size_t i = 0; i < counters.sums.size(); ++i) counters.sums[i] += sums.data_ptr<double>()[i];
    counters.step += steps;
    counters.loss_scale.scale = value[StepSlot::loss_scale];
    counters.loss_scale.good_steps = static_cast<int64_t>(value[StepSlot::good_steps]);
    optimizer_.set_steps(static_cast<int64_t>(value[StepSlot::updates]));
    average_.set_updates(static_cast<int64_t>(value[StepSlot::average_updates]));
    return records;
}

}  // namespace stipple::learn
