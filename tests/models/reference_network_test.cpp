// The oracle itself, on numbers small enough to do by hand. PU-Flow's published tensors (puflow_test.cpp) prove the
// kinds that are not here.

#include "tests/support/reference_network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/network/builder.h"

namespace stipple::network {
namespace {

using test::ReferenceRun;

Array<float, 2> rows_of_numbers(int64_t channels, const std::vector<float>& values) {
    Array<float, 2> rows({static_cast<int64_t>(values.size()) / channels, channels});
    std::copy(values.begin(), values.end(), rows.data());
    return rows;
}

void expect_values(const ReferenceRun& run, const char* layer, const std::vector<double>& expected) {
    const std::vector<double>& found = run.layer(layer).values;
    ASSERT_EQ(found.size(), expected.size()) << layer;
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << layer << " " << i;
}

TEST(ReferenceNetwork, CloudsOfARaggedBatchKeepToThemselves) {
    Builder build("small");
    const Tensor x = build.input("x", points_of(2)), t = build.input("t", clouds_of(4));
    const Tensor turned = build.transform("turned", x, build.add_identity("matrix", t));
    const Tensor largest = build.max_points("largest", turned), sum = build.sum_points("sum", x);
    build.concat("both", {x, build.repeat("again", largest)});
    build.repeat("twice", x, 2);
    build.output("y", build.log_softmax("logs", sum));
    const Network network = build.finish();
    // Clouds {(1, 2)} and {(3, -1), (0, 5)}; matrices I + [0 1; 0 0] and I + [0 0; 1 -1].
    const Array<float, 2> points = rows_of_numbers(2, {1, 2, 3, -1, 0, 5});
    const Array<float, 2> matrices = rows_of_numbers(4, {0, 1, 0, 0, 0, 0, 1, -1});
    const ReferenceRun run = test::run_reference(network, {}, ops::Batch::ragged({0, 1, 3}),
                                                 {{"x", points.view()}, {"t", matrices.view()}}, test::Keep::all);
    expect_values(run, "turned", {1, 3, 2, 0, 5, 0});
    expect_values(run, "largest", {1, 3, 5, 0});
    expect_values(run, "sum", {1, 2, 3, 4});
    expect_values(run, "both", {1, 2, 1, 3, 3, -1, 5, 0, 0, 5, 5, 0});
    expect_values(run, "twice", {1, 2, 1, 2, 3, -1, 3, -1, 0, 5, 0, 5});
    const double log_sum = std::log(1 + std::exp(1.0));
    expect_values(run, "logs", {-log_sum, 1 - log_sum, -log_sum, 1 - log_sum});
}

TEST(ReferenceNetwork, ALinearLayerIsProductNormAndActivation) {
    Builder build("small");
    const Tensor x = build.input("x", points_of(2));
    build.output("y", build.linear("y", x, 2, {.norm = true, .norm_eps = 0.75f, .activation = leaky_relu(0.5f)}));
    const Network network = build.finish();
    Weights weights;
    weights.tensors["y.weight"] = {{2, 2}, {1, 2, 3, 4}};
    weights.tensors["y.bias"] = {{2}, {0.5f, -1}};
    weights.tensors["y.norm.weight"] = {{2}, {2, -1}};
    weights.tensors["y.norm.bias"] = {{2}, {0, 1}};
    weights.tensors["y.norm.running_mean"] = {{2}, {3, 0}};
    weights.tensors["y.norm.running_var"] = {{2}, {0.25f, 3.25f}};
    check_weights(network, weights);
    const Array<float, 2> points = rows_of_numbers(2, {1, 1, 0, 1});
    const ReferenceRun run = test::run_reference(network, weights, ops::Batch::single(2), {{"x", points.view()}});
    // (1, 1): (3.5 - 3) / 1 * 2 = 1 and 6 / 2 * -1 + 1 = -2; (0, 1): (2.5 - 3) * 2 = -1 and 3 / 2 * -1 + 1 = -0.5.
    expect_values(run, "y", {1, -1, -0.5, -0.25});
}

TEST(ReferenceNetwork, NeighboursAreOfTheirOwnCloud) {
    Builder build("small");
    const Tensor x = build.input("x", points_of(1));
    const Tensor near = build.knn("near", x, 2);
    const Tensor edges = build.edge_distance("edges", x, near);
    build.gather("gathered", x, near);
    build.output("y", build.max_rows("widest", edges));
    const Network network = build.finish();
    const Array<float, 2> points = rows_of_numbers(1, {0, 3, 4, 0.5f, 10});
    const ReferenceRun run =
        test::run_reference(network, {}, ops::Batch::ragged({0, 3, 5}), {{"x", points.view()}}, test::Keep::all);
    expect_values(run, "near", {0, 1, 1, 2, 2, 1, 0, 1, 1, 0});
    expect_values(run, "gathered", {0, 3, 3, 4, 4, 3, 0.5, 10, 10, 0.5});
    expect_values(run, "widest", {0, 3, 0, 3, 3, 4, 0, 1, 4, 4, 1, 1, 0.5, 10, 0, 9.5, 10, 10, 9.5, 9.5});
}

}  // namespace
}  // namespace stipple::network
