// The type of every kind's output, and what each kind refuses.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/network/builder.h"
#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

/// A builder with an input of every form.
struct Inputs : Builder {
    Inputs() : Builder("types") {}
    Tensor points = input("points", points_of(3));
    Tensor features = input("features", points_of(8));
    Tensor cloud = input("cloud", clouds_of(9));
    Tensor rows = input("rows", rows_of(16, 8));
    Tensor near = knn("near", points, 16);
};

TEST(NetworkType, InText) {
    EXPECT_EQ(to_string(clouds_of(1024)), "[B, 1024]");
    EXPECT_EQ(to_string(points_of(64)), "[B, N, 64]");
    EXPECT_EQ(to_string(rows_of(16, 64)), "[B, N, 16, 64]");
    EXPECT_EQ(to_string({Level::point, 16, 1, true}), "[B, N, 16] int32");
    EXPECT_EQ(to_string(points_of(64, 2)), "[B, N2, 64]");
    EXPECT_EQ(to_string({Level::point, 16, 1, true, 1, 0}), "[B, N1, 16] int32 of set 0");
    EXPECT_EQ(to_string({Level::point, 1, 3, false, 1, 0, 32}), "[B, 32, 3]");
}

TEST(NetworkType, EveryKindHasItsName) {
    EXPECT_EQ(name_of(Kind::input), "input");
    EXPECT_EQ(name_of(Kind::max_points), "max_points");
    EXPECT_EQ(name_of(Kind::edge_distance), "edge_distance");
    EXPECT_EQ(name_of(Kind::gaussian_log_density), "gaussian_log_density");
    EXPECT_EQ(name_of(static_cast<Kind>(static_cast<int>(Kind::gaussian_log_density) + 1)), "unknown");
}

TEST(NetworkType, Input) {
    Inputs b;
    EXPECT_EQ(b.type(b.rows), rows_of(16, 8));
    EXPECT_EQ(b.type(b.input("indices", {Level::point, 4, 1, true})), (TensorType{Level::point, 4, 1, true}));
    EXPECT_ERROR(b.input("a", points_of(0)), bad_argument, "input 'a': channels is 0, must be 1 to 16777216");
    EXPECT_ERROR(b.input("a", rows_of(-1, 3)), bad_argument, "input 'a': width is -1, must be 1 to 16777216");
    EXPECT_ERROR(b.input("a", points_of(int64_t{1} << 40)), bad_argument, "input 'a': channels is 1099511627776");
    EXPECT_ERROR(b.input("a", {Level::cloud, 2, 3}), bad_argument, "input 'a': a cloud has one row of numbers, not 2");
    EXPECT_ERROR(b.input("a", {Level::point, 4, 2, true}), bad_argument, "input 'a': indices have one channel, not 2");
}

TEST(NetworkType, Linear) {
    Inputs b;
    EXPECT_EQ(b.type(b.linear("l1", b.points, 64)), points_of(64));
    EXPECT_EQ(b.type(b.linear("l2", b.cloud, 64)), clouds_of(64));
    EXPECT_EQ(b.type(b.linear("l3", b.rows, 64)), rows_of(16, 64));
    EXPECT_ERROR(b.linear("a", b.near, 64), bad_argument, "linear 'a': needs numbers, 'near' is [B, N, 16] int32");
    EXPECT_ERROR(b.linear("a", b.points, -4), bad_argument, "linear 'a': channels is -4");
    EXPECT_ERROR(b.linear("a", b.points, 4, {.norm = true, .norm_eps = 0}), bad_argument,
                 "linear 'a': norm_eps is 0, must be positive");
    EXPECT_ERROR(b.linear("a", b.points, 4, {.activation = leaky_relu(1)}), bad_argument,
                 "linear 'a': slope of leaky_relu is 1, must be between 0 and 1");
    Network network;
    network.layers = {{"x", Kind::input, {}, {}, "x", points_of(3)}};
    Layer layer{"a", Kind::linear, {0}, {}, "a", {}};
    layer.options.channels = 4;
    layer.options.norm = true;
    layer.options.norm_momentum = 0;
    EXPECT_ERROR(infer_type(network, layer), bad_argument, "linear 'a': norm_momentum is 0");
    layer.inputs = {0, 0};
    EXPECT_ERROR(infer_type(network, layer), bad_argument, "linear 'a': needs 1 input, got 2");
    layer.inputs = {5};
    EXPECT_ERROR(infer_type(network, layer), bad_argument, "linear 'a': input 0 is layer 5 of 1");
}

