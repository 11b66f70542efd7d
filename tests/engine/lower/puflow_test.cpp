// PU-Flow as a program: edge features cut into products of points, conditions multiplied once for both directions of
// the flow, and what is linear between two flow layers a single product.

#include "stipple/models/puflow.h"

#include <gtest/gtest.h>

#include "tests/engine/lowering.h"

namespace stipple::engine {
namespace {

using network::Network;
using ops::Batch;

/// n lines of the outline from the first that is `begin` after line `from` on.
std::string part(const std::string& outline, const std::string& begin, int lines) {
    const size_t at = outline.find(begin);
    if (at == std::string::npos) return "";
    size_t end = at;
    for (int i = 0; i < lines; ++i) end = outline.find('\n', end) + 1;
    return outline.substr(at, end - at);
}

TEST(EngineLowerPuFlow, Steps) {
    const Network network = models::puflow({});
    const Program program = lower(network, test::random_weights(network, 1));
    const std::string outline = test::outline(program);
    // The second unit of the feature network: the part of the edges is multiplied by point; growth alone by edge.
    EXPECT_EQ(part(outline, "chain 32 -> 16\nchain 32 -> 16\n", 17),
              "chain 32 -> 16\n"
              "chain 32 -> 16\n"
              "chain [point][neighbour] -> 16\n"
              "chain 32 -> 16\n"
              "chain 32 -> 16\n"
              "chain 16[point][neighbour] -> 16\n"
              "chain 32 -> 16\n"
              "chain 32 -> 16\n"
              "chain 16+16[point][neighbour] -> 16\n"
              "chain 32 -> 16\n"
              "chain 32 -> 16\n"
              "chain 16+16+16[point][neighbour] -> 16\n"
              "chain 32 -> 64\n"
              "chain 32 -> 64\n"
              "chain 16+16+16+16[point][neighbour] -> 64 max_rows\n"
              "chain 64 -> 32\n"
              "chain 32 -> 64 -> 64 -> 3\n");
    // A block forward: the condition's product, the coupling's net, what is linear up to the injector.
    EXPECT_EQ(part(outline, "chain 16 -> 64\n", 4),
              "chain 16 -> 64\n"
              "chain 3[row] -> 64 -> 64 -> 2\n"
              "chain 3+2 -> 3\n"
              "inject\n");
    // And back, for the children of each point, with the products and injectors of the way forward.
    EXPECT_EQ(part(outline, "interpolate\n", 7),
              "interpolate\n"
              "inject\n"
              "chain 3[point] -> 64 -> 64 -> 1\n"
              "chain 3+1 -> 3\n"
              "inject\n"
              "chain 3[point] -> 64 -> 64 -> 2\n"
              "chain 3+2 -> 3\n");
    EXPECT_EQ(part(outline, "softmax_rows\n", 3), "softmax_rows\ngather\ninterpolate\n");
}

TEST(EngineLowerPuFlow, MultiplyAddsOfTheFeatureNetwork) {
    const Network network = models::puflow({});
    Program program = lower(network, test::random_weights(network, 1));
    EXPECT_LT(multiply_adds(program, 256) * 3, network::multiply_adds(network, 256));
    // 7.27 million a point as published, 1.79 when the product of the edges is split.
    std::erase_if(program.steps, [](const Step& step) { return step.name.rfind("feat_convs.", 0) != 0; });
    EXPECT_NEAR(static_cast<double>(multiply_adds(program, 1)) * 1e-6, 1.79, 0.005);
}

TEST(EngineLowerPuFlow, Numbers) {
    for (const bool stages : {false, true}) {
        const Network network =
            models::puflow({.ratio = 3, .neighbours = 6, .interpolation_neighbours = 4, .stages = stages});
        // Six blocks magnify the rounding of the weights.
        EXPECT_LT(test::difference(network, test::random_weights(network, 1), Batch::ragged({0, 6, 15})), 2e-6);
    }
}

}  // namespace
}  // namespace stipple::engine
