// Kinds of layers on every device, each in the places where lowering treats it differently: between products, of rows
// that a cloud or a point shares, at the ends. Against the plain reading of the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "stipple/engine/kinds/kind.h"
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

class Kinds : public test::OnDevice {
protected:
    /// Differences of every output are at most `tolerance` of its largest number, in dense and in ragged batches.
    void expect_reference(const Network& network, double tolerance = 2e-6) const {
        const network::Weights weights = test::random_weights(network, 3);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 4, .max_points = 300});
        for (const ops::Batch& batch :
             {ops::Batch::dense(3, 40), ops::Batch::ragged({0, 7, 207, 240}), ops::Batch::dense(1, 257)}) {
            const test::RandomInputs inputs(network, batch);
            const test::ReferenceRun expected = test::run_reference(network, weights, batch, inputs.inputs);
            for (const auto& [name, got] : test::run_engine(engine, batch, inputs.inputs)) {
                const test::ReferenceTensor& wanted = expected.output(name);
                ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.values.size())) << name;
                double largest = 1e-3, difference = 0;
                for (const double value : wanted.values) largest = std::max(largest, std::abs(value));
                for (int64_t i = 0; i < got.elements(); ++i) {
                    const double d = std::abs(got.data()[i] - wanted.values[static_cast<size_t>(i)]);
                    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
                }
                EXPECT_LE(difference, tolerance * largest) << network.name << ", output " << name;
            }
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(Kinds);

TEST_P(Kinds, Multiply) {
    Builder build("multiply");
    const Tensor points = build.input("points", points_of(5));
    const Tensor cloud = build.input("cloud", clouds_of(5));
    const Tensor rows = build.input("rows", rows_of(3, 5));
    const Tensor hidden = build.linear("hidden", points, 5, {.activation = relu()});
    build.output("points_out", build.multiply("a", points, hidden));
    build.output("square", build.multiply("b", points, points));
    // What a cloud or a point shares, on either side.
    const Tensor of_cloud = build.repeat("of_cloud", cloud);
    const Tensor of_point = build.repeat("of_point", points, 3);
    build.output("by_cloud", build.multiply("c", points, of_cloud));
    build.output("cloud_by", build.multiply("d", of_cloud, points));
    const Tensor product = build.multiply("e", rows, of_point);
    build.output("by_point", product);
    build.output("both_shared", build.multiply("f", of_point, build.repeat("cloud_rows", of_cloud, 3)));
    build.output("clouds", build.multiply("g", cloud, build.max_points("pool", hidden)));
    const Tensor near = build.knn("near", points, 3);
    build.output("gathered", build.multiply("h", rows, build.gather("neighbours", points, near)));
    build.output("after", build.max_points("most", build.linear("last", product, 9)));
    expect_reference(build.finish());
}

// Those that chains do not apply: between products, before a maximum (two of them are not monotone), on rows that a
// cloud, a point or neighbours share, twice in a row, and as outputs.
TEST_P(Kinds, Activations) {
    for (const Activation& activation :
         {network::tanh(), network::sigmoid(), network::elu(), network::elu(0.3f), network::gelu(), network::swish(),
          network::softplus(), network::log(0.1f), relu(), network::leaky_relu(0.2f)}) {
        Builder build(std::string(name_of(activation.kind)));
        const Tensor points = build.input("points", points_of(5));
        const Tensor cloud = build.input("cloud", clouds_of(6));
        Tensor x = build.linear("a", points, 7, {.norm = true, .activation = activation});
        build.output("first", x);
        x = build.linear("b", x, 9, {.activation = activation});
        build.output("pool", build.max_points("max", x));
        const Tensor near = build.knn("near", points, 4);
        const Tensor rows = build.gather("gathered", x, near);
        build.output("of_neighbours", build.activation("c", rows, activation));
        build.output("most", build.max_rows("max_rows", build.linear("d", rows, 3, {.activation = activation})));
        const Tensor shared = build.activation("e", build.repeat("spread", cloud), activation);
        build.output("of_clouds", build.linear("f", shared, 4, {.activation = activation}));
        build.output("twice", build.activation("h", build.activation("g", points, activation), activation));
        build.output("of_points", build.activation("i", build.repeat("three", points, 3), activation));
        expect_reference(build.finish());
    }
}

