#include "stipple/learn/evaluate/flow_step.h"

#include "stipple/learn/flows/ode_step.h"

namespace stipple::learn {

torch::Tensor run_flow_step(const network::Layer& layer, const std::vector<torch::Tensor>& inputs,
                            const LayerContext& context) {
    const network::LayerOptions& options = layer.options;
    const auto weight = [&](const char* name) { return at_least_float(context.parameter(name)); };
    const FlowNet net{inputs[1],
                      {weight("0.weight"), weight("1.weight"), weight("2.weight")},
                      options.steps > 0 ? weight("time") : torch::Tensor(),
                      options.activation.kind};
    Moved moved;
    if (options.steps > 0) {
        moved =
            ode_step(net, inputs[0], options.log_det, {options.steps, context.options.ode_tolerance, options.inverse});
    } else if (options.inverse) {
        moved = residual_step_inverse(net, inputs[0], options.log_det);
    } else {
        const uint64_t key = (context.options.seed ^ static_cast<uint64_t>(context.position)) * 0x9E3779B97F4A7C15u;
        moved = residual_step(net, inputs[0], options.log_det, context.options.log_det,
                              Rng(key, static_cast<uint64_t>(context.options.step)));
    }
    return options.log_det ? torch::cat({moved.x, moved.log_det}, 1) : moved.x;
}

}  // namespace stipple::learn
