// Networks exported for int8: the numbers in the file, and what onnxruntime makes of them.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/network/builder.h"
#include "stipple/network/onnx.h"
#include "tests/network/onnx_reader.h"
#include "tests/support/reference_onnx.h"

namespace stipple::network {
namespace {

using test::read_onnx;
using test::ReadModel;
using test::ReadNode;

// The numbers in the file, not what a runtime makes of them.
TEST(OnnxInt8, QuantisesByChannel) {
    Builder build("int8");
    const Tensor x = build.input("points", points_of(2));
    build.output("out", build.linear("conv", x, 3, {.norm = true, .norm_eps = 1.0f}));
    const Network network = build.finish();
    Weights weights = initial_weights(network, 1);
    weights.tensors.at("conv.weight").values = {127, -12.7f, 0, 0, 0.5f, 2};  // [3, 2]
    weights.tensors.at("conv.norm.running_var").values = {3, 3, 3};           // each becomes half of it
    const std::vector<std::byte> bytes = to_onnx(network, weights, {.ranges = {{"conv", 12.7f}}});
    const ReadModel model = read_onnx(bytes);
    const auto quantize = model.nodes_of("QuantizeLinear"), dequantize = model.nodes_of("DequantizeLinear");
    ASSERT_EQ(quantize.size(), 1u);
    ASSERT_EQ(dequantize.size(), 2u);
    EXPECT_EQ(quantize[0]->inputs[0], "points");
    EXPECT_FLOAT_EQ(model.constant(quantize[0]->inputs[1]).floats()[0], 0.1f);
    EXPECT_EQ(model.constant(quantize[0]->inputs[2]).int8s(), std::vector<int8_t>{0});
    const ReadNode& of_weights =
        model.constants.size() && dequantize[0]->attributes.contains("axis") ? *dequantize[0] : *dequantize[1];
    EXPECT_EQ(of_weights.attributes.at("axis").i, 1);
    EXPECT_EQ(model.constant(of_weights.inputs[0]).dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(model.constant(of_weights.inputs[0]).int8s(), (std::vector<int8_t>{127, 0, 32, -13, 0, 127}));
    const std::vector<float> scales = model.constant(of_weights.inputs[1]).floats();
    EXPECT_FLOAT_EQ(scales[0], 0.5f);
    EXPECT_FLOAT_EQ(scales[1], 1.0f);  // a channel of zeros
    EXPECT_FLOAT_EQ(scales[2], 1.0f / 127);
}

TEST(OnnxInt8, LayersThatReadTheSameShareIt) {
    Builder build("shared");
    const Tensor x = build.input("points", points_of(4));
    build.output("a", build.linear("first", x, 2));
    build.output("b", build.linear("second", x, 3));
    build.output("c", build.linear("other_range", x, 3));
    const Network network = build.finish();
    const OnnxOptions options{.ranges = {{"first", 1.0f}, {"second", 1.0f}, {"other_range", 2.0f}}};
    const std::vector<std::byte> bytes = to_onnx(network, initial_weights(network, 1), options);
    EXPECT_EQ(read_onnx(bytes).nodes_of("QuantizeLinear").size(), 2u);
    EXPECT_EQ(read_onnx(bytes).nodes_of("DequantizeLinear").size(), 2u + 3u);
}

TEST(OnnxInt8, RangesOfAnEngineAreTakenWhereTheyHold) {
    Builder build("ranges");
    const Tensor points = build.input("points", points_of(2));
    const Tensor conv = build.linear("conv", points, 2);
    const Tensor matrix = build.linear("matrix", build.max_points("pool", conv), 4);
    const Tensor moved = build.dropout("drop", build.transform("transform", conv, matrix), 0.5f);
    build.output("out", build.linear("after", moved, 3));
    build.output("both", build.linear("joined", build.concat("concat", {conv, moved}), 3));
    const Network network = build.finish();
    const std::map<std::string, float> found = {{"conv", 1.0f},  {"conv/global", 2.0f}, {"matrix", 3.0f},
                                                {"after", 4.0f}, {"joined", 4.0f},      {"pool", 5.0f}};
    const std::map<std::string, float> kept = ranges_for_onnx(network, found);
    EXPECT_EQ(kept, (std::map<std::string, float>{{"conv", 1.0f}, {"matrix", 3.0f}}));
    EXPECT_FALSE(to_onnx(network, initial_weights(network, 1), {.ranges = kept}).empty());
}

/// The arithmetic that the file describes, in plain loops: rows of `inputs` numbers through one layer.
std::vector<double> simulate(const Network& network, const Weights& weights, const std::string& name,
                             const std::vector<double>& x, std::optional<float> range) {
    const auto layer = std::find_if(network.layers.begin(), network.layers.end(),
                                    [&](const Layer& other) { return other.name == name; });
    const std::vector<float>& w = weights.tensors.at(name + ".weight").values;
    const auto values = [&](const char* what) { return weights.tensors.at(name + what).values; };
    const size_t outs = static_cast<size_t>(layer->options.channels), ins = w.size() / outs, rows = x.size() / ins;
    std::vector<double> result(rows * outs);
    for (size_t o = 0; o < outs; ++o) {
        double gain = 1, shift = values(".bias")[o];
        if (layer->options.norm) {
            gain = values(".norm.weight")[o] / std::sqrt(values(".norm.running_var")[o] + layer->options.norm_eps);
            shift = (shift - values(".norm.running_mean")[o]) * gain + values(".norm.bias")[o];
        }
        double largest = 0;
        for (size_t i = 0; i < ins; ++i) largest = std::max(largest, std::fabs(w[o * ins + i] * gain));
        for (size_t row = 0; row < rows; ++row) {
            double sum = 0;
            for (size_t i = 0; i < ins; ++i) {
                double a = x[row * ins + i], b = w[o * ins + i] * gain;
                if (range) {
                    a = std::clamp(std::nearbyint(a / (*range / 127)), -128.0, 127.0) * (*range / 127);
                    b = std::nearbyint(b / (largest / 127)) * (largest / 127);
                }
                sum += a * b;
            }
            result[row * outs + o] = sum + shift;
        }
    }
    if (layer->options.activation.kind == ActivationKind::relu)
        for (double& value : result) value = std::max(value, 0.0);
    return result;
}

TEST(OnnxInt8, RunsAsItSays) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    STIPPLE_NEEDS_EXACT_INT8();
    constexpr int64_t kPoints = 200;
    Builder build("int8");
    Tensor x = build.input("points", points_of(3));
    x = build.linear("conv1", x, 64, {.norm = true, .activation = relu()});
    x = build.linear("conv2", x, 128, {.norm = true, .activation = relu()});
    build.output("features", build.linear("conv3", x, 96, {.norm = true}));
    const Network network = build.finish();
    const Weights weights = test::trained_like_weights(network, 3);

    std::vector<float> points;
    for (int64_t i = 0; i < kPoints * 3; ++i) points.push_back(2 * Rng(5).uniform(static_cast<uint64_t>(i)) - 1);
    Array<float, 2> rows({kPoints, 3});
    std::copy(points.begin(), points.end(), rows.data());
    const auto reference =
        test::run_reference(network, weights, ops::Batch::single(kPoints), {{"points", rows.view()}}, test::Keep::all);
    OnnxOptions options{.ranges = test::input_ranges(network, reference)};
    options.ranges.erase("conv1");    // coordinates stay in float32
    options.ranges["conv3"] *= 0.7f;  // and the largest of the others may be cut off

    std::vector<test::NamedTensors> inputs(1);
    inputs[0].emplace("points", test::tensor_of({1, kPoints, 3}, points));
    const test::OnnxRun run = test::run_onnx(to_onnx(network, weights, options), inputs);
    ASSERT_TRUE(run.ok) << run.messages;
    const std::vector<float> got = test::floats_of(run.outputs[0].at("features"));

    std::vector<double> expected(points.begin(), points.end());
    expected = simulate(network, weights, "conv1", expected, {});
    expected = simulate(network, weights, "conv2", expected, options.ranges.at("conv2"));
    expected = simulate(network, weights, "conv3", expected, options.ranges.at("conv3"));
    ASSERT_EQ(got.size(), expected.size());
    const std::vector<double>& exact = reference.output("features").values;
    double from_simulation = 0, from_exact = 0, squares = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        from_simulation += std::pow(got[i] - expected[i], 2);
        from_exact += std::pow(got[i] - exact[i], 2);
        squares += exact[i] * exact[i];
    }
    // A number that lies between two steps may be rounded the other way in float32; that is rare.
    EXPECT_LT(std::sqrt(from_simulation), 0.02 * std::sqrt(from_exact));
    EXPECT_LT(std::sqrt(from_exact), 0.05 * std::sqrt(squares));
    EXPECT_GT(std::sqrt(from_exact), 1e-3 * std::sqrt(squares));
}

}  // namespace
}  // namespace stipple::network
