// Weights by name: first values, checks against a network, checksum.

#include "stipple/network/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/network/builder.h"
#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

Network one_linear(const std::string& name, int64_t in, int64_t out, Initialiser weights) {
    Builder build("one");
    build.output("y", build.linear(name, build.input("x", clouds_of(in)), out, {.weights = weights}));
    return build.finish();
}

Network small() {
    Builder build("small");
    Tensor x = build.input("points", points_of(3));
    x = build.linear("stn.conv1", x, 16, {.norm = true, .activation = relu()});
    x = build.actnorm("flow.norm", x);
    x = build.mix("flow.mix", x);
    const Tensor y = build.mix("flow.mix.back", x, true, "flow.mix");
    build.output("logits", build.linear("fc", build.max_points("pool", y), 4));
    build.output("log_det", build.flow_log_det("det", x, "flow.norm"));
    return build.finish({{"classes", "4"}, {"name", "a \"b\" \u00e9"}});
}

struct Moments {
    double mean = 0, deviation = 0, least = INFINITY, most = -INFINITY;
};
Moments moments_of(const std::vector<float>& values) {
    Moments m;
    for (float value : values) {
        m.mean += value / static_cast<double>(values.size());
        m.least = std::min<double>(m.least, value);
        m.most = std::max<double>(m.most, value);
    }
    for (float value : values) m.deviation += (value - m.mean) * (value - m.mean) / static_cast<double>(values.size());
    m.deviation = std::sqrt(m.deviation);
    return m;
}

TEST(NetworkWeights, FirstValuesAreThereForEveryParameter) {
    const Network network = small();
    const Weights weights = initial_weights(network, 1);
    EXPECT_NO_THROW(check_weights(network, weights));
    EXPECT_EQ(weights.tensors.size(), parameters_of(network).size());
    EXPECT_EQ(weights.metadata.at("stipple.model"), "small");
    EXPECT_EQ(config_of(weights), network.config);
    for (const char* name : {"stn.conv1.norm.bias", "stn.conv1.norm.running_mean", "flow.norm.logs", "flow.norm.bias"})
        for (float value : weights.tensors.at(name).values) EXPECT_EQ(value, 0) << name;
    for (const char* name : {"stn.conv1.norm.weight", "stn.conv1.norm.running_var"})
        for (float value : weights.tensors.at(name).values) EXPECT_EQ(value, 1) << name;
}

TEST(NetworkWeights, FirstValuesDependOnSeedAndNameAlone) {
    const Network network = small();
    const Weights a = initial_weights(network, 7);
    EXPECT_EQ(checksum(a), checksum(initial_weights(network, 7)));
    EXPECT_NE(checksum(a), checksum(initial_weights(network, 8)));
    // The same layer in another network, at another place, has the same values.
    Builder build("other");
    const Tensor x = build.linear("first", build.input("points", points_of(16)), 16);
    build.output("y", build.linear("fc", x, 4));
    const Weights b = initial_weights(build.finish(), 7);
    EXPECT_EQ(a.tensors.at("fc.weight").values, b.tensors.at("fc.weight").values);
    EXPECT_EQ(a.tensors.at("fc.bias").values, b.tensors.at("fc.bias").values);
    EXPECT_NE(b.tensors.at("first.bias").values[0], b.tensors.at("fc.bias").values[0]);
    // Written down: training runs that start from a seed shall start alike for ever.
    EXPECT_FLOAT_EQ(a.tensors.at("fc.weight").values[0], -0.23822603f);
}

TEST(NetworkWeights, FanInUniform) {
    const Weights weights = initial_weights(one_linear("fc", 400, 300, Initialiser::fan_in_uniform), 3);
    const Moments weight = moments_of(weights.tensors.at("fc.weight").values);
    EXPECT_NEAR(weight.mean, 0, 4 * 0.05 / std::sqrt(3.0 * 120000));
    EXPECT_NEAR(weight.deviation, 0.05 / std::sqrt(3.0), 1e-4);
    EXPECT_GE(weight.least, -0.05);
    EXPECT_LE(weight.most, 0.05);
    EXPECT_LT(weight.least, -0.0499);
    EXPECT_GT(weight.most, 0.0499);
    // The bias has the same bound: that of its layer's inputs.
    const Moments bias = moments_of(weights.tensors.at("fc.bias").values);
    EXPECT_NEAR(bias.deviation, 0.05 / std::sqrt(3.0), 3e-3);
    EXPECT_LE(bias.most, 0.05);
    EXPECT_GT(bias.most, 0.045);
}

TEST(NetworkWeights, XavierNormal) {
    const Weights weights = initial_weights(one_linear("fc", 400, 100, Initialiser::xavier_normal), 3);
    const std::vector<float>& values = weights.tensors.at("fc.weight").values;
    const double deviation = std::sqrt(2.0 / 500);
    const Moments weight = moments_of(values);
    EXPECT_NEAR(weight.mean, 0, 4 * deviation / 200);
    EXPECT_NEAR(weight.deviation, deviation, 0.015 * deviation);
    // Normal, not only of this deviation: 68.27 % within one, 99.73 % within three.
    double within_one = 0, within_three = 0;
    for (float value : values) {
        within_one += std::fabs(value) < deviation;
        within_three += std::fabs(value) < 3 * deviation;
    }
    EXPECT_NEAR(within_one / 40000, 0.6827, 0.01);
    EXPECT_NEAR(within_three / 40000, 0.9973, 0.002);
    for (float value : weights.tensors.at("fc.bias").values) EXPECT_EQ(value, 0);
}

