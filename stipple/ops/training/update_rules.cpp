#include "stipple/ops/update_rules.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/training/update_rules_step.h"

namespace stipple::ops {
namespace {

constexpr const char* kOp = "update_rules";

void require_rules(const UpdateRules& rules) {
    STIPPLE_REQUIRE(rules.clip >= 0, "{}: clip must be at least 0, got {}", kOp, rules.clip);
    for (const double share : {rules.average_decay, rules.beta1, rules.beta2})
        STIPPLE_REQUIRE(share >= 0 && share < 1, "{}: decay and betas must be at least 0 and below 1, got {}", kOp,
                        share);
    if (!rules.has_loss_scale) return;
    STIPPLE_REQUIRE(rules.least_scale > 0 && rules.most_scale >= rules.least_scale, "{}: loss scales from {} to {}",
                    kOp, rules.least_scale, rules.most_scale);
    STIPPLE_REQUIRE(rules.scale_good_steps > 0, "{}: scale_good_steps must be above 0, got {}", kOp,
                    rules.scale_good_steps);
}

}  // namespace

void update_rules(const UpdateRules& rules, View<const double, 1> rates, View<const double, 1> first_step,
                  View<const float, 1> gradient_norm, View<const double, 1> loss, View<double, 1> state,
                  View<double, 1> control, View<double, 2> log, [[maybe_unused]] Stream stream) {
    const Device device = state.device();
    require_rules(rules);
    require_output<double, 1>(kOp, "state", state, {StepSlot::count}, device);
    require_output<const double, 1>(kOp, "rates", rates, {rates.size(0)}, device);
    require_output<const double, 1>(kOp, "first_step", first_step, {1}, device);
    require_output<const float, 1>(kOp, "gradient_norm", gradient_norm, {1}, device);
    require_output<const double, 1>(kOp, "loss", loss, {1}, device);
    require_output<double, 1>(kOp, "control", control, {ControlSlot::count}, device);
    require_output<double, 2>(kOp, "log", log, {log.size(0), LogSlot::count}, device);
    switch (device.type) {
        case DeviceType::cpu:
            return decide_step(rules, {rates.data(), rates.size(0), first_step.data(), gradient_norm.data(),
                                       loss.data(), state.data(), control.data(), log.data(), log.size(0)});
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::update_rules, rules, rates, first_step, gradient_norm, loss, state, control, log,
                              stream);
    }
}

}  // namespace stipple::ops
