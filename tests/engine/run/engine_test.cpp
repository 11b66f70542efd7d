// Engine and Context: what they promise apart from the numbers of one kernel.

#include "stipple/engine/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/engine/program.h"
#include "stipple/network/builder.h"
#include "tests/engine/lowering.h"
#include "tests/ops/device_memory.h"
#include "tests/support/allocation.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

using network::Builder;
using network::Network;
using network::relu;
using network::Tensor;
using ops::Batch;
using test::bad_argument_of;

/// A small PointNet with a transform and a second input: every way that values reach a chain.
Network small_network() {
    Builder build("small");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor category = build.input("category", network::clouds_of(2));
    Tensor t = build.max_points("t.pool", build.linear("t.conv", points, 12, {.activation = relu()}));
    t = build.add_identity("t.matrix", build.linear("t.fc", t, 9));
    Tensor x = build.linear("conv1", build.transform("apply", points, t), 16, {.activation = relu()});
    const Tensor pool = build.max_points("pool", build.linear("conv2", x, 24, {.activation = relu()}));
    const Tensor all = build.concat("all", {x, build.repeat("global", pool), build.repeat("which", category)});
    build.output("logits", build.linear("head", pool, 5));
    build.output("parts", build.linear("seg", all, 7));
    return build.finish();
}

Array<float, 2> random_rows(int64_t rows, int64_t channels, uint64_t seed) {
    Array<float, 2> out({rows, channels});
    const Rng rng(seed);
    for (int64_t i = 0; i < rows * channels; ++i) out.data()[i] = rng.normal(static_cast<uint64_t>(i));
    return out;
}

struct Data {
    Batch batch;
    Array<float, 2> points, category, logits, parts;

    Data(Batch given, Device device, uint64_t seed = 1)
        : batch(std::move(given)),
          points(random_rows(batch.rows(), 3, seed).to(device)),
          category(random_rows(batch.clouds(), 2, seed + 1).to(device)),
          logits(Array<float, 2>({batch.clouds(), 5}, device)),
          parts(Array<float, 2>({batch.rows(), 7}, device)) {}

    std::vector<Input> inputs() { return {{"points", points.view()}, {"category", category.view()}}; }
    std::vector<Output> outputs() { return {{"logits", logits.view()}, {"parts", parts.view()}}; }
};

std::vector<float> bits_of(const Array<float, 2>& array) {
    const Array<float, 2> host = array.to(Device{});
    return {host.data(), host.data() + host.elements()};
}

class EngineRun : public test::OnDevice {
protected:
    Engine compiled(int64_t max_batch = 4, int64_t max_points = 50) const {
        const Network network = small_network();
        return compile(network, test::random_weights(network, 3),
                       {.device = device(), .max_batch = max_batch, .max_points = max_points});
    }
};
STIPPLE_ON_EVERY_DEVICE(EngineRun);

TEST_P(EngineRun, DenseRaggedAndSingleBatches) {
    const Network network = small_network();
    const network::Weights weights = test::random_weights(network, 3);
    Context context(compiled());
    for (const Batch& batch : {Batch::dense(4, 50), Batch::ragged({0, 1, 120, 121, 200}), Batch::single(200),
                               Batch::single(1), Batch::dense(3, 17)}) {
        Data data(batch, device());
        context.run(data.batch, data.inputs(), data.outputs());
        const Array<float, 2> points = data.points.to(Device{}), category = data.category.to(Device{});
        const test::ReferenceRun expected =
            test::run_reference(network, weights, batch, {{"points", points.view()}, {"category", category.view()}});
        for (const auto& [name, array] : {std::pair{"logits", &data.logits}, std::pair{"parts", &data.parts}}) {
            const std::vector<float> found = bits_of(*array);
            const test::ReferenceTensor& want = expected.output(name);
            for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], want.values[i], 1e-5) << name << i;
        }
    }
}

