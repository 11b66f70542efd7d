#include "stipple/engine/calibrate/observe.h"

#include <fmt/format.h>

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/engine/lower/set_precisions.h"

namespace stipple::engine {
namespace {

/// The name under which a value can be read or is given; it becomes an output when it is neither yet. An output may
/// have the name of an input: the name then means the input.
std::string name_of_value(Program& program, Value value) {
    for (const Binding& binding : program.inputs)
        if (binding.value == value) return binding.name;
    for (const Binding& binding : program.outputs) {
        const auto same_name = [&](const Binding& input) { return input.name == binding.name; };
        if (binding.value == value && std::none_of(program.inputs.begin(), program.inputs.end(), same_name))
            return binding.name;
    }
    std::string name = fmt::format("observed.{}", value);
    program.outputs.push_back({name, value});
    return name;
}

}  // namespace

Unfused unfuse(const Program& program, Precision precision) {
    Unfused result;
    Program& flat = result.program;
    flat.name = program.name;
    flat.values = program.values;
    flat.inputs = program.inputs;
    flat.outputs = program.outputs;
    for (const Step& step : program.steps) {
        if (step.kind != StepKind::chain || step.layers.size() == 1) {
            flat.steps.push_back(step);
            continue;
        }
        Value previous = -1;
        for (size_t i = 0; i < step.layers.size(); ++i) {
            const bool is_last = i + 1 == step.layers.size();
            Step single;
            single.name = step.layers[i].name;
            single.layers = {step.layers[i]};
            single.level = step.level;
            single.width = step.width;
            if (i > 0) single.layers[0].parts = {{previous, Access::row, -1}};
            if (is_last) {
                single.name = step.name;
                single.output = step.output;
                single.reduce = step.reduce;
            } else {
                single.output = static_cast<Value>(flat.values.size());
                flat.values.push_back(
                    {fmt::format("{}.{}", step.name, i), {step.level, step.width, step.layers[i].out}});
            }
            previous = single.output;
            flat.steps.push_back(std::move(single));
        }
    }
    // The rule book tells which layers may have the precision: all of them get a range, and the chosen ones show.
    Options options;
    options.precision = precision;
    options.calibration.emplace().precision = precision;
    for (const Step& step : flat.steps)
        for (const Dense& layer : step.layers) options.calibration->layers[layer.name].range = 1;
    Program marked = flat;
    set_precisions(marked, options);
    for (size_t i = 0; i < flat.steps.size(); ++i) {
        if (flat.steps[i].kind != StepKind::chain || marked.steps[i].layers[0].precision != precision) continue;
        const Dense& layer = flat.steps[i].layers[0];
        ObservedLayer observed{layer.name, static_cast<int64_t>(i), {}, {}};
        for (const Source& part : layer.parts) observed.from.push_back(name_of_value(flat, part.value));
        if (layer.matrix >= 0) observed.matrix = name_of_value(flat, layer.matrix);
        result.layers.push_back(std::move(observed));
    }
    return result;
}

Program with_given_input(const Unfused& unfused, const ObservedLayer& layer, std::vector<float> weight) {
    Program program = unfused.program;
    program.outputs.clear();
    for (const Binding& output : unfused.program.outputs)
        if (output.name.rfind("observed.", 0) != 0) program.outputs.push_back(output);
    Step& step = program.steps[static_cast<size_t>(layer.step)];
    Dense& dense = step.layers[0];
    const auto give = [&](const char* name, TensorType type) {
        const auto value = static_cast<Value>(program.values.size());
        program.values.push_back({name, type});
        program.inputs.push_back({name, value});
        return value;
    };
    dense.parts = {{give(kGivenInput, {step.level, step.width, dense.in}), Access::row, -1}};
    if (dense.matrix >= 0)
        dense.matrix = give(kGivenMatrix, program.values[static_cast<size_t>(dense.matrix)].type);
    else
        dense.weight = std::move(weight);
    return program;
}

}  // namespace stipple::engine
