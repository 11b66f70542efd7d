// The table that people read.

#include <gtest/gtest.h>

#include "stipple/network/builder.h"
#include "stipple/network/describe.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

TEST(NetworkText, IsATableAPersonCanRead) {
    Builder build("small");
    Tensor x = build.input("points", points_of(3));
    const Tensor a =
        build.linear("conv1", x, 64, {.bias = false, .norm = true, .norm_eps = 1e-3f, .activation = relu()});
    const Tensor b = build.linear_sharing("conv1.again", x, 64, {.bias = false, .norm = true}, "conv1");
    x = build.max_points("pool", build.concat("both", {a, b}));
    build.output("logits", build.linear("fc", build.dropout("drop", x, 0.3f), 1000, {.weights = Initialiser::zeros}));
    EXPECT_EQ(to_text(build.finish({{"classes", "1000"}})),
              "small\n"
              "  classes = 1000\n"
              "\n"
              "layer        kind                                        inputs              output       parameters\n"
              "points       input                                                           [B, N, 3]\n"
              "conv1        linear 64, no bias, norm eps 0.001, relu    points              [B, N, 64]          320\n"
              "conv1.again  linear 64, no bias, norm, weights of conv1  points              [B, N, 64]\n"
              "both         concat                                      conv1, conv1.again  [B, N, 128]\n"
              "pool         max_points                                  both                [B, 128]\n"
              "drop         dropout 0.3                                 pool                [B, 128]\n"
              "fc           linear 1000, starts zeros                   drop                [B, 1000]       129,000\n"
              "\n"
              "output logits = fc [B, 1000]\n"
              "7 layers, 129,320 parameters, 0.521 MMAC for 1024 points\n"
              "128 numbers of running statistics\n");
}

TEST(NetworkText, OptionsOfEveryKindAreTold) {
    Builder build("options");
    const Tensor x = build.input("x", points_of(3));
    const auto told = [&](Tensor tensor, const std::string& text) {
        build.output("y" + std::to_string(tensor), tensor);
        EXPECT_EQ(options_text(Builder(build).finish()[tensor]), text);
    };
    told(build.activation("act", x, leaky_relu(0.05f)), "leaky_relu 0.05");
    told(build.slice("slice", x, 1, 3), "channels 1 to 2");
    told(build.slice("slice1", x, 1, 2), "channel 1");
    told(build.repeat("repeat", x, 4), "x 4");
    told(build.repeat("repeat1", x, 1), "");
    told(build.knn("knn", x, 16), "k 16");
    told(build.scale("scale", x, -0.5f), "x -0.5");
    told(build.actnorm("norm", x), "");
    told(build.actnorm("norm.back", x, true, "norm"), "inverse, weights of norm");
    told(build.mix("mix", x, true), "inverse");
    told(build.couple("couple", x, build.slice("t", x, 0, 2), 1, true), "from channel 1, inverse");
    told(build.inject("inject", x, x, x), "");
    told(build.flow_log_det("det", x, "mix"), "weights of mix");
    told(build.activation("elu", x, elu()), "elu 1");
    told(build.activation("gelu", x, gelu()), "gelu");
    told(build.layer_norm("layer_norm", x), "");
    told(build.layer_norm("layer_norm1", x, 1e-3f), "eps 0.001");
    const Tensor four = build.learned("four", 4);
    told(four, "4, starts ones");
    EXPECT_EQ(brief_options_text(Builder(build).finish()[four]), "4");
    told(build.rotation("rotation", four, true), "inverse");
    told(build.unflatten("made", four, 2), "2 of set 1");
    told(build.repeat_for_set("for_made", four, 1), "for set 1");
    told(build.attend("attend", x, x, x), "row");
    told(build.attend("cosine", x, x, x, {.normalise = Normalise::joint, .factor = 0.5f, .unit = true}),
         "joint, x 0.5, cosine");
    told(build.constant("few", {1, -0.5f}), "1, -0.5");
    told(build.constant("many", std::vector<float>(9, 1.0f)), "9 numbers");
    told(build.regroup("regroup", x, 1), "rows of 1");
    told(build.activation("log", x, network::log(0.5f)), "log 0.5");
}

TEST(NetworkText, NumbersAreGrouped) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(3471049), "3,471,049");
    EXPECT_EQ(grouped(-123456), "-123,456");
}

}  // namespace
}  // namespace stipple::test
