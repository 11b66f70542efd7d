// Every kind of layer as a program: the numbers of the network, to the last bits, and steps no more than needed.

#include <gtest/gtest.h>

#include "stipple/core/rng.h"
#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

using network::Builder;
using network::clouds_of;
using network::leaky_relu;
using network::Network;
using network::points_of;
using network::relu;
using network::rows_of;
using network::Tensor;
using ops::Batch;

// Weights are multiples of 1/16: folding does not round them, so program and network agree as doubles do.
constexpr double kExact = 1e-9;

std::string outline_and_check(const Network& network) {
    const network::Weights weights = test::round_weights(network, 5);
    EXPECT_LT(test::difference(network, weights, Batch::ragged({0, 7, 12, 22})), kExact);
    EXPECT_LT(test::difference(network, weights, Batch::dense(2, 5)), kExact);
    return test::outline(lower(network, weights));
}

/// The network of one function from points [B, N, 4] to an output.
template <class F>
std::string one(F&& f) {
    Builder build("one");
    const Tensor x = build.input("points", points_of(4));
    build.output("out", f(build, x));
    return outline_and_check(build.finish());
}

TEST(EngineLower, Linear) {
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.linear("l", x, 5); }), "chain 4 -> 5\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.linear("l", x, 5, {.bias = false, .activation = relu()}); }),
              "chain 4 -> 5\n");
    // The activation and what scales a layer belong to it.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.activation("a", b.scale("s", b.linear("l", x, 5), 0.5f), leaky_relu(0.25f));
              }),
              "chain 4 -> 5\n");
    // Two products without anything between them are one, unless that one is larger.
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.linear("m", b.linear("l", x, 5), 6); }), "chain 4 -> 6\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.linear("n", b.linear("m", b.linear("l", x, 8, {.activation = relu()}), 2), 8);
              }),
              "chain 4 -> 8 -> 2 -> 8\n");
}

TEST(EngineLower, Norm) {
    Builder build("norm");
    Tensor x = build.input("points", points_of(3));
    x = build.linear("a", x, 8, {.norm = true, .activation = relu()});
    x = build.linear("b", x, 8, {.bias = false, .norm = true, .norm_eps = 1e-3f, .activation = leaky_relu(0.1f)});
    build.output("out", build.max_points("pool", build.linear("c", x, 8, {.norm = true})));
    const Network network = build.finish();
    const network::Weights weights = test::random_weights(network, 5);
    EXPECT_EQ(test::outline(lower(network, weights)), "chain 3 -> 8 -> 8 -> 8 max_points\n");
    EXPECT_LT(test::difference(network, weights, Batch::ragged({0, 7, 12})), 5e-7);  // rounding of the weights
}

TEST(EngineLower, Moves) {
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.slice("s", x, 1, 3); }), "slice\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.reverse("r", x); }), "reverse\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.reverse("q", b.reverse("r", x)); }), "");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.dropout("d", x, 0.5f); }), "");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.repeat("r", x, 3); }), "copy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.repeat("r", b.repeat("q", x, 1), 3); }), "copy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.concat("c", {x, x}); }), "copy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.slice("s", b.concat("c", {x, x}), 4, 8); }), "");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.slice("s", b.concat("c", {x, x}), 2, 6);
              }),
              "slice\nslice\ncopy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.concat("c", {b.repeat("r", b.max_points("m", x)), b.reverse("v", x)});
              }),
              "max_points\nslice\nslice\nslice\nslice\ncopy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.activation("a", x, relu()); }), "activation\n");
}

TEST(EngineLower, Sums) {
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.add("a", x, b.reverse("r", x)); }), "chain 4 -> 4\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor y = b.linear("l", x, 4, {.activation = relu()});
                  return b.subtract("s", x, b.scale("h", y, 0.5f));
              }),
              "chain 4 -> 4\nadd\n");
    // A residual layer: the sum is an addend, and nothing is multiplied by an identity.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor y = b.linear("l", x, 4, {.activation = relu()});
                  return b.activation("a", b.add("s", y, x), relu());
              }),
              "chain 4 -> 4\nchain [row][row] -> 4\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor y = b.linear("m", b.linear("l", x, 9, {.activation = relu()}), 4);
                  return b.activation("a", b.add("s", y, x), relu());
              }),
              "chain 4 -> 9\nchain 9[row] -> 4\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.sum_channels("c", b.sum_points("s", x)); }),
              "sum_points\nsum_channels\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.log_softmax("s", b.linear("l", x, 3)); }),
              "chain 4 -> 3\nlog_softmax\n");
}

