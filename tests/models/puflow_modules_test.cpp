// Options of PU-Flow's context and interpolation: names, parameters, configurations, errors.

#include <gtest/gtest.h>

#include <set>

#include "stipple/models/puflow.h"
#include "stipple/models/registry.h"
#include "stipple/network/onnx.h"
#include "tests/support/expect_error.h"
#include "tests/support/reference_onnx.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

using network::Network;

/// "name shape" of every parameter.
std::set<std::string> parameter_shapes(const Network& network) {
    std::set<std::string> all;
    for (const network::Parameter& parameter : parameters_of(network)) {
        std::string text = parameter.name;
        for (const int64_t extent : parameter.shape) text += fmt::format(" {}", extent);
        all.insert(text);
    }
    return all;
}

TEST(PuFlowModules, AddParametersOfTheirOwnAlone) {
    const std::set<std::string> published = parameter_shapes(puflow({}));
    for (size_t i = 0; i < std::size(kContextWords); ++i) {
        const auto context = static_cast<Context>(i);
        const std::set<std::string> with = parameter_shapes(puflow({.context = context}));
        size_t added = 0;
        for (const std::string& parameter : with) {
            // Conditions of twice the width change what reads them, and nothing else.
            const bool is_flow = context == Context::skip_attention && parameter.rfind("flow_blocks.", 0) == 0;
            added += parameter.rfind("context.", 0) == 0;
            EXPECT_TRUE(published.contains(parameter) || parameter.rfind("context.", 0) == 0 || is_flow)
                << kContextWords[i] << ": " << parameter;
        }
        EXPECT_EQ(added > 0, context != Context::none) << kContextWords[i];
    }
    for (size_t i = 0; i < std::size(kInterpolationWords); ++i)
        for (const std::string& parameter : parameter_shapes(puflow({.interpolation = static_cast<Interpolation>(i)})))
            EXPECT_TRUE(published.contains(parameter) || parameter.rfind("interp.", 0) == 0)
                << kInterpolationWords[i] << ": " << parameter;
}

TEST(PuFlowModules, RatioAndNeighboursAreFreeAfterTraining) {
    for (size_t i = 0; i < std::size(kInterpolationWords); ++i) {
        const auto interpolation = static_cast<Interpolation>(i);
        const auto with = [&](int64_t ratio, int64_t k) {
            return parameter_shapes(
                puflow({.ratio = ratio, .interpolation_neighbours = k, .interpolation = interpolation}));
        };
        const std::set<std::string> usual = with(4, 40);
        EXPECT_EQ(with(1, 40), usual) << kInterpolationWords[i];
        EXPECT_EQ(with(32, 40), usual) << kInterpolationWords[i];
        EXPECT_EQ(with(4, 6) == usual, interpolation != Interpolation::bilateral) << kInterpolationWords[i];
    }
}

TEST(PuFlowModules, ConfigurationsHoldWhatIsNotUsual) {
    EXPECT_FALSE(puflow({}).config.contains("context"));
    EXPECT_FALSE(puflow({}).config.contains("attention_normalise"));
    EXPECT_FALSE(puflow({}).config.contains("interpolation"));
    for (const std::string context : kContextWords)
        for (const std::string interpolation : kInterpolationWords) {
            const Network network = build_model("puflow", {{"context", context}, {"interpolation", interpolation}});
            EXPECT_EQ(network.config.contains("context"), context != "none");
            EXPECT_EQ(network.config.contains("interpolation"), interpolation != "learned");
            EXPECT_EQ(to_text(build_model("puflow", network.config)), to_text(network));
        }
    const Network joint = build_model("puflow", {{"context", "self-attention"}, {"attention_normalise", "joint"}});
    EXPECT_EQ(joint.config.at("attention_normalise"), "joint");
    EXPECT_NE(to_text(joint).find("attend joint"), std::string::npos);
}

TEST(PuFlowModules, ErrorsListTheNames) {
    EXPECT_ERROR(build_model("puflow", {{"context", "attention"}}), bad_config, "context");
    for (const std::string name : kContextWords)
        EXPECT_ERROR(build_model("puflow", {{"context", "attention"}}), bad_config, name);
    for (const std::string name : kInterpolationWords)
        EXPECT_ERROR(build_model("puflow", {{"interpolation", "linear"}}), bad_config, name);
    EXPECT_ERROR(build_model("puflow", {{"attention_normalise", "none"}}), bad_config, "joint");
    EXPECT_ERROR(puflow({.attention_normalise = network::Normalise::none}), bad_argument,
                 "attention_normalise must be row or joint");
    EXPECT_ERROR(puflow({.ratio = 8, .interpolation = Interpolation::midpoint}), bad_argument,
                 "midpoint needs more interpolation_neighbours than ratio, got 8 and 8");
}

TEST(PuFlowModules, WeightsOfEveryInterpolationSumToOne) {
    Array<float, 2> points({20, 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = static_cast<float>(std::sin(1.7 * i * i));
    for (size_t i = 0; i < std::size(kInterpolationWords); ++i) {
        const Network network = puflow({.interpolation = static_cast<Interpolation>(i)});
        const auto run = test::run_reference(network, test::random_weights(network, 3), ops::Batch::single(20),
                                             {{"points", points.view()}});
        const test::ReferenceTensor& weights = run.output("weights");
        ASSERT_EQ(weights.type, network::rows_of(8, 4)) << kInterpolationWords[i];
        for (int64_t n = 0; n < 20; ++n)
            for (int64_t r = 0; r < 4; ++r) {
                double sum = 0;
                for (int64_t j = 0; j < 8; ++j) sum += weights.row(8 * n + j)[r];
                EXPECT_NEAR(sum, 1, 1e-6) << kInterpolationWords[i];
            }
        // No two children of a point are one.
        double least = 1e9;
        for (int64_t r = 1; r < 4; ++r) {
            double difference = 0;
            for (int64_t j = 0; j < 8; ++j) difference += std::abs(weights.row(j)[r] - weights.row(j)[0]);
            least = std::min(least, difference);
        }
        EXPECT_GT(least, 1e-3) << kInterpolationWords[i];
    }
}

TEST(OnnxModels, PuFlowWithEveryModule) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const auto expect = [](const PuFlowOptions& options) {
        const Network network = puflow(options);
        test::expect_onnx_equal(network, test::random_weights(network, 4), {}, 1e-4, {{2, 24}});
    };
    for (size_t i = 0; i < std::size(kContextWords); ++i) {
        SCOPED_TRACE(kContextWords[i]);
        expect({.context = static_cast<Context>(i)});
    }
    for (size_t i = 0; i < std::size(kInterpolationWords); ++i) {
        SCOPED_TRACE(kInterpolationWords[i]);
        expect({.interpolation = static_cast<Interpolation>(i)});
    }
}

}  // namespace
}  // namespace stipple::models