TEST(NetworkWeights, ZerosAndOnes) {
    for (const auto& [initialiser, expected] : {std::pair{Initialiser::zeros, 0.0f}, {Initialiser::ones, 1.0f}}) {
        const Weights weights = initial_weights(one_linear("fc", 5, 6, initialiser), 3);
        for (float value : weights.tensors.at("fc.weight").values) EXPECT_EQ(value, expected);
        for (float value : weights.tensors.at("fc.bias").values) EXPECT_EQ(value, 0);
    }
}

TEST(NetworkWeights, RandomOrthogonal) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 3}, {64, 64}, {20, 50}, {50, 20}, {1, 1}}) {
        const Weights weights = initial_weights(one_linear("fc", columns, rows, Initialiser::random_orthogonal), 5);
        const std::vector<float>& w = weights.tensors.at("fc.weight").values;
        const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
        const auto at = [&, c = columns, tall = rows > columns](int64_t vector, int64_t i) {
            return double{w[static_cast<size_t>(tall ? i * c + vector : vector * c + i)]};
        };
        for (int64_t a = 0; a < count; ++a)
            for (int64_t b = 0; b <= a; ++b) {
                double dot = 0;
                for (int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
                EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-6) << rows << " x " << columns;
            }
    }
    // Without a preferred direction: every entry of a 3 x 3 matrix is then uniform between -1 and 1.
    std::vector<std::vector<float>> entries(9);
    for (uint64_t seed = 0; seed < 4000; ++seed) {
        Builder build("one");
        build.output("y", build.mix("mix", build.input("x", points_of(3))));
        const Weights weights = initial_weights(build.finish(), seed);
        for (size_t i = 0; i < 9; ++i) entries[i].push_back(weights.tensors.at("mix.weight").values[i]);
    }
    for (const std::vector<float>& values : entries) {
        const Moments m = moments_of(values);
        EXPECT_NEAR(m.mean, 0, 4 * 0.5774 / std::sqrt(4000.0));
        EXPECT_NEAR(m.deviation, std::sqrt(1.0 / 3), 0.015);
        double within_half = 0;
        for (float value : values) within_half += std::fabs(value) < 0.5f;
        EXPECT_NEAR(within_half / 4000, 0.5, 4 * 0.5 / std::sqrt(4000.0));
    }
}

TEST(NetworkWeights, CheckNamesWhatIsMissing) {
    const Network network = small();
    Weights weights = initial_weights(network, 1);
    weights.tensors.erase("fc.bias");
    EXPECT_ERROR(check_weights(network, weights), bad_file, "linear 'fc': the weights lack 'fc.bias'");
    weights.tensors.erase("flow.mix.weight");
    weights.tensors.erase("stn.conv1.norm.running_var");
    weights.tensors.erase("stn.conv1.weight");
    weights.tensors.erase("stn.conv1.bias");
    EXPECT_ERROR(check_weights(network, weights), bad_file,
                 "linear 'stn.conv1': the weights lack 'stn.conv1.weight', 'stn.conv1.bias', "
                 "'stn.conv1.norm.running_var' and 2 more");
}

TEST(NetworkWeights, CheckNamesLayerTensorAndBothShapes) {
    const Network network = small();
    Weights weights = initial_weights(network, 1);
    weights.tensors["stn.conv1.weight"] = {{16, 6}, std::vector<float>(96)};
    EXPECT_ERROR(check_weights(network, weights), bad_file,
                 "linear 'stn.conv1': tensor 'stn.conv1.weight' should be [16, 3], found [16, 6]");
    weights.tensors["stn.conv1.weight"] = {{16, 3, 1}, std::vector<float>(48)};
    EXPECT_ERROR(check_weights(network, weights), bad_file, "should be [16, 3], found [16, 3, 1]");
    weights.tensors["stn.conv1.weight"] = {{16, 3}, std::vector<float>(47)};
    EXPECT_ERROR(check_weights(network, weights), bad_file, "'stn.conv1.weight' of shape [16, 3] has 47 values");
    weights.tensors["stn.conv1.weight"] = {{}, {1}};
    EXPECT_ERROR(check_weights(network, weights), bad_file, "should be [16, 3], found []");
}

TEST(NetworkWeights, CheckRefusesStrangersAndNonNumbers) {
    const Network network = small();
    Weights weights = initial_weights(network, 1);
    for (float value : {INFINITY, -INFINITY, std::nanf("")}) {
        Weights bad = weights;
        bad.tensors.at("flow.mix.weight").values[200] = value;
        EXPECT_ERROR(check_weights(network, bad), bad_file,
                     "mix 'flow.mix': tensor 'flow.mix.weight' has a value that is not finite at 200");
    }
    weights.tensors["fc.wait\n"] = {{2, 2}, std::vector<float>(4)};
    EXPECT_ERROR(check_weights(network, weights), bad_file, "of shape [2, 2] belongs to no layer of 'small'");
}

TEST(NetworkWeights, ChecksumSeesEverything) {
    const Weights weights = initial_weights(small(), 1);
    const uint64_t sum = checksum(weights);
    Weights other = weights;
    other.metadata["note"] = "not part of it";
    EXPECT_EQ(checksum(other), sum);
    other.tensors.at("fc.weight").values[63] = std::nextafter(other.tensors.at("fc.weight").values[63], 1.0f);
    EXPECT_NE(checksum(other), sum);
    other = weights;
    other.tensors.at("fc.weight").shape = {16, 4};
    EXPECT_NE(checksum(other), sum);
    other = weights;
    auto node = other.tensors.extract("fc.weight");
    node.key() = "fc.waight";
    other.tensors.insert(std::move(node));
    EXPECT_NE(checksum(other), sum);
    other = weights;
    other.tensors["zzz"] = {{0}, {}};
    EXPECT_NE(checksum(other), sum);
    EXPECT_NE(checksum({}), 0u);
}

}  // namespace
}  // namespace stipple::test