// Folded where it is added or multiplied, computed where rows of it are wanted.
TEST_P(Kinds, Learned) {
    Builder build("learned");
    const Tensor points = build.input("points", points_of(4));
    const Tensor cloud = build.input("cloud", clouds_of(4));
    const Tensor learned = build.learned("t", 4);
    const Tensor spread = build.repeat("spread", learned);
    build.output("itself", learned);
    build.output("for_points", spread);
    build.output("product", build.multiply("a", points, spread));
    build.output("other_side", build.multiply("b", learned, cloud));
    build.output("squared", build.multiply("c", learned, learned));
    build.output("sum", build.add("d", points, spread));
    build.output("difference", build.subtract("e", learned, cloud));
    build.output("joined", build.concat("f", {points, spread}));
    build.output("active", build.activation("g", spread, relu()));
    build.output("softplus", build.multiply("h", points, build.activation("i", spread, network::softplus())));
    build.output("projected", build.linear("j", build.concat("k", {spread, points}), 6, {.activation = relu()}));
    build.output("alone", build.linear("l", learned, 3));
    const Tensor wide_points = build.repeat("o", points, 3);
    build.output("wide", build.max_rows("m", build.multiply("n", wide_points, build.repeat("p", spread, 3))));
    build.output("pooled", build.max_points("q", spread));
    const Tensor coordinates = build.slice("s", points, 0, 3);
    build.output("turned", build.transform("r", coordinates, build.rotation("u", learned)));
    const Tensor near = build.knn("near", points, 2);
    build.output("gathered", build.gather("v", spread, near));
    build.output("edges", build.edge("w", build.multiply("x", points, spread), near));
    expect_reference(build.finish());
}

TEST_P(Kinds, LayerNorm) {
    Builder build("layer-norm");
    const Tensor points = build.input("points", points_of(5));
    const Tensor rows = build.input("rows", rows_of(3, 70));
    build.output("of_points", build.layer_norm("a", points));
    build.output("of_rows", build.layer_norm("b", rows, 0.1f));
    // Its weight and bias join the product after it; a maximum comes after them.
    const Tensor hidden = build.linear("conv", points, 33, {.activation = network::gelu()});
    const Tensor normal = build.layer_norm("c", hidden);
    build.output("between", build.linear("d", normal, 8, {.activation = relu()}));
    const Tensor pool = build.max_points("pool", normal);
    build.output("pooled", pool);
    build.output("of_clouds", build.add("residual", pool, build.layer_norm("e", pool)));
    build.output("of_shared", build.layer_norm("f", build.repeat("spread", pool)));
    build.output("one_channel", build.layer_norm("g", build.slice("one", points, 2, 3)));
    expect_reference(build.finish());
}

TEST_P(Kinds, Rotation) {
    Builder build("rotation");
    const Tensor points = build.input("points", points_of(3));
    const Tensor quaternions = build.input("quaternions", rows_of(2, 4));
    build.output("of_rows", build.rotation("a", quaternions));
    const Tensor q = build.linear("q", build.max_points("pool", build.linear("conv", points, 8)), 4);
    build.output("of_clouds", build.rotation("b", q));
    const Tensor turned = build.transform("turned", points, build.rotation("c", q, true));
    build.output("turned_points", turned);
    build.output("after", build.linear("d", turned, 6, {.activation = relu()}));
    expect_reference(build.finish());
}