TEST(EngineLower, MaxOfWhatIsNoChain) {
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.max_points("m", x); }), "max_points\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.max_points("m", b.concat("c", {x, b.reverse("r", x)}));
              }),
              "slice\nslice\nslice\nslice\ncopy\nmax_points\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.max_rows("m", b.repeat("r", x, 3)); }), "copy\nmax_rows\n");
    // A layer that others want too is stored before its max.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor y = b.linear("l", x, 4, {.activation = relu()});
                  return b.add("s", y, b.repeat("r", b.max_points("m", y)));
              }),
              "chain 4 -> 4\nmax_points\nchain [cloud][row] -> 4\n");
}

TEST(EngineLower, Transforms) {
    const auto matrix = [](Builder& b, Tensor x) {
        return b.add_identity("i", b.linear("t", b.max_points("m", x), 16));
    };
    const std::string before = "max_points\ncloud chain 4 -> 16\n";
    EXPECT_EQ(one([&](Builder& b, Tensor x) { return b.transform("x", x, matrix(b, x)); }),
              before + "fold_matrix x/t\nchain 4 -> *4\n");
    EXPECT_EQ(one([&](Builder& b, Tensor x) {
                  return b.linear("l", b.transform("x", x, matrix(b, x)), 6, {.activation = relu()});
              }),
              before + "fold_matrix l/t\nchain 4 -> *6\n");
    // Twice the same matrix, and a matrix of a cloud's row.
    EXPECT_EQ(one([&](Builder& b, Tensor x) {
                  const Tensor t = matrix(b, x);
                  return b.linear("l", b.transform("y", b.transform("x", x, t), t), 6);
              }),
              before + "fold_matrix x/t\nfold_matrix l/t\nchain 4 -> *4 -> *6\n");
    EXPECT_EQ(one([&](Builder& b, Tensor x) {
                  const Tensor sum = b.sum_points("p", x);
                  return b.transform("x", sum, matrix(b, x));
              }),
              "sum_points\n" + before + "fold_matrix x/t\ncloud chain 4 -> *4\n");
    // Beside other parts it is a product of its own.
    EXPECT_EQ(one([&](Builder& b, Tensor x) {
                  const Tensor y = b.transform("x", x, matrix(b, x));
                  return b.linear("l", b.concat("c", {x, y}), 6);
              }),
              before + "fold_matrix l/x/t\nchain 4 -> *6\nchain 4[row] -> 6\n");
    EXPECT_EQ(one([&](Builder& b, Tensor x) { return b.max_points("n", b.transform("x", x, matrix(b, x))); }),
              before + "fold_matrix x/t\nchain 4 -> *4 max_points\n");
}

TEST(EngineLower, RowsThatSeveralShareAreComputedOnce) {
    // A layer of repeated rows is a layer of the rows.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.linear("l", b.repeat("r", b.max_points("m", x)), 5, {.activation = relu()});
              }),
              "max_points\ncloud chain 4 -> 5\ncopy\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.max_rows("m", b.linear("l", b.repeat("r", x, 3), 5, {.activation = relu()}));
              }),
              "chain 4 -> 5\ncopy\nmax_rows\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.linear("l", b.gather("g", x, b.knn("k", x, 3)), 5, {.activation = relu()});
              }),
              "knn\nchain 4 -> 5\ngather\n");
    // The product with what is repeated comes first, whatever follows.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor all = b.concat("c", {b.repeat("r", b.max_points("m", x)), x});
                  return b.linear("n", b.linear("l", all, 6, {.activation = relu()}), 5);
              }),
              "max_points\ncloud chain 4 -> 6\nchain 4[cloud] -> 6 -> 5\n");
    // Twice the same layer is one.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor y = b.linear("l", x, 5, {.activation = relu()});
                  const Tensor z = b.linear_sharing("m", x, 5, {.activation = relu()}, "l");
                  return b.linear("n", b.concat("c", {y, z}), 5);
              }),
              "chain 4 -> 5 -> 5\n");
}