TEST(NetworkType, RowByRow) {
    Inputs b;
    EXPECT_EQ(b.type(b.activation("k1", b.rows, relu())), rows_of(16, 8));
    EXPECT_EQ(b.type(b.dropout("k2", b.cloud, 0.3f)), clouds_of(9));
    EXPECT_EQ(b.type(b.reverse("k3", b.rows)), rows_of(16, 8));
    EXPECT_EQ(b.type(b.log_softmax("k4", b.cloud)), clouds_of(9));
    EXPECT_EQ(b.type(b.scale("k5", b.points, 2)), points_of(3));
    EXPECT_EQ(b.type(b.sum_channels("k6", b.rows)), rows_of(16, 1));
    EXPECT_EQ(b.type(b.actnorm("k7", b.rows)), rows_of(16, 8));
    EXPECT_EQ(b.type(b.mix("k8", b.points)), points_of(3));
    EXPECT_ERROR(b.activation("a", b.points, {}), bad_argument, "activation 'a': names no activation");
    EXPECT_ERROR(b.activation("a", b.points, leaky_relu(-1)), bad_argument, "slope of leaky_relu is -1");
    EXPECT_ERROR(b.dropout("a", b.points, 1), bad_argument, "dropout 'a': rate is 1, must be at least 0 and below 1");
    EXPECT_ERROR(b.dropout("a", b.points, std::nanf("")), bad_argument, "dropout 'a': rate is nan");
    EXPECT_ERROR(b.scale("a", b.points, INFINITY), bad_argument, "scale 'a': factor is not finite");
    EXPECT_ERROR(b.reverse("a", b.near), bad_argument, "reverse 'a': needs numbers, 'near' is [B, N, 16] int32");
    EXPECT_ERROR(b.mix("a", b.near), bad_argument, "mix 'a': needs numbers");
    EXPECT_ERROR(b.sum_channels("a", b.near), bad_argument, "sum_channels 'a': needs numbers");
}

TEST(NetworkType, Matrices) {
    Inputs b;
    EXPECT_EQ(b.type(b.transform("t1", b.points, b.cloud)), points_of(3));
    EXPECT_EQ(b.type(b.transform("t2", b.input("x", rows_of(4, 3)), b.cloud)), rows_of(4, 3));
    EXPECT_EQ(b.type(b.add_identity("t3", b.cloud)), clouds_of(9));
    EXPECT_ERROR(b.transform("a", b.features, b.cloud), bad_argument,
                 "transform 'a': needs a matrix [B, 64] for 8 channels, 'cloud' is [B, 9]");
    EXPECT_ERROR(b.transform("a", b.points, b.features), bad_argument,
                 "transform 'a': needs one row a cloud [B, c], 'features' is [B, N, 8]");
    EXPECT_ERROR(b.add_identity("a", b.points), bad_argument, "add_identity 'a': needs one row a cloud");
    EXPECT_ERROR(b.add_identity("a", b.input("c8", clouds_of(8))), bad_argument,
                 "add_identity 'a': needs a square matrix [B, k*k], 'c8' is [B, 8]");
}

