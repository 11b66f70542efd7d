#include "stipple/engine/lower/set_precisions.h"

#include <algorithm>

namespace stipple::engine {
namespace {

bool is_small(const Dense& dense) {
    return dense.in <= 4 || (dense.in <= 8 && dense.out <= 8);
}

bool is_integer_like(Precision precision) {
    return precision == Precision::int8 || precision == Precision::fp8;
}

bool is_output(const Program& program, Value value) {
    return std::any_of(program.outputs.begin(), program.outputs.end(),
                       [&](const Binding& output) { return output.value == value; });
}

/// Is an output, or becomes one by an activation that is a step of its own.
bool ends_in_output(const Program& program, Value value) {
    return is_output(program, value) || std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
               return step.kind == StepKind::activation && !is_of_chains(step.activation) &&
                      step.inputs[0].value == value && is_output(program, step.output);
           });
}

void set_low(Dense& dense, bool can_be_low, const Options& options) {
    const bool is_cuda = options.device.type == DeviceType::cuda;
    const auto range = options.calibration->layers.find(dense.name);
    const bool is_known = range != options.calibration->layers.end() && range->second.range > 0;
    if (is_known && range->second.keep_higher) {
        dense.precision = is_cuda ? Precision::fp16 : Precision::fp32;
    } else if (is_known && can_be_low) {
        dense.precision = options.precision;
        dense.input_range = range->second.range;
    } else {
        dense.precision = is_cuda ? Precision::fp16 : Precision::bf16;
    }
}

}  // namespace

void set_precisions(Program& program, const Options& options) {
    STIPPLE_REQUIRE(!is_integer_like(options.precision) || options.calibration,
                    "{} needs a calibration: neither the options nor the weights have one", name_of(options.precision));
    for (Step& step : program.steps) {
        const bool is_end = step.reduce == Reduce::none && ends_in_output(program, step.output);
        for (Dense& dense : step.layers) {
            const bool is_last = is_end && &dense == &step.layers.back();
            dense.precision = Precision::fp32;
            dense.input_range = 0;
            if (is_small(dense)) continue;
            if (is_integer_like(options.precision))
                set_low(dense, step.level == Level::point && !is_last, options);
            else
                dense.precision = options.precision;
        }
    }
}

}  // namespace stipple::engine
