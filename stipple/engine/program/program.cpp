#include "stipple/engine/program.h"

#include "stipple/core/error.h"
#include "stipple/engine/kinds/kind.h"

namespace stipple::engine {
namespace {

std::string text_of(const Activation& activation) {
    if (activation.kind == ActivationKind::none) return "";
    const std::string name(network::name_of(activation.kind));
    return activation.slope == 0 ? name : fmt::format("{} {}", name, activation.slope);
}

std::string text_of(const Program& program, Value value) {
    return fmt::format("%{} {}", value, program.values[static_cast<size_t>(value)].name);
}

std::string text_of(const Program& program, const Source& source) {
    const std::string name = text_of(program, source.value);
    switch (source.access) {
        case Access::row: return name;
        case Access::cloud: return name + " of the cloud";
        case Access::point: return name + " of the point";
        case Access::neighbour: return fmt::format("{} of neighbour %{}", name, source.indices);
    }
    return name;
}

std::string text_of(const Program& program, const std::vector<Source>& sources, const char* separator) {
    std::string text;
    for (const Source& source : sources) text += (text.empty() ? "" : separator) + text_of(program, source);
    return text;
}

std::string text_of(const Program& program, const Dense& dense) {
    std::string text = fmt::format("    {}: {} -> {}", dense.name, dense.in, dense.out);
    if (dense.activation.kind != ActivationKind::none) text += ", " + text_of(dense.activation);
    if (dense.in > 0) text += fmt::format(", {}", engine::name_of(dense.precision));
    if (!dense.parts.empty()) text += ", of " + text_of(program, dense.parts, ", ");
    if (dense.matrix >= 0) text += ", weights " + text_of(program, dense.matrix);
    if (!dense.addends.empty()) text += ", plus " + text_of(program, dense.addends, ", ");
    return text + "\n";
}

std::string options_of(const Step& step) {
    switch (step.kind) {
        case StepKind::slice: return fmt::format(" channels {} to {}", step.begin, step.end);
        case StepKind::couple: return fmt::format(" from channel {}, factor {}", step.begin, step.factor);
        case StepKind::add:
        case StepKind::log_det: return step.factor == 1 ? "" : fmt::format(" factor {}", step.factor);
        case StepKind::inject: return step.inverse ? " inverse" : "";
        case StepKind::flow_step:
            return fmt::format(" {}{}, hidden {}", step.end > 0 ? fmt::format("ode, {} steps", step.end) : "residual",
                               step.inverse ? " inverse" : "", step.begin);
        case StepKind::attend:
            return fmt::format(" {}{}{}, factor {}", step.end == 1 ? "softmax" : "mean", step.inverse ? " cosine" : "",
                               step.begin == 1 ? " not itself" : "", step.factor);
        case StepKind::activation: return " " + text_of(step.activation);
        default: return "";
    }
}

int64_t rows_of(const TensorType& type, int64_t n) {
    return type.level == Level::cloud ? 1 : (type.points > 0 ? type.points : n) * type.width;
}

int64_t multiply_adds(const Program& program, const Step& step, int64_t n) {
    const TensorType& type = program.values[static_cast<size_t>(step.output)].type;
    if (step.kind == StepKind::chain) {
        int64_t of_row = 0;
        for (const Dense& dense : step.layers) of_row += dense.in * dense.out;
        const int64_t points = point_sets(program)[static_cast<size_t>(step.set)].points;
        return of_row * rows_of({step.level, step.width, 1, false, step.set, 0, points}, n);
    }
    if (step.kind == StepKind::fold_matrix && !step.weight.empty()) {
        const int64_t k2 = program.values[static_cast<size_t>(step.inputs[0].value)].type.channels;
        int64_t k = 1;
        while (k * k < k2) ++k;
        return type.channels * k;
    }
    if (step.kind == StepKind::flow_step) {
        // As the layer counts it: derivatives where they are needed, a few iterations of an inverse.
        const int64_t c = program.values[static_cast<size_t>(step.inputs[0].value)].type.channels, h = step.begin;
        const bool is_search = step.end == 0 && step.inverse;
        const int64_t value = h * (2 * c + h), jacobian = type.channels > c || is_search ? c * h * (h + c) : 0;
        return rows_of(type, n) * (value + jacobian) * (step.end > 0 ? 4 * step.end : is_search ? 4 : 1);
    }
    if (step.kind == StepKind::attend) {
        const auto type_of = [&](size_t i) { return program.values[static_cast<size_t>(step.inputs[i].value)].type; };
        return rows_of(type, n) * rows_of(type_of(1), n) * (type_of(1).channels + type_of(2).channels);
    }
    if (step.kind == StepKind::interpolate) {
        const TensorType& weights = program.values[static_cast<size_t>(step.inputs[0].value)].type;
        return rows_of(weights, n) * weights.channels * type.channels;
    }
    return 0;
}

}  // namespace

std::vector<PointSet> point_sets(const Program& program) {
    std::vector<PointSet> sets(1);
    for (const ValueInfo& value : program.values) {
        if (value.type.level != Level::point) continue;
        const auto set = static_cast<size_t>(value.type.set);
        if (set >= sets.size()) sets.resize(set + 1);
        sets[set] = {value.type.points, true};
    }
    return sets;
}

int64_t multiply_adds(const Program& program, int64_t n) {
    int64_t sum = 0;
    for (const Step& step : program.steps) sum += multiply_adds(program, step, n);
    return sum;
}

std::string to_text(const Program& program) {
    std::string text = program.name + "\n";
    for (const Binding& input : program.inputs)
        text += fmt::format("input {}: %{} {}\n", input.name, input.value,
                            network::to_string(program.values[static_cast<size_t>(input.value)].type));
    for (const Step& step : program.steps) {
        text += fmt::format("%{} {} = {}{}", step.output, step.name, step_type(step.kind).name, options_of(step));
        if (step.reduce != Reduce::none) text += step.reduce == Reduce::max_points ? " max_points" : " max_rows";
        if (!step.inputs.empty()) text += " of " + text_of(program, step.inputs, ", ");
        text += " " + network::to_string(program.values[static_cast<size_t>(step.output)].type) + "\n";
        for (const Dense& dense : step.layers) text += text_of(program, dense);
    }
    for (const Binding& output : program.outputs)
        text += fmt::format("output {}: {}\n", output.name, text_of(program, output.value));
    return text;
}

}  // namespace stipple::engine
