// What a Builder hands over: the graph, its parameters, sharing, cost; and everything that validate() refuses.

#include "stipple/network/builder.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

/// The header's example.
Network small_classifier() {
    Builder build("pointnet-classifier");
    Tensor x = build.input("points", points_of(3));
    x = build.linear("conv1", x, 64, {.norm = true, .activation = relu()});
    x = build.max_points("pool", x);
    build.output("logits", build.linear("fc", x, 40));
    return build.finish({{"classes", "40"}});
}

std::vector<std::string> names_of(const std::vector<Parameter>& parameters) {
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters) names.push_back(parameter.name);
    return names;
}

TEST(NetworkBuilder, WritesWhatItWasTold) {
    const Network network = small_classifier();
    EXPECT_EQ(network.name, "pointnet-classifier");
    EXPECT_EQ(network.config.at("classes"), "40");
    ASSERT_EQ(network.layers.size(), 4u);
    EXPECT_EQ(network[1].name, "conv1");
    EXPECT_EQ(network[1].kind, Kind::linear);
    EXPECT_EQ(network[1].inputs, std::vector<Tensor>{0});
    EXPECT_EQ(network[1].parameters, "conv1");
    EXPECT_EQ(network[1].options.activation, relu());
    EXPECT_EQ(network[3].type, clouds_of(40));
    ASSERT_EQ(network.outputs.size(), 1u);
    EXPECT_EQ(network.outputs[0].name, "logits");
    EXPECT_EQ(network.outputs[0].tensor, 3);
    EXPECT_NO_THROW(validate(network));
}

TEST(NetworkBuilder, NamesAndShapesOfParameters) {
    const Network network = small_classifier();
    const std::vector<Parameter> all = parameters_of(network);
    EXPECT_EQ(names_of(all),
              (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv1.norm.weight", "conv1.norm.bias",
                                        "conv1.norm.running_mean", "conv1.norm.running_var", "fc.weight", "fc.bias"}));
    EXPECT_EQ(all[0].shape, (std::vector<int64_t>{64, 3}));
    EXPECT_EQ(all[5].shape, (std::vector<int64_t>{64}));
    EXPECT_EQ(all[0].initialiser, Initialiser::fan_in_uniform);
    EXPECT_EQ(all[1].initialiser, Initialiser::fan_in_uniform);
    EXPECT_EQ(all[2].initialiser, Initialiser::ones);
    EXPECT_EQ(all[3].initialiser, Initialiser::zeros);
    EXPECT_EQ(all[4].initialiser, Initialiser::zeros);
    EXPECT_EQ(all[5].initialiser, Initialiser::ones);
    for (const Parameter& parameter : all)
        EXPECT_EQ(parameter.is_trained, parameter.name.find("running") == std::string::npos) << parameter.name;
    EXPECT_EQ(all[3].layer, "conv1");
    EXPECT_EQ(all[6].layer, "fc");
    EXPECT_TRUE(parameters_of(network, network[0]).empty());
    EXPECT_TRUE(parameters_of(network, network[2]).empty());
}

TEST(NetworkBuilder, ParametersOfFlowsAreSharedWithTheirInverse) {
    Builder build("flow");
    const Tensor x = build.input("points", points_of(3));
    Tensor z = build.actnorm("norm", x);
    z = build.mix("turn", z);
    const Tensor of_norm = build.flow_log_det("log_det.norm", z, "norm");
    const Tensor log_det = build.add("log_det", of_norm, build.flow_log_det("log_det.turn", z, "turn"));
    Tensor back = build.mix("turn.back", z, true, "turn");
    back = build.actnorm("norm.back", back, true, "norm");
    build.output("points", back);
    build.output("log_det", log_det);
    const Network network = build.finish();
    EXPECT_EQ(names_of(parameters_of(network)), (std::vector<std::string>{"norm.logs", "norm.bias", "turn.weight"}));
    const std::vector<Parameter> mix = parameters_of(network, network[2]);
    ASSERT_EQ(mix.size(), 1u);
    EXPECT_EQ(mix[0].shape, (std::vector<int64_t>{3, 3}));
    EXPECT_EQ(mix[0].initialiser, Initialiser::random_orthogonal);
    // The log-determinant reads those of the layer it names.
    EXPECT_EQ(names_of(parameters_of(network, network[3])), (std::vector<std::string>{"norm.logs", "norm.bias"}));
    EXPECT_EQ(names_of(parameters_of(network, network[4])), (std::vector<std::string>{"turn.weight"}));
    EXPECT_EQ(parameters_of(network)[2].layer, "turn");
}

