// Networks that nobody wrote, in onnxruntime.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference_onnx.h"
#include "tests/support/reference_random.h"

namespace stipple::network {
namespace {

class OnnxRandom : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(, OnnxRandom, testing::Range<uint64_t>(1, 11));

TEST_P(OnnxRandom, NetworksRunAsTheReference) {
    STIPPLE_NEEDS_ONNX_RUNTIME();
    const uint64_t seed = GetParam();
    const Network network = test::random_network(seed, 40);
    const Weights weights = test::random_weights(network, seed);
    const OnnxOptions options{.convolutions = seed % 2 == 0};
    for (const test::OnnxComparison& run : test::compare_onnx(network, weights, options, {{2, 20}, {1, 3}}))
        for (const auto& [name, expected] : run.reference)
            for (size_t i = 0; i < expected.size(); ++i)
                ASSERT_NEAR(run.onnx.at(name)[i], expected[i], 5e-6 * run.largest) << name << "\n" << to_text(network);
}

}  // namespace
}  // namespace stipple::network