// A quaternion of zeros is the identity; lengths, however small or large, do not matter.
TEST_P(Kinds, RotationOfAnyLength) {
    const float s = std::sqrt(0.5f);
    const std::vector<std::array<float, 4>> quaternions = {{0, 0, 0, 0},         {s, 0, 0, s},   {1e-30f, 0, 0, 1e-30f},
                                                           {1e30f, 0, 0, 1e30f}, {-3, 0, 0, -3}, {0, 0, 2, 0}};
    const std::vector<std::array<float, 9>> expected = {{1, 0, 0, 0, 1, 0, 0, 0, 1},  {0, -1, 0, 1, 0, 0, 0, 0, 1},
                                                        {0, -1, 0, 1, 0, 0, 0, 0, 1}, {0, -1, 0, 1, 0, 0, 0, 0, 1},
                                                        {0, -1, 0, 1, 0, 0, 0, 0, 1}, {-1, 0, 0, 0, 1, 0, 0, 0, -1}};
    const auto count = static_cast<int64_t>(quaternions.size());
    Array<float, 2> points({count, 4});
    for (int64_t i = 0; i < count; ++i)
        std::copy_n(quaternions[static_cast<size_t>(i)].begin(), 4, points.data() + 4 * i);
    Builder build("lengths");
    build.output("y", build.rotation("a", build.input("points", points_of(4))));
    const Engine engine = compile(build.finish(), {}, {.device = device(), .max_batch = 1, .max_points = count});
    const auto outputs = test::run_engine(engine, ops::Batch::single(count), {{"points", points.view()}});
    for (int64_t i = 0; i < count; ++i)
        for (size_t c = 0; c < 9; ++c)
            EXPECT_NEAR(outputs.at("y").view()(i, static_cast<int64_t>(c)), expected[static_cast<size_t>(i)][c], 2e-7)
                << "quaternion " << i << ", entry " << c;
}

/// A flow step of every form between products, on points, rows of points and clouds.
Network flow_steps(const network::FlowStepOptions& options, int64_t channels) {
    Builder build(fmt::format("flow-step-{}-{}", options.steps, channels));
    const Tensor points = build.input("points", points_of(5));
    const Tensor features = build.linear("features", points, 9, {.activation = relu()});
    const int64_t parts = network::flow_condition_channels(channels, options.hidden);
    const Tensor condition = build.linear("condition", features, parts);
    network::FlowStepOptions forward = options, inverse = options;
    forward.log_det = inverse.inverse = true;
    const Tensor x = build.slice("x", points, 1, 1 + channels);
    const Tensor z = build.flow_step("step", x, condition, forward);
    build.output("z", z);
    build.output("plain", build.flow_step("plain_step", x, condition, options, "step"));
    const Tensor moved = build.slice("moved", z, 0, channels);
    build.output("back", build.flow_step("back_step", moved, condition, inverse, "step"));
    // Children read the condition of their point; the inverse has its determinant, too.
    inverse.log_det = true;
    const Tensor rows = build.repeat("rows", moved, 3), noise = build.input("noise", rows_of(3, channels));
    const Tensor near = build.add("near", rows, noise), of_rows = build.repeat("of_rows", condition, 3);
    const Tensor children = build.flow_step("children_step", near, of_rows, inverse, "step");
    build.output("children", children);
    build.output("after", build.max_points("most", build.linear("last", children, 6)));
    const Tensor cloud = build.max_points("pool", features);
    const Tensor of_cloud = build.linear("of_cloud", cloud, channels);
    build.output("clouds",
                 build.flow_step("cloud_step", of_cloud, build.linear("cloud_condition", cloud, parts), forward));
    const Tensor shared = build.repeat("shared", build.linear("shared_condition", cloud, parts));
    build.output("by_cloud", build.flow_step("shared_step", moved, shared, forward));
    return build.finish();
}

TEST_P(Kinds, FlowStep) {
    for (const int64_t steps : {0, 5}) {
        for (const int64_t channels : {1, 2, 3})
            expect_reference(flow_steps({.hidden = 3, .steps = steps}, channels), 6e-6);
        expect_reference(flow_steps({.hidden = 37, .steps = steps, .activation = network::tanh()}, 3), 6e-6);
    }
    expect_reference(flow_steps({.hidden = 64}, 3), 6e-6);
}

