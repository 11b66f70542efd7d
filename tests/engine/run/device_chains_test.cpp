// Chains on every device and in every precision, against plain loops: parts, addends, matrices, maxima, many and few
// rows; what a context keeps between runs.

#include <gtest/gtest.h>

#include "stipple/core/array.h"
#include "tests/engine/device_programs.h"
#include "tests/support/devices.h"

namespace stipple::test {
namespace {

using namespace engine;
using network::clouds_of;
using network::leaky_relu;
using network::points_of;
using network::relu;
using network::rows_of;
using ops::Batch;

Step chain(std::vector<Dense> layers, Reduce reduce, Level level = Level::point, int64_t width = 1) {
    Step step;
    step.layers = std::move(layers);
    step.reduce = reduce;
    step.level = level;
    step.width = width;
    return step;
}

/// The precisions that products of general chains have on a device; int8 and fp8 need ranges and are tested with
/// networks.
std::vector<Tolerance> tolerances_of(Device device) {
    std::vector<Tolerance> tolerances;
    for (const Precision precision : precisions_of(device)) {
        if (precision == Precision::fp32) tolerances.push_back({precision, 3e-6});
        if (precision == Precision::tf32 || precision == Precision::fp16) tolerances.push_back({precision, 2e-3});
        if (precision == Precision::bf16) tolerances.push_back({precision, 1.5e-2});
    }
    return tolerances;
}

class EngineChains : public OnDevice {
protected:
    void expect_chains(const Program& program, int64_t least_points) const {
        expect_on(device(), program, least_points, tolerances_of(device()));
    }
    void expect_chains(const Program& program, const Batch& batch) const {
        expect_on(device(), program, batch, tolerances_of(device()));
    }
};
STIPPLE_ON_EVERY_DEVICE(EngineChains);

class EngineGpuChains : public OnDevice {};
STIPPLE_ON_EVERY_GPU(EngineGpuChains);

TEST_P(EngineChains, PointsToRows) {
    // Widths beside and beyond tiles; inputs that are no multiple of four.
    for (const auto& [in, between, out] :
         {std::array<int64_t, 3>{3, 64, 128}, {3, 20, 9}, {70, 33, 65}, {128, 130, 257}, {5, 1, 1}}) {
        ProgramWriter write;
        Dense first = random_dense("first", in, between, relu(), 1);
        first.parts = {{write.input("x", points_of(in))}};
        write.output("y",
                     write.step(chain({first, random_dense("last", between, out, leaky_relu(0.1f), 2)}, Reduce::none),
                                points_of(out)));
        expect_chains(write.program, 1);
    }
}

// Products of eight bits outside the fused chains are made in fp16 on a GPU, and the engine says so.
TEST_P(EngineGpuChains, EightBitsElsewhereAreSixteen) {
    ProgramWriter write;
    Dense first = random_dense("first", 20, 33, relu(), 1);
    first.parts = {{write.input("x", points_of(20))}};
    write.output("y",
                 write.step(chain({first, random_dense("last", 33, 65, {}, 2)}, Reduce::max_points), clouds_of(65)));
    for (const Precision precision : precisions_of(device())) {
        if (bytes_of(precision) != 1) continue;
        expect_on(device(), write.program, 1, {{precision, 2e-3}});
        const Engine engine = compile(in_precision(write.program, precision), {.device = device()});
        EXPECT_NE(engine.describe()[0].find(fmt::format("fp16 mma, 20 -> 33 (for {})", name_of(precision))),
                  std::string::npos)
            << engine.describe()[0];
    }
}

TEST_P(EngineChains, PointsToTheirMaximum) {
    for (const auto& [between, out] : {std::pair<int64_t, int64_t>{64, 1024}, {20, 70}, {128, 3}})
        for (const Activation& activation : {Activation{}, relu()}) {
            ProgramWriter write;
            Dense first = random_dense("first", 3, between, relu(), 1);
            first.parts = {{write.input("x", points_of(3))}};
            write.output(
                "y", write.step(chain({first, random_dense("last", between, out, activation, 2)}, Reduce::max_points),
                                clouds_of(out)));
            expect_chains(write.program, 1);
        }
}

TEST_P(EngineChains, AllThatPointNetHas) {
    // The widths of the fused kernels: 3-64-128-1024, 3-64-64-128-1024, matrices in the first and the middle layer.
    ProgramWriter write;
    const Value x = write.input("x", points_of(3)), small = write.input("small", clouds_of(192));
    const Value large = write.input("large", clouds_of(128 * 64));
    Dense first = random_dense("t.conv1", 3, 64, relu(), 1);
    first.parts = {{x}};
    write.output("t", write.step(chain({first, random_dense("t.conv2", 64, 128, relu(), 2),
                                        random_dense("t.conv3", 128, 1024, relu(), 3)},
                                       Reduce::max_points),
                                 clouds_of(1024)));
    Dense own = random_dense("conv1", 3, 64, relu(), 4);
    own.parts = {{x}};
    own.weight = {};
    own.matrix = small;
    Dense middle = random_dense("conv2", 64, 128, relu(), 5);
    middle.weight = {};
    middle.matrix = large;
    write.output("y", write.step(chain({own, middle, random_dense("conv3", 128, 1024, {}, 6)}, Reduce::max_points),
                                 clouds_of(1024)));
    write.output("z", write.step(chain({own, random_dense("f.conv1", 64, 64, relu(), 7),
                                        random_dense("f.conv2", 64, 128, relu(), 8),
                                        random_dense("f.conv3", 128, 1024, relu(), 9)},
                                       Reduce::max_points),
                                 clouds_of(1024)));
    for (const Batch& batch : {Batch::dense(2, 300), Batch::ragged({0, 1, 700, 720})})
        expect_chains(write.program, batch);
}

TEST_P(EngineChains, HeadsOfFewAndManyClouds) {
    ProgramWriter write;
    Dense first = random_dense("fc1", 1024, 512, relu(), 1);
    first.parts = {{write.input("x", clouds_of(1024))}};
    write.output(
        "y", write.step(chain({first, random_dense("fc2", 512, 256, relu(), 2), random_dense("fc3", 256, 40, {}, 3)},
                              Reduce::none, Level::cloud),
                        clouds_of(40)));
    for (const int64_t clouds : {1, 2, 31, 33, 256, 257, 300}) expect_chains(write.program, Batch::dense(clouds, 1));
}

TEST_P(EngineChains, HeadsOfOddWidthsAddendsAndMatrices) {
    ProgramWriter write;
    const Value x = write.input("x", clouds_of(50)), y = write.input("y", clouds_of(7));
    Dense first = random_dense("fc1", 57, 33, relu(), 1);
    first.parts = {{x}, {y}};
    first.addends = {{write.input("a", clouds_of(33))}, {write.input("b", clouds_of(33)), Access::cloud}};
    const Value z = write.step(chain({first}, Reduce::none, Level::cloud), clouds_of(33));
    write.output("z", z);
    Dense own = random_dense("own", 33, 20, relu(), 2);
    own.parts = {{z}};
    own.weight = {};
    own.matrix = write.input("matrix", clouds_of(33 * 20));
    write.output("own",
                 write.step(chain({own, random_dense("fc2", 20, 5, {}, 3)}, Reduce::none, Level::cloud), clouds_of(5)));
    for (const int64_t clouds : {1, 40, 300}) expect_chains(write.program, Batch::dense(clouds, 2));
}

TEST_P(EngineChains, MatricesOfClouds) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{64, 128}, {3, 64}, {10, 7}, {128, 65}}) {
        ProgramWriter write;
        Dense own = random_dense("own", in, out, relu(), 1);
        own.parts = {{write.input("x", points_of(in))}};
        own.weight = {};
        own.matrix = write.input("matrix", clouds_of(in * out));
        own.addends = {{write.input("cloud", clouds_of(out)), Access::cloud}};
        write.output("y", write.step(chain({own}, Reduce::none), points_of(out)));
        expect_chains(write.program, 1);
    }
}

