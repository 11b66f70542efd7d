// Networks that nobody wrote: layers of random kinds on random tensors, lowered and compared.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_random.h"

namespace stipple::engine {
namespace {

using network::Network;
using ops::Batch;

TEST(EngineLowerRandom, NetworksKeepTheirNumbers) {
    size_t steps = 0, layers = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(seed);
        const Network network = test::random_network(seed, 6 + static_cast<int>(seed % 25));
        const network::Weights weights = test::round_weights(network, seed);
        // Products of several layers' weights may have more bits than a float: a unit in its last place, no more.
        const double difference = test::difference(network, weights, Batch::ragged({0, 4, 9}));
        ASSERT_LT(difference, 2e-6) << network::to_text(network) << to_text(lower(network, weights));
        steps += lower(network, weights).steps.size();
        layers += network.layers.size();
    }
    EXPECT_LT(steps, layers);
}

class EngineRandom : public test::OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EngineRandom);

TEST_P(EngineRandom, NetworksRun) {
    const Batch batch = Batch::ragged({0, 4, 9, 40});
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        const Network network = test::random_network(seed, 10 + static_cast<int>(seed % 20));
        const network::Weights weights = test::round_weights(network, seed);
        const test::RandomInputs inputs(network, batch);
        const test::ReferenceRun expected =
            test::run_reference(network, weights, batch, inputs.inputs, test::Keep::all);
        double largest = 1;  // of all numbers on the way: what float32 rounds, sums may leave
        for (const test::ReferenceTensor& tensor : expected.tensors)
            for (const double value : tensor.values) largest = std::max(largest, std::abs(value));
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 3, .max_points = 15});
        const test::EngineOutputs found = test::run_engine(engine, batch, inputs.inputs);
        for (const network::Output& output : network.outputs) {
            const test::ReferenceTensor& want = expected.output(output.name);
            const Array<float, 2>& got = found.at(output.name);
            for (size_t i = 0; i < want.values.size(); ++i)
                ASSERT_NEAR(got.data()[i], want.values[i], 2e-6 * largest)
                    << output.name << network::to_text(network) << to_text(engine.program());
        }
    }
}

}  // namespace
}  // namespace stipple::engine
