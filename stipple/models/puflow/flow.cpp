#include "stipple/models/puflow/flow.h"

#include <fmt/format.h>

namespace stipple::models::puflow_parts {

using network::Builder;
using network::leaky_relu;
using network::LinearOptions;
using network::Tensor;

namespace {

constexpr int64_t kHidden = 64;

std::string block_name(int block) {
    return fmt::format("flow_blocks.{}", block);
}

/// The three layers of a coupling or injector, with the parameters named `parameters`.
Tensor flow_net(Builder& build, const std::string& name, Tensor x, int64_t channels, const std::string& parameters) {
    const auto layer = [&](int i, Tensor input, int64_t outputs, const LinearOptions& options) {
        const std::string suffix = fmt::format(".layers.{}", i);
        return build.linear_sharing(name + suffix, input, outputs, options, parameters + suffix);
    };
    x = layer(0, x, kHidden, {.bias = false, .activation = leaky_relu(0.01f)});
    x = layer(2, x, kHidden, {.activation = leaky_relu(0.01f)});
    return layer(4, x, channels, {.weights = network::Initialiser::zeros});
}

}  // namespace

bool PatchFlow::has_steps() const {
    return options_.family == FlowFamily::residual || options_.family == FlowFamily::continuous;
}

int64_t PatchFlow::channels() const {
    return 3 + (options_.family == FlowFamily::augmented ? options_.augmented_channels : 0);
}

network::FlowStepOptions PatchFlow::step_options() const {
    if (options_.family == FlowFamily::residual) return {.hidden = kHidden, .activation = network::swish()};
    return {.hidden = kHidden, .steps = options_.steps, .activation = network::tanh()};
}

void PatchFlow::add_condition(Tensor features) {
    const std::string name = block_name(static_cast<int>(conditions_.size()));
    BlockCondition condition;
    condition.features = features;
    if (has_steps()) {
        condition.step = build_.linear(name + ".condition", features, network::flow_condition_channels(3, kHidden));
    } else {
        const std::string injector = name + ".coupling2";
        condition.scale = flow_net(build_, injector + ".scale_net", features, channels(), injector + ".scale_net");
        condition.bias = flow_net(build_, injector + ".bias_net", features, channels(), injector + ".bias_net");
    }
    conditions_.push_back(condition);
}

Tensor PatchFlow::start(Tensor points) {
    if (options_.family != FlowFamily::augmented) return points;
    const Tensor hidden =
        build_.linear("augment.0", conditions_[0].features, kHidden, {.activation = leaky_relu(0.01f)});
    const Tensor more = build_.linear("augment.2", hidden, options_.augmented_channels);
    return build_.concat("augmented", {points, more});
}

/// Even blocks keep the first half of the channels, rounded down, and move the others; odd ones keep it rounded up.
Tensor PatchFlow::coupling(const std::string& prefix, int block, Tensor x, Tensor condition, bool inverse) {
    const int64_t kept = block % 2 == 0 ? channels() / 2 : channels() - channels() / 2;
    const std::string parameters = block_name(block) + ".coupling1", name = prefix + parameters;
    const Tensor input = build_.concat(name + ".input", {build_.slice(name + ".kept", x, 0, kept), condition});
    const Tensor t = flow_net(build_, name + ".bias_net", input, channels() - kept, parameters + ".bias_net");
    return build_.couple(name, x, t, kept, inverse);
}

Tensor PatchFlow::forward(int block, Tensor x) {
    const std::string name = block_name(block);
    const BlockCondition& condition = conditions_[static_cast<size_t>(block)];
    if (has_steps()) {
        if (options_.family == FlowFamily::residual) x = build_.actnorm(name + ".actnorm", x);
        network::FlowStepOptions step = step_options();
        step.log_det = true;
        const Tensor moved = build_.flow_step(name + ".step", x, condition.step, step);
        log_dets_.push_back(build_.slice(name + ".step.log_det", moved, 3, 4));
        return build_.slice(name + ".step.moved", moved, 0, 3);
    }
    x = build_.actnorm(name + ".actnorm", x);
    x = build_.mix(name + ".permutate1.permutater", x);
    x = coupling("", block, x, condition.features, false);
    x = build_.reverse(name + ".permutate2", x);
    return build_.inject(name + ".coupling2", x, condition.scale, condition.bias);
}

/// The same for every point but what injectors scale and flow_steps do.
Tensor PatchFlow::log_determinant(Tensor points) {
    Tensor sum = -1;
    const auto add = [&](const std::string& name, Tensor term) {
        sum = sum < 0 ? term : build_.add(name + ".sum", sum, term);
    };
    const bool has_mix = !has_steps(), has_actnorm = options_.family != FlowFamily::continuous;
    for (int block = 0; block < kBlocks; ++block) {
        const std::string name = block_name(block);
        const auto add_part = [&](const char* part) {
            add(name + part + ".log_det", build_.flow_log_det(name + part + ".log_det", points, name + part));
        };
        if (has_actnorm) add_part(".actnorm");
        if (has_mix) add_part(".permutate1.permutater");
        if (has_steps()) {
            const Tensor of_points = log_dets_[static_cast<size_t>(block)];
            add(name + ".step", build_.sum_points(name + ".step.log_det.points", of_points));
            continue;
        }
        const Tensor scales =
            build_.sum_points(name + ".coupling2.scales", conditions_[static_cast<size_t>(block)].scale);
        sum = build_.subtract(name + ".coupling2.log_det", sum, build_.sum_channels(name + ".coupling2.scale", scales));
    }
    return sum;
}

Tensor PatchFlow::invert(const std::string& prefix, int block, Tensor z, int64_t children) {
    const std::string parameters = block_name(block), name = prefix + parameters;
    const auto for_children = [&](const char* what, Tensor x) {
        return children == 1 ? x : build_.repeat(name + what, x, children);
    };
    const BlockCondition& condition = conditions_[static_cast<size_t>(block)];
    if (has_steps()) {
        network::FlowStepOptions step = step_options();
        step.inverse = true;
        const Tensor of_children = for_children(".condition", condition.step);
        z = build_.flow_step(name + ".step", z, of_children, step, parameters + ".step");
        if (options_.family == FlowFamily::continuous) return z;
        return build_.actnorm(name + ".actnorm", z, true, parameters + ".actnorm");
    }
    const Tensor scale = for_children(".scale", condition.scale);
    const Tensor bias = for_children(".bias", condition.bias);
    z = build_.inject(name + ".coupling2", z, scale, bias, true);
    z = build_.reverse(name + ".permutate2", z);
    z = coupling(prefix, block, z, for_children(".condition", condition.features), true);
    z = build_.mix(name + ".permutate1.permutater", z, true, parameters + ".permutate1.permutater");
    return build_.actnorm(name + ".actnorm", z, true, parameters + ".actnorm");
}

/// Layers of the latent and the last block's features in place of the inverse: what a bijection is compared with.
Tensor PatchFlow::decode_by_layers(const std::string& prefix, Tensor z, int64_t children) {
    Tensor features = conditions_.back().features;
    if (children > 1) features = build_.repeat(prefix + "decoder.features", features, children);
    Tensor x = build_.concat(prefix + "decoder.input", {z, features});
    constexpr int64_t kChannels[] = {128, 128, 64, 3};
    for (int i = 0; i < 4; ++i) {
        const std::string layer = fmt::format("decoder.{}", 2 * i);
        const LinearOptions options{.activation = i < 3 ? network::relu() : network::Activation{}};
        // The first that is built owns the parameters.
        x = build_.linear_sharing(has_decoder_ ? prefix + layer : layer, x, kChannels[i], options, layer);
    }
    has_decoder_ = true;
    return x;
}

Tensor PatchFlow::decode(const std::string& prefix, Tensor z, int64_t children) {
    if (options_.family == FlowFamily::mlp) return decode_by_layers(prefix, z, children);
    for (int block = kBlocks - 1; block >= 0; --block) z = invert(prefix, block, z, children);
    return options_.family == FlowFamily::augmented ? build_.slice(prefix + "points", z, 0, 3) : z;
}

}  // namespace stipple::models::puflow_parts
