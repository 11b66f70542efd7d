#include "tests/engine/programs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/engine/program_reference.h"
#include "tests/support/devices.h"

namespace stipple::test {

using namespace engine;

std::vector<float> random_numbers(int64_t n, uint64_t seed, float spread) {
    const Rng rng(seed, 77);
    std::vector<float> numbers(static_cast<size_t>(n));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = (rng.uniform(i) * 2 - 1) * spread;
    return numbers;
}

Value ProgramWriter::value(const std::string& name, TensorType type) {
    program.values.push_back({name, type});
    return static_cast<Value>(program.values.size()) - 1;
}

Value ProgramWriter::input(const std::string& name, TensorType type) {
    program.inputs.push_back({name, value(name, type)});
    return program.inputs.back().value;
}

void ProgramWriter::output(const std::string& name, Value value) {
    program.outputs.push_back({name, value});
}

Value ProgramWriter::step(Step step, TensorType type) {
    step.output = value("v" + std::to_string(program.values.size()), type);
    step.name = program.values.back().name;
    program.steps.push_back(std::move(step));
    return program.steps.back().output;
}

Dense random_dense(const std::string& name, int64_t in, int64_t out, Activation activation, uint64_t seed) {
    Dense dense;
    dense.name = name;
    dense.in = in;
    dense.out = out;
    dense.weight = random_numbers(in * out, seed, 1 / std::sqrt(static_cast<float>(in + 1)));
    dense.bias = random_numbers(out, seed + 1, 0.2f);
    dense.activation = activation;
    return dense;
}

std::vector<std::vector<float>> random_inputs(const Program& program, const ops::Batch& batch, uint64_t seed) {
    std::vector<std::vector<float>> inputs;
    for (const Binding& binding : program.inputs) {
        const TensorType& type = program.values[static_cast<size_t>(binding.value)].type;
        inputs.push_back(random_numbers(rows_in(type, batch) * type.channels, seed + inputs.size()));
    }
    return inputs;
}

std::vector<ops::Batch> test_batches(int64_t least) {
    return {ops::Batch::single(least),
            ops::Batch::single(300),
            ops::Batch::dense(2, least + 4),
            ops::Batch::dense(13, least + 2),
            ops::Batch::ragged({0, least, least + 290, least + 290 + least + 1}),
            ops::Batch::ragged({0, least + 5, 2 * least + 5, 2 * least + 75, 3 * least + 80, 4 * least + 80})};
}

std::vector<std::vector<float>> run_on_cpu(const Program& program, const ops::Batch& batch,
                                           const std::vector<std::vector<float>>& inputs) {
    Options options;
    options.max_batch = batch.clouds();
    options.max_points = (batch.rows() + batch.clouds() - 1) / batch.clouds();
    const auto backend = make_cpu_backend(program, options);
    const auto context = backend->new_context();
    const auto type = [&](const Binding& binding) { return program.values[static_cast<size_t>(binding.value)].type; };
    std::vector<View<const float, 2>> in;
    for (size_t i = 0; i < inputs.size(); ++i)
        in.push_back({inputs[i].data(), {rows_in(type(program.inputs[i]), batch), type(program.inputs[i]).channels}});
    std::vector<std::vector<float>> outputs;
    for (const Binding& binding : program.outputs)
        outputs.emplace_back(static_cast<size_t>(rows_in(type(binding), batch) * type(binding).channels), NAN);
    std::vector<View<float, 2>> out;
    for (size_t i = 0; i < outputs.size(); ++i)
        out.push_back(
            {outputs[i].data(), {rows_in(type(program.outputs[i]), batch), type(program.outputs[i]).channels}});
    for (int repeat = 0; repeat < 2; ++repeat) context->run(batch, in, out, {});  // the second finds used memory
    return outputs;
}

void expect_like_reference(const Program& program, int64_t least_points, double tolerance) {
    uint64_t seed = 100;
    for (const ops::Batch& batch : test_batches(least_points)) {
        SCOPED_TRACE(testing::Message() << batch.clouds() << " clouds of " << batch.rows() << " points");
        const std::vector<std::vector<float>> inputs = random_inputs(program, batch, seed += 10);
        const std::vector<std::vector<float>> expected = run_program_reference(program, batch, inputs);
        expect_same_on_threads([&] {
            const std::vector<std::vector<float>> outputs = run_on_cpu(program, batch, inputs);
            std::vector<Array<float, 2>> arrays;
            for (size_t i = 0; i < outputs.size(); ++i) {
                const std::vector<float>& want = expected[static_cast<size_t>(program.outputs[i].value)];
                EXPECT_EQ(outputs[i].size(), want.size());
                double largest = 0, difference = 0;
                for (size_t j = 0; j < std::min(want.size(), outputs[i].size()); ++j) {
                    largest = std::max<double>(largest, std::abs(want[j]));
                    const double d = std::abs(static_cast<double>(want[j]) - outputs[i][j]);
                    if (!(d <= difference)) difference = d;  // NaN stays
                }
                EXPECT_LE(difference, tolerance * largest) << program.outputs[i].name;
                arrays.emplace_back(std::array<int64_t, 2>{1, static_cast<int64_t>(outputs[i].size())});
                std::copy(outputs[i].begin(), outputs[i].end(), arrays.back().data());
            }
            return arrays;
        });
    }
}

}  // namespace stipple::test
