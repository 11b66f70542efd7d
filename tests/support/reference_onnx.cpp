#include "tests/support/reference_onnx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"

namespace stipple::test {

using network::Level;
using network::Network;
using network::TensorType;

namespace {

/// Of a set: a few more for each after the first, so that no two are alike.
int64_t points_of(const TensorType& type, int64_t points) {
    return type.points > 0 ? type.points : points + 3 * type.set;
}

std::vector<int64_t> shape_of(const TensorType& type, int64_t clouds, int64_t points) {
    std::vector<int64_t> shape = {clouds};
    if (type.level == Level::point) shape.push_back(points_of(type, points));
    if (type.is_index || type.width > 1) shape.push_back(type.width);
    if (!type.is_index) shape.push_back(type.channels);
    return shape;
}

int64_t rows_in(const TensorType& type, int64_t clouds, int64_t points) {
    return type.level == Level::cloud ? clouds : clouds * points_of(type, points) * type.width;
}

struct Inputs {
    NamedTensors tensors;
    std::map<std::string, Array<float, 2>> rows;
};

Inputs random_inputs(const Network& network, int64_t clouds, int64_t points) {
    Inputs inputs;
    uint64_t stream = 0;
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::input) continue;
        const Rng random(static_cast<uint64_t>(clouds * 1000 + points), ++stream);
        const int64_t rows = rows_in(layer.type, clouds, points), count = rows * layer.type.channels;
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i)
            values.push_back(layer.type.is_index ? static_cast<float>(random.below(static_cast<uint64_t>(i),
                                                                                   static_cast<uint32_t>(points)))
                                                 : 2 * random.uniform(static_cast<uint64_t>(i)) - 1);
        io::Tensor tensor = tensor_of(shape_of(layer.type, clouds, points), values);
        if (layer.type.is_index) {
            tensor.dtype = DType::i32;
            const std::vector<int32_t> positions(values.begin(), values.end());
            std::memcpy(tensor.data.data(), positions.data(), positions.size() * sizeof(int32_t));
        }
        Array<float, 2> array({rows, layer.type.channels});
        std::copy(values.begin(), values.end(), array.data());
        inputs.tensors.emplace(layer.name, std::move(tensor));
        inputs.rows.emplace(layer.name, std::move(array));
    }
    return inputs;
}

ReferenceRun run_reference_on(const Network& network, const network::Weights& weights, const Inputs& inputs,
                              int64_t clouds, int64_t points, Keep keep) {
    std::vector<ReferenceInput> rows;
    for (const auto& [name, array] : inputs.rows) rows.push_back({name, array.view()});
    std::vector<ops::Batch> batches;
    std::set<int32_t> sets;
    for (const network::Layer& layer : network.layers)
        if (layer.type.level == Level::point && layer.type.points == 0) sets.insert(layer.type.set);
    for (const int32_t set : sets)
        batches.push_back(ops::Batch::dense(clouds, points_of(network::points_of(1, set), points)));
    if (batches.empty()) batches.push_back(ops::Batch::dense(clouds, points));
    return run_reference(network, weights, batches, rows, keep);
}

std::vector<float> numbers_of(const io::Tensor& tensor) {
    if (tensor.dtype != DType::i32) return floats_of(tensor);
    std::vector<int32_t> values(static_cast<size_t>(tensor.data.bytes()) / sizeof(int32_t));
    std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(int32_t));
    return {values.begin(), values.end()};
}

}  // namespace

std::map<std::string, float> input_ranges(const Network& network, const ReferenceRun& run) {
    std::map<std::string, float> ranges;
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::linear) continue;
        double largest = 0;
        for (const double value : run.tensors[static_cast<size_t>(layer.inputs[0])].values)
            largest = std::max(largest, std::fabs(value));
        ranges[layer.name] = static_cast<float>(largest);
    }
    return ranges;
}

std::map<std::string, float> input_ranges(const Network& network, const network::Weights& weights, int64_t clouds,
                                          int64_t points) {
    const Inputs inputs = random_inputs(network, clouds, points);
    return input_ranges(network, run_reference_on(network, weights, inputs, clouds, points, Keep::all));
}

std::vector<OnnxComparison> compare_onnx(const Network& network, const network::Weights& weights,
                                         const network::OnnxOptions& options,
                                         const std::vector<std::pair<int64_t, int64_t>>& batches) {
    std::vector<Inputs> inputs;
    std::vector<NamedTensors> tensors;
    for (const auto& [clouds, points] : batches) {
        inputs.push_back(random_inputs(network, clouds, points));
        tensors.push_back(std::move(inputs.back().tensors));
    }
    const OnnxRun run = run_onnx(network::to_onnx(network, weights, options), tensors);
    EXPECT_TRUE(run.ok) << run.messages;
    EXPECT_EQ(run.messages.find("MergeShapeInfo"), std::string::npos)
        << run.messages;  // it infers other shapes than ours
    std::vector<OnnxComparison> comparisons;
    for (size_t i = 0; run.ok && i < batches.size(); ++i) {
        const auto [clouds, points] = batches[i];
        const ReferenceRun reference = run_reference_on(network, weights, inputs[i], clouds, points, Keep::all);
        OnnxComparison& comparison = comparisons.emplace_back();
        for (const ReferenceTensor& tensor : reference.tensors)
            for (const double value : tensor.values)
                comparison.largest = std::max(comparison.largest, std::fabs(value));
        EXPECT_EQ(run.outputs[i].size(), network.outputs.size());
        for (const network::Output& output : network.outputs) {
            const auto found = run.outputs[i].find(output.name);
            if (found == run.outputs[i].end()) {
                ADD_FAILURE() << "no output " << output.name;
                continue;
            }
            EXPECT_EQ(found->second.shape, shape_of(network[output.tensor].type, clouds, points)) << output.name;
            comparison.onnx[output.name] = numbers_of(found->second);
            comparison.reference[output.name] = reference.output(output.name).values;
        }
    }
    return comparisons;
}

void expect_onnx_equal(const Network& network, const network::Weights& weights, const network::OnnxOptions& options,
                       double tolerance, const std::vector<std::pair<int64_t, int64_t>>& batches) {
    for (const OnnxComparison& comparison : compare_onnx(network, weights, options, batches)) {
        for (const auto& [name, expected] : comparison.reference) {
            const std::vector<float>& got = comparison.onnx.at(name);
            ASSERT_EQ(got.size(), expected.size()) << name;
            double difference = 0, largest = 0;
            for (size_t i = 0; i < got.size(); ++i) {
                ASSERT_TRUE(std::isfinite(got[i])) << "output " << name << ", number " << i;
                difference = std::max(difference, std::fabs(got[i] - expected[i]));
                largest = std::max(largest, std::fabs(expected[i]));
            }
            EXPECT_LE(difference, tolerance * largest) << "output " << name;
        }
    }
}

}  // namespace stipple::test
