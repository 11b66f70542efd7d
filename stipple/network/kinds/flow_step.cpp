// flow_step: a step of a flow with a small network in it. In ONNX it is unrolled: evaluations of the network one after
// the other, and its derivatives where the log-determinant is wanted.

#include <array>

#include "stipple/core/checked.h"
#include "stipple/network/kinds/activation.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

constexpr int64_t kMostSteps = 1000;
// What Newton's method takes as a rule; each evaluates the network and its Jacobian.
constexpr int64_t kUsualIterations = 4;

// === ONNX

/// The small network of one layer, as nodes.
class UnrolledStep {
public:
    UnrolledStep(OnnxExport& out, const Layer& layer)
        : out_(out),
          layer_(layer),
          channels_(out.type_of_input(layer, 0).channels),
          sizes_{layer.options.channels, layer.options.channels, channels_} {
        int64_t begin = 0;
        for (size_t i = 0; i < 6; ++i) {
            begins_[i] = begin;
            condition_[i] = slice(out.input_of(layer, 1), begin, begin + sizes_[i % 3]);
            begin += sizes_[i % 3];
        }
        for (size_t i = 0; i < 3; ++i) weights_[i] = transposed(i);
    }

    struct Value {
        std::string g;                         // [.., c]
        std::vector<std::string> derivatives;  // by channel j: dg / dx_j [.., c]
    };

    Value evaluate(const std::string& x, double t, bool with_derivatives) {
        Value value;
        std::string v = x;
        for (size_t i = 0; i < 3; ++i) {
            const std::string gate = node("Sigmoid", {at_time(i + 3, t)});
            const std::string product = node("MatMul", {v, weights_[i]});
            v = node("Add", {node("Mul", {product, gate}), at_time(i, t)});
            std::string slope = gate;
            if (i < 2) {
                const std::string before = v;
                v = activation_onnx(out_, layer_, before);
                if (with_derivatives) slope = node("Mul", {gate, derivative(before, v)});
            }
            if (with_derivatives) chain(i, slope, value.derivatives);
        }
        value.g = v;
        return value;
    }

    /// ln |det (1 + dg/dx)| [.., 1]
    std::string log_determinant(const std::vector<std::string>& derivatives) {
        std::vector<std::string> columns;
        for (int64_t j = 0; j < channels_; ++j) {
            std::vector<float> unit(static_cast<size_t>(channels_));
            unit[static_cast<size_t>(j)] = 1;
            columns.push_back(node("Add", {derivatives[static_cast<size_t>(j)],
                                           out_.floats(fmt::format("unit{}", j), {channels_}, unit)}));
        }
        std::string determinant = columns[0];
        if (channels_ == 2) {
            const std::string product = node("Mul", {columns[0], ordered(columns[1], {1, 0})});
            determinant = node("Sub", {slice(product, 0, 1), slice(product, 1, 2)});
        }
        if (channels_ == 3) {
            const std::string cross =
                node("Sub", {node("Mul", {ordered(columns[1], {1, 2, 0}), ordered(columns[2], {2, 0, 1})}),
                             node("Mul", {ordered(columns[1], {2, 0, 1}), ordered(columns[2], {1, 2, 0})})});
            determinant = node("ReduceSum", {node("Mul", {columns[0], cross}), out_.integers({-1})});
        }
        return node("Log", {node("Abs", {determinant})});
    }

    /// The sum of dg_j / dx_j [.., 1].
    std::string trace(const std::vector<std::string>& derivatives) {
        std::string sum;
        for (int64_t j = 0; j < channels_; ++j) {
            const std::string part = slice(derivatives[static_cast<size_t>(j)], j, j + 1);
            sum = j == 0 ? part : node("Add", {sum, part});
        }
        return sum;
    }

    std::string plus_times(const std::string& x, const std::string& y, double factor) {
        return node("Add", {x, node("Mul", {y, out_.number(static_cast<float>(factor))})});
    }
    std::string beside(const std::string& x, const std::string& log_det) {
        return out_.node(layer_, "Concat", {x, log_det}, {{"axis", channel_axis(layer_.type)}});
    }

private:
    std::string node(std::string_view op, std::vector<std::string> inputs) {
        return out_.node(layer_, op, std::move(inputs));
    }
    std::string slice(const std::string& x, int64_t begin, int64_t end) {
        return node("Slice", {x, out_.integers({begin}), out_.integers({end}), out_.integers({-1})});
    }
    std::string ordered(const std::string& x, std::vector<int64_t> channels) {
        return out_.node(layer_, "Gather", {x, out_.integers(std::move(channels))},
                         {{"axis", channel_axis(layer_.type)}});
    }

