#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/training/update_rules_step.h"
#include "stipple/ops/update_rules.h"

namespace stipple::ops::cuda {
namespace {

/// One thread: a dozen numbers, of which each follows from those before.
__global__ void decide_kernel(const __grid_constant__ UpdateRules rules, const __grid_constant__ StepNumbers numbers) {
    decide_step(rules, numbers);
}

}  // namespace

void update_rules(const UpdateRules& rules, View<const double, 1> rates, View<const double, 1> first_step,
                  View<const float, 1> gradient_norm, View<const double, 1> loss, View<double, 1> state,
                  View<double, 1> control, View<double, 2> log, Stream stream) {
    const CurrentDevice current(state.device());
    const StepNumbers numbers = {rates.data(), rates.size(0),  first_step.data(), gradient_norm.data(), loss.data(),
                                 state.data(), control.data(), log.data(),        log.size(0)};
    decide_kernel<<<1, 1, 0, raw(stream)>>>(rules, numbers);
    STIPPLE_CHECK_LAUNCH(decide_kernel);
}

}  // namespace stipple::ops::cuda
