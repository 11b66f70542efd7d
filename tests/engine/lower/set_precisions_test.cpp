// Which product gets which precision.

#include "stipple/engine/lower/set_precisions.h"

#include <gtest/gtest.h>

#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

constexpr Device kCuda = {DeviceType::cuda, 0};

Program lowered(const network::Network& network) {
    return lower(network, network::initial_weights(network, 1));
}

/// "conv1 fp32" of every layer, by name: a layer that is computed twice has one precision.
std::map<std::string, Precision> precisions(Program program, const Options& options) {
    set_precisions(program, options);
    std::map<std::string, Precision> out;
    for (const Step& step : program.steps)
        for (const Dense& dense : step.layers) {
            const auto [entry, is_new] = out.emplace(dense.name, dense.precision);
            EXPECT_TRUE(is_new || entry->second == dense.precision) << dense.name;
        }
    return out;
}

Calibration calibration_of(const Program& program) {
    Calibration calibration;
    for (const Step& step : program.steps)
        for (const Dense& dense : step.layers) calibration.layers[dense.name].range = 2;
    return calibration;
}

TEST(EnginePrecisions, HalfPrecisionIsForAllButCoordinates) {
    const Program program = lowered(models::pointnet_classifier({}));
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16})
        for (const auto& [name, found] : precisions(program, {.device = kCuda, .precision = precision}))
            EXPECT_EQ(found, name == "input_transform.conv1" || name == "conv1" ? Precision::fp32 : precision) << name;
    for (const auto& [name, found] : precisions(program, {.device = kCuda})) EXPECT_EQ(found, Precision::fp32) << name;
}

TEST(EnginePrecisions, EightBitsAreForPoints) {
    const Program program = lowered(models::pointnet_classifier({}));
    Options options{.device = kCuda, .precision = Precision::int8, .calibration = calibration_of(program)};
    options.calibration->layers["conv2"].keep_higher = true;
    options.calibration->layers["feature_transform.conv2"].range = 0;  // never seen
    options.calibration->layers.erase("feature_transform.conv1");
    const auto expected = [&](const std::string& name, Precision higher, Precision kept) {
        if (name == "input_transform.conv1" || name == "conv1") return Precision::fp32;
        if (name == "conv2") return kept;
        const bool is_point = name == "input_transform.conv2" || name == "input_transform.conv3" ||
                              name == "feature_transform.conv3" || name == "conv3";
        return is_point ? options.precision : higher;
    };
    for (const Precision precision : {Precision::int8, Precision::fp8}) {
        options.precision = precision;
        for (const auto& [name, found] : precisions(program, options))
            EXPECT_EQ(found, expected(name, Precision::fp16, Precision::fp16)) << name;
    }
    options.device = {};
    options.precision = Precision::int8;
    for (const auto& [name, found] : precisions(program, options))
        EXPECT_EQ(found, expected(name, Precision::bf16, Precision::fp32)) << name;
    Program set = program;
    set_precisions(set, options);
    EXPECT_EQ(set.steps[0].layers[2].input_range, 2);
    EXPECT_EQ(set.steps[0].layers[0].input_range, 0);
    // Another precision forgets what this one set.
    set_precisions(set, {});
    EXPECT_EQ(set.steps[0].layers[2].input_range, 0);
    EXPECT_EQ(set.steps[0].layers[2].precision, Precision::fp32);
}

TEST(EnginePrecisions, LayersThatAreOutputsAreNotOfEightBits) {
    const Program program = lowered(models::pointnet_segmenter({.classes = 4}));
    const Options options{.device = kCuda, .precision = Precision::int8, .calibration = calibration_of(program)};
    const std::map<std::string, Precision> found = precisions(program, options);
    EXPECT_EQ(found.at("head.conv1"), Precision::int8);
    EXPECT_EQ(found.at("head.conv3"), Precision::int8);
    EXPECT_EQ(found.at("head.conv4"), Precision::fp16);
    EXPECT_EQ(found.at("head.conv1/pool"), Precision::fp16);
    EXPECT_EQ(found.at("conv3"), Precision::int8);
}

TEST(EnginePrecisions, FlowsKeepTheirCoordinates) {
    const Program program = lowered(models::puflow({}));
    int flow_layers = 0;
    for (const auto& [name, found] : precisions(program, {.device = kCuda, .precision = Precision::fp16})) {
        const bool is_flow = name.ends_with(".actnorm") || name.ends_with(".permutate2") || name.ends_with(".layers.0");
        flow_layers += name.ends_with(".actnorm") || name.ends_with(".permutate2");
        const bool takes_points = name.find("coupling2") == std::string::npos && name.find('/') == std::string::npos;
        if (is_flow && takes_points) {
            EXPECT_EQ(found, Precision::fp32) << name;
        }
        if (name.ends_with(".layers.2")) {
            EXPECT_EQ(found, Precision::fp16) << name;
        }
    }
    EXPECT_EQ(flow_layers, 12);
}

TEST(EnginePrecisions, EightBitsNeedACalibration) {
    Program program = lowered(models::pointnet_classifier({}));
    EXPECT_EQ(test::bad_argument_of([&] { set_precisions(program, {.device = kCuda, .precision = Precision::fp8}); }),
              "fp8 needs a calibration: neither the options nor the weights have one");
}

// A sigmoid is a step of its own; the rows before it are the output's all the same.
TEST(EnginePrecisions, OutputsBehindAnActivationStayHigher) {
    network::Builder build("scores");
    network::Tensor x = build.input("points", network::points_of(16));
    x = build.linear("hidden", x, 64, {.activation = network::gelu()});
    build.output("scores", build.linear("scores", x, 32, {.activation = network::sigmoid()}));
    const Program program = lowered(build.finish());
    const auto found =
        precisions(program, {.device = kCuda, .precision = Precision::int8, .calibration = calibration_of(program)});
    EXPECT_EQ(found.at("hidden"), Precision::int8);
    EXPECT_EQ(found.at("scores"), Precision::fp16);
}

}  // namespace
}  // namespace stipple::engine
