#include "stipple/network/onnx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/array.h"
#include "stipple/core/error.h"
#include "stipple/network/builder.h"
#include "tests/network/onnx_networks.h"
#include "tests/network/onnx_reader.h"
#include "tests/support/devices.h"
#include "tests/support/process.h"
#include "tests/support/reference_onnx.h"
#include "tests/support/temporary_folder.h"

namespace stipple::network {
namespace {

using test::bad_argument_of;
using test::read_onnx;
using test::ReadModel;
using test::ReadNode;
using test::ReadValue;

class Onnx : public testing::TestWithParam<test::NamedNetwork> {};
INSTANTIATE_TEST_SUITE_P(, Onnx, testing::ValuesIn(test::onnx_networks()),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(OnnxNetworks, HoldEveryKindOfLayer) {
    std::set<Kind> kinds;
    for (const test::NamedNetwork& named : test::onnx_networks())
        for (const Layer& layer : named.build().layers) kinds.insert(layer.kind);
    for (int kind = 0; kind <= static_cast<int>(Kind::gaussian_log_density); ++kind)
        EXPECT_TRUE(kinds.contains(static_cast<Kind>(kind))) << name_of(static_cast<Kind>(kind));
}

TEST_P(Onnx, RunsAsTheReference) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = GetParam().build();
    const Weights weights = test::random_weights(network, 1);
    test::expect_onnx_equal(network, weights, {}, 1e-5, {{2, 40}, {3, 24}, {1, 6}});  // 6: the neighbours one asks for
    test::expect_onnx_equal(network, weights, {.fold_norm = false});
    test::expect_onnx_equal(network, weights, {.convolutions = true});
    test::expect_onnx_equal(network, weights, {.fold_norm = false, .convolutions = true});
}

// A grid is full of equal distances; ONNX says which come first.
TEST(OnnxExport, NeighboursAtEqualDistancesAreTheLowest) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    Builder build("grid");
    build.output("near", build.knn("knn", build.input("points", points_of(3)), 10));
    const Network network = build.finish();
    const Weights weights;
    Array<float, 2> points({64, 3});
    for (int64_t i = 0; i < 64; ++i)
        for (int64_t c = 0; c < 3; ++c) points.view()(i, c) = static_cast<float>((i >> (2 * c)) & 3);
    std::vector<test::NamedTensors> inputs(1);
    inputs[0].emplace("points", test::tensor_of({1, 64, 3}, std::span(points.data(), 64 * 3)));
    const test::OnnxRun run = test::run_onnx(to_onnx(network, weights), inputs);
    ASSERT_TRUE(run.ok) << run.messages;
    const auto reference = test::run_reference(network, weights, ops::Batch::single(64), {{"points", points.view()}});
    const io::Tensor& near = run.outputs[0].at("near");
    ASSERT_EQ(near.dtype, DType::i32);
    const auto* got = reinterpret_cast<const int32_t*>(near.data.data());
    const std::vector<double>& expected = reference.output("near").values;
    EXPECT_EQ(std::vector<double>(got, got + 640), expected);
}

TEST_P(Onnx, IsWellFormed) {
    const Network network = GetParam().build();
    OnnxOptions with_ranges{.fold_norm = false};
    for (const Layer& layer : network.layers)
        if (layer.kind == Kind::linear) with_ranges.ranges[layer.name] = 2;
    OnnxOptions all = with_ranges;
    all.convolutions = true;
    for (const OnnxOptions& options :
         {OnnxOptions{}, OnnxOptions{.fold_norm = false}, with_ranges, OnnxOptions{.convolutions = true}, all}) {
        const std::vector<std::byte> bytes = to_onnx(network, test::random_weights(network, 1), options);
        const ReadModel model = read_onnx(bytes);
        EXPECT_EQ(model.ir_version, 8);
        EXPECT_EQ(model.opsets, (std::map<std::string, int64_t>{{"", 17}}));
        EXPECT_EQ(model.graph_name, network.name);
        EXPECT_EQ(model.metadata.at("stipple.model"), network.name);

        // Every value is made once, before it is read; nodes have names of their own.
        std::set<std::string> values, node_names, read;
        for (const ReadValue& input : model.inputs) EXPECT_TRUE(values.insert(input.name).second) << input.name;
        for (const test::ReadTensor& constant : model.constants) {
            EXPECT_TRUE(values.insert(constant.name).second) << constant.name;
            size_t bytes_wanted = constant.type == 1 ? 4 : constant.type == 3 ? 1 : constant.type == 7 ? 8 : 0;
            for (const int64_t dim : constant.dims) bytes_wanted *= static_cast<size_t>(dim);
            EXPECT_EQ(constant.raw.size(), bytes_wanted) << constant.name;
        }
        for (const ReadNode& node : model.nodes) {
            EXPECT_TRUE(node_names.insert(node.name).second) << node.name;
            for (const std::string& input : node.inputs) {
                EXPECT_TRUE(values.contains(input)) << node.name << " reads " << input << " before it is there";
                read.insert(input);
            }
            for (const std::string& output : node.outputs) EXPECT_TRUE(values.insert(output).second) << output;
        }
        for (const ReadValue& output : model.outputs) read.insert(output.name);
        for (const test::ReadTensor& constant : model.constants)
            EXPECT_TRUE(read.contains(constant.name)) << constant.name << " is read by nobody";
        for (const ReadNode& node : model.nodes)
            EXPECT_TRUE(read.contains(node.outputs.back())) << node.name << " is read by nobody";
        for (const ReadValue& value : model.values) EXPECT_TRUE(values.contains(value.name)) << value.name;
        // The outside is the network's.
        ASSERT_EQ(model.outputs.size(), network.outputs.size());
        for (size_t i = 0; i < model.outputs.size(); ++i) {
            EXPECT_EQ(model.outputs[i].name, network.outputs[i].name);
            EXPECT_TRUE(values.contains(model.outputs[i].name)) << model.outputs[i].name;
            const TensorType& type = network[network.outputs[i].tensor].type;
            EXPECT_EQ(model.outputs[i].type, type.is_index ? 6 : 1);
        }
    }
}

TEST(OnnxExport, ConvolutionsTurnTheirPointsOnce) {
    Builder build("convolutions");
    Tensor x = build.input("points", points_of(3));
    for (const char* name : {"conv1", "conv2", "conv3"}) x = build.linear(name, x, 8, {.activation = relu()});
    build.output("pooled", build.linear("fc", build.max_points("pool", x), 4));
    const Network network = build.finish();
    const std::vector<std::byte> bytes = to_onnx(network, initial_weights(network, 1), {.convolutions = true});
    const ReadModel model = read_onnx(bytes);
    EXPECT_EQ(model.nodes_of("Conv").size(), 3u);
    EXPECT_EQ(model.nodes_of("MatMul").size(), 1u);
    EXPECT_EQ(model.nodes_of("Transpose").size(), 1u);
}

TEST(OnnxExport, SaysWhatItIs) {
    const Network network = test::dense_network();
    Weights weights = initial_weights(network, 1);
    weights.metadata = {{"format", "pt"}, {"stipple.classes", "a b c"}};
    const std::vector<std::byte> bytes = to_onnx(network, weights);
    const ReadModel model = read_onnx(bytes);
    EXPECT_EQ(model.producer, "stipple");
    EXPECT_NE(model.doc.find("dense"), std::string::npos);
    EXPECT_EQ(model.metadata,
              (std::map<std::string, std::string>{
                  {"stipple.model", "dense"}, {"stipple.config", R"({"classes":"7"})"}, {"stipple.classes", "a b c"}}));
    ASSERT_EQ(model.inputs.size(), 1u);
    EXPECT_EQ(model.inputs[0].name, "points");
    EXPECT_EQ(model.inputs[0].dims, (std::vector<std::string>{"B", "N", "3"}));
    EXPECT_EQ(model.outputs[0].dims, (std::vector<std::string>{"B", "N", "24"}));
    EXPECT_EQ(model.outputs[1].dims, (std::vector<std::string>{"B", "7"}));
}

TEST(OnnxExport, FoldsWhatCanBeFolded) {
    const Network network = test::dense_network();
    const Weights weights = test::random_weights(network, 1);
    const std::vector<std::byte> folded = to_onnx(network, weights),
                                 kept = to_onnx(network, weights, {.fold_norm = false});
    EXPECT_TRUE(read_onnx(folded).nodes_of("BatchNormalization").empty());
    EXPECT_EQ(read_onnx(kept).nodes_of("BatchNormalization").size(), 3u);
    EXPECT_TRUE(read_onnx(folded).nodes_of("Dropout").empty());
    // Two layers share a matrix, and nobody reads the thousand outputs of the last one.
    EXPECT_EQ(read_onnx(folded).nodes_of("MatMul").size(), 6u);
    EXPECT_EQ(read_onnx(folded).constant("constant/square.weight").dims, (std::vector<int64_t>{24, 24}));
    EXPECT_LT(folded.size(), 16000u);

    const Network transform = test::transform_network();
    const std::vector<std::byte> bytes = to_onnx(transform, test::random_weights(transform, 1));
    int identities = 0;
    for (const test::ReadTensor& constant : read_onnx(bytes).constants)
        identities += constant.name.find("identity") != std::string::npos;
    EXPECT_EQ(identities, 2);  // behind a ReLU, and where the matrix is read without it
}

TEST(OnnxExport, ErrorsNameTheLayer) {
    const Network dense = test::dense_network();
    const Weights weights = initial_weights(dense, 1);
    const auto refused = [&](OnnxOptions options) {
        return bad_argument_of([&] { to_onnx(dense, weights, options); });
    };
    EXPECT_NE(refused({.ranges = {{"conv9", 1.0f}}}).find("conv9"), std::string::npos);
    EXPECT_NE(refused({.ranges = {{"pool", 1.0f}}}).find("pool, which is max_points"), std::string::npos);
    for (const float range : {0.0f, -1.0f, INFINITY, NAN})
        EXPECT_NE(refused({.ranges = {{"conv1", range}}}).find("range of layer conv1"), std::string::npos);

    const Network flow = test::flow_network();
    Weights singular = initial_weights(flow, 1);
    singular.tensors.at("mix.weight").values = {1, 2, 3, 2, 4, 6, 0, 0, 1};
    const std::string message = bad_argument_of([&] { to_onnx(flow, singular); });
    EXPECT_NE(message.find("layer mix_back"), std::string::npos) << message;
    EXPECT_NE(message.find("no inverse"), std::string::npos) << message;

    Builder residual("residual");
    const Tensor points = residual.input("points", points_of(3));
    const Tensor condition = residual.input("condition", points_of(network::flow_condition_channels(3, 4)));
    residual.output("out", residual.flow_step("solved", points, condition, {.hidden = 4, .inverse = true}));
    const Network inverse = residual.finish();
    EXPECT_NE(bad_argument_of([&] {
                  to_onnx(inverse, initial_weights(inverse, 1));
              }).find("layer solved: the inverse of a residual flow_step is found by iteration"),
              std::string::npos);

    Builder clouds("clouds");
    const Tensor rows = clouds.repeat("spread", clouds.input("features", clouds_of(3)));
    clouds.output("out", rows);
    const Network no_points = clouds.finish();
    EXPECT_NE(bad_argument_of([&] { to_onnx(no_points, initial_weights(no_points, 1)); }).find("layer spread"),
              std::string::npos);

    Weights negative = weights;
    negative.tensors.at("conv2.norm.running_var").values[5] = -1;
    EXPECT_NE(bad_argument_of([&] { to_onnx(dense, negative); }).find("layer conv2: the batch norm of channel 5"),
              std::string::npos);

    Weights missing = weights;
    missing.tensors.erase("conv2.weight");
    EXPECT_THROW(to_onnx(dense, missing), Error);
}

TEST(OnnxExport, SavesWholeFilesOnly) {
    const Network network = test::dense_network();
    const Weights weights = initial_weights(network, 1);
    const test::TemporaryFolder folder;
    const std::string path = folder / "model.onnx";
    const auto code_of = [&](const std::string& to, Overwrite overwrite) {
        try {
            save_onnx(to, network, weights, {}, overwrite);
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(to), std::string::npos) << error.what();
            return std::string(rule_of(error.code()).name);
        }
        return std::string();
    };
    EXPECT_EQ(code_of(path, Overwrite::refuse), "");
    const std::vector<std::byte> bytes = to_onnx(network, weights);
    const std::string expected(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(test::read_file(path), expected);
    test::write_file(path, "old");
    EXPECT_EQ(code_of(path, Overwrite::refuse), rule_of(ErrorCode::cannot_write).name);
    EXPECT_EQ(test::read_file(path), "old");
    EXPECT_EQ(code_of(path, Overwrite::allow), "");
    EXPECT_EQ(test::read_file(path), expected);
    EXPECT_EQ(code_of(folder / "missing/model.onnx", Overwrite::refuse), rule_of(ErrorCode::cannot_write).name);
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"model.onnx"});
}

TEST(OnnxExport, AFullDiskLeavesNothingBehind) {
    const test::TemporaryFolder folder;
    const test::SmallDisk disk(folder.path(), 64 << 10);
    if (!disk.ok()) GTEST_SKIP() << "no right to mount a small disk here";
    Builder build("large");
    build.output("out", build.linear("fc", build.input("points", points_of(200)), 400));
    const Network network = build.finish();  // 320 kB
    try {
        save_onnx(folder / "model.onnx", network, initial_weights(network, 1), {}, Overwrite::refuse);
        FAIL() << "320 kB on a disk of 64 kB";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cannot_write);
    }
    EXPECT_TRUE(folder.entries().empty());
}

}  // namespace
}  // namespace stipple::network