TEST(NetworkType, Reductions) {
    Inputs b;
    EXPECT_EQ(b.type(b.max_points("m1", b.features)), clouds_of(8));
    EXPECT_EQ(b.type(b.max_points("m2", b.rows)), clouds_of(8));
    EXPECT_EQ(b.type(b.sum_points("m3", b.rows)), clouds_of(8));
    EXPECT_EQ(b.type(b.max_rows("m4", b.rows)), points_of(8));
    EXPECT_EQ(b.type(b.softmax_rows("m5", b.rows)), rows_of(16, 8));
    EXPECT_EQ(b.type(b.gaussian_log_density("m6", b.points)), clouds_of(1));
    EXPECT_ERROR(b.max_points("a", b.cloud), bad_argument,
                 "max_points 'a': needs rows of points [B, N, c], 'cloud' is [B, 9]");
    EXPECT_ERROR(b.sum_points("a", b.cloud), bad_argument, "sum_points 'a': needs rows of points");
    EXPECT_ERROR(b.max_rows("a", b.cloud), bad_argument, "max_rows 'a': needs rows of points");
    EXPECT_ERROR(b.softmax_rows("a", b.cloud), bad_argument, "softmax_rows 'a': needs rows of points");
    EXPECT_ERROR(b.max_points("a", b.near), bad_argument, "max_points 'a': needs numbers");
    EXPECT_ERROR(b.gaussian_log_density("a", b.rows), bad_argument,
                 "gaussian_log_density 'a': needs one row a point [B, N, c], 'rows' is [B, N, 16, 8]");
}

TEST(NetworkType, Channels) {
    Inputs b;
    EXPECT_EQ(b.type(b.concat("c1", {b.points, b.features, b.points})), points_of(14));
    EXPECT_EQ(b.type(b.concat("c2", {b.cloud})), clouds_of(9));
    EXPECT_EQ(b.type(b.slice("c3", b.rows, 2, 8)), rows_of(16, 6));
    EXPECT_ERROR(b.concat("a", {}), bad_argument, "concat 'a': needs at least one input");
    EXPECT_ERROR(b.concat("a", {b.points, b.cloud}), bad_argument,
                 "concat 'a': needs inputs with the same rows, 'points' is [B, N, 3] and 'cloud' is [B, 9]");
    EXPECT_ERROR(b.concat("a", {b.features, b.rows}), bad_argument, "concat 'a': needs inputs with the same rows");
    EXPECT_ERROR(b.concat("a", {b.rows, b.near}), bad_argument, "concat 'a': needs numbers");
    for (const auto& [begin, end] : {std::pair{-1, 2}, {2, 2}, {3, 2}, {0, 4}})
        EXPECT_ERROR(b.slice("a", b.points, begin, end), bad_argument,
                     fmt::format("slice 'a': cannot take channels {} to {}, 'points' is [B, N, 3]", begin, end));
    const Tensor wide = b.input("wide", points_of(int64_t{1} << 24));
    EXPECT_ERROR(b.concat("a", {wide, wide}), bad_argument, "concat 'a': channels of the output is 33554432");
}

TEST(NetworkType, Repeat) {
    Inputs b;
    EXPECT_EQ(b.type(b.repeat("r1", b.cloud)), points_of(9));
    EXPECT_EQ(b.type(b.repeat("r2", b.features, 4)), rows_of(4, 8));
    EXPECT_EQ(b.type(b.repeat("r3", b.features)), points_of(8));
    EXPECT_ERROR(b.repeat("a", b.cloud, 4), bad_argument,
                 "repeat 'a': repeats a cloud's row for every point with width 1, not 4; 'cloud' is [B, 9]");
    EXPECT_ERROR(b.repeat("a", b.rows, 4), bad_argument, "repeat 'a': needs one row a point");
    EXPECT_ERROR(b.repeat("a", b.features, 0), bad_argument, "repeat 'a': width is 0");
    EXPECT_ERROR(b.repeat("a", b.near, 1), bad_argument, "repeat 'a': needs numbers");
}