TEST_P(EngineRun, OutputsMayBeLeftOutAndRowsMayBeApart) {
    Context context(compiled());
    Data all(Batch::ragged({0, 20, 50}), device()), one(all.batch, device());
    context.run(all.batch, all.inputs(), all.outputs());
    context.run(one.batch, one.inputs(), {{"logits", one.logits.view()}});
    EXPECT_EQ(bits_of(all.logits), bits_of(one.logits));
    context.run(one.batch, one.inputs(), {{"parts", one.parts.view()}});
    EXPECT_EQ(bits_of(all.parts), bits_of(one.parts));

    Array<float, 2> wide_in({50, 8}), wide_out({50, 9});
    const Array<float, 2> points = all.points.to(Device{});
    std::fill_n(wide_out.data(), wide_out.elements(), 7.0f);
    for (int64_t i = 0; i < 50; ++i) std::copy_n(points.data() + 3 * i, 3, wide_in.data() + 8 * i);
    wide_in = wide_in.to(device());
    wide_out = wide_out.to(device());
    context.run(one.batch,
                {{"category", one.category.view()},
                 {"points", View<const float, 2>(wide_in.data(), {50, 3}, {8, 1}, device())}},
                {{"parts", View<float, 2>(wide_out.data(), {50, 7}, {9, 1}, device())}});
    const std::vector<float> expected = bits_of(all.parts), found = bits_of(wide_out);
    for (size_t i = 0; i < 50; ++i) {
        for (size_t c = 0; c < 7; ++c) EXPECT_EQ(found[i * 9 + c], expected[i * 7 + c]);
        EXPECT_EQ(found[i * 9 + 7], 7.0f);  // what is between rows stays
        EXPECT_EQ(found[i * 9 + 8], 7.0f);
    }
}

TEST_P(EngineRun, RefusesWhatItCannotRun) {
    Context context(compiled());
    Data data(Batch::dense(2, 10), device());
    const auto run = [&](const Batch& batch, const std::vector<Input>& inputs, const std::vector<Output>& outputs) {
        return bad_argument_of([&] { context.run(batch, inputs, outputs); });
    };
    const Input points{"points", data.points.view()}, category{"category", data.category.view()};
    const Output logits{"logits", data.logits.view()};
    EXPECT_EQ(run(data.batch, {points}, {logits}), "input 'category' of small is missing");
    EXPECT_EQ(run(data.batch, {points, category, points}, {logits}), "input 'points' is given twice");
    EXPECT_EQ(run(data.batch, {points, category}, {logits, logits}), "output 'logits' is given twice");
    EXPECT_EQ(run(data.batch, {points, category, {"colour", data.points.view()}}, {}),
              "small has no input 'colour': it has points, category");
    EXPECT_EQ(run(data.batch, {points, category}, {{"logit", data.logits.view()}}),
              "small has no output 'logit': it has logits, parts");
    EXPECT_EQ(run(data.batch, {points, category}, {{"logits", data.parts.view()}}),
              "output 'logits' of small is [20, 7], must be [2, 5] for 2 clouds with 20 points");
    EXPECT_EQ(run(Batch::dense(2, 9), {points, category}, {logits}),
              "input 'points' of small is [20, 3], must be [18, 3] for 2 clouds with 18 points");
    EXPECT_EQ(
        run(data.batch, {{"points", View<const float, 2>(data.points.data(), {20, 3}, {1, 20}, device())}, category},
            {logits}),
        "input 'points': the 3 numbers of a row must be adjacent");
    EXPECT_EQ(
        run(data.batch, {{"points", View<const float, 2>(data.points.data(), {20, 3}, {2, 1}, device())}, category},
            {logits}),
        "input 'points': rows of 3 numbers are 2 apart");
    EXPECT_EQ(run(data.batch, {{"points", View<const float, 2>(nullptr, {20, 3}, device())}, category}, {logits}),
              "input 'points' has no memory");
    const Device other = device().type == DeviceType::cpu ? Device{DeviceType::cuda, 0} : Device{};
    EXPECT_EQ(
        run(data.batch, {{"points", View<const float, 2>(data.points.data(), {20, 3}, other)}, category}, {logits}),
        fmt::format("input 'points' is on {}, the engine on {}", other, device()));
    EXPECT_EQ(run(Batch::dense(5, 2), {points, category}, {logits}),
              "a batch of 5 clouds: the engine was compiled for 4");
    EXPECT_EQ(run(Batch::single(201), {points, category}, {logits}),
              "a batch with 201 points: the engine was compiled for 200 (4 x 50)");
    EXPECT_EQ(run(Batch::ragged({0, 20, 20}), {points, category}, {logits}), "cloud 1 of the batch has no points");
    // None of that has hurt it, and no clouds are no work.
    context.run(data.batch, data.inputs(), data.outputs());
    Data none(Batch::dense(0, 0), device());
    context.run(none.batch, none.inputs(), none.outputs());

    Context moved = std::move(context);
    EXPECT_EQ(run(data.batch, data.inputs(), data.outputs()), "a context that was moved from cannot run");
    moved.run(data.batch, data.inputs(), data.outputs());
}

