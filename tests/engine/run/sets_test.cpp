// Several point sets in one network, each with a batch of its own, on every device: against the plain reading of the
// network. And indices as outputs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/engine/file/plan_json.h"
#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Builder;
using network::clouds_of;
using network::Network;
using network::points_of;
using network::relu;
using network::rows_of;
using network::Tensor;
using ops::Batch;

class PointSets : public test::OnDevice {
protected:
    void expect_reference(const Network& network, const std::vector<std::vector<Batch>>& runs,
                          int64_t max_points = 400) const {
        const network::Weights weights = test::random_weights(network, 3);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 4, .max_points = max_points});
        Context context(engine);
        for (const std::vector<Batch>& batches : runs) {
            const test::RandomInputs inputs(network, batches);
            const test::ReferenceRun expected = test::run_reference(network, weights, batches, inputs.inputs);
            const test::EngineOutputs outputs = test::run_engine(context, engine, batches, inputs.inputs);
            EXPECT_EQ(outputs.size(), network.outputs.size());
            for (const auto& [name, got] : outputs) {
                const test::ReferenceTensor& wanted = expected.output(name);
                ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.values.size())) << name;
                double largest = 1e-3, difference = 0;
                for (const double value : wanted.values) largest = std::max(largest, std::abs(value));
                for (int64_t i = 0; i < got.elements(); ++i) {
                    const double d = std::abs(got.data()[i] - wanted.values[static_cast<size_t>(i)]);
                    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
                }
                EXPECT_LE(difference, wanted.type.is_index ? 0 : 2e-6 * largest) << "output " << name;
            }
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(PointSets);

/// Few and many queries, dense and ragged, in both orders of size.
const std::vector<std::vector<Batch>> kTwoSets = {
    {Batch::dense(3, 40), Batch::dense(3, 11)},
    {Batch::dense(1, 300), Batch::dense(1, 5)},
    {Batch::ragged({0, 9, 230, 260}), Batch::dense(3, 70)},
    {Batch::dense(2, 20), Batch::ragged({0, 1, 300})},
    {Batch::ragged({0, 30, 40, 100, 130}), Batch::ragged({0, 100, 103, 110, 350})},
};

TEST_P(PointSets, QueriesBesideTheirCloud) {
    Builder build("queries");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    const Tensor near = build.knn("near", queries, points, 5);
    build.output("indices", near);
    build.output("positions", build.gather("p", points, near));
    // Features of the cloud, seen from the queries, and a network on them.
    const Tensor features = build.linear("conv1", points, 12, {.activation = relu()});
    const Tensor seen = build.gather("seen", features, near);
    const Tensor own = build.repeat("own", build.linear("conv2", queries, 7), 5);
    const Tensor joined = build.linear("conv3", build.concat("joined", {seen, own}), 16, {.activation = relu()});
    const Tensor pooled = build.max_rows("pooled", joined);
    build.output("features", pooled);
    build.output("logits", build.linear("fc", build.max_points("pool", pooled), 4));
    build.output("sums", build.sum_points("sum", joined));
    expect_reference(build.finish(), kTwoSets);
}

TEST_P(PointSets, EachSetByItself) {
    Builder build("pair");
    const Tensor source = build.input("source", points_of(3));
    const Tensor goal = build.input("template", points_of(3, 1));
    const Tensor scale = build.input("scale", clouds_of(3));
    const auto encode = [&](const std::string& name, Tensor x, bool is_first) {
        network::LinearOptions options{.activation = relu()};
        x = is_first ? build.linear("conv1", x, 16, options)
                     : build.linear_sharing(name + ".conv1", x, 16, options, "conv1");
        x = is_first ? build.linear("conv2", x, 24, options)
                     : build.linear_sharing(name + ".conv2", x, 24, options, "conv2");
        return build.max_points(name + ".pool", x);
    };
    const Tensor a = encode("source", source, true), b = encode("template", goal, false);
    const Tensor q = build.linear("fc", build.concat("both", {a, b}), 4);
    const Tensor turned = build.transform("turned", source, build.rotation("r", q, true));
    build.output("turned_source", turned);
    build.output("quaternion", q);
    // Neighbours, rows and clouds' numbers within the second set.
    const Tensor near = build.knn("near", goal, 3);
    build.output("edges", build.linear("e", build.edge("edge", goal, near), 6, {.activation = relu()}));
    build.output("distances", build.edge_distance("d", goal, near));
    const Tensor spread = build.repeat_for_set("spread", scale, 1);
    build.output("scaled", build.multiply("m", goal, spread));
    build.output("joined", build.concat("j", {goal, build.repeat_for_set("code", a, 1)}));
    build.output("weights", build.softmax_rows("s", build.gather("g", goal, near)));
    const Tensor flow = build.actnorm("actnorm", goal);
    build.output("log_det", build.flow_log_det("det", goal, "actnorm"));
    build.output("log_det_source", build.flow_log_det("det0", source, "actnorm"));
    build.output("density", build.gaussian_log_density("gauss", flow));
    expect_reference(build.finish(), {kTwoSets[0], kTwoSets[2], kTwoSets[4]});
}