    std::string weight_name(size_t i) const { return fmt::format("{}.{}.weight", layer_.parameters, i); }

    std::string transposed(size_t i) {
        const int64_t outs = sizes_[i], ins = i == 0 ? channels_ : sizes_[i - 1];
        const auto weight = out_.parameter(weight_name(i));
        std::vector<float> values(weight.size());
        for (int64_t o = 0; o < outs; ++o)
            for (int64_t k = 0; k < ins; ++k)
                values[static_cast<size_t>(k * outs + o)] = weight[static_cast<size_t>(o * ins + k)];
        return out_.floats(weight_name(i), {ins, outs}, values);
    }

    /// Part i of the condition at a time: shifts 0 to 2, gates 3 to 5.
    std::string at_time(size_t i, double t) {
        if (layer_.options.steps == 0 || t == 0) return condition_[i];
        const auto time = out_.parameter(layer_.parameters + ".time");
        std::vector<float> growth;
        for (int64_t k = 0; k < sizes_[i % 3]; ++k)
            growth.push_back(static_cast<float>(t * time[static_cast<size_t>(begins_[i] + k)]));
        return node("Add", {condition_[i], out_.floats(layer_.parameters + ".time", {sizes_[i % 3]}, growth)});
    }

    /// Of the activation: `before` and behind it.
    std::string derivative(const std::string& before, const std::string& after) {
        const std::string one = out_.number(1);
        if (layer_.options.activation.kind == ActivationKind::tanh)
            return node("Sub", {one, node("Mul", {after, after})});
        const std::string s = node("Sigmoid", {before});  // swish: s + y (1 - s)
        return node("Add", {s, node("Mul", {after, node("Sub", {one, s})})});
    }

    /// Derivatives behind layer i from those before it; the first layer has columns of its weight.
    void chain(size_t i, const std::string& slope, std::vector<std::string>& derivatives) {
        for (int64_t j = 0; j < channels_; ++j) {
            if (i > 0) {
                std::string& of_j = derivatives[static_cast<size_t>(j)];
                of_j = node("Mul", {node("MatMul", {of_j, weights_[i]}), slope});
                continue;
            }
            const auto weight = out_.parameter(weight_name(0));
            std::vector<float> column;
            for (int64_t o = 0; o < sizes_[0]; ++o) column.push_back(weight[static_cast<size_t>(o * channels_ + j)]);
            const std::string name = fmt::format("{}.column{}", weight_name(0), j);
            derivatives.push_back(node("Mul", {slope, out_.floats(name, {sizes_[0]}, column)}));
        }
    }

    OnnxExport& out_;
    const Layer& layer_;
    int64_t channels_;
    std::array<int64_t, 3> sizes_;
    std::array<int64_t, 6> begins_{};
    std::array<std::string, 6> condition_;
    std::array<std::string, 3> weights_;
};

std::string residual_onnx(OnnxExport& out, const Layer& layer) {
    UnrolledStep step(out, layer);
    const std::string& x = out.input_of(layer, 0);
    const UnrolledStep::Value value = step.evaluate(x, 0, layer.options.log_det);
    const std::string y = out.node(layer, "Add", {x, value.g});
    return layer.options.log_det ? step.beside(y, step.log_determinant(value.derivatives)) : y;
}

std::string ode_onnx(OnnxExport& out, const Layer& layer) {
    UnrolledStep step(out, layer);
    const bool log_det = layer.options.log_det;
    const double sign = layer.options.inverse ? -1 : 1, h = sign / static_cast<double>(layer.options.steps);
    std::string x = out.input_of(layer, 0), integral;
    for (int64_t i = 0; i < layer.options.steps; ++i) {
        const double t = (layer.options.inverse ? 1 : 0) + static_cast<double>(i) * h;
        std::string at = x, sum = x;
        constexpr double kAhead[4] = {0, 0.5, 0.5, 1}, kWeights[4] = {1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0};
        std::string slope;
        for (size_t stage = 0; stage < 4; ++stage) {
            if (stage > 0) at = step.plus_times(x, slope, kAhead[stage] * h);
            const UnrolledStep::Value value = step.evaluate(at, t + kAhead[stage] * h, log_det);
            slope = value.g;
            sum = step.plus_times(sum, slope, kWeights[stage] * h);
            if (!log_det) continue;
            const std::string trace = step.trace(value.derivatives);
            integral = integral.empty()
                           ? out.node(layer, "Mul", {trace, out.number(static_cast<float>(kWeights[stage] * h))})
                           : step.plus_times(integral, trace, kWeights[stage] * h);
        }
        x = sum;
    }
    return log_det ? step.beside(x, integral) : x;
}

