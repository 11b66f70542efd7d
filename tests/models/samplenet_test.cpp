#include "stipple/models/samplenet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/registry.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/soft_project.h"
#include "tests/models/parameter_count.h"
#include "tests/support/devices.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

using network::Network;

constexpr SamplerShape kShapes[] = {SamplerShape::classification, SamplerShape::registration,
                                    SamplerShape::reconstruction};

Array<float, 2> cloud_of_sampler(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < points.elements(); ++i)
        points.data()[i] = 2 * Rng(seed).uniform(static_cast<uint64_t>(i)) - 1;
    return points;
}

// The log of the published program: an encoder of 92,416 and a sampler of 64 points of 240,576.
TEST(SampleNet, HasThePublishedNumberOfParameters) {
    SampleNetOptions options = published_sampler(SamplerShape::reconstruction);
    EXPECT_EQ(options.count, 64);
    options.neighbours = 0;
    EXPECT_EQ(test::trained_parameters(samplenet(options)), 240576);
    EXPECT_EQ(test::trained_parameters(samplenet(options), "conv"), 92416);
    options.neighbours = 16;
    EXPECT_EQ(test::trained_parameters(samplenet(options)), 240577);  // and the temperature

    // By hand: 3-64-64-64-128-128 and 128-256-256-256-96, weights and biases, then two numbers a channel of batch norm.
    const int64_t points = 3 * 64 + 2 * 64 * 64 + 64 * 128 + 128 * 128 + 448, norms = 2 * 448;
    const int64_t cloud = 128 * 256 + 2 * 256 * 256 + 256 * 96 + 3 * 256 + 96;
    EXPECT_EQ(test::trained_parameters(samplenet({.neighbours = 0})), points + norms + cloud + 2 * (768 + 96));
    EXPECT_EQ(test::trained_parameters(samplenet({.shape = SamplerShape::registration, .count = 32, .neighbours = 0})),
              points + norms + cloud + 2 * 768);
}

TEST(SampleNet, CostsWhatIsPublished) {
    const auto cost = [](SamplerShape shape, int64_t n) {
        SampleNetOptions options = published_sampler(shape);
        options.count = 32;
        return 1e-6 * static_cast<double>(multiply_adds(samplenet(options), n));
    };
    EXPECT_NEAR(cost(SamplerShape::classification, 1024), 33.9, 0.1);
    EXPECT_NEAR(cost(SamplerShape::registration, 1024), 33.9, 0.1);
    EXPECT_NEAR(cost(SamplerShape::reconstruction, 2048), 185.07, 0.01);
}

TEST(SampleNet, OutputsHaveTheTypesOfTheContract) {
    for (const SamplerShape shape : kShapes)
        for (const bool projected : {false, true}) {
            SampleNetOptions options = published_sampler(shape);
            options.count = 5;
            options.projected = projected;
            const Network network = samplenet(options);
            ASSERT_EQ(network.outputs.size(), projected ? 3u : 2u);
            EXPECT_EQ(to_string(network[network.outputs[0].tensor].type), "[B, 5, 3]");
            EXPECT_EQ(network.outputs[1].name, "sigma");
            EXPECT_EQ(to_string(network[network.outputs[1].tensor].type), "[B, 1]");
            EXPECT_EQ(to_string(network[network.outputs.back().tensor].type), projected ? "[B, 5, 3]" : "[B, 1]");
            options.neighbours = 0;
            options.projected = false;
            EXPECT_EQ(samplenet(options).outputs.size(), 1u);
        }
}

// Norms and activations of the three published programs differ where it is easy to overlook.
TEST(SampleNet, ShapesDifferWhereThePublishedOnesDo) {
    const auto layer = [](SamplerShape shape, std::string_view name) {
        const Network network = samplenet(published_sampler(shape));
        for (const network::Layer& one : network.layers)
            if (one.name == name) return one.options;
        ADD_FAILURE() << name;
        return network::LayerOptions();
    };
    EXPECT_TRUE(layer(SamplerShape::classification, "out").norm);
    EXPECT_FALSE(layer(SamplerShape::registration, "out").norm);
    EXPECT_FALSE(layer(SamplerShape::reconstruction, "out").norm);
    EXPECT_TRUE(layer(SamplerShape::classification, "fc2").norm);
    EXPECT_TRUE(layer(SamplerShape::registration, "fc2").norm);
    EXPECT_FALSE(layer(SamplerShape::reconstruction, "fc2").norm);
    for (const SamplerShape shape : kShapes) {
        EXPECT_TRUE(layer(shape, "conv5").norm);
        EXPECT_EQ(layer(shape, "conv5").activation.kind, network::ActivationKind::relu);
        EXPECT_EQ(layer(shape, "out").activation.kind, network::ActivationKind::none);
    }
    EXPECT_FLOAT_EQ(layer(SamplerShape::classification, "fc1").norm_eps, 1e-3f);
    EXPECT_FLOAT_EQ(layer(SamplerShape::registration, "fc1").norm_eps, 1e-5f);
}