TEST_P(PointSets, NeighboursOfLargeClouds) {  // by a tree on the CPU
    Builder build("large");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    build.output("near", build.knn("k", queries, points, 8));
    expect_reference(build.finish(),
                     {{Batch::dense(2, 5000), Batch::dense(2, 60)}, {Batch::single(40), Batch::single(4500)}}, 5000);
}

/// Points that the network makes: fewer and more than those of the caller.
TEST_P(PointSets, MadeByTheNetwork) {
    for (const int64_t count : {1, 8, 700}) {
        Builder build("decoder");
        const Tensor points = build.input("points", points_of(3));
        const Tensor pool = build.max_points("pool", build.linear("conv", points, 16, {.activation = relu()}));
        const Tensor made = build.unflatten("made", build.linear("fc", pool, 3 * count), 3);
        build.output("made_points", made);
        Tensor x = build.concat("joined", {made, build.repeat_for_set("code", pool, 1)});
        x = build.linear("refine", x, 6, {.activation = relu()});
        build.output("refined", x);
        build.output("pooled", build.max_points("made_pool", x));
        build.output("sum", build.sum_points("made_sum", x));
        build.output("second",
                     build.add("moved", made, build.unflatten("again", build.linear("fc2", pool, 3 * count), 3, 1)));
        const Tensor near = build.knn("near", made, points, 4);
        build.output("near_points", near);
        build.output("positions", build.gather("gathered", points, near));
        build.output("nearest_made", build.knn("back", points, made, 1));
        expect_reference(build.finish(),
                         {{Batch::dense(3, 40)}, {Batch::ragged({0, 9, 230, 260, 270})}, {Batch::single(200)}});
    }
}

/// No points but those that the network makes.
TEST_P(PointSets, MadeOfClouds) {
    Builder build("latent");
    const Tensor code = build.input("code", clouds_of(12));
    const Tensor made = build.unflatten("made", build.linear("fc", code, 50 * 2, {.activation = relu()}), 2);
    build.output("points", build.linear("conv", made, 3));
    build.output("near", build.knn("k", made, 3));
    const Network network = build.finish();
    EXPECT_EQ(to_string(network.layers.back().type), "[B, 50, 3] int32");
    expect_reference(network, {{Batch::dense(4, 1)}, {Batch::dense(1, 7)}});
}

TEST_P(PointSets, QueriesThatAreNotFiniteFindTheFirstPoint) {
    Builder build("nan");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    build.output("near", build.knn("k", queries, points, 2));
    Array<float, 2> cloud({4, 3}), other({2, 3});
    for (int64_t i = 0; i < 12; ++i) cloud.data()[i] = static_cast<float>(i);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float values[] = {9, 10, 11, nan, 0, 0};
    std::copy_n(values, 6, other.data());
    const Engine engine = compile(build.finish(), {}, {.device = device(), .max_batch = 1, .max_points = 4});
    Context context(engine);
    const auto outputs = test::run_engine(context, engine, {Batch::single(4), Batch::single(2)},
                                          {{"points", cloud.view()}, {"queries", other.view()}});
    const float* got = outputs.at("near").data();
    EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{3, 2, 0, 0}));
}

