// Every model in onnxruntime: what we export is what the network says, whoever runs it.

#include "stipple/network/onnx.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/models/autoencoder.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/pcrnet.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "stipple/models/registry.h"
#include "stipple/models/samplenet.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"
#include "tests/support/puflow_reference.h"
#include "tests/support/reference_onnx.h"

namespace stipple::models {
namespace {

using network::Network;
using network::OnnxOptions;
using test::expect_onnx_equal;
using test::random_weights;

struct Case {
    PointNetVariant variant;
    bool input_transform, feature_transform;
};

class OnnxPointNet : public testing::TestWithParam<Case> {
protected:
    PointNetOptions options() const {
        return {.variant = GetParam().variant,
                .classes = 11,
                .input_transform = GetParam().input_transform,
                .feature_transform = GetParam().feature_transform,
                .categories = 5};
    }
};
INSTANTIATE_TEST_SUITE_P(, OnnxPointNet,
                         testing::Values(Case{PointNetVariant::torch, true, true},
                                         Case{PointNetVariant::torch, true, false},
                                         Case{PointNetVariant::torch, false, false},
                                         Case{PointNetVariant::tf, true, true},
                                         Case{PointNetVariant::tf, false, false}),
                         [](const auto& parameter) {
                             const Case& c = parameter.param;
                             return std::string(c.variant == PointNetVariant::torch ? "torch" : "tf") +
                                    (c.input_transform ? "_t3" : "") + (c.feature_transform ? "_t64" : "");
                         });

TEST_P(OnnxPointNet, Classifier) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = pointnet_classifier(options());
    expect_onnx_equal(network, random_weights(network, 1), {}, 1e-5, {{3, 50}, {1, 17}});
}

TEST_P(OnnxPointNet, Segmenter) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = pointnet_segmenter(options());
    expect_onnx_equal(network, random_weights(network, 2), {}, 1e-5, {{2, 30}, {1, 17}});
}

TEST_P(OnnxPointNet, PartSegmenter) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = pointnet_part_segmenter(options());
    expect_onnx_equal(network, random_weights(network, 3), {}, 1e-5, {{2, 12}, {1, 7}});
}

TEST(OnnxModels, PartSegmenterOfNeighbours) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    for (const bool input_transform : {false, true}) {
        const Network network = pointnet_part_segmenter({.classes = 11,
                                                         .input_transform = input_transform,
                                                         .feature_transform = false,
                                                         .categories = 5,
                                                         .width = 128,
                                                         .neighbours = 6});
        expect_onnx_equal(network, random_weights(network, 3), {}, 1e-5, {{2, 12}, {1, 7}});
    }
}

TEST(OnnxModels, BatchNormMayStay) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = pointnet_classifier({.classes = 11});
    expect_onnx_equal(network, random_weights(network, 4), {.fold_norm = false}, 1e-5, {{2, 33}, {1, 17}});
}

TEST(OnnxModels, ConvolutionsGiveTheSame) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network classifier = pointnet_classifier({.classes = 11}), segmenter = pointnet_segmenter({.classes = 11});
    expect_onnx_equal(classifier, random_weights(classifier, 4), {.convolutions = true}, 1e-5, {{2, 33}, {1, 17}});
    expect_onnx_equal(segmenter, random_weights(segmenter, 4), {.convolutions = true}, 1e-5, {{2, 33}, {1, 17}});
    const Network flow = puflow({});
    expect_onnx_equal(flow, random_weights(flow, 4), {.convolutions = true}, 1e-5, {{2, 24}});
}

TEST(OnnxModels, SampleNet) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    for (const SamplerShape shape :
         {SamplerShape::classification, SamplerShape::registration, SamplerShape::reconstruction}) {
        SampleNetOptions options = published_sampler(shape);
        options.count = 10;
        const Network plain = samplenet(options);
        expect_onnx_equal(plain, random_weights(plain, 6), {}, 1e-5, {{2, 33}, {1, 17}});
        // Distances of random weights are large, and a softmax magnifies what they are rounded by.
        options.projected = true;
        const Network projected = samplenet(options);
        expect_onnx_equal(projected, random_weights(projected, 6), {}, 5e-4, {{2, 33}, {1, 17}});
    }
}

TEST(OnnxModels, GumbelSubset) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = gumbel_subset({.count = 10});
    expect_onnx_equal(network, random_weights(network, 6), {}, 1e-5, {{2, 33}, {1, 17}});
}

TEST(OnnxModels, PcrNet) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    for (const int64_t iterations : {1, 3}) {
        const Network network = pcrnet({.iterations = iterations, .features = 128, .hidden = 64});
        expect_onnx_equal(network, random_weights(network, 6), {}, 1e-5, {{2, 33}, {1, 17}});
    }
}

TEST(OnnxModels, Autoencoder) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const Network network = autoencoder({.count = 100});
    expect_onnx_equal(network, random_weights(network, 6), {}, 1e-5, {{2, 33}, {1, 17}});
}

TEST(OnnxModels, PuFlow) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    for (const int64_t ratio : {4, 1}) {
        const Network network = puflow({.ratio = ratio, .stages = true});
        expect_onnx_equal(network, random_weights(network, 5), {}, 1e-5, {{2, 24}, {1, 18}});
    }
}