TEST(NetworkBuilder, ABiasStartsAsItsWeights) {
    for (Initialiser weights : {Initialiser::zeros, Initialiser::fan_in_uniform, Initialiser::xavier_normal}) {
        Builder build("n");
        build.output("y", build.linear("fc", build.input("x", clouds_of(8)), 4, {.weights = weights}));
        const std::vector<Parameter> all = parameters_of(build.finish());
        EXPECT_EQ(all[0].initialiser, weights);
        EXPECT_EQ(all[1].initialiser,
                  weights == Initialiser::fan_in_uniform ? Initialiser::fan_in_uniform : Initialiser::zeros);
    }
}

TEST(NetworkBuilder, CountsMultiplyAdds) {
    const Network network = small_classifier();
    EXPECT_EQ(multiply_adds(network, 1024), 1024 * 3 * 64 + 64 * 40);
    EXPECT_EQ(multiply_adds(network, 0), 64 * 40);
    EXPECT_ERROR(multiply_adds(network, -1), bad_argument, "-1 points");

    Builder build("all-products");
    const Tensor x = build.input("x", points_of(4));
    const Tensor matrix = build.linear("matrix", build.max_points("pool", x), 16);  // 4 * 16
    const Tensor moved = build.mix("mix", build.transform("move", x, matrix));      // 16 + 16 a point
    const Tensor near = build.knn("near", x, 5);
    const Tensor weights = build.linear("weights", build.edge("edge", moved, near), 2);  // 5 * 12 * 2 a point
    const Tensor values = build.gather("values", moved, near);
    build.output("y", build.interpolate("y", build.softmax_rows("soft", weights), values));  // 5 * 2 * 4 a point
    EXPECT_EQ(multiply_adds(build.finish(), 10), 64 + 10 * (16 + 16 + 120 + 40));
}

TEST(NetworkBuilder, MistakesNameTheLayer) {
    Builder build("n");
    const Tensor x = build.input("x", points_of(3));
    EXPECT_ERROR(build.linear("stn.conv1", x, 0), bad_argument, "linear 'stn.conv1': channels is 0, must be 1 to ");
    EXPECT_ERROR(build.linear("Conv", x, 4), bad_argument, "a name is made of a-z, 0-9, '_', '.' and '-', not 'Conv'");
    EXPECT_ERROR(build.linear("", x, 4), bad_argument, "a name is made of");
    EXPECT_ERROR(build.linear("x", x, 4), bad_argument, "linear 'x': input 'x' has the same name");
    EXPECT_ERROR(build.linear("y", 7, 4), bad_argument, "linear 'y': needs layers before it as inputs, got number 7");
    EXPECT_ERROR(build.linear("y", -1, 4), bad_argument, "linear 'y': needs layers before it as inputs, got number -1");
    EXPECT_ERROR(build.output("Y", x), bad_argument, "output: a name is made of");
    EXPECT_ERROR(build.output("y", 1), bad_argument, "output 'y': is layer 1 of 1");
    // A refused layer leaves nothing behind.
    EXPECT_EQ(build.linear("y", x, 4), 1);
}

