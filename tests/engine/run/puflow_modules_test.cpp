// PU-Flow with every context and every interpolation, on every device: the plain reading of the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/models/puflow.h"
#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using models::PuFlowOptions;

class EnginePuFlowModules : public test::OnDevice {
protected:
    void expect_reference(const PuFlowOptions& options, const std::string& what) const {
        const network::Network network = models::puflow(options);
        network::Weights weights = test::random_weights(network, 2);
        // What starts at zero would hide what it multiplies.
        for (auto& [name, tensor] : weights.tensors)
            if (name == "context.mu.value" || name == "context.scores.weight")
                for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = 0.8f * Rng(5).normal(i);
        const ops::Batch batch = ops::Batch::ragged({0, 23, 60});
        Array<float, 2> points({60, 3});
        for (int64_t i = 0; i < points.elements(); ++i)
            points.data()[i] = 2 * Rng(2).uniform(static_cast<uint64_t>(i)) - 1;
        const std::vector<test::ReferenceInput> inputs = {{"points", points.view()}};
        const auto run = test::run_reference(network, weights, batch, inputs);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 2, .max_points = 64});
        for (const auto& [name, output] : test::run_engine(engine, batch, inputs)) {
            const std::vector<double>& expected = run.output(name).values;
            double largest = 1e-3, difference = 0;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            ASSERT_EQ(output.elements(), static_cast<int64_t>(expected.size())) << what << ", " << name;
            for (size_t i = 0; i < expected.size(); ++i) {
                const double d = std::abs(output.data()[i] - expected[i]);
                difference = std::isnan(d) ? INFINITY : std::max(difference, d);
            }
            EXPECT_LE(difference, 1e-4 * largest) << what << ", " << name;  // a flow magnifies what goes into it
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(EnginePuFlowModules);

TEST_P(EnginePuFlowModules, EveryContextIsThePlainReadingOfTheNetwork) {
    for (size_t i = 0; i < std::size(models::kContextWords); ++i)
        expect_reference({.context = static_cast<models::Context>(i), .stages = true}, models::kContextWords[i]);
    expect_reference({.context = models::Context::self_attention, .attention_normalise = network::Normalise::joint},
                     "joint self-attention");
}

TEST_P(EnginePuFlowModules, EveryInterpolationIsThePlainReadingOfTheNetwork) {
    for (size_t i = 0; i < std::size(models::kInterpolationWords); ++i) {
        const auto interpolation = static_cast<models::Interpolation>(i);
        for (const int64_t ratio : {1, 4})
            expect_reference({.ratio = ratio, .interpolation = interpolation, .stages = true},
                             fmt::format("{}, ratio {}", models::kInterpolationWords[i], ratio));
        expect_reference({.ratio = 3,
                          .interpolation_neighbours = 5,
                          .family = models::FlowFamily::augmented,
                          .neighbourhood = models::Neighbourhood::latent,
                          .interpolation = interpolation},
                         std::string(models::kInterpolationWords[i]) + ", latent, augmented");
    }
}

}  // namespace
}  // namespace stipple::engine