TEST_P(PointSets, IndicesIntoRowsThatAreApart) {
    Builder build("indices");
    const Tensor points = build.input("points", points_of(3));
    const Tensor near = build.knn("k", points, 3);
    build.output("near", near);
    build.output("again", near);
    build.output("x", build.gather("g", points, near));
    const Network network = build.finish();
    const Batch batch = Batch::ragged({0, 4, 13});
    const test::RandomInputs inputs(network, batch);
    const test::ReferenceRun expected = test::run_reference(network, {}, batch, inputs.inputs);
    const Engine engine = compile(network, {}, {.device = device(), .max_batch = 2, .max_points = 20});
    Context context(engine);
    const Array<float, 2> given = inputs.arrays[0].to(device());
    Array<int32_t, 2> wide({13, 5}), dense({13, 3}, device());
    std::fill_n(wide.data(), wide.elements(), -7);
    wide = wide.to(device());
    const View<int32_t, 2> apart(wide.data(), {13, 3}, {5, 1}, device());
    context.run(batch, {{"points", given.view()}}, {{"near", {}, apart}, {"again", {}, dense.view()}});
    const Array<int32_t, 2> found = wide.to(Device{}), again = dense.to(Device{});
    for (int64_t i = 0; i < 13; ++i) {
        for (int64_t j = 0; j < 3; ++j) {
            EXPECT_EQ(found.view()(i, j), expected.output("near").values[static_cast<size_t>(3 * i + j)]);
            EXPECT_EQ(again.view()(i, j), found.view()(i, j));
        }
        EXPECT_EQ(found.view()(i, 3), -7);
    }
    Array<float, 2> numbers({13, 3}, device());
    EXPECT_EQ(test::bad_argument_of([&] {
                  context.run(batch, {{"points", given.view()}}, {{"near", numbers.view()}});
              }),
              "output 'near' of indices is indices: Output::indices takes them");
}

TEST_P(PointSets, RefusesBatchesThatDoNotFit) {
    Builder build("two");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    build.output("near", build.gather("g", points, build.knn("k", queries, points, 4)));
    const Network network = build.finish();
    const Engine engine = compile(network, {}, {.device = device(), .max_batch = 2, .max_points = 20});
    Context context(engine);
    const auto message = [&](const std::vector<Batch>& batches) {
        return test::bad_argument_of([&] { context.run(batches, {}, {}); });
    };
    EXPECT_EQ(message({Batch::single(5)}), "two has 2 point sets, the run 1 batches");
    EXPECT_EQ(message({Batch::single(5), Batch::dense(2, 5)}), "batches of 1 and 2 clouds for the point sets of two");
    EXPECT_EQ(message({Batch::single(5), Batch::single(21), Batch::single(3)}),
              "two has 2 point sets, the run 3 batches");
    EXPECT_EQ(message({Batch::single(5), Batch::single(50)}),
              "a batch with 50 points: the engine was compiled for 40 (2 x 20)");
    // Queries may be fewer than neighbours, points may not.
    const std::vector<Batch> few = {Batch::single(3), Batch::single(9)};
    const test::RandomInputs inputs(network, few);
    EXPECT_NE(test::bad_argument_of([&] { test::run_engine(context, engine, few, inputs.inputs); }).find("neighbours"),
              std::string::npos);
}

TEST(PointSetsFile, PlansKeepTheirSets) {
    Builder build("two");
    const Tensor points = build.input("points", points_of(3));
    const Tensor queries = build.input("queries", points_of(3, 1));
    const Tensor near = build.knn("k", queries, points, 4);
    build.output("near", near);
    build.output("x", build.max_points("pool", build.linear("conv", build.gather("g", points, near), 5)));
    const Network network = build.finish();
    const Program program = lower(network, test::random_weights(network, 1));
    EXPECT_EQ(plan_json(parse_plan(plan_json(program))), plan_json(program));
    EXPECT_EQ(to_text(parse_plan(plan_json(program))), to_text(program));
    EXPECT_NE(plan_json(program).find("\"set\":1"), std::string::npos);
}

}  // namespace
}  // namespace stipple::engine
