#include "tests/engine/device_programs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "tests/support/reference_program.h"

namespace stipple::test {

using namespace engine;

std::vector<std::vector<float>> run_on(Device device, const Program& program, const ops::Batch& batch,
                                       const std::vector<std::vector<float>>& inputs, int times) {
    Options options;
    options.device = device;
    for (const Step& step : program.steps)
        for (const Dense& layer : step.layers)
            if (layer.precision != Precision::fp32) options.precision = layer.precision;
    options.max_batch = batch.clouds();
    options.max_points = (batch.rows() + batch.clouds() - 1) / batch.clouds();
    Context context(compile(program, options));
    const auto type = [&](const Binding& binding) { return program.values[static_cast<size_t>(binding.value)].type; };
    std::vector<Array<float, 2>> arrays;
    std::vector<engine::Input> in;
    std::vector<engine::Output> out;
    arrays.reserve(program.inputs.size() + program.outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType t = type(program.inputs[i]);
        Array<float, 2> host({rows_in(t, batch), t.channels});
        std::copy(inputs[i].begin(), inputs[i].end(), host.data());
        arrays.push_back(host.to(device));
        in.push_back({program.inputs[i].name, arrays.back().view()});
    }
    for (const Binding& binding : program.outputs) {
        Array<float, 2> host({rows_in(type(binding), batch), type(binding).channels});
        std::fill_n(host.data(), host.elements(), NAN);
        arrays.push_back(host.to(device));
        out.push_back({binding.name, arrays.back().view()});
    }
    for (int i = 0; i < times; ++i) context.run(batch, in, out);
    std::vector<std::vector<float>> outputs;
    for (size_t i = inputs.size(); i < arrays.size(); ++i) {
        const Array<float, 2> host = arrays[i].to(Device{});
        outputs.emplace_back(host.data(), host.data() + host.elements());
    }
    return outputs;
}

std::vector<std::vector<float>> expected_outputs(const Program& program, const ops::Batch& batch,
                                                 const std::vector<std::vector<float>>& inputs) {
    std::vector<ReferenceInput> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType& type = program.values[static_cast<size_t>(program.inputs[i].value)].type;
        in.push_back({program.inputs[i].name, {inputs[i].data(), {rows_in(type, batch), type.channels}}});
    }
    const std::vector<ReferenceTensor> values = run_reference(program, batch, in);
    std::vector<std::vector<float>> outputs;
    for (const Binding& output : program.outputs) {
        const std::vector<double>& exact = values[static_cast<size_t>(output.value)].values;
        outputs.emplace_back(exact.begin(), exact.end());
    }
    return outputs;
}

double difference_of(const std::vector<float>& found, const std::vector<float>& expected) {
    if (found.size() != expected.size()) return INFINITY;
    double largest = 0, difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max<double>(largest, std::abs(expected[i]));
        const double d = std::abs(static_cast<double>(expected[i]) - found[i]);
        if (!(d <= difference)) difference = d;  // NaN stays
    }
    return difference == 0 ? 0 : difference / largest;
}

namespace {

/// run_on; on the CPU with 1 and with 3 threads, which must give the same bits.
std::vector<std::vector<float>> run_on_threads(Device device, const Program& program, const ops::Batch& batch,
                                               const std::vector<std::vector<float>>& inputs) {
    if (device.type != DeviceType::cpu) return run_on(device, program, batch, inputs);
    const int before = threads();
    set_threads(1);
    const std::vector<std::vector<float>> one = run_on(device, program, batch, inputs, 2);
    set_threads(3);
    const std::vector<std::vector<float>> three = run_on(device, program, batch, inputs, 2);
    set_threads(before);
    for (size_t i = 0; i < one.size(); ++i)
        EXPECT_EQ(0, std::memcmp(one[i].data(), three[i].data(), one[i].size() * sizeof(float)))
            << program.outputs[i].name << " with 1 and 3 threads";
    return three;
}

}  // namespace

void expect_on(Device device, const Program& program, const ops::Batch& batch,
               const std::vector<Tolerance>& tolerances) {
    SCOPED_TRACE(testing::Message() << batch.clouds() << " clouds of " << batch.rows() << " points"
                                    << (batch.is_dense() ? "" : ", ragged"));
    const std::vector<std::vector<float>> inputs =
        random_inputs(program, batch, static_cast<uint64_t>(batch.rows() * 100 + batch.clouds()));
    const std::vector<std::vector<float>> expected = expected_outputs(program, batch, inputs);
    for (const Tolerance& tolerance : tolerances) {
        const Program rounded = in_precision(program, tolerance.precision);
        const std::vector<std::vector<float>> outputs = run_on_threads(device, rounded, batch, inputs);
        for (size_t i = 0; i < outputs.size(); ++i)
            EXPECT_LE(difference_of(outputs[i], expected[i]), tolerance.difference)
                << program.outputs[i].name << " in " << name_of(tolerance.precision);
    }
}

void expect_on(Device device, const Program& program, int64_t least_points, const std::vector<Tolerance>& tolerances) {
    for (const ops::Batch& batch : test_batches(least_points)) expect_on(device, program, batch, tolerances);
}

Program in_precision(Program program, Precision precision) {
    for (Step& step : program.steps)
        for (Dense& layer : step.layers)
            if (layer.in > 4) {
                layer.precision = precision;
                if (bytes_of(precision) == 1) layer.input_range = 1;  // programs of eight bits must say one
            }
    return program;
}

}  // namespace stipple::test
