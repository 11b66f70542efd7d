#pragma once
// An engine run from host memory to host memory, on any device.

#include <map>
#include <string>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"
#include "tests/support/reference_network.h"

namespace stipple::test {

/// Every output of the network by name, [rows, channels]; indices [points, k] as numbers.
using EngineOutputs = std::map<std::string, Array<float, 2>>;

inline EngineOutputs run_engine(engine::Context& context, const engine::Engine& engine,
                                const std::vector<ops::Batch>& given, const std::vector<ReferenceInput>& inputs) {
    const Device device = engine.options().device;
    std::vector<Array<float, 2>> uploaded;
    std::vector<engine::Input> bound_inputs;
    uploaded.reserve(inputs.size());
    for (const ReferenceInput& input : inputs) {
        Array<float, 2> host({input.rows.size(0), input.rows.size(1)});
        for (int64_t i = 0; i < host.size(0); ++i)
            for (int64_t c = 0; c < host.size(1); ++c) host.view()(i, c) = input.rows(i, c);
        uploaded.push_back(host.to(device));
        bound_inputs.push_back({input.name, uploaded.back().view()});
    }
    // Batches by point set, as the program counts them.
    std::vector<ops::Batch> batches;
    size_t next = 0;
    for (const engine::PointSet& set : engine::point_sets(engine.program()))
        batches.push_back(set.is_used && set.points == 0 ? given.at(next++)
                                                         : ops::Batch::dense(given[0].clouds(), set.points));
    EngineOutputs outputs;
    std::map<std::string, Array<int32_t, 2>> indices;
    std::vector<engine::Output> bound_outputs;
    for (const engine::Binding& binding : engine.program().outputs) {
        const network::TensorType& type = engine.program().values[static_cast<size_t>(binding.value)].type;
        const ops::Batch& batch = batches[static_cast<size_t>(type.set)];
        const int64_t points = type.level == network::Level::cloud ? given[0].clouds() : batch.rows();
        if (type.is_index) {
            Array<int32_t, 2>& made =
                indices.try_emplace(binding.name, Array<int32_t, 2>({points, type.width}, device)).first->second;
            bound_outputs.push_back({binding.name, {}, made.view()});
            continue;
        }
        Array<float, 2>& made =
            outputs.try_emplace(binding.name, Array<float, 2>({points * type.width, type.channels}, device))
                .first->second;
        bound_outputs.push_back({binding.name, made.view(), {}});
    }
    context.run(given, bound_inputs, bound_outputs);
    for (auto& [name, output] : outputs) output = output.to(Device{});
    for (auto& [name, found] : indices) {
        const Array<int32_t, 2> host = found.to(Device{});
        Array<float, 2> numbers({host.size(0), host.size(1)});
        for (int64_t i = 0; i < host.elements(); ++i) numbers.data()[i] = static_cast<float>(host.data()[i]);
        outputs.emplace(name, std::move(numbers));
    }
    return outputs;
}

inline EngineOutputs run_engine(engine::Context& context, const engine::Engine& engine, const ops::Batch& batch,
                                const std::vector<ReferenceInput>& inputs) {
    return run_engine(context, engine, std::vector<ops::Batch>{batch}, inputs);
}

inline EngineOutputs run_engine(const engine::Engine& engine, const ops::Batch& batch,
                                const std::vector<ReferenceInput>& inputs) {
    engine::Context context(engine);
    return run_engine(context, engine, batch, inputs);
}

}  // namespace stipple::test