// Weights near the bound, inputs far from the origin: Newton's steps overshoot there, and the answer must hold anyway.
TEST_P(Kinds, InverseOfAStiffFlowStep) {
    Builder build("stiff");
    const Tensor points = build.input("points", points_of(3));
    const Tensor condition = build.input("condition", points_of(network::flow_condition_channels(3, 64)));
    const Tensor z = build.flow_step("step", points, condition, {});
    build.output("z", z);
    build.output("back", build.flow_step("back_step", z, condition, {.inverse = true}, "step"));
    const Network network = build.finish();
    network::Weights weights = network::initial_weights(network, 5);
    std::vector<float>& last = weights.tensors.at("step.2.weight").values;
    for (size_t i = 0; i < 3; ++i)  // turned against the first layer: slopes of g down to -0.8
        for (size_t o = 0; o < 64; ++o) {
            double sum = 0;
            for (size_t k = 0; k < 64; ++k)
                sum += weights.tensors.at("step.1.weight").values[o * 64 + k] *
                       weights.tensors.at("step.0.weight").values[k * 3 + i];
            last[i * 64 + o] = static_cast<float>(-0.8 * sum);
        }
    const int64_t count = 257;
    Array<float, 2> x({count, 3}), gates({count, network::flow_condition_channels(3, 64)});
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < 3; ++c)
            x.data()[3 * i + c] = static_cast<float>((c + 1) * std::sin(static_cast<double>(7 * i + c)) * 20);
        for (int64_t k = 0; k < gates.size(1); ++k) gates.data()[i * gates.size(1) + k] = k < 131 ? 0.0f : 9.0f;
    }
    const Engine engine = compile(network, weights, {.device = device(), .max_batch = 1, .max_points = count});
    const auto got =
        test::run_engine(engine, ops::Batch::single(count), {{"points", x.view()}, {"condition", gates.view()}});
    for (int64_t i = 0; i < 3 * count; ++i)
        EXPECT_NEAR(got.at("back").data()[i], x.data()[i], 2e-4) << "number " << i;  // of 60, at slopes of 1 / 5
}

// Far outside of where they bend: no overflow, no number that is none.
TEST_P(Kinds, ActivationsOfLargeNumbers) {
    const std::vector<float> values = {-1e30f, -1e4f, -100, -89, -30, -1e-8f, 0, 1e-8f, 30, 89, 100, 1e4f, 1e30f};
    Array<float, 2> points({static_cast<int64_t>(values.size()), 1});
    std::copy(values.begin(), values.end(), points.data());
    for (const Activation& activation : {network::tanh(), network::sigmoid(), network::elu(), network::gelu(),
                                         network::swish(), network::softplus()}) {
        Builder build("large");
        build.output("y", build.activation("a", build.input("points", points_of(1)), activation));
        const Network network = build.finish();
        const Engine engine = compile(network, {}, {.device = device(), .max_batch = 1, .max_points = 64});
        const auto outputs = test::run_engine(engine, ops::Batch::single(points.size(0)), {{"points", points.view()}});
        const float* got = outputs.at("y").data();
        for (size_t i = 0; i < values.size(); ++i) {
            const double x = values[i];
            double wanted = 0;
            switch (activation.kind) {
                case ActivationKind::tanh: wanted = std::tanh(x); break;
                case ActivationKind::sigmoid: wanted = 1 / (1 + std::exp(-x)); break;
                case ActivationKind::elu: wanted = x < 0 ? std::expm1(x) : x; break;
                case ActivationKind::gelu: wanted = x / 2 * std::erfc(-x / std::numbers::sqrt2); break;
                case ActivationKind::swish: wanted = x / (1 + std::exp(-x)); break;
                default: wanted = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); break;
            }
            EXPECT_NEAR(got[i], wanted, 2e-6 * std::abs(wanted) + 1e-36) << name_of(activation.kind) << " of " << x;
        }
    }
}

// Whatever the enumerators are, the engine has a row for each.
TEST(EngineKinds, EveryLayerAndStepIsDescribed) {
    for (int kind = 0; kind <= static_cast<int>(network::Kind::gaussian_log_density); ++kind) {
        const lowering::LayerLowering* found = find_lowering(static_cast<network::Kind>(kind));
        ASSERT_TRUE(found && found->lower) << network::name_of(static_cast<network::Kind>(kind));
    }
    std::set<std::string_view> names;
    for (int kind = 0; kind <= static_cast<int>(StepKind::gaussian_log_density); ++kind) {
        const StepType* found = find_step_type(static_cast<StepKind>(kind));
        ASSERT_TRUE(found && found->check && (found->run || found->cut == cpu::Cut::own)) << kind;
        EXPECT_TRUE(names.insert(found->name).second) << found->name;
    }
    EXPECT_EQ(names.size(), step_types().size());
}

}  // namespace
}  // namespace stipple::engine