TEST_P(EngineRun, ContextsOfSeveralThreadsGiveTheBitsOfOne) {
    const Engine engine = compiled(4, 200);
    constexpr int kThreads = 3, kRuns = 20;
    std::vector<Data> alone;
    for (uint64_t seed = 0; seed < kThreads; ++seed)
        alone.emplace_back(Batch::ragged({0, 100, 130, 500}), device(), seed);
    Context context(engine);
    for (Data& data : alone) context.run(data.batch, data.inputs(), data.outputs());
    std::vector<Data> together;
    for (uint64_t seed = 0; seed < kThreads; ++seed) together.emplace_back(alone[0].batch, device(), seed);
    std::vector<std::thread> threads;
    for (Data& data : together)
        threads.emplace_back([&data, &engine] {
            Context own(engine);
            for (int i = 0; i < kRuns; ++i) own.run(data.batch, data.inputs(), data.outputs());
            (void)data.logits.to(Device{});  // waits for the device
        });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kThreads; ++i) {
        EXPECT_EQ(bits_of(alone[i].logits), bits_of(together[i].logits));
        EXPECT_EQ(bits_of(alone[i].parts), bits_of(together[i].parts));
    }
}

// An input that is an output, one value under two names, and a network that computes nothing.
TEST_P(EngineRun, ValuesUnderSeveralNames) {
    Builder build("names");
    const Tensor points = build.input("points", network::points_of(3));
    build.input("unused", network::clouds_of(1));
    const Tensor y = build.linear("l", points, 4, {.activation = relu()});
    build.output("same", points);
    build.output("first", y);
    build.output("second", build.dropout("d", y, 0.5f));
    const Network network = build.finish();
    Context context(compile(network, test::random_weights(network, 1), {.device = device(), .max_points = 30}));
    const Array<float, 2> in = random_rows(30, 3, 5).to(device()), unused = random_rows(1, 1, 6).to(device());
    Array<float, 2> same({30, 3}, device()), first({30, 4}, device()), second({30, 4}, device());
    const std::vector<Input> inputs = {{"unused", unused.view()}, {"points", in.view()}};
    context.run(Batch::single(30), inputs, {{"second", second.view()}, {"same", same.view()}, {"first", first.view()}});
    EXPECT_EQ(bits_of(same), bits_of(in));
    EXPECT_EQ(bits_of(first), bits_of(second));
    Array<float, 2> alone({30, 4}, device());
    context.run(Batch::single(30), inputs, {{"second", alone.view()}});
    EXPECT_EQ(bits_of(alone), bits_of(second));
    context.run(Batch::single(30), inputs, {});

    Builder nothing("nothing");
    nothing.output("same", nothing.input("points", network::points_of(3)));
    const Network empty = nothing.finish();
    Context idle(compile(empty, {}, {.device = device(), .max_points = 30}));
    Array<float, 2> copied({30, 3}, device());
    idle.run(Batch::single(30), {{"points", in.view()}}, {{"same", copied.view()}});
    EXPECT_EQ(bits_of(copied), bits_of(in));
}