std::string flow_step_onnx(OnnxExport& out, const Layer& layer) {
    if (layer.options.steps > 0) return ode_onnx(out, layer);
    STIPPLE_REQUIRE(
        !layer.options.inverse,
        "onnx: layer {}: the inverse of a residual flow_step is found by iteration, which ONNX has no nodes "
        "for",
        layer.name);
    return residual_onnx(out, layer);
}

// === Type, text, parameters

TensorType type_of_flow_step(const Rules& rules) {
    const LayerOptions& options = rules.layer.options;
    const int64_t c = rules.numbers(0).channels, h = options.channels;
    if (c > kMostFlowChannels) rules.fail("moves {} channels at most, {}", kMostFlowChannels, rules.got(0));
    if (h < 1 || h > kMostFlowHidden)
        rules.fail("its hidden layers have {} channels, must be 1 to {}", h, kMostFlowHidden);
    if (options.steps < 0 || options.steps > kMostSteps)
        rules.fail("steps is {}, must be 0 to {}", options.steps, kMostSteps);
    if (options.activation.kind != ActivationKind::tanh && options.activation.kind != ActivationKind::swish)
        rules.fail("its activation is {}, must be tanh or swish", name_of(options.activation.kind));
    rules.same_rows(0, 1);
    if (rules.type(1).channels != flow_condition_channels(c, h))
        rules.fail("needs a condition of {} channels for {} hidden ones, {}", flow_condition_channels(c, h), h,
                   rules.got(1));
    return with_channels(rules.type(0), c + (options.log_det ? 1 : 0));
}

std::string flow_step_text(const LayerOptions& options) {
    std::string text = options.steps > 0 ? fmt::format("ode, {} steps", options.steps) : "residual";
    text += fmt::format(", hidden {}, {}", options.channels, activation_text(options.activation));
    if (options.log_det) text += ", log_det";
    return text;
}

std::vector<Parameter> flow_step_parameters(const Network& network, const Layer& layer) {
    STIPPLE_REQUIRE(layer.inputs.size() == 2 && layer.inputs[0] >= 0 &&
                        static_cast<size_t>(layer.inputs[0]) < network.layers.size(),
                    "{}: needs 2 inputs", label_of(layer));
    const int64_t c = network[layer.inputs[0]].type.channels, h = layer.options.channels;
    const auto of = [&](const char* name, std::vector<int64_t> shape, Initialiser initialiser) {
        return Parameter{layer.parameters + name, std::move(shape), initialiser, true, layer.name};
    };
    std::vector<Parameter> all = {of(".0.weight", {h, c}, Initialiser::random_orthogonal),
                                  of(".1.weight", {h, h}, Initialiser::random_orthogonal),
                                  of(".2.weight", {c, h}, Initialiser::zeros)};
    if (layer.options.steps > 0) all.push_back(of(".time", {flow_condition_channels(c, h)}, Initialiser::zeros));
    return all;
}

int64_t flow_step_multiply_adds(const Network& network, const Layer& layer, int64_t) {
    const LayerOptions& options = layer.options;
    const int64_t c = network[layer.inputs[0]].type.channels, h = options.channels;
    const int64_t value = h * (2 * c + h), jacobian = c * h * (h + c);
    if (options.steps > 0) return checked_mul(4 * options.steps, options.log_det ? value + jacobian : value);
    if (options.inverse) return kUsualIterations * (value + jacobian);
    return options.log_det ? value + jacobian : value;
}

constexpr LayerKind kFlowStepKinds[] = {
    {.kind = Kind::flow_step,
     .name = "flow_step",
     .inputs = 2,
     .group = KindGroup::flows,
     .type = type_of_flow_step,
     .onnx = flow_step_onnx,
     .text = flow_step_text,
     .parameters = flow_step_parameters,
     .multiply_adds = flow_step_multiply_adds},
};

}  // namespace

std::span<const LayerKind> flow_step_kinds() {
    return kFlowStepKinds;
}

}  // namespace stipple::network
