// Refinements of the flow upsampler beside the usual one: names, parameters, and what they compute.

#include <gtest/gtest.h>

#include <set>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/models/flow_upsampler.h"
#include "stipple/models/registry.h"
#include "tests/support/expect_error.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

constexpr int64_t kSeenPoints = 40, kPlaces = 15;

FlowUpsamplerOptions small_options(Refinement refinement, int64_t steps = 2) {
    return {.neighbours = 6,
            .layers = 2,
            .width = 8,
            .query_neighbours = 5,
            .hidden = 8,
            .blocks = 2,
            .flow_hidden = 4,
            .steps = steps,
            .refinement = refinement};
}

std::map<std::string, std::vector<int64_t>> shapes_of(const network::Network& network) {
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const network::Parameter& parameter : parameters_of(network)) shapes[parameter.name] = parameter.shape;
    return shapes;
}

/// Points in a box three spacings wide.
Array<float, 2> scattered(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = 3 * Rng(seed).uniform(static_cast<uint64_t>(i));
    return points;
}

TEST(Refinements, AreToldWhereTheyAreNotTheUsualOne) {
    EXPECT_FALSE(flow_upsampler({}).config.contains("refinement"));
    for (const char* name : {"matching", "descent"}) {
        const network::Network network = build_model("flow-upsampler", {{"refinement", name}});
        EXPECT_EQ(network.config.at("refinement"), name);
        EXPECT_EQ(to_text(build_model("flow-upsampler", network.config)), to_text(network));
    }
    EXPECT_TRUE(build_model("flow-upsampler", {{"refinement", "projection"}}).config == flow_upsampler({}).config);
}

TEST(Refinements, MatchingHasTheParametersOfItsVelocity) {
    const network::Network velocity = flow_upsampler_velocity(small_options(Refinement::matching));
    const auto shapes = shapes_of(velocity);
    for (const int64_t steps : {1, 2, 5})
        EXPECT_EQ(shapes_of(flow_upsampler(small_options(Refinement::matching, steps))), shapes) << steps;
    const network::Network deployed = flow_upsampler(small_options(Refinement::matching));
    EXPECT_EQ(deployed.name, velocity.name);
    EXPECT_EQ(deployed.config, velocity.config);
    EXPECT_NO_THROW(check_weights(deployed, network::initial_weights(velocity, 1)));
    EXPECT_ERROR(flow_upsampler_velocity({}), bad_argument, "matching has a velocity, projection has none");
}

TEST(Refinements, MatchingTakesEulerSteps) {
    constexpr int64_t kSteps = 3;
    const network::Network deployed = flow_upsampler(small_options(Refinement::matching, kSteps)),
                           velocity = flow_upsampler_velocity(small_options(Refinement::matching, kSteps));
    const network::Weights weights = test::trained_like_weights(deployed, 7);
    const Array<float, 2> points = scattered(kSeenPoints, 1);
    Array<float, 2> places = scattered(kPlaces, 2), time({kPlaces, 1});
    const std::vector<ops::Batch> batches = {ops::Batch::single(kSeenPoints), ops::Batch::single(kPlaces)};
    const test::ReferenceRun found =
        test::run_reference(deployed, weights, batches, {{"points", points.view()}, {"queries", places.view()}});
    double largest = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
        std::fill_n(time.data(), kPlaces, static_cast<float>(step) / kSteps);
        const test::ReferenceRun now = test::run_reference(
            velocity, weights, batches, {{"points", points.view()}, {"queries", places.view()}, {"time", time.view()}});
        for (int64_t i = 0; i < 3 * kPlaces; ++i) {
            const double move = now.output("velocity").values[static_cast<size_t>(i)] / kSteps;
            largest = std::max(largest, std::abs(move));
            places.data()[i] += static_cast<float>(move);
            EXPECT_NEAR(found.output(fmt::format("moved_{}", step + 1)).values[static_cast<size_t>(i)],
                        places.data()[i], 1e-4)
                << step;
        }
        if (step + 1 < kSteps) continue;
        for (int64_t i = 0; i < kPlaces; ++i)
            EXPECT_NEAR(found.output("uncertainty").values[static_cast<size_t>(i)],
                        now.output("uncertainty").values[static_cast<size_t>(i)], 1e-4);
    }
    EXPECT_GT(largest, 0.01);
    EXPECT_EQ(found.output("upsampled").values, found.output("moved_3").values);
}

TEST(Refinements, VelocitiesKnowTheTime) {
    const network::Network velocity = flow_upsampler_velocity(small_options(Refinement::matching));
    const network::Weights weights = test::trained_like_weights(velocity, 7);
    const Array<float, 2> points = scattered(kSeenPoints, 1), places = scattered(kPlaces, 2);
    std::vector<double> at[2];
    for (const float t : {0.0f, 0.9f}) {
        Array<float, 2> time({kPlaces, 1});
        std::fill_n(time.data(), kPlaces, t);
        at[t > 0] =
            test::run_reference(velocity, weights, {ops::Batch::single(kSeenPoints), ops::Batch::single(kPlaces)},
                                {{"points", points.view()}, {"queries", places.view()}, {"time", time.view()}})
                .output("velocity")
                .values;
    }
    EXPECT_NE(at[0], at[1]);
}

TEST(Refinements, DescentTellsDistances) {
    const network::Network network = flow_upsampler(small_options(Refinement::descent));
    ASSERT_EQ(network.outputs.size(), 1u);
    EXPECT_EQ(network.outputs[0].name, "distance");
    EXPECT_EQ(network[network.outputs[0].tensor].type, network::points_of(1, 1));
    for (const auto& [name, shape] : shapes_of(network)) EXPECT_EQ(name.find("flow"), std::string::npos) << name;
    const Array<float, 2> points = scattered(kSeenPoints, 1), places = scattered(kPlaces, 2);
    const std::vector<double> distances =
        test::run_reference(network, test::trained_like_weights(network, 3),
                            {ops::Batch::single(kSeenPoints), ops::Batch::single(kPlaces)},
                            {{"points", points.view()}, {"queries", places.view()}})
            .output("distance")
            .values;
    EXPECT_EQ(distances.size(), static_cast<size_t>(kPlaces));
    for (const double d : distances) EXPECT_GT(d, 0);
}

}  // namespace
}  // namespace stipple::models