TEST_P(EngineChains, EdgesWithAllAddendsAndTheirMaximum) {
    // Widths that divide a tile, one that does not, one of a single row, one beyond the tile.
    for (const int64_t k : {1, 6, 8, 16, 150}) {
        ProgramWriter write;
        const Value points = write.input("points", points_of(3));
        Step knn;
        knn.kind = StepKind::knn;
        knn.inputs = {{points}};
        const Value indices = write.step(knn, {Level::point, std::min<int64_t>(k, 16), 1, true});
        if (k > 16) {  // no neighbours: children of a point
            Dense children = random_dense("children", 6, 37, leaky_relu(0.05f), 1);
            children.parts = {{write.input("rows", rows_of(k, 6))}};
            children.addends = {{write.input("p", points_of(37)), Access::point}};
            write.output("y", write.step(chain({children}, Reduce::max_rows, Level::point, k), points_of(37)));
            expect_chains(write.program, 16);
            continue;
        }
        Dense sum = random_dense("sum", 0, 8, leaky_relu(0.05f), 1);
        const Value at_point = write.input("p", points_of(8)), at_neighbour = write.input("n", points_of(8));
        sum.addends = {{at_point, Access::point}, {at_neighbour, Access::neighbour, indices}};
        const Value growth = write.step(chain({sum}, Reduce::none, Level::point, k), rows_of(k, 8));
        write.output("growth", growth);
        Dense more = random_dense("more", 8, 5, leaky_relu(0.05f), 2);
        more.parts = {{growth}};
        more.addends = {{write.input("c", clouds_of(5)), Access::cloud}};
        const Value more_growth = write.step(chain({more}, Reduce::none, Level::point, k), rows_of(k, 5));
        Dense out = random_dense("out", 13, 68, {}, 3);
        out.parts = {{growth}, {more_growth}};
        out.addends = {{write.input("o", points_of(68)), Access::neighbour, indices},
                       {write.input("r", rows_of(k, 68)), Access::row}};
        write.output("rows", write.step(chain({out}, Reduce::none, Level::point, k), rows_of(k, 68)));
        write.output(
            "max", write.step(chain({out, random_dense("last", 68, 70, relu(), 4)}, Reduce::max_rows, Level::point, k),
                              points_of(70)));
        write.output("max1", write.step(chain({out}, Reduce::max_rows, Level::point, k), points_of(68)));
        write.output("cloud", write.step(chain({out}, Reduce::max_points, Level::point, k), clouds_of(68)));
        expect_chains(write.program, k);
    }
}