TEST(NetworkBuilder, SharingIsOfWholeLayersOfOneKind) {
    Builder build("n");
    const Tensor x = build.input("x", points_of(3));
    const Tensor wide = build.linear("wide", x, 8);
    build.linear("a", x, 4, {.norm = true});
    build.actnorm("norm", x);
    EXPECT_NO_THROW(build.linear_sharing("b", x, 4, {.norm = true, .activation = relu()}, "a"));
    EXPECT_ERROR(build.linear_sharing("c", x, 4, {}, "none"), bad_argument,
                 "linear 'c': no layer before it has the parameters 'none'");
    EXPECT_ERROR(build.linear_sharing("c", x, 4, {}, "b"), bad_argument,
                 "linear 'c': no layer before it has the parameters 'b'");
    EXPECT_ERROR(build.linear_sharing("c", x, 4, {}, "a"), bad_argument,
                 "linear 'c': shares the parameters of linear 'a' but not 'a.norm.weight'");
    EXPECT_ERROR(build.linear_sharing("c", x, 8, {.norm = true}, "wide"), bad_argument,
                 "linear 'c': needs 'wide.norm.weight', which linear 'wide' has not");
    EXPECT_ERROR(build.linear_sharing("c", wide, 8, {}, "wide"), bad_argument,
                 "linear 'c': needs 'wide.weight' of shape [8, 8], linear 'wide' has [8, 3]");
    EXPECT_ERROR(build.mix("c", x, true, "norm"), bad_argument,
                 "mix 'c': cannot share the parameters of actnorm 'norm'");
}

TEST(NetworkBuilder, FinishAsksForInputsOutputsAndDistinctParameters) {
    Builder empty("n");
    EXPECT_ERROR(empty.finish(), bad_argument, "network 'n': has no input");
    Builder silent("n");
    silent.input("x", points_of(3));
    EXPECT_ERROR(silent.finish(), bad_argument, "network 'n': has no output");
    Builder twice("n");
    twice.output("y", twice.input("x", points_of(3)));
    twice.output("y", 0);
    EXPECT_ERROR(twice.finish(), bad_argument, "output 'y': is there twice");
    Builder clash("n");
    const Tensor x = clash.linear("a", clash.input("x", points_of(3)), 4, {.norm = true});
    clash.output("y", clash.linear("a.norm", x, 4));
    EXPECT_ERROR(clash.finish(), bad_argument, "linear 'a.norm': its parameter 'a.norm.weight' is also one of 'a'");
    Builder unnamed("No Name");
    unnamed.output("y", unnamed.input("x", points_of(3)));
    EXPECT_ERROR(unnamed.finish(), bad_argument, "network: a name is made of");
}

TEST(NetworkValidate, RefusesWhatWasChangedBehindTheBuilder) {
    const Network good = small_classifier();
    Network bad = good;
    bad.layers[1].type.channels = 65;
    EXPECT_ERROR(validate(bad), bad_argument, "linear 'conv1': its type is written as [B, N, 65], it is [B, N, 64]");
    bad = good;
    bad.layers[1].inputs = {2};
    EXPECT_ERROR(validate(bad), bad_argument, "linear 'conv1': needs layers before it as inputs, got number 2");
    bad = good;
    bad.layers[3].name = "pool";
    EXPECT_ERROR(validate(bad), bad_argument, "linear 'pool': max_points 'pool' has the same name");
    bad = good;
    bad.layers[2].parameters = "conv1";
    EXPECT_ERROR(validate(bad), bad_argument, "max_points 'pool': has no parameters to share with 'conv1'");
    bad = good;
    bad.layers[1].parameters = "fc";  // which comes later
    EXPECT_ERROR(validate(bad), bad_argument, "linear 'conv1': no layer before it has the parameters 'fc'");
    bad = good;
    bad.outputs[0].tensor = -1;
    EXPECT_ERROR(validate(bad), bad_argument, "output 'logits': is layer -1 of 4");
    bad = good;
    bad.layers[2].kind = static_cast<Kind>(99);
    EXPECT_ERROR(validate(bad), bad_argument, "unknown kind 99");
}

}  // namespace
}  // namespace stipple::test