TEST(NetworkType, Neighbours) {
    Inputs b;
    EXPECT_EQ(b.type(b.near), (TensorType{Level::point, 16, 1, true}));
    EXPECT_EQ(b.type(b.gather("n1", b.features, b.near)), rows_of(16, 8));
    EXPECT_EQ(b.type(b.edge("n2", b.features, b.near)), rows_of(16, 24));
    EXPECT_EQ(b.type(b.edge_distance("n3", b.points, b.near)), rows_of(16, 10));
    EXPECT_ERROR(b.knn("a", b.points, 0), bad_argument, "knn 'a': k is 0, must be 1 to");
    EXPECT_ERROR(b.knn("a", b.rows, 4), bad_argument, "knn 'a': needs one row a point");
    EXPECT_ERROR(b.gather("a", b.near, b.features), bad_argument, "gather 'a': needs numbers");
    EXPECT_ERROR(b.gather("a", b.features, b.points), bad_argument,
                 "gather 'a': needs indices [B, N, k] int32, 'points' is [B, N, 3]");
    EXPECT_ERROR(b.edge("a", b.rows, b.near), bad_argument, "edge 'a': needs one row a point");
    EXPECT_ERROR(b.edge_distance("a", b.cloud, b.near), bad_argument, "edge_distance 'a': needs rows of points");
    const Tensor wide = b.input("wide", points_of(int64_t{1} << 23));
    EXPECT_ERROR(b.edge("a", wide, b.near), bad_argument, "edge 'a': channels of the output is 25165824");
}

TEST(NetworkType, Interpolate) {
    Inputs b;
    const Tensor weights = b.input("weights", rows_of(16, 4));
    const Tensor values = b.gather("values", b.points, b.near);
    EXPECT_EQ(b.type(b.interpolate("i", weights, values)), rows_of(4, 3));
    EXPECT_ERROR(b.interpolate("a", b.input("w8", rows_of(8, 4)), values), bad_argument,
                 "interpolate 'a': needs weights and values of the same rows, 'w8' is [B, N, 8, 4] and 'values' is "
                 "[B, N, 16, 3]");
    EXPECT_ERROR(b.interpolate("a", b.cloud, values), bad_argument, "interpolate 'a': needs rows of points");
    EXPECT_ERROR(b.interpolate("a", weights, b.near), bad_argument, "interpolate 'a': needs numbers");
}

TEST(NetworkType, Sums) {
    Inputs b;
    EXPECT_EQ(b.type(b.add("s1", b.points, b.points)), points_of(3));
    EXPECT_EQ(b.type(b.subtract("s2", b.rows, b.rows)), rows_of(16, 8));
    EXPECT_ERROR(b.add("a", b.points, b.features), bad_argument,
                 "add 'a': needs inputs of one type, 'points' is [B, N, 3] and 'features' is [B, N, 8]");
    EXPECT_ERROR(b.subtract("a", b.near, b.near), bad_argument, "subtract 'a': needs numbers");
}

TEST(NetworkType, FlowSteps) {
    Inputs b;
    const Tensor condition = b.linear("condition", b.points, flow_condition_channels(3, 5));
    EXPECT_EQ(b.type(b.flow_step("s1", b.points, condition, {.hidden = 5})), points_of(3));
    EXPECT_EQ(b.type(b.flow_step("s2", b.points, condition, {.hidden = 5, .steps = 4, .log_det = true})), points_of(4));
    EXPECT_EQ(b.type(b.flow_step("s3", b.points, condition, {.hidden = 5, .inverse = true}, "s1")), points_of(3));
    EXPECT_ERROR(b.flow_step("a", b.points, condition, {.hidden = 65}), bad_argument,
                 "flow_step 'a': its hidden layers have 65 channels, must be 1 to 64");
    EXPECT_ERROR(b.flow_step("a", b.points, condition, {.hidden = 6}), bad_argument,
                 "flow_step 'a': needs a condition of 30 channels for 6 hidden ones, 'condition' is [B, N, 26]");
    EXPECT_ERROR(b.flow_step("a", b.points, condition, {.hidden = 5, .steps = -1}), bad_argument, "steps is -1");
    EXPECT_ERROR(b.flow_step("a", b.points, condition, {.hidden = 5, .activation = relu()}), bad_argument,
                 "flow_step 'a': its activation is relu, must be tanh or swish");
    EXPECT_ERROR(b.flow_step("a", b.rows, condition, {.hidden = 5}), bad_argument, "moves 3 channels at most");
    EXPECT_ERROR(b.flow_step("a", b.points, condition, {.hidden = 5}, "s2"), bad_argument,
                 "shares the parameters of flow_step 's2' but not 's2.time'");
    b.output("y", b.flow_step("s4", b.points, condition, {.hidden = 5, .steps = 2}));
    const std::string text = to_text(b.finish());
    EXPECT_NE(text.find("flow_step residual, hidden 5, swish"), std::string::npos) << text;
    EXPECT_NE(text.find("flow_step ode, 4 steps, hidden 5, swish, log_det"), std::string::npos) << text;
}

