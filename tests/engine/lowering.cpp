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

network::Weights trained_weights(const network::Network& network, uint64_t seed) {
    network::Weights weights = network::initial_weights(network, seed);
    uint64_t stream = 0;
    for (auto& [name, tensor] : weights.tensors) {
        const Rng rng(seed, ++stream);
        const bool is_mean = name.ends_with("running_mean"), is_variance = name.ends_with("running_var");
        const bool is_gain = name.ends_with("norm.weight");
        for (size_t i = 0; i < tensor.values.size(); ++i) {
            float& value = tensor.values[i];
            if (is_mean) value = 0.2f * rng.normal(i);
            if (is_variance) value = 0.5f + rng.uniform(i);
            if (is_gain) value = (0.5f + rng.uniform(i)) * (i % 5 == 0 ? -1.0f : 1.0f);
            if (!is_mean && !is_variance && !is_gain && value == 0) value = 0.1f * rng.normal(i);
        }
    }
    return weights;
}

double difference(const network::Network& network, const network::Weights& weights, const ops::Batch& batch) {
    std::vector<Array<float, 2>> arrays;
    std::vector<ReferenceInput> inputs;
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::input) continue;
        const int64_t rows =
            layer.type.level == network::Level::cloud ? batch.clouds() : batch.rows() * layer.type.width;
        arrays.emplace_back(std::array<int64_t, 2>{rows, layer.type.channels});
        const Rng rng(99, arrays.size());
        for (int64_t i = 0; i < rows * layer.type.channels; ++i)
            arrays.back().data()[i] = rng.normal(static_cast<uint64_t>(i));
        inputs.push_back({layer.name, arrays.back().view()});
    }
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
