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

/// Every output of the network by name, [rows, channels].
using EngineOutputs = std::map<std::string, Array<float, 2>>;

inline int64_t rows_of(const network::TensorType& type, const ops::Batch& batch) {
    return type.level == network::Level::cloud ? batch.clouds() : batch.rows() * type.width;
}

inline EngineOutputs run_engine(engine::Context& context, const engine::Engine& engine, const ops::Batch& batch,
                                const std::vector<ReferenceInput>& inputs) {
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
    EngineOutputs outputs;
    std::vector<engine::Output> bound_outputs;
    for (const engine::Binding& binding : engine.program().outputs) {
        const network::TensorType& type = engine.program().values[static_cast<size_t>(binding.value)].type;
        Array<float, 2>& made =
            outputs.try_emplace(binding.name, Array<float, 2>({rows_of(type, batch), type.channels}, device))
                .first->second;
        bound_outputs.push_back({binding.name, made.view()});
    }
    context.run(batch, bound_inputs, bound_outputs);
    for (auto& [name, output] : outputs) output = output.to(Device{});
    return outputs;
}

inline EngineOutputs run_engine(const engine::Engine& engine, const ops::Batch& batch,
                                const std::vector<ReferenceInput>& inputs) {
    engine::Context context(engine);
    return run_engine(context, engine, batch, inputs);
}

}  // namespace stipple::test