TEST(NetworkType, Flows) {
    Inputs b;
    const Tensor t = b.input("t", points_of(2));
    EXPECT_EQ(b.type(b.couple("f1", b.points, t, 1)), points_of(3));
    EXPECT_EQ(b.type(b.couple("f2", b.points, b.points, 0, true)), points_of(3));
    EXPECT_EQ(b.type(b.inject("f3", b.points, b.points, b.points)), points_of(3));
    b.actnorm("norm", b.points);
    b.mix("mix", b.features);
    EXPECT_EQ(b.type(b.flow_log_det("f4", b.points, "norm")), clouds_of(1));
    EXPECT_EQ(b.type(b.flow_log_det("f5", b.features, "mix")), clouds_of(1));
    EXPECT_ERROR(b.couple("a", b.points, t, 2), bad_argument,
                 "couple 'a': needs 1 channels to add from channel 2 on, 't' is [B, N, 2]");
    EXPECT_ERROR(b.couple("a", b.points, t, 3), bad_argument, "couple 'a': begin is 3, must be inside the channels");
    EXPECT_ERROR(b.couple("a", b.points, t, -1), bad_argument, "couple 'a': begin is -1");
    EXPECT_ERROR(b.couple("a", b.points, b.cloud, 1), bad_argument, "couple 'a': needs inputs with the same rows");
    EXPECT_ERROR(b.inject("a", b.points, t, b.points), bad_argument, "inject 'a': needs inputs of one type");
    EXPECT_ERROR(b.inject("a", b.points, b.points, t), bad_argument, "inject 'a': needs inputs of one type");
    EXPECT_ERROR(b.flow_log_det("a", b.points, ""), bad_argument, "flow_log_det 'a': needs the name of an actnorm");
    EXPECT_ERROR(b.flow_log_det("a", b.points, "f1"), bad_argument,
                 "flow_log_det 'a': needs the name of an actnorm or mix, got 'f1'");
    EXPECT_ERROR(b.flow_log_det("a", b.features, "norm"), bad_argument,
                 "flow_log_det 'a': actnorm 'norm' has 3 channels, 'features' is [B, N, 8]");
    EXPECT_ERROR(b.flow_log_det("a", b.rows, "mix"), bad_argument, "flow_log_det 'a': needs one row a point");
}

TEST(NetworkType, NumberOfInputs) {
    Network network;
    network.layers = {{"x", Kind::input, {}, {}, "x", points_of(3)}};
    for (int kind = 0; kind <= static_cast<int>(Kind::gaussian_log_density); ++kind) {
        Layer layer{"a", static_cast<Kind>(kind), {}, {}, "a", {}};
        layer.options.type = points_of(3);
        layer.inputs.assign(layer.kind == Kind::input ? 1 : layer.kind == Kind::concat ? 0 : 4, 0);
        EXPECT_ERROR(infer_type(network, layer), bad_argument, " input");
    }
}

