// Samplers, PCRNet and the autoencoder through the engine: the plain reading of their networks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/engine/calibration.h"
#include "stipple/engine/time_engine.h"
#include "stipple/models/autoencoder.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/pcrnet.h"
#include "stipple/models/samplenet.h"
#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Network;
using ops::Batch;

class EngineSamplingModels : public test::OnDevice {
protected:
    /// Relative to an output's largest number, as in parity_test.cpp.
    void expect_parity(const Network& network, const std::vector<Batch>& batches, double tolerance = 1e-5) const {
        const network::Weights weights = test::random_weights(network, 7);
        const test::RandomInputs inputs(network, batches);
        const test::ReferenceRun run = test::run_reference(network, weights, batches, inputs.inputs);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 3, .max_points = 100});
        Context context(engine);
        const test::EngineOutputs outputs = test::run_engine(context, engine, batches, inputs.inputs);
        ASSERT_EQ(outputs.size(), network.outputs.size());
        for (const auto& [name, output] : outputs) {
            const std::vector<double>& expected = run.output(name).values;
            ASSERT_EQ(output.elements(), static_cast<int64_t>(expected.size())) << name;
            double largest = 0, difference = 0;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            for (int64_t i = 0; i < output.elements(); ++i) {
                const double d = std::abs(output.data()[i] - expected[static_cast<size_t>(i)]);
                difference = std::isnan(d) ? INFINITY : std::max(difference, d);
            }
            EXPECT_GT(largest, 1e-3) << network.name << " " << name;
            EXPECT_LE(difference, tolerance * largest) << network.name << " " << name;
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(EngineSamplingModels);

TEST_P(EngineSamplingModels, SampleNetOfEveryShape) {
    for (const models::SamplerShape shape : {models::SamplerShape::classification, models::SamplerShape::registration,
                                             models::SamplerShape::reconstruction}) {
        models::SampleNetOptions options = models::published_sampler(shape);
        options.count = 11;
        options.projected = true;
        expect_parity(models::samplenet(options), {Batch::ragged({0, 40, 57, 200})}, 1e-4);
        options.projected = false;
        expect_parity(models::samplenet(options), {Batch::dense(2, 64)});
        options.neighbours = 0;
        expect_parity(models::samplenet(options), {Batch::dense(1, 1)});
    }
}

TEST_P(EngineSamplingModels, PointsThatANetworkMakesAreCalibratedAndTimed) {
    // Their number is not that of the points that go in: more of them, and fewer.
    const Batch batch = Batch::ragged({0, 40, 57, 200});
    for (const int64_t count : {11, 150}) {
        const Network network = models::samplenet({.count = count});
        const network::Weights weights = test::random_weights(network, 7);
        const test::RandomInputs inputs(network, {batch});
        const Calibration found = calibrate(network, weights, ops::Clouds(inputs.inputs[0].rows, batch), {});
        EXPECT_EQ(found.clouds, 3);
        EXPECT_FALSE(found.layers.empty());
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 3, .max_points = 100});
        EXPECT_GE(time_engine(engine, batch, {{"points", inputs.inputs[0].rows}}, {0, 3, 0.001}).runs, 3);
    }
}

TEST_P(EngineSamplingModels, GumbelSubset) {
    expect_parity(models::gumbel_subset({.count = 9}), {Batch::ragged({0, 40, 57, 200})});
}

TEST_P(EngineSamplingModels, PcrNetOnceAndOften) {
    const std::vector<Batch> batches = {Batch::ragged({0, 30, 41}), Batch::ragged({0, 12, 90})};
    expect_parity(models::pcrnet({}), batches);
    expect_parity(models::pcrnet({.iterations = 4, .features = 128, .hidden = 64}), batches, 1e-4);
}

TEST_P(EngineSamplingModels, Autoencoder) {
    expect_parity(models::autoencoder({.count = 100}), {Batch::ragged({0, 8, 40, 150})});
}

}  // namespace
}  // namespace stipple::engine
