// Attention, constants and regrouped rows on every device, against the plain loops of the reference: clouds of any
// size, keys of another point set, logits beyond what exponentials hold.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/engine/file/plan_json.h"
#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::AttendOptions;
using network::Builder;
using network::Network;
using network::Normalise;
using network::points_of;
using network::rows_of;
using network::Tensor;
using ops::Batch;

constexpr Normalise kNormalises[] = {Normalise::row, Normalise::joint, Normalise::none};

class Attention : public test::OnDevice {
protected:
    /// Differences of every output are at most `tolerance` of its largest number. Sums of numbers of both signs cancel
    /// to a tenth of their terms, of which float32 keeps 6e-8 each: some 1e-6 of the sum, in whatever order.
    void expect_reference(const Network& network, const std::vector<std::vector<Batch>>& runs,
                          double tolerance = 1e-5) const {
        const network::Weights weights = test::random_weights(network, 3);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 4, .max_points = 300});
        Context context(engine);
        for (const std::vector<Batch>& batches : runs) {
            const test::RandomInputs inputs(network, batches);
            const test::ReferenceRun expected = test::run_reference(network, weights, batches, inputs.inputs);
            for (const auto& [name, got] : test::run_engine(context, engine, batches, inputs.inputs)) {
                const test::ReferenceTensor& wanted = expected.output(name);
                ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.values.size())) << name;
                double largest = 1e-6, difference = 0;
                for (const double value : wanted.values) largest = std::max(largest, std::abs(value));
                for (int64_t i = 0; i < got.elements(); ++i) {
                    const double d = std::abs(got.data()[i] - wanted.values[static_cast<size_t>(i)]);
                    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
                }
                EXPECT_LE(difference, tolerance * largest)
                    << network.name << ", output " << name << ", " << batches[0].rows() << " points";
            }
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(Attention);

/// One point alone, sizes around those of blocks, several clouds of different sizes.
const std::vector<std::vector<Batch>> kOneSet = {{Batch::dense(1, 1)},   {Batch::dense(3, 16)},
                                                 {Batch::dense(1, 17)},  {Batch::ragged({0, 1, 64, 129, 130})},
                                                 {Batch::dense(1, 257)}, {Batch::dense(4, 63)}};

std::string name_of_case(const AttendOptions& options) {
    return fmt::format("{}{}{}", network::name_of(options.normalise), options.unit ? "-cosine" : "",
                       options.skips_self ? "-others" : "");
}

TEST_P(Attention, IsThePlainLoop) {
    for (const Normalise normalise : kNormalises)
        for (const bool unit : {false, true})
            for (const bool skips_self : {false, true}) {
                const AttendOptions options{normalise, 0.7f, unit, skips_self};
                Builder build(name_of_case(options));
                const Tensor q = build.input("q", points_of(5));
                const Tensor k = build.input("k", points_of(5));
                const Tensor v = build.input("v", points_of(3));
                build.output("few", build.attend("a", q, k, v, options));
                // Between products, of products, and of more channels than a chunk or a warp has.
                const Tensor wide_q = build.linear("wide_q", q, 70), wide_k = build.linear("wide_k", k, 70);
                const Tensor wide_v = build.linear("wide_v", v, 133);
                const Tensor mixed = build.attend("b", wide_q, wide_k, wide_v, options);
                build.output("many", mixed);
                build.output("after", build.linear("last", mixed, 4, {.activation = network::relu()}));
                build.output("itself", build.attend("c", q, q, q, options));
                build.output("pool", build.max_points("most", build.attend("d", q, k, k, options)));
                expect_reference(build.finish(), kOneSet);
            }
}

TEST_P(Attention, LooksAtAnotherSet) {
    for (const Normalise normalise : kNormalises) {
        Builder build("sets-" + std::string(network::name_of(normalise)));
        const Tensor points = build.input("points", points_of(6));
        const Tensor others = build.input("others", points_of(6, 1));
        const Tensor values = build.input("values", points_of(2, 1));
        build.output("there", build.attend("a", points, others, values, {.normalise = normalise}));
        build.output("back", build.attend("b", others, points, points, {.normalise = normalise}));
        // A set that the network makes: its points are those of a constant.
        std::vector<float> numbers;
        for (int i = 0; i < 24; ++i) numbers.push_back(static_cast<float>(std::sin(i)));
        const Tensor made = build.unflatten("made", build.constant("numbers", numbers), 6);
        const Tensor nodes = build.attend("c", made, points, points, {.normalise = normalise});
        build.output("nodes", nodes);
        build.output("of_nodes", build.attend("d", points, nodes, made, {.normalise = normalise}));
        expect_reference(build.finish(), {{Batch::dense(2, 40), Batch::dense(2, 9)},
                                          {Batch::ragged({0, 1, 70}), Batch::ragged({0, 130, 131})},
                                          {Batch::dense(1, 5), Batch::dense(1, 200)}});
    }
}

