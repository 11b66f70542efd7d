#include "tests/engine/lowering.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using engine::Access;
using engine::Dense;
using engine::Program;
using engine::Reduce;
using engine::Step;
using engine::StepKind;

std::string outline(const Program& program, const Step& step) {
    if (step.kind == StepKind::fold_matrix) return "fold_matrix " + step.name;
    if (step.kind != StepKind::chain) {
        const std::string text = engine::to_text({"", program.values, {step}, {}, {}});
        const size_t begin = text.find(" = ") + 3;
        return text.substr(begin, text.find_first_of(" \n", begin) - begin);
    }
    std::string text = step.level == engine::Level::cloud ? "cloud chain " : "chain ";
    const Dense& first = step.layers[0];
    for (const engine::Source& part : first.parts)
        text += (&part == &first.parts[0] ? "" : "+") +
                std::to_string(program.values[static_cast<size_t>(part.value)].type.channels);
    for (const engine::Source& addend : first.addends) {
        const char* const names[] = {"row", "cloud", "point", "neighbour"};
        text += fmt::format("[{}]", names[static_cast<int>(addend.access)]);
    }
    for (const Dense& layer : step.layers) text += fmt::format(" -> {}{}", layer.matrix >= 0 ? "*" : "", layer.out);
    if (step.reduce == Reduce::max_points) text += " max_points";
    if (step.reduce == Reduce::max_rows) text += " max_rows";
    return text;
}

}  // namespace

std::string outline(const Program& program) {
    std::string text;
    for (const Step& step : program.steps) text += outline(program, step) + "\n";
    return text;
}

network::Weights round_weights(const network::Network& network, uint64_t seed) {
    network::Weights weights = network::initial_weights(network, seed);
    uint64_t stream = 0;
    for (auto& [name, tensor] : weights.tensors) {
        const Rng rng(seed, ++stream);
        for (size_t i = 0; i < tensor.values.size(); ++i)
            tensor.values[i] = (static_cast<float>(rng.below(i, 33)) - 16) / 16;
    }
    return weights;
}

RandomInputs::RandomInputs(const network::Network& network, const ops::Batch& batch)
    : RandomInputs(network, std::vector<ops::Batch>{batch}) {}

RandomInputs::RandomInputs(const network::Network& network, const std::vector<ops::Batch>& given) {
    const std::vector<ops::Batch> batches = batches_of(network, given);
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::input) continue;
        const ops::Batch& batch = batches[static_cast<size_t>(layer.type.set)];
        const int64_t rows =
            layer.type.level == network::Level::cloud ? given[0].clouds() : batch.rows() * layer.type.width;
        Array<float, 2> array({rows, layer.type.channels});
        const Rng rng(99, arrays.size());
        for (int64_t i = 0; i < array.elements(); ++i) array.data()[i] = rng.normal(static_cast<uint64_t>(i));
        inputs.push_back({layer.name, array.view()});  // the memory stays where it is
        arrays.push_back(std::move(array));
    }
}

double difference(const network::Network& network, const network::Weights& weights, const ops::Batch& batch) {
    const RandomInputs random(network, batch);
    const std::vector<ReferenceInput>& inputs = random.inputs;
    const ReferenceRun expected = run_reference(network, weights, batch, inputs);
    const Program program = engine::lower(network, weights);
    const std::vector<ReferenceTensor> found = run_reference(program, batch, inputs);
    double worst = 0;
    for (const network::Output& output : network.outputs) {
        const ReferenceTensor &want = expected.output(output.name), &got = output_of(program, found, output.name);
        EXPECT_EQ(want.type, got.type) << output.name;
        double scale = 1, error = 0;
        for (size_t i = 0; i < want.values.size(); ++i) {
            EXPECT_TRUE(std::isfinite(want.values[i])) << output.name;
            scale = std::max(scale, std::abs(want.values[i]));
            error = std::max(error, std::abs(want.values[i] - got.values[i]));
        }
        worst = std::max(worst, error / scale);
    }
    return worst;
}

}  // namespace stipple::test