TEST_P(EngineChains, InputsMayBeOutputsAndOutputsMayBeTwo) {
    ProgramWriter write;
    const Value x = write.input("x", points_of(6));
    Dense layer = random_dense("layer", 6, 12, relu(), 1);
    layer.parts = {{x}};
    const Value y = write.step(chain({layer}, Reduce::none), points_of(12));
    Dense next = random_dense("next", 12, 5, {}, 2);
    next.parts = {{y}};
    write.output("y", y);
    write.output("again", y);
    write.output("x", x);
    write.output("z", write.step(chain({next}, Reduce::max_points), clouds_of(5)));
    expect_on(device(), write.program, 1, {{Precision::fp32, 1e-6}});
}

/// A small network with an output of each level.
Program two_outputs() {
    ProgramWriter write;
    Dense first = random_dense("first", 3, 24, relu(), 1);
    first.parts = {{write.input("x", points_of(3))}};
    const Value pooled =
        write.step(chain({first, random_dense("second", 24, 40, relu(), 2)}, Reduce::max_points), clouds_of(40));
    Dense head = random_dense("head", 40, 9, {}, 3);
    head.parts = {{pooled}};
    const Value logits = write.step(chain({head}, Reduce::none, Level::cloud), clouds_of(9));
    Dense local = random_dense("local", 3, 9, {}, 4);
    local.parts = first.parts;
    local.addends = {{logits, Access::cloud}};
    write.output("logits", logits);
    write.output("parts", write.step(chain({local}, Reduce::none), points_of(9)));
    return write.program;
}

