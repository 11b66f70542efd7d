// The flow upsampler through the engine: the plain reading of the network, with two point sets.

#include "stipple/models/flow_upsampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

class EngineFlowUpsampler : public test::OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EngineFlowUpsampler);

Array<float, 2> points_in_a_box(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < points.elements(); ++i)
        points.data()[i] = 4 * Rng(seed).uniform(static_cast<uint64_t>(i)) - 2;
    return points;
}

/// Relative to an output's largest number, as in parity_test.cpp. A flow magnifies what goes into it: 1e-4.
TEST_P(EngineFlowUpsampler, IsThePlainReadingOfTheNetwork) {
    const std::vector<ops::Batch> batches = {ops::Batch::ragged({0, 16, 53, 117}),
                                             ops::Batch::ragged({0, 40, 41, 150})};
    const Array<float, 2> points = points_in_a_box(117, 1), queries = points_in_a_box(150, 2);
    for (const int64_t blocks : {0, 3}) {
        const network::Network network = models::flow_upsampler({.blocks = blocks});
        const network::Weights weights = test::trained_like_weights(network, 2);
        const std::vector<test::ReferenceInput> inputs = {{"points", points.view()}, {"queries", queries.view()}};
        const auto run = test::run_reference(network, weights, batches, inputs);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 3, .max_points = 64});
        Context context(engine);
        const test::EngineOutputs outputs = test::run_engine(context, engine, batches, inputs);
        ASSERT_EQ(outputs.size(), network.outputs.size());
        for (const auto& [name, output] : outputs) {
            const std::vector<double>& expected = run.output(name).values;
            ASSERT_EQ(output.elements(), static_cast<int64_t>(expected.size())) << name;
            double largest = 0, difference = 0;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            for (int64_t i = 0; i < output.elements(); ++i)
                difference = std::max(difference, std::abs(output.data()[i] - expected[static_cast<size_t>(i)]));
            EXPECT_GT(largest, 1e-3) << name;
            EXPECT_LE(difference, 1e-4 * largest) << name << ", blocks " << blocks;
        }
    }
}

}  // namespace
}  // namespace stipple::engine
