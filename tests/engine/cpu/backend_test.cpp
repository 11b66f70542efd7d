// Programs as a whole on the CPU: groups of steps, heads, memory, threads.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "stipple/core/parallel.h"
#include "tests/engine/device_programs.h"
#include "tests/support/allocation.h"
#include "tests/support/devices.h"

namespace stipple::test {
namespace {

using namespace engine;
using network::clouds_of;
using network::leaky_relu;
using network::points_of;
using network::relu;
using network::rows_of;

Step chain(std::vector<Dense> layers, Reduce reduce, Level level = Level::point, int64_t width = 1) {
    Step step;
    step.layers = std::move(layers);
    step.reduce = reduce;
    step.level = level;
    step.width = width;
    return step;
}

// A T-net, its matrix folded into the trunk, a trunk with a maximum, a head: a small PointNet with its transform.
Program small_pointnet() {
    ProgramWriter write;
    const Value points = write.input("points", points_of(3));
    Dense first = random_dense("stn.conv1", 3, 20, relu(), 1);
    first.parts = {{points}};
    const Value pooled =
        write.step(chain({first, random_dense("stn.conv2", 20, 70, relu(), 2)}, Reduce::max_points), clouds_of(70));
    Dense fc = random_dense("stn.fc1", 70, 150, relu(), 3);
    fc.parts = {{pooled}};
    const Value t =
        write.step(chain({fc, random_dense("stn.fc2", 150, 9, {}, 4)}, Reduce::none, Level::cloud), clouds_of(9));
    Step fold;
    fold.kind = StepKind::fold_matrix;
    fold.inputs = {{t}};
    fold.weight = random_numbers(24 * 3, 5);
    const Value matrix = write.step(fold, clouds_of(24 * 3));
    Dense conv1 = random_dense("conv1", 3, 24, relu(), 6);
    conv1.parts = {{points}};
    conv1.matrix = matrix;
    conv1.weight = {};
    const Value feature = write.step(
        chain({conv1, random_dense("conv2", 24, 90, leaky_relu(0.1f), 7)}, Reduce::max_points), clouds_of(90));
    Dense head = random_dense("fc1", 90, 65, relu(), 8);
    head.parts = {{feature}};
    const Value logits =
        write.step(chain({head, random_dense("fc2", 65, 12, {}, 9)}, Reduce::none, Level::cloud), clouds_of(12));
    // Segmenter: every point's features with the cloud's logits added.
    Dense local = random_dense("seg", 3, 12, relu(), 10);
    local.parts = {{points}};
    local.addends = {{logits, Access::cloud}};
    const Value parts = write.step(chain({local}, Reduce::none), points_of(12));
    write.output("transform", t);
    write.output("logits", logits);
    write.output("parts", parts);
    return write.program;
}

TEST(EngineCpuBackend, RunsASmallPointNet) {
    expect_on(Device{}, small_pointnet(), 1, {{Precision::fp32, 2e-6}});
}

TEST(EngineCpuBackend, CutsOneLargeCloudAmongSmallOnes) {
    const Program program = small_pointnet();
    const ops::Batch batch = ops::Batch::ragged({0, 3, 4, 3004, 3010, 3011});
    const std::vector<std::vector<float>> inputs = random_inputs(program, batch, 3);
    const std::vector<std::vector<float>> expected = expected_outputs(program, batch, inputs);
    const int before = threads();
    for (const int count : {1, 2, 5}) {
        set_threads(count);
        const std::vector<std::vector<float>> outputs = run_on({}, program, batch, inputs);
        for (size_t i = 0; i < outputs.size(); ++i)
            for (size_t j = 0; j < outputs[i].size(); ++j)
                ASSERT_NEAR(outputs[i][j], expected[i][j], 2e-5)
                    << program.outputs[i].name << " " << j << " with " << count << " threads";
    }
    set_threads(before);
}

// Dense edge features as an upsampling network has them: chains that only add, chains with several parts, maxima over
// neighbours, all within one group, in which values share memory.
Program small_edge_network() {
    ProgramWriter write;
    const Value points = write.input("points", points_of(3));
    Step knn;
    knn.kind = StepKind::knn;
    knn.inputs = {{points}};
    const Value indices = write.step(knn, {Level::point, 6, 1, true});
    const auto per_point = [&](uint64_t seed, Value from, int64_t in, int64_t out) {
        Dense layer = random_dense("p", in, out, {}, seed);
        layer.parts = {{from}};
        return write.step(chain({layer}, Reduce::none), points_of(out));
    };
    Value x = points;
    int64_t channels = 3;
    for (uint64_t block = 0; block < 3; ++block) {
        const uint64_t seed = 100 * block;
        Dense sum = random_dense("growth0", 0, 8, leaky_relu(0.05f), seed + 1);
        sum.addends = {{per_point(seed + 2, x, channels, 8), Access::point},
                       {per_point(seed + 3, x, channels, 8), Access::neighbour, indices}};
        const Value growth0 = write.step(chain({sum}, Reduce::none, Level::point, 6), rows_of(6, 8));
        Dense more = random_dense("growth1", 8, 5, leaky_relu(0.05f), seed + 4);
        more.parts = {{growth0}};
        more.addends = {{per_point(seed + 5, x, channels, 5), Access::point},
                        {per_point(seed + 6, x, channels, 5), Access::neighbour, indices}};
        const Value growth1 = write.step(chain({more}, Reduce::none, Level::point, 6), rows_of(6, 5));
        Dense out = random_dense("out", 13, 17, {}, seed + 7);
        out.parts = {{growth0}, {growth1}};
        out.addends = {{per_point(seed + 8, x, channels, 17), Access::neighbour, indices}};
        x = write.step(chain({out}, Reduce::max_rows, Level::point, 6), points_of(17));
        channels = 17;
        write.output("block" + std::to_string(block), x);
    }
    return write.program;
}

TEST(EngineCpuBackend, RunsASmallEdgeNetwork) {
    expect_on(Device{}, small_edge_network(), 6, {{Precision::fp32, 3e-6}});
}

TEST(EngineCpuBackend, RefusesCloudsOfTooFewPointsForTheirNeighbours) {
    const Program program = small_edge_network();
    const ops::Batch batch = ops::Batch::ragged({0, 6, 11});
    EXPECT_EQ(bad_argument_of([&] { run_on({}, program, batch, random_inputs(program, batch, 1)); }),
              "cloud 1 has 5 points;  needs 6 neighbours");
}

struct Bound {
    std::vector<Array<float, 2>> arrays;
    std::vector<View<float, 2>> views;
};
Bound outputs_of(const Program& program, const ops::Batch& batch, int64_t padding = 0) {
    Bound bound;
    for (const Binding& binding : program.outputs) {
        const TensorType& type = program.values[static_cast<size_t>(binding.value)].type;
        const int64_t rows = rows_in(type, batch), stride = type.channels + padding;
        bound.arrays.emplace_back(std::array<int64_t, 2>{rows, stride});
        std::fill(bound.arrays.back().span().begin(), bound.arrays.back().span().end(), -99.0f);
        bound.views.push_back({bound.arrays.back().data(), {rows, type.channels}, {stride, 1}});
    }
    return bound;
}

TEST(EngineCpuBackend, AllocatesNothingWhileItRuns) {
    if (!can_fail_allocations()) GTEST_SKIP() << "operator new is not counted here";
    for (const Program& program : {small_pointnet(), small_edge_network()})
        for (const ops::Batch& batch : {ops::Batch::dense(12, 100), ops::Batch::ragged({0, 30, 700, 720})}) {
            const std::vector<std::vector<float>> inputs = random_inputs(program, batch, 1);
            const auto backend = make_cpu_backend(program, {.max_batch = 12, .max_points = 100});
            const auto context = backend->new_context();
            const std::vector<View<const float, 2>> in = {{inputs[0].data(), {batch.rows(), 3}}};
            const Bound out = outputs_of(program, batch);
            context->run(batch, in, out.views, {});  // threads start
            const int64_t before = allocation_calls();
            for (int i = 0; i < 20; ++i) context->run(batch, in, out.views, {});
            EXPECT_EQ(allocation_calls(), before);
        }
}

TEST(EngineCpuBackend, OutputsThatAreNotWantedAndRowsApart) {
    for (const Program& program : {small_pointnet(), small_edge_network()}) {
        const ops::Batch batch = ops::Batch::dense(9, 40);
        const std::vector<std::vector<float>> inputs = random_inputs(program, batch, 1);
        const std::vector<View<const float, 2>> in = {{inputs[0].data(), {batch.rows(), 3}}};
        const auto backend = make_cpu_backend(program, {.max_batch = 9, .max_points = 40});
        const Bound all = outputs_of(program, batch), apart = outputs_of(program, batch, 5);
        backend->new_context()->run(batch, in, all.views, {});
        backend->new_context()->run(batch, in, apart.views, {});
        for (size_t i = 0; i < all.views.size(); ++i) {
            Bound one = outputs_of(program, batch);
            for (size_t j = 0; j < one.views.size(); ++j)
                if (j != i) one.views[j] = {};
            backend->new_context()->run(batch, in, one.views, {});
            for (int64_t r = 0; r < all.views[i].size(0); ++r) {
                for (int64_t c = 0; c < all.views[i].size(1); ++c) {
                    ASSERT_EQ(one.views[i](r, c), all.views[i](r, c));
                    ASSERT_EQ(apart.views[i](r, c), all.views[i](r, c));
                }
                ASSERT_EQ(apart.arrays[i].view()(r, all.views[i].size(1)), -99) << "written beside the row";
            }
        }
    }
}

TEST(EngineCpuBackend, InputsMayBeOutputsAndOutputsMayBeTwo) {
    Program program = small_pointnet();
    program.outputs.push_back({"again", program.outputs[1].value});
    program.outputs.push_back({"points", program.inputs[0].value});
    const ops::Batch batch = ops::Batch::dense(3, 10);
    const std::vector<std::vector<float>> inputs = random_inputs(program, batch, 1);
    const std::vector<std::vector<float>> outputs = run_on({}, program, batch, inputs);
    EXPECT_EQ(outputs[3], outputs[1]);
    EXPECT_EQ(outputs[4], inputs[0]);
}

TEST(EngineCpuBackend, ContextsRunSideBySide) {
    const Program program = small_pointnet();
    const ops::Batch batch = ops::Batch::dense(4, 64);
    const auto backend = make_cpu_backend(program, {.max_batch = 4, .max_points = 64});
    const std::vector<std::vector<float>> inputs = random_inputs(program, batch, 1);
    const std::vector<View<const float, 2>> in = {{inputs[0].data(), {batch.rows(), 3}}};
    const Bound expected = outputs_of(program, batch);
    backend->new_context()->run(batch, in, expected.views, {});
    std::vector<std::thread> callers;
    std::vector<Bound> results;
    for (int i = 0; i < 3; ++i) results.push_back(outputs_of(program, batch));
    for (int i = 0; i < 3; ++i)
        callers.emplace_back([&, i] {
            const auto context = backend->new_context();
            for (int repeat = 0; repeat < 20; ++repeat)
                context->run(batch, in, results[static_cast<size_t>(i)].views, {});
        });
    for (std::thread& caller : callers) caller.join();
    for (const Bound& result : results)
        for (size_t i = 0; i < result.arrays.size(); ++i)
            EXPECT_EQ(0, std::memcmp(result.arrays[i].data(), expected.arrays[i].data(),
                                     static_cast<size_t>(result.arrays[i].elements()) * sizeof(float)));
}

TEST(EngineCpuBackend, SaysWhatItTakes) {
    const auto backend = make_cpu_backend(small_pointnet(), {.max_batch = 4, .max_points = 64});
    EXPECT_EQ(backend->describe().size(), backend->program().steps.size());
    EXPECT_GE(backend->weight_bytes(), 4 * (3 * 20 + 20 * 70 + 70 * 150 + 150 * 9 + 24 * 90 + 90 * 65 + 65 * 12));
    const auto larger = make_cpu_backend(small_pointnet(), {.max_batch = 8, .max_points = 64});
    EXPECT_GT(larger->context_bytes(), backend->context_bytes());
    EXPECT_LT(larger->context_bytes(), 4 << 20);
}

}  // namespace
}  // namespace stipple::test