TEST(NetworkType, KindsOfNumbers) {
    Inputs b;
    EXPECT_EQ(b.type(b.multiply("m", b.points, b.points)), points_of(3));
    EXPECT_ERROR(b.multiply("a", b.points, b.features), bad_argument,
                 "multiply 'a': needs inputs of one type, 'points' is [B, N, 3] and 'features' is [B, N, 8]");
    EXPECT_EQ(b.type(b.layer_norm("n", b.rows)), rows_of(16, 8));
    EXPECT_ERROR(b.layer_norm("a", b.rows, 0), bad_argument, "layer_norm 'a': norm_eps is 0, must be positive");
    EXPECT_EQ(b.type(b.rotation("r", b.slice("four", b.rows, 0, 4))), rows_of(16, 9));
    EXPECT_ERROR(b.rotation("a", b.points), bad_argument,
                 "rotation 'a': needs quaternions of 4 channels, 'points' is [B, N, 3]");
    EXPECT_EQ(b.type(b.learned("l", 5)), clouds_of(5));
    EXPECT_ERROR(b.learned("a", 5, Initialiser::xavier_normal), bad_argument,
                 "learned 'a': starts xavier_normal, must be zeros or ones");
    EXPECT_ERROR(b.activation("a", b.points, elu(0)), bad_argument,
                 "activation 'a': slope of elu is 0, must be between 0 and inf");
}

TEST(NetworkType, PointSets) {
    Inputs b;
    const Tensor queries = b.input("queries", points_of(3, 1));
    EXPECT_EQ(b.type(b.linear("l", queries, 5)), points_of(5, 1));
    EXPECT_EQ(b.type(b.repeat("r", queries, 4)), rows_of(4, 3, 1));
    EXPECT_EQ(b.type(b.max_rows("m", b.repeat("r2", queries, 4))), points_of(3, 1));
    EXPECT_EQ(b.type(b.max_points("p", queries)), clouds_of(3));
    EXPECT_EQ(b.type(b.repeat_for_set("s", b.cloud, 1)), points_of(9, 1));
    const Tensor across = b.knn("across", queries, b.points, 6);
    EXPECT_EQ(b.type(across), (TensorType{Level::point, 6, 1, true, 1, 0}));
    EXPECT_EQ(b.type(b.gather("g", b.features, across)), rows_of(6, 8, 1));
    EXPECT_ERROR(b.add("a", b.points, queries), bad_argument,
                 "add 'a': needs inputs of one type, 'points' is [B, N, 3] and 'queries' is [B, N1, 3]");
    EXPECT_ERROR(b.concat("a", {b.points, queries}), bad_argument,
                 "concat 'a': needs inputs with the same rows, 'points' is [B, N, 3] and 'queries' is [B, N1, 3]");
    EXPECT_ERROR(b.gather("a", queries, across), bad_argument,
                 "gather 'a': needs indices of the points of its set, 'queries' is [B, N1, 3] and 'across' is "
                 "[B, N1, 6] int32 of set 0");
    EXPECT_ERROR(b.edge("a", b.points, across), bad_argument, "edge 'a': needs indices from and to the points of its");
    EXPECT_ERROR(b.knn("a", queries, b.features, 6), bad_argument,
                 "knn 'a': needs queries and points of the same channels");
    EXPECT_ERROR(b.repeat_for_set("a", b.cloud, 7), bad_argument, "repeat 'a': no layer before it has points of set 7");
    EXPECT_ERROR(b.input("a", points_of(3, 64)), bad_argument, "input 'a': point set 64, must be 0 to 63");
    TensorType cloud = clouds_of(3);
    cloud.set = 1;
    EXPECT_ERROR(b.input("a", cloud), bad_argument, "input 'a': a cloud is in no point set, not in 1");

    const Tensor made = b.unflatten("made", b.cloud, 3);
    EXPECT_EQ(b.type(made), (TensorType{Level::point, 1, 3, false, 2, 0, 3}));
    EXPECT_EQ(b.type(b.unflatten("more", b.linear("six", b.cloud, 6), 2, 2)),
              (TensorType{Level::point, 1, 2, false, 2, 0, 3}));
    EXPECT_EQ(b.type(b.repeat_for_set("codes", b.cloud, 2)), (TensorType{Level::point, 1, 9, false, 2, 0, 3}));
    EXPECT_EQ(b.next_set(), 3);
    EXPECT_ERROR(b.unflatten("a", b.cloud, 2), bad_argument,
                 "unflatten 'a': needs a multiple of 2 channels, 'cloud' is");
    EXPECT_ERROR(b.unflatten("a", b.cloud, 1, 2), bad_argument,
                 "unflatten 'a': makes 9 points of set 2, made is [B, 3, 3]");
    EXPECT_ERROR(b.unflatten("a", b.cloud, 3, 0), bad_argument, "unflatten 'a': makes 3 points of set 0, points is");
    EXPECT_ERROR(b.unflatten("a", b.points, 3), bad_argument, "unflatten 'a': needs one row a cloud");
    EXPECT_ERROR(b.input("a", points_of(3, 2)), bad_argument,
                 "input 'a': the points of set 2 are counted by the network");
}