// Products of 1e4 and more: weights are those of the largest, and none is infinite.
TEST_P(Attention, LargeLogitsDoNotOverflow) {
    for (const Normalise normalise : {Normalise::row, Normalise::joint}) {
        Builder build("large");
        const Tensor q = build.input("q", points_of(4)), v = build.input("v", points_of(3));
        build.output("y", build.attend("a", q, q, v, {.normalise = normalise, .factor = 3000}));
        build.output("negative", build.attend("b", q, q, v, {.normalise = normalise, .factor = -3000}));
        // Rounding of a logit of 1e4 is 1e-3, and so is that of its weight.
        expect_reference(build.finish(), {{Batch::dense(2, 70)}, {Batch::dense(1, 1)}}, 5e-3);
    }
}

TEST_P(Attention, OneKeyIsItsValue) {
    Builder build("one");
    const Tensor x = build.input("x", points_of(3));
    build.output("row", build.attend("a", x, x, x, {.factor = 1e20f}));
    build.output("others", build.attend("b", x, x, x, {.skips_self = true}));
    const Network network = build.finish();
    const Engine engine = compile(network, {}, {.device = device(), .max_batch = 1, .max_points = 1});
    Array<float, 2> point({1, 3});
    for (int c = 0; c < 3; ++c) point.data()[c] = static_cast<float>(c + 1);
    const auto got = test::run_engine(engine, Batch::single(1), {{"x", point.view()}});
    for (int c = 0; c < 3; ++c) {
        EXPECT_FLOAT_EQ(got.at("row").data()[c], static_cast<float>(c + 1));
        EXPECT_EQ(got.at("others").data()[c], 0);
    }
}

TEST_P(Attention, ThreadsDoNotChangeABit) {
    Builder build("threads");
    const Tensor x = build.input("x", points_of(20));
    build.output("row", build.attend("a", x, x, x));
    build.output("joint", build.attend("b", x, x, x, {.normalise = Normalise::joint}));
    build.output("mean", build.attend("c", x, x, x, {.normalise = Normalise::none, .unit = true}));
    const Network network = build.finish();
    const Batch batch = Batch::ragged({0, 201, 230});
    const test::RandomInputs inputs(network, batch);
    const int before = threads();
    std::vector<test::EngineOutputs> runs;
    for (const int count : {1, 3}) {
        set_threads(count);
        const Engine engine = compile(network, {}, {.device = device(), .max_batch = 2, .max_points = 256});
        runs.push_back(test::run_engine(engine, batch, inputs.inputs));
    }
    set_threads(before);
    for (const auto& [name, output] : runs[0])
        EXPECT_TRUE(std::equal(output.data(), output.data() + output.elements(), runs[1].at(name).data())) << name;
}

TEST_P(Attention, ConstantsAndRegroupedRows) {
    Builder build("constants");
    const Tensor points = build.input("points", points_of(6));
    const Tensor rows = build.input("rows", rows_of(4, 3));
    const Tensor constant = build.constant("constant", {0.5f, -2, 3});
    const Tensor spread = build.repeat("spread", constant);
    build.output("itself", constant);
    build.output("sum", build.add("a", rows, build.repeat("rows4", spread, 4)));
    build.output("product", build.multiply("b", build.slice("c", points, 0, 3), spread));
    build.output("layer", build.linear("d", constant, 5));
    build.output("flat", build.regroup("e", rows, 12));
    build.output("longer", build.regroup("f", rows, 2));
    build.output("wider", build.regroup("g", rows, 6));
    build.output("cut", build.regroup("h", points, 2));
    const Tensor hidden = build.linear("i", build.regroup("j", rows, 4), 8, {.activation = network::relu()});
    build.output("after", build.max_rows("k", build.regroup("l", hidden, 6)));
    build.output("log", build.activation("m", rows, network::log(0.01f)));
    build.output("pattern", build.regroup("n", build.repeat("p", build.constant("o", {1, 2, 3, 4, 5, 6})), 3));
    expect_reference(build.finish(), {{Batch::dense(3, 40)}, {Batch::ragged({0, 7, 30})}, {Batch::dense(1, 1)}});
}

TEST(AttentionPrograms, AreReadBackFromTheirPlan) {
    Builder build("plan");
    const Tensor x = build.input("x", points_of(4));
    const Tensor y =
        build.attend("a", x, x, x, {.normalise = Normalise::joint, .factor = 0.5f, .unit = true, .skips_self = true});
    build.output("y", build.regroup("r", y, 2));
    const Program program = lower(build.finish(), {});
    EXPECT_EQ(to_text(parse_plan(plan_json(program))), to_text(program));
    EXPECT_NE(to_text(program).find("attend softmax cosine not itself, factor 0.5"), std::string::npos)
        << to_text(program);
    EXPECT_EQ(multiply_adds(program, 10), 10 * 10 * 8);
}

}  // namespace
}  // namespace stipple::engine
