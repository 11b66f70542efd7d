#include "tests/engine/programs.h"

#include <cmath>

#include "stipple/core/rng.h"

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

int64_t rows_in(const TensorType& type, const ops::Batch& batch) {
    return type.level == Level::cloud ? batch.clouds() : batch.rows() * type.width;
}

}  // namespace stipple::test