TEST_P(EngineRun, AContextKeepsItsEngine) {
    Data data(Batch::dense(2, 10), device()), again(data.batch, device());
    std::optional<Context> context;
    {
        const Engine engine = compiled();
        EXPECT_GT(engine.weight_bytes(), 0);
        EXPECT_GT(engine.context_bytes(), 0);
        EXPECT_EQ(engine.describe().size(), engine.program().steps.size());
        EXPECT_EQ(engine.name(), "small");
        context.emplace(engine);
        context->run(data.batch, data.inputs(), data.outputs());
    }
    context->run(again.batch, again.inputs(), again.outputs());
    EXPECT_EQ(bits_of(data.logits), bits_of(again.logits));
}

// Blocks asked for during many runs, and those that are left: none. Most runs on one thread: threads that wait for each
// other on a busy machine would take most of the time.
TEST(EngineEndurance, RunsAllocateNothing) {
    if (!test::can_fail_allocations()) GTEST_SKIP() << "operator new is not counted here";
    const Network network = small_network();
    Context context(compile(network, test::random_weights(network, 3), {.max_batch = 2, .max_points = 20}));
    Data data(Batch::ragged({0, 15, 40}), Device{});
    const std::vector<Input> inputs = data.inputs();
    const std::vector<Output> outputs = data.outputs();
    context.run(data.batch, inputs, outputs);
    const std::vector<float> first = bits_of(data.logits);
    const int before = threads();
    for (const auto& [count, runs] : {std::pair{before, 200}, std::pair{1, 10000}}) {
        set_threads(count);
        context.run(data.batch, inputs, outputs);
        const int64_t calls = test::allocation_calls(), live = test::live_allocations();
        for (int i = 0; i < runs; ++i) context.run(data.batch, inputs, outputs);
        EXPECT_EQ(test::allocation_calls(), calls);
        EXPECT_EQ(test::live_allocations(), live);
        EXPECT_EQ(bits_of(data.logits), first);
    }
    set_threads(before);
}

TEST_P(EngineRun, TenThousandRunsLeaveMemoryFlat) {
    const int before = threads();
    set_threads(1);  // threads that wait for each other would take most of the time
    Context context(compiled());
    Data data(Batch::ragged({0, 15, 40}), device());
    const std::vector<Input> inputs = data.inputs();
    const std::vector<Output> outputs = data.outputs();
    for (int i = 0; i < 100; ++i) context.run(data.batch, inputs, outputs);
    const std::vector<float> first = bits_of(data.logits);
    const int64_t blocks = test::live_allocations(), bytes = test::device_memory_used(device());
    for (int i = 0; i < 10000; ++i) context.run(data.batch, inputs, outputs);
    EXPECT_EQ(test::live_allocations(), blocks);
    EXPECT_EQ(bits_of(data.logits), first);  // and the device is done
    EXPECT_EQ(test::device_memory_used(device()), bytes);
    set_threads(before);
}

TEST(EngineCompile, RefusesWhatItCannotDo) {
    const Network network = small_network();
    const network::Weights weights = test::random_weights(network, 3);
    const auto refused = [&](const Options& options) {
        return bad_argument_of([&] { compile(network, weights, options); });
    };
    EXPECT_EQ(refused({.precision = Precision::fp16}), "cpu has no products in fp16: it has fp32, bf16, int8");
    EXPECT_EQ(refused({.precision = Precision::int8}),
              "int8 needs a calibration: neither the options nor the weights have one");
    EXPECT_EQ(refused({.max_batch = 0}), "max_batch must be from 1, got 0");
    EXPECT_EQ(refused({.max_points = -1}), "max_points must be from 1, got -1");
    Program program = lower(network, weights);
    program.steps[0].layers[0].precision = Precision::fp8;
    EXPECT_EQ(bad_argument_of([&] { compile(program, {}); }), "cpu has no products in fp8: it has fp32, bf16, int8");
    try {
        compile(network, weights, {.device = {DeviceType::cuda, 99}});
        ADD_FAILURE() << "there is no such device";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_device) << error.what();
    }
}

TEST(EngineCompile, MemoryThatIsNotThereIsAnError) {
    const Network network = small_network();
    const network::Weights weights = test::random_weights(network, 3);
    test::for_each_allocation_failure([&] {
        const Engine engine = compile(network, weights, {.max_batch = 2, .max_points = 20});
        Context context(engine);
    });
}

}  // namespace
}  // namespace stipple::engine