TEST(EngineLower, Edges) {
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.max_rows("m", b.linear("l", b.edge("e", x, b.knn("k", x, 3)), 5, {.activation = relu()}));
              }),
              "knn\nchain 4 -> 5\nchain 4 -> 5\nchain [point][neighbour] -> 5 max_rows\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.linear("l", b.edge("e", x, b.knn("k", x, 1)), 5); }),
              "knn\nchain 4 -> 5\nchain 4 -> 5\nchain [point][neighbour] -> 5\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor k = b.knn("k", x, 4), e = b.edge("e", x, k);
                  const Tensor g = b.linear("l", e, 2, {.activation = relu()});
                  return b.max_rows("m", b.linear("o", b.concat("c", {e, g}), 5));
              }),
              "knn\nchain 4 -> 2\nchain 4 -> 2\nchain [point][neighbour] -> 2\n"
              "chain 4 -> 5\nchain 4 -> 5\nchain 2[point][neighbour] -> 5 max_rows\n");
    EXPECT_EQ(one([](Builder& b, Tensor x) { return b.edge_distance("e", x, b.knn("k", x, 3)); }),
              "knn\nedge_distance\n");
    // Fewer neighbours of the same points are searched for with the others.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor few = b.max_rows("f", b.edge_distance("e", x, b.knn("k", x, 2)));
                  return b.add("a", few, b.max_rows("m", b.edge_distance("d", x, b.knn("l", x, 4))));
              }),
              "knn\nfirst_neighbours\nedge_distance\nmax_rows\nedge_distance\nmax_rows\nadd\n");
    // Edges and neighbours of features that are forms themselves; gathers of gathers.
    one([](Builder& b, Tensor x) {
        const Tensor k = b.knn("k", x, 3);
        const Tensor y = b.concat("c", {b.slice("s", x, 0, 2), b.repeat("r", b.max_points("m", x))});
        return b.sum_points("p", b.edge("e", y, k));
    });
    one([](Builder& b, Tensor x) {
        const Tensor one_of = b.knn("k", x, 1);
        const Tensor y = b.gather("g", x, one_of);
        return b.linear("l", b.edge("e", y, b.knn("j", x, 3)), 5);
    });
}

TEST(EngineLower, InterpolationAndSoftmax) {
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor k = b.knn("k", x, 3);
                  const Tensor w = b.slice("s", b.linear("l", b.edge_distance("e", x, k), 5), 0, 2);
                  const Tensor weights = b.softmax_rows("w", w);
                  return b.interpolate("i", weights, b.gather("g", x, k));
              }),
              "knn\nedge_distance\nchain 13 -> 2\nsoftmax_rows\ngather\ninterpolate\n");
}

TEST(EngineLower, Flows) {
    Builder build("flow");
    const Tensor x = build.input("points", points_of(3));
    Tensor y = build.mix("mix", build.actnorm("norm", x));
    const Tensor t = build.linear("t", build.slice("kept", y, 0, 1), 2);
    y = build.reverse("reverse", build.couple("couple", y, t, 1));
    const Tensor s = build.softmax_rows("s", x), b = build.linear("b", x, 3);
    y = build.inject("inject", y, s, b);
    build.output("y", y);
    Tensor back = build.reverse("unreverse", build.inject("uninject", y, s, b, true));
    back = build.couple("uncouple", back, t, 1, true);
    back = build.actnorm("unnorm", build.mix("unmix", back, true, "mix"), true, "norm");
    build.output("x", back);
    build.output("density", build.gaussian_log_density("density", y));
    const Tensor det_norm = build.flow_log_det("det.norm", x, "norm");
    const Tensor det = build.add("det", det_norm, build.flow_log_det("det.mix", x, "mix"));
    build.output("det", det);
    build.output("half", build.scale("half", det, 0.5f));
    const Network network = build.finish();
    const network::Weights weights = test::random_weights(network, 5);
    // actnorm, mix, reversal and coupling are one product each way.
    EXPECT_EQ(test::outline(lower(network, weights)),
              "chain 3 -> 2\nsoftmax_rows\nchain 3 -> 3\nchain 3+2 -> 3\ninject\ninject\ngaussian_log_density\n"
              "chain 3+2 -> 3\nlog_det\nlog_det\n");
    EXPECT_LT(test::difference(network, weights, Batch::ragged({0, 7, 12})), 5e-7);
}

TEST(EngineLower, CouplingsOfWhatIsThere) {
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  return b.couple("c", x, b.linear("l", b.slice("s", x, 0, 2), 2, {.activation = relu()}), 2);
              }),
              "chain 4 -> 2\ncouple\n");
    // Not with a part of what is wider than x.
    EXPECT_EQ(one([](Builder& b, Tensor x) {
                  const Tensor t = b.slice("s", b.linear("l", x, 6, {.activation = relu()}), 2, 6);
                  return b.couple("c", x, t, 0);
              }),
              "chain 4 -> 6\nchain 6[row] -> 4\n");
}

