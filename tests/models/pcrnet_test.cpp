#include "stipple/models/pcrnet.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/models/autoencoder.h"
#include "tests/models/parameter_count.h"
#include "tests/support/devices.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

using network::Network;

Array<float, 2> cloud_of_pair(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < points.elements(); ++i)
        points.data()[i] = 2 * Rng(seed).uniform(static_cast<uint64_t>(i)) - 1;
    return points;
}

double million_products(const Network& network, int64_t n) {
    return 1e-6 * static_cast<double>(multiply_adds(network, n));
}

TEST(PcrNet, CostsWhatIsPublished) {
    EXPECT_NEAR(million_products(pcrnet({}), 1024), 306.4, 0.2);
    EXPECT_NEAR(million_products(pcrnet({.iterations = 8}), 1024), 1393.3, 0.5);
}

TEST(PcrNet, IterationsShareTheirParameters) {
    const int64_t encoder = 3 * 64 + 2 * 64 * 64 + 64 * 128 + 128 * 1024 + 3 * 64 + 128 + 1024;
    const int64_t head =
        2048 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 512 + 512 * 256 + 256 * 7 + 1024 * 2 + 512 * 2 + 256 + 7;
    EXPECT_EQ(test::trained_parameters(pcrnet({})), encoder + head);
    EXPECT_EQ(test::trained_parameters(pcrnet({.iterations = 8})), encoder + head);
    EXPECT_EQ(test::trained_parameters(pcrnet({.features = 256, .hidden = 128})),
              3 * 64 + 2 * 64 * 64 + 64 * 128 + 128 * 256 + 3 * 64 + 128 + 256 +  //
                  512 * 128 + 128 * 128 + 128 * 64 + 64 * 64 + 64 * 32 + 32 * 7 + 128 * 2 + 64 * 2 + 32 + 7);
}

using Matrix = std::array<double, 9>;

/// R p + t for a pose as the network gives it.
struct Motion {
    Matrix rotation;
    std::array<double, 3> translation;

    explicit Motion(const double* pose) : translation{pose[4], pose[5], pose[6]} {
        const double length = std::hypot(std::hypot(pose[0], pose[1]), std::hypot(pose[2], pose[3]));
        const double w = pose[0] / length, x = pose[1] / length, y = pose[2] / length, z = pose[3] / length;
        rotation = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                    2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                    2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    }
    void apply(double* p) const {
        double moved[3];
        for (int i = 0; i < 3; ++i)
            moved[i] =
                rotation[3 * i] * p[0] + rotation[3 * i + 1] * p[1] + rotation[3 * i + 2] * p[2] + translation[i];
        std::copy_n(moved, 3, p);
    }
};

// The motion that comes out is that of all iterations together, and it moves the source where the network says.
TEST(PcrNet, MotionsOfIterationsAreComposed) {
    const int64_t n = 20, m = 33, iterations = 4;
    const Array<float, 2> source = cloud_of_pair(n, 1), target = cloud_of_pair(m, 2);
    const Network network = pcrnet({.iterations = iterations, .features = 64, .hidden = 32});
    const network::Weights weights = test::random_weights(network, 8);
    const auto run = test::run_reference(network, weights, {ops::Batch::single(n), ops::Batch::single(m)},
                                         {{"source", source.view()}, {"template", target.view()}}, test::Keep::all);
    std::vector<Motion> motions;
    for (int64_t i = 1; i <= iterations; ++i) motions.emplace_back(run.layer(fmt::format("{}.pose", i)).row(0));
    EXPECT_NE(run.layer("1.pose").values, run.layer("2.pose").values);
    const double* rotation = run.output("rotation").row(0);
    const double* translation = run.output("translation").row(0);
    for (int64_t i = 0; i < n; ++i) {
        const float* from = source.data() + 3 * i;
        double stepwise[3] = {from[0], from[1], from[2]};
        for (const Motion& motion : motions) motion.apply(stepwise);
        for (int axis = 0; axis < 3; ++axis) {
            const double at_once = rotation[3 * axis] * from[0] + rotation[3 * axis + 1] * from[1] +
                                   rotation[3 * axis + 2] * from[2] + translation[axis];
            EXPECT_NEAR(at_once, stepwise[axis], 1e-9);
            EXPECT_NEAR(run.output("moved").row(i)[axis], stepwise[axis], 1e-9);
        }
    }
}

TEST(PcrNet, TheFirstIterationIsTheSinglePass) {
    const Array<float, 2> source = cloud_of_pair(12, 1), target = cloud_of_pair(9, 2);
    const Network once = pcrnet({.features = 64, .hidden = 32}),
                  often = pcrnet({.iterations = 3, .features = 64, .hidden = 32});
    const network::Weights weights = test::random_weights(once, 8);
    const std::vector<ops::Batch> batches = {ops::Batch::single(12), ops::Batch::single(9)};
    const std::vector<test::ReferenceInput> inputs = {{"source", source.view()}, {"template", target.view()}};
    const auto first = test::run_reference(once, weights, batches, inputs);
    const auto all = test::run_reference(often, weights, batches, inputs, test::Keep::all);
    EXPECT_EQ(first.output("pose").values, all.layer("1.pose").values);
    EXPECT_EQ(first.output("rotation").values, all.layer("1.rotation").values);
}

TEST(PcrNet, RefusesOptionsOutOfRange) {
    EXPECT_NE(test::bad_argument_of([] { pcrnet({.iterations = 0}); }).find("iterations"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { pcrnet({.iterations = 33}); }).find("iterations"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { pcrnet({.features = 0}); }).find("features"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { pcrnet({.hidden = 10}); }).find("hidden"), std::string::npos);
}

// The log of the published program.
TEST(Autoencoder, HasThePublishedNumberOfParametersAndCost) {
    const Network network = autoencoder({});
    EXPECT_EQ(test::trained_parameters(network), 1770240);
    EXPECT_EQ(test::trained_parameters(network, "conv"), 92416);
    EXPECT_NEAR(million_products(network, 2048), 186.6, 0.1);
    EXPECT_EQ(to_string(network[network.outputs[0].tensor].type), "[B, 128]");
    EXPECT_EQ(to_string(network[network.outputs[1].tensor].type), "[B, 2048, 3]");
}

TEST(Autoencoder, RefusesOptionsOutOfRange) {
    EXPECT_NE(test::bad_argument_of([] { autoencoder({.count = 0}); }).find("count"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { autoencoder({.latent = 1 << 20}); }).find("latent"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { autoencoder({.hidden = -4}); }).find("hidden"), std::string::npos);
}

}  // namespace
}  // namespace stipple::models