// The projection of the graph is that of the op, temperature and floor included.
TEST(SampleNet, ProjectsAsTheOpDoes) {
    const int64_t n = 60, m = 9;
    const Array<float, 2> points = cloud_of_sampler(n, 3);
    for (const float t : {1.f, 0.05f, 0.5f})
        for (const float min_sigma : {0.f, 1e-2f}) {
            SampleNetOptions options = published_sampler(SamplerShape::registration);
            options.count = m;
            options.min_sigma = min_sigma;
            options.projected = true;
            const Network network = samplenet(options);
            network::Weights weights = test::random_weights(network, 4);
            weights.tensors.at("temperature.value").values = {t};
            const auto run = test::run_reference(network, weights, ops::Batch::single(n), {{"points", points.view()}});
            const float sigma = std::max(t * t, min_sigma);
            EXPECT_NEAR(run.output("sigma").values[0], sigma, 1e-6);

            Array<float, 2> queries({m, 3}), weight({m, 8}), projected({m, 3});
            for (int64_t i = 0; i < 3 * m; ++i)
                queries.data()[i] = static_cast<float>(run.output("simplified").values[static_cast<size_t>(i)]);
            Array<int32_t, 2> near({m, 8});
            ops::knn(ops::PointIndex(points.view()), queries.view(), near.view(), {});
            Array<float, 1> temperature({1});
            temperature.data()[0] = t;
            ops::soft_project(points.view(), queries.view(), near.view(), temperature.view(), min_sigma, weight.view(),
                              projected.view());
            for (int64_t i = 0; i < 3 * m; ++i)
                EXPECT_NEAR(run.output("projected").values[static_cast<size_t>(i)], projected.data()[i], 1e-5)
                    << t << " " << min_sigma;
        }
}

TEST(SampleNet, TheOrderOfPointsDoesNotMatter) {
    const int64_t n = 24;
    const Array<float, 2> points = cloud_of_sampler(n, 2);
    Array<float, 2> turned({n, 3});
    for (int64_t i = 0; i < n; ++i) std::copy_n(points.data() + 3 * i, 3, turned.data() + 3 * (n - 1 - i));
    for (const SamplerShape shape : kShapes) {
        const Network network = samplenet(published_sampler(shape));
        const network::Weights weights = test::random_weights(network, 5);
        const auto run = [&](const Array<float, 2>& cloud) {
            return test::run_reference(network, weights, ops::Batch::single(n), {{"points", cloud.view()}})
                .output("simplified")
                .values;
        };
        EXPECT_EQ(run(points), run(turned));
    }
}

TEST(SampleNet, WhatNoParameterDependsOnMayChange) {
    SampleNetOptions options = published_sampler(SamplerShape::reconstruction);
    const auto parameters = [](const SampleNetOptions& with) {
        std::vector<std::string> names;
        for (const network::Parameter& parameter : parameters_of(samplenet(with))) names.push_back(parameter.name);
        return names;
    };
    SampleNetOptions other = options;
    other.neighbours = 3;
    other.projected = true;
    other.min_sigma = 0;
    EXPECT_EQ(parameters(options), parameters(other));
}

TEST(SampleNet, AConfigurationBeginsWithWhatIsPublishedForItsShape) {
    const Network network = build_model("samplenet", {{"shape", "reconstruction"}});
    EXPECT_EQ(network.config.at("points"), "2048");
    EXPECT_EQ(network.config.at("neighbours"), "16");
    EXPECT_EQ(network.config.at("min_sigma"), "1e-04");
}

TEST(SampleNet, RefusesOptionsOutOfRange) {
    const auto refusal = [](const SampleNetOptions& options) {
        return test::bad_argument_of([&] { samplenet(options); });
    };
    EXPECT_NE(refusal({.count = 0}).find("count"), std::string::npos);
    EXPECT_NE(refusal({.count = 1 << 20}).find("count"), std::string::npos);
    EXPECT_NE(refusal({.points = 0}).find("points"), std::string::npos);
    EXPECT_NE(refusal({.neighbours = 129}).find("neighbours"), std::string::npos);
    EXPECT_NE(refusal({.min_sigma = NAN}).find("min_sigma"), std::string::npos);
    EXPECT_NE(refusal({.min_sigma = -1}).find("min_sigma"), std::string::npos);
    EXPECT_NE(refusal({.neighbours = 0, .projected = true}).find("S-NET"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { gumbel_subset({.count = 0}); }).find("count"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { gumbel_subset({.points = -1}); }).find("points"), std::string::npos);
}

TEST(GumbelSubset, ScoresEveryPointForEveryPlace) {
    const int64_t n = 24;
    const Array<float, 2> points = cloud_of_sampler(n, 2);
    const Network network = gumbel_subset({.count = 7});
    EXPECT_EQ(network[network.outputs[0].tensor].type, network::points_of(7));
    const auto run = test::run_reference(network, test::random_weights(network, 1), ops::Batch::single(n),
                                         {{"points", points.view()}});
    EXPECT_NE(run.output("scores").row(0)[0], run.output("scores").row(1)[0]);
}

}  // namespace
}  // namespace stipple::models