TEST(EngineLower, InputsOfEveryLevel) {
    Builder build("inputs");
    const Tensor cloud = build.input("cloud", clouds_of(3)), point = build.input("point", points_of(2)),
                 rows = build.input("rows", rows_of(4, 5));
    build.input("unused", points_of(1));
    const Tensor wide =
        build.concat("wide", {rows, build.repeat("p", point, 4), build.repeat("c2", build.repeat("c", cloud), 4)});
    build.output("out", build.max_points("pool", build.linear("l", wide, 6, {.activation = relu()})));
    build.output("again", point);
    EXPECT_EQ(outline_and_check(build.finish()),
              "chain 2 -> 6\ncloud chain 3 -> 6\nchain 5[point][cloud] -> 6 max_points\n");
}

TEST(EngineLower, RecomputesOnlyWhatIsCheap) {
    const auto two_uses = [](int64_t first, int64_t second) {
        return one([=](Builder& b, Tensor x) {
            const Tensor y = b.linear("y", x, first, {.activation = relu()});
            const Tensor a = b.max_points("ma", b.linear("a", y, second, {.activation = relu()}));
            return b.add("s", a, b.max_points("mb", b.linear("b", y, second, {.activation = leaky_relu(0.5f)})));
        });
    };
    EXPECT_EQ(two_uses(8, 32), "chain 4 -> 8 -> 32 max_points\nchain 4 -> 8 -> 32 max_points\nadd\n");
    EXPECT_EQ(two_uses(8, 31), "chain 4 -> 8\nchain 8 -> 31 max_points\nchain 8 -> 31 max_points\nadd\n");
}

TEST(EngineLower, Text) {
    Builder build("text");
    const Tensor x = build.input("points", points_of(3)), k = build.knn("near", x, 2);
    Tensor y = build.linear("conv", build.edge("edge", x, k), 8, {.activation = leaky_relu(0.5f)});
    y = build.max_rows("pool", build.linear("out", y, 4));
    const Tensor all = build.max_points("all", y);
    const Tensor t = build.add_identity("matrix", build.linear("fc", all, 16));
    y = build.linear("turned", build.transform("turn", y, t), 2, {.activation = relu()});
    build.output("slice", build.slice("last", all, 3, 4));
    build.output("logits", y);
    const Network network = build.finish();
    EXPECT_EQ(
        to_text(lower(network, test::random_weights(network, 1))),
        "text\n"
        "input points: %0 [B, N, 3]\n"
        "%1 near = knn of %0 points [B, N, 2] int32\n"
        "%2 conv/points = chain [B, N, 8]\n"
        "    conv/points: 3 -> 8, fp32, of %0 points\n"
        "%3 conv/points.neighbour = chain [B, N, 8]\n"
        "    conv/points.neighbour: 3 -> 8, fp32, of %0 points\n"
        "%4 pool = chain max_rows [B, N, 4]\n"
        "    conv: 0 -> 8, leaky_relu 0.5, plus %2 conv/points of the point, %3 conv/points.neighbour of neighbour %1\n"
        "    out: 8 -> 4, fp32\n"
        "%5 all = max_points of %4 pool [B, 4]\n"
        "%6 fc = chain [B, 16]\n"
        "    fc: 4 -> 16, fp32, of %5 all\n"
        "%7 turned/fc = fold_matrix of %6 fc [B, 8]\n"
        "%8 turned = chain [B, N, 2]\n"
        "    turned: 4 -> 2, relu, fp32, of %4 pool, weights %7 turned/fc\n"
        "%9 last = slice channels 3 to 4 of %5 all [B, 1]\n"
        "output slice: %9 last\n"
        "output logits: %8 turned\n");
}

TEST(EngineLower, RefusesIndicesAsInput) {
    Builder build("indices");
    const Tensor x = build.input("points", points_of(3));
    const Tensor given = build.input("neighbours", {network::Level::point, 2, 1, true});
    build.output("gathered", build.gather("g", x, given));
    const Network network = build.finish();
    EXPECT_EQ(test::bad_argument_of([&] { lower(network, network::initial_weights(network, 1)); }),
              "input 'neighbours' is indices: the engine takes numbers");
}

}  // namespace
}  // namespace stipple::engine