TEST(OnnxModels, FamiliesOfPuFlow) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    for (const FlowFamily family : {FlowFamily::continuous, FlowFamily::augmented, FlowFamily::mlp}) {
        const Network network = puflow({.family = family, .steps = 2, .noise = true});
        expect_onnx_equal(network, random_weights(network, 5), {}, 1e-5, {{2, 18}});
    }
}

TEST(OnnxModels, TheResidualFamilyIsRefusedWithTheReason) {
    const Network network = puflow({.family = FlowFamily::residual});
    const std::string message =
        test::bad_argument_of([&] { network::to_onnx(network, network::initial_weights(network, 1)); });
    EXPECT_NE(message.find("is found by iteration"), std::string::npos) << message;
}

TEST(OnnxModels, PuFlowDecodesAsThePublishedProgram) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const std::vector<float> patch = test::load_puflow_array("input_patch").floats();
    std::vector<test::NamedTensors> inputs(1);
    inputs[0].emplace("points", test::tensor_of({1, 256, 3}, patch));
    const test::OnnxRun run = test::run_onnx(network::to_onnx(puflow({}), test::load_puflow_weights()), inputs);
    ASSERT_TRUE(run.ok) << run.messages;
    const auto expect = [&](const char* output, const char* file, double tolerance) {
        const std::vector<float> got = test::floats_of(run.outputs[0].at(output));
        const std::vector<double> expected = test::load_puflow_array(file).values;
        ASSERT_EQ(got.size(), expected.size());
        double worst = 0;
        for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_TRUE(std::isfinite(got[i])) << output;
            worst = std::max(worst, std::fabs(got[i] - expected[i]));
        }
        RecordProperty(output, std::to_string(worst));
        EXPECT_LE(worst, tolerance) << output;
    };
    expect("upsampled", "decoded", 1e-3);
    expect("log_det", "logdet", 1e-2);
    expect("nll", "nll", 1e-2);
}

/// `count` clouds of n points in the unit ball: stretched ellipsoids, so that they differ.
std::vector<float> ellipsoids(int64_t count, int64_t n) {
    std::vector<float> values;
    for (int64_t cloud = 0; cloud < count; ++cloud) {
        const Rng random(7, static_cast<uint64_t>(cloud));
        const float axes[3] = {0.2f + 0.8f * random.uniform(0), 0.2f + 0.8f * random.uniform(1),
                               0.2f + 0.8f * random.uniform(2)};
        for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<uint64_t>(100 + 6 * i);
            float p[3] = {random.normal(at), random.normal(at + 2), random.normal(at + 4)};
            const float norm = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
            for (int c = 0; c < 3; ++c) values.push_back(p[c] / norm * axes[c]);
        }
    }
    return values;
}

// The trained classifier: int8 products give float32's winners.
TEST(OnnxModels, Int8ClassifierHasTheWinnersOfFloat32) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    STIPPLE_NEEDS_EXACT_INT8();
    const Model model = load_model(std::string(STIPPLE_SOURCE_DIR) + "/weights/pointnet-cls.safetensors");
    constexpr int64_t kClouds = 8, kPoints = 64;
    const std::vector<float> values = ellipsoids(kClouds, kPoints);
    Array<float, 2> rows({kClouds * kPoints, 3});
    std::copy(values.begin(), values.end(), rows.data());
    const test::ReferenceRun reference = test::run_reference(
        model.network, model.weights, ops::Batch::dense(kClouds, kPoints), {{"points", rows.view()}}, test::Keep::all);
    OnnxOptions options;
    for (const auto& [name, range] : test::input_ranges(model.network, reference))
        if (name.ends_with("conv2") || name.ends_with("conv3")) options.ranges[name] = range;
    ASSERT_EQ(options.ranges.size(), 4u);  // 99 % of the products

    std::vector<test::NamedTensors> inputs(1);
    inputs[0].emplace("points", test::tensor_of({kClouds, kPoints, 3}, values));
    const auto run = [&](const OnnxOptions& with) {
        const test::OnnxRun done = test::run_onnx(network::to_onnx(model.network, model.weights, with), inputs);
        EXPECT_TRUE(done.ok) << done.messages;
        return test::floats_of(done.outputs.at(0).at("logits"));
    };
    const std::vector<float> exact = run({}), int8 = run(options);
    const std::vector<double>& expected = reference.output("logits").values;
    ASSERT_EQ(exact.size(), expected.size());
    const size_t classes = exact.size() / kClouds;
    double worst_exact = 0, worst_int8 = 0, spread = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
        worst_exact = std::max(worst_exact, std::fabs(exact[i] - expected[i]));
        worst_int8 = std::max(worst_int8, std::fabs(int8[i] - expected[i]));
        spread = std::max(spread, std::fabs(expected[i]));
    }
    EXPECT_LT(worst_exact, 1e-4 * std::max(1.0, spread));
    EXPECT_LT(worst_int8, 0.05 * spread);
    EXPECT_GT(worst_int8, 1e-4 * spread);  // it is int8 that runs
    int agree = 0;
    for (size_t cloud = 0; cloud < kClouds; ++cloud) {
        const auto winner = [&](const std::vector<float>& logits) {
            const auto begin = logits.begin() + static_cast<int64_t>(cloud * classes);
            return std::max_element(begin, begin + static_cast<int64_t>(classes)) - begin;
        };
        agree += winner(exact) == winner(int8);
    }
    EXPECT_GE(agree, kClouds - 1);
}

}  // namespace
}  // namespace stipple::models