// A context that has seen a batch and its pointers may replay what it did then: with other numbers in the same memory,
// with more shapes than it remembers, and in any order, it must give what a fresh context gives.
TEST_P(EngineChains, ReplaysFollowTheirData) {
    const Program program = two_outputs();
    const Engine engine = compile(program, {.device = device(), .max_batch = 6, .max_points = 100});
    Context context(engine);
    std::vector<Batch> batches = {Batch::ragged({0, 5, 300}), Batch::ragged({0, 295, 300})};
    for (int64_t clouds = 1; clouds <= 6; ++clouds)
        for (const int64_t points : {30, 50}) batches.push_back(Batch::dense(clouds, points));
    // Zeros: the copies back take rows that a batch does not write.
    const auto zeros = [&](int64_t rows, int64_t channels) {
        Array<float, 2> host({rows, channels});
        std::fill_n(host.data(), host.elements(), 0.f);
        return upload(host);
    };
    Array<float, 2> points = zeros(600, 3), logits = zeros(6, 9), parts = zeros(600, 9);
    uint64_t seed = 1;
    for (int round = 0; round < 4; ++round)
        for (size_t b = 0; b < batches.size(); ++b) {
            const Batch& batch = batches[round % 2 == 0 ? b : b / 4];  // all in turn, or few again and again
            const std::vector<std::vector<float>> inputs = random_inputs(program, batch, ++seed);
            copy_bytes(points.data(), device(), inputs[0].data(), {}, static_cast<int64_t>(inputs[0].size() * 4));
            context.run(batch, {{"x", View<const float, 2>(points.data(), {batch.rows(), 3}, device())}},
                        {{"logits", View<float, 2>(logits.data(), {batch.clouds(), 9}, device())},
                         {"parts", View<float, 2>(parts.data(), {batch.rows(), 9}, device())}});
            const Array<float, 2> host_logits = logits.to(Device{}), host_parts = parts.to(Device{});
            const std::vector<std::vector<float>> expected = run_on(device(), program, batch, inputs, 1);
            ASSERT_TRUE(std::equal(expected[0].begin(), expected[0].end(), host_logits.data()));
            ASSERT_TRUE(std::equal(expected[1].begin(), expected[1].end(), host_parts.data()));
        }
}

// More rows than the results between layers have room for at a time.
TEST_P(EngineGpuChains, LongInputsGoInSlabs) {
    ProgramWriter write;
    Dense first = random_dense("first", 8, 160, relu(), 1);
    first.parts = {{write.input("x", points_of(8))}};
    const Dense second = random_dense("second", 160, 160, relu(), 2);
    write.output("rows",
                 write.step(chain({first, second, random_dense("rows", 160, 12, {}, 3)}, Reduce::none), points_of(12)));
    write.output("max", write.step(chain({first, second, random_dense("max", 160, 20, {}, 4)}, Reduce::max_points),
                                   clouds_of(20)));
    for (const Batch& batch : {Batch::dense(7, 9001), Batch::ragged({0, 1, 40000, 40100, 63000})}) {
        const std::vector<std::vector<float>> inputs = random_inputs(write.program, batch, 5);
        const std::vector<std::vector<float>> expected = run_on(Device{}, write.program, batch, inputs, 1);
        const std::vector<std::vector<float>> outputs = run_on(device(), write.program, batch, inputs);
        for (size_t i = 0; i < outputs.size(); ++i)
            EXPECT_LE(difference_of(outputs[i], expected[i]), 3e-6) << write.program.outputs[i].name;
    }
}

TEST_P(EngineGpuChains, PlansSmallMemoryForLongInputs) {
    ProgramWriter write;
    Dense first = random_dense("first", 3, 64, relu(), 1);
    first.parts = {{write.input("x", points_of(3))}};
    write.output(
        "y",
        write.step(chain({first, random_dense("second", 64, 128, relu(), 2), random_dense("third", 128, 1024, {}, 3)},
                         Reduce::max_points),
                   clouds_of(1024)));
    for (const Tolerance& c : tolerances_of(device())) {
        const Engine engine =
            compile(in_precision(write.program, c.precision),
                    {.device = device(), .precision = c.precision, .max_batch = 1024, .max_points = 1024});
        EXPECT_LE(engine.context_bytes(), int64_t{100} << 20) << name_of(c.precision);
        EXPECT_EQ(engine.describe().size(), 1u);
    }
}

}  // namespace
}  // namespace stipple::test