TEST(NetworkType, Attention) {
    Inputs b;
    const Tensor others = b.input("others", points_of(3, 1));
    const Tensor wide = b.linear("wide", b.points, 300);
    EXPECT_EQ(b.type(b.attend("a1", b.points, b.points, b.features)), b.type(b.features));
    EXPECT_EQ(b.type(b.attend("a2", b.points, others, others)), points_of(3));
    EXPECT_EQ(b.type(b.attend("a3", others, b.points, b.features)), points_of(b.type(b.features).channels, 1));
    EXPECT_ERROR(b.attend("a", b.points, wide, wide), bad_argument,
                 "attend 'a': needs queries and keys of the same channels");
    EXPECT_ERROR(b.attend("a", b.points, others, b.points), bad_argument,
                 "attend 'a': needs inputs with the same rows");
    EXPECT_ERROR(b.attend("a", b.points, others, others, {.skips_self = true}), bad_argument,
                 "attend 'a': a query is none of its keys");
    EXPECT_ERROR(b.attend("a", wide, wide, b.points), bad_argument, "attend 'a': takes 256 channels at most");
    EXPECT_ERROR(b.attend("a", b.points, b.points, wide), bad_argument, "attend 'a': takes 256 channels at most");
    EXPECT_ERROR(b.attend("a", b.rows, b.rows, b.rows), bad_argument, "attend 'a': needs one row a point");
    EXPECT_ERROR(b.attend("a", b.cloud, b.points, b.points), bad_argument, "attend 'a': needs rows of points");
    EXPECT_ERROR(b.attend("a", b.points, b.points, b.points, {.factor = INFINITY}), bad_argument, "factor is inf");
    b.output("y", b.attend("a4", b.points, b.points, b.points,
                           {.normalise = Normalise::none, .factor = 2, .unit = true, .skips_self = true}));
    const Network network = b.finish();
    EXPECT_NE(to_text(network).find("attend none, x 2, cosine, not itself"), std::string::npos) << to_text(network);
}

TEST(NetworkType, ConstantsAndRegroupedRows) {
    Inputs b;
    EXPECT_EQ(b.type(b.constant("c", {1, 2, 3})), clouds_of(3));
    EXPECT_ERROR(b.constant("a", {}), bad_argument, "constant 'a': has no numbers");
    EXPECT_ERROR(b.constant("a", {1, NAN}), bad_argument, "constant 'a': one of its numbers is nan");
    const TensorType rows = b.type(b.rows);
    EXPECT_EQ(b.type(b.regroup("flat", b.rows, rows.width * rows.channels)), points_of(rows.width * rows.channels));
    EXPECT_EQ(b.type(b.regroup("single", b.points, 1)), rows_of(3, 1));
    EXPECT_ERROR(b.regroup("a", b.points, 2), bad_argument,
                 "regroup 'a': cannot cut 3 numbers of a point into rows of 2, 'points' is [B, N, 3]");
    EXPECT_ERROR(b.regroup("a", b.points, 0), bad_argument, "regroup 'a': channels is 0");
    EXPECT_ERROR(b.regroup("a", b.cloud, 3), bad_argument, "regroup 'a': needs rows of points");
}

}  // namespace
}  // namespace stipple::test
