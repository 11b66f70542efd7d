// Every step of a program on the CPU against the plain loops of program_reference.h: dense and ragged batches, one
// point, one cloud, k = n, several widths; the same bits on 1 and 3 threads.

#include "stipple/engine/cpu/steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/core/array.h"
#include "stipple/ops/knn.h"
#include "tests/engine/program_reference.h"
#include "tests/engine/programs.h"

namespace stipple::test {
namespace {

using namespace engine;
using network::clouds_of;
using network::points_of;
using network::rows_of;

constexpr double kExact = 0;
constexpr double kRounding = 3e-7;  // a few roundings of float32

TensorType indices_of(int64_t k) {
    return {Level::point, k, 1, true};
}

Step step_of(StepKind kind, std::vector<Source> inputs) {
    Step step;
    step.kind = kind;
    step.inputs = std::move(inputs);
    return step;
}

/// One step with one output; types of its inputs and of its output.
void expect_step(Step step, const std::vector<TensorType>& inputs, TensorType output, double tolerance) {
    ProgramWriter write;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Value value = write.input("x" + std::to_string(i), inputs[i]);
        if (step.inputs.size() <= i) step.inputs.push_back({value});
        step.inputs[i].value = value;
    }
    write.output("y", write.step(std::move(step), output));
    expect_like_reference(write.program, 1, tolerance);
}

TEST(EngineCpuSteps, Slice) {
    Step step = step_of(StepKind::slice, {});
    step.begin = 2;
    step.end = 7;
    expect_step(step, {points_of(9)}, points_of(5), kExact);
    expect_step(step, {clouds_of(9)}, clouds_of(5), kExact);
    expect_step(step, {rows_of(4, 7)}, rows_of(4, 5), kExact);
}

TEST(EngineCpuSteps, Reverse) {
    for (const int64_t c : {1, 2, 3, 17})
        expect_step(step_of(StepKind::reverse, {}), {points_of(c)}, points_of(c), kExact);
    expect_step(step_of(StepKind::reverse, {}), {rows_of(3, 3)}, rows_of(3, 3), kExact);
}

TEST(EngineCpuSteps, Activation) {
    Step step = step_of(StepKind::activation, {});
    for (const Activation& activation : {Activation{}, network::relu(), network::leaky_relu(0.05f)}) {
        step.activation = activation;
        expect_step(step, {points_of(5)}, points_of(5), kExact);
        expect_step(step, {clouds_of(130)}, clouds_of(130), kExact);
    }
}

TEST(EngineCpuSteps, ActivationOfNumbersThatAreNotFinite) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float x[] = {infinity, -infinity, NAN};
    float y[3];
    const cpu::RowSource source{{x, 3, Access::row, 1, nullptr}};
    for (const Activation& activation : {Activation{}, network::relu(), network::leaky_relu(0.5f)}) {
        cpu::activate(source, 3, activation, {y, 3}, 0, 1);
        EXPECT_EQ(y[0], infinity);
        EXPECT_EQ(y[1], activation.kind == ActivationKind::relu ? 0 : -infinity);
        EXPECT_TRUE(std::isnan(y[2]));
    }
}

TEST(EngineCpuSteps, Add) {
    Step step = step_of(StepKind::add, {});
    for (const float factor : {1.0f, -1.0f}) {
        step.factor = factor;
        expect_step(step, {points_of(6), points_of(6)}, points_of(6), kExact);
        expect_step(step, {clouds_of(3), clouds_of(3)}, clouds_of(3), kExact);
    }
}

TEST(EngineCpuSteps, Couple) {
    Step step = step_of(StepKind::couple, {});
    for (const int64_t begin : {0, 1, 2})
        for (const float factor : {1.0f, -1.0f}) {
            step.begin = begin;
            step.factor = factor;
            expect_step(step, {rows_of(4, 3), rows_of(4, 3 - begin)}, rows_of(4, 3), kExact);
        }
}

TEST(EngineCpuSteps, Inject) {
    for (const bool inverse : {false, true})
        for (const Access access : {Access::row, Access::point, Access::cloud}) {
            Step step = step_of(StepKind::inject, {{-1}, {-1, access}, {-1, access}});
            step.inverse = inverse;
            const TensorType condition = access == Access::row     ? rows_of(4, 3)
                                         : access == Access::point ? points_of(3)
                                                                   : clouds_of(3);
            expect_step(step, {rows_of(4, 3), condition, condition}, rows_of(4, 3), kRounding);
        }
}

TEST(EngineCpuSteps, SumChannels) {
    for (const int64_t c : {1, 3, 50}) {
        expect_step(step_of(StepKind::sum_channels, {}), {points_of(c)}, points_of(1), kRounding);
        expect_step(step_of(StepKind::sum_channels, {}), {clouds_of(c)}, clouds_of(1), kRounding);
    }
}

TEST(EngineCpuSteps, LogSoftmax) {
    for (const int64_t c : {1, 4, 50})
        expect_step(step_of(StepKind::log_softmax, {}), {points_of(c)}, points_of(c), kRounding);
    expect_step(step_of(StepKind::log_softmax, {}), {clouds_of(40)}, clouds_of(40), kRounding);
}

TEST(EngineCpuSteps, LogSoftmaxOfLargeNumbers) {
    const float x[] = {1e30f, 5, -1e30f};
    float y[3];
    cpu::log_softmax({{x, 3, Access::row, 1, nullptr}}, 3, {y, 3}, 0, 1);
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], -1e30f);
    EXPECT_EQ(y[2], -2e30f);
}

TEST(EngineCpuSteps, MaxRows) {
    for (const int64_t w : {1, 4, 16})
        expect_step(step_of(StepKind::max_rows, {}), {rows_of(w, 9)}, points_of(9), kExact);
}

TEST(EngineCpuSteps, SoftmaxRows) {
    for (const int64_t w : {1, 8})
        for (const int64_t c : {1, 4, 33})
            expect_step(step_of(StepKind::softmax_rows, {}), {rows_of(w, c)}, rows_of(w, c), kRounding);
}

TEST(EngineCpuSteps, Interpolate) {
    for (const int64_t r : {1, 4, 16})
        expect_step(step_of(StepKind::interpolate, {}), {rows_of(8, r), rows_of(8, 3)}, rows_of(r, 3), 6e-7);
}

TEST(EngineCpuSteps, MaxPoints) {
    expect_step(step_of(StepKind::max_points, {}), {points_of(1)}, clouds_of(1), kExact);
    expect_step(step_of(StepKind::max_points, {}), {points_of(100)}, clouds_of(100), kExact);
    expect_step(step_of(StepKind::max_points, {}), {rows_of(3, 5)}, clouds_of(5), kExact);
}

TEST(EngineCpuSteps, SumPoints) {
    expect_step(step_of(StepKind::sum_points, {}), {points_of(1)}, clouds_of(1), kRounding);
    expect_step(step_of(StepKind::sum_points, {}), {points_of(100)}, clouds_of(100), kRounding);
    expect_step(step_of(StepKind::sum_points, {}), {rows_of(3, 5)}, clouds_of(5), kRounding);
}

TEST(EngineCpuSteps, LogDetAndDensity) {
    Step step = step_of(StepKind::log_det, {});
    step.factor = -0.375f;
    expect_step(step, {points_of(3)}, clouds_of(1), kExact);
    expect_step(step_of(StepKind::gaussian_log_density, {}), {points_of(3)}, clouds_of(1), kRounding);
}

TEST(EngineCpuSteps, FoldMatrix) {
    // k, out: widths beside and beyond the blocks that it works in.
    for (const auto& [k, out] : {std::pair<int64_t, int64_t>{3, 64}, {3, 1}, {64, 128}, {65, 40}, {128, 70}}) {
        Step step = step_of(StepKind::fold_matrix, {});
        step.weight = random_numbers(out * k, 3);
        expect_step(step, {clouds_of(k * k)}, clouds_of(out * k), 1e-6);
        step.weight = {};  // T^T
        expect_step(step, {clouds_of(k * k)}, clouds_of(k * k), kExact);
    }
}

// Points and their neighbours, then steps that use both.
TEST(EngineCpuSteps, NeighboursAndWhatUsesThem) {
    for (const int64_t k : {1, 5, 16}) {
        ProgramWriter write;
        const Value points = write.input("points", points_of(3)), x = write.input("x", points_of(7));
        const Value cloud = write.input("cloud", clouds_of(2));
        const Value indices = write.step(step_of(StepKind::knn, {{points}}), indices_of(k));
        write.output("gather", write.step(step_of(StepKind::gather, {{x}, {indices}}), rows_of(k, 7)));
        const Value edges = write.step(step_of(StepKind::edge_distance, {{points}, {indices}}), rows_of(k, 10));
        write.output("edges", edges);
        // All ways to find a row, side by side.
        const Step copy =
            step_of(StepKind::copy,
                    {{edges}, {cloud, Access::cloud}, {x, Access::point}, {points, Access::neighbour, indices}});
        write.output("copy", write.step(copy, rows_of(k, 10 + 2 + 7 + 3)));
        expect_like_reference(write.program, k, kRounding);  // the least batch: k = n
    }
}

TEST(EngineCpuSteps, NeighboursInOtherDimensionsAndManyPoints) {
    for (const int64_t c : {1, 2, 8, 20}) {
        ProgramWriter write;
        const Value x = write.input("x", points_of(c));
        const Value indices = write.step(step_of(StepKind::knn, {{x}}), indices_of(4));
        write.output("gather", write.step(step_of(StepKind::gather, {{x}, {indices}}), rows_of(4, c)));
        expect_like_reference(write.program, 4, kExact);
    }
}

std::vector<int32_t> neighbours(const std::vector<float>& points, int64_t k) {
    const auto n = static_cast<int64_t>(points.size()) / 3;
    std::vector<int32_t> found(static_cast<size_t>(n * k), -7);
    std::vector<std::byte> scratch(static_cast<size_t>(cpu::knn_scratch_bytes(3, k)));
    cpu::knn_all(points.data(), 3, n, 3, k, found.data(), 0, n, scratch.data());
    return found;
}

TEST(EngineCpuSteps, NeighboursAreThoseOfTheOp) {
    // A grid: nearly all distances are ties. 1500 points: more than one block of candidates.
    std::vector<float> grid = random_numbers(1500 * 3, 4);
    for (float& x : grid) x = std::round(x * 4);
    for (const std::vector<float>& points : {grid, random_numbers(1500 * 3, 5)})
        for (const int64_t k : {1, 7, 8, 9, 16, 20, 32, 33, 100}) {
            SCOPED_TRACE(k);
            std::vector<int32_t> expected(static_cast<size_t>(1500 * k)), tree = expected;
            const ops::Clouds cloud(View<const float, 2>(points.data(), {1500, 3}));
            ops::knn(ops::PointIndex(cloud), cloud, View<int32_t, 2>(expected.data(), {1500, k}), {});
            EXPECT_EQ(neighbours(points, k), expected);
            cpu::knn_tree(points.data(), 3, 1500, 3, k, tree.data());
            EXPECT_EQ(tree, expected);
        }
}

TEST(EngineCpuSteps, NeighboursOfALargeCloudBesideSmallOnes) {
    ProgramWriter write;
    const Value points = write.input("points", points_of(3));
    const Value indices = write.step(step_of(StepKind::knn, {{points}}), indices_of(6));
    write.output("gather", write.step(step_of(StepKind::gather, {{points}, {indices}}), rows_of(6, 3)));
    const ops::Batch batch = ops::Batch::ragged({0, 40, 6040, 6100});
    const std::vector<std::vector<float>> inputs = random_inputs(write.program, batch, 9);
    const ops::Clouds clouds(View<const float, 2>(inputs[0].data(), {6100, 3}), batch);
    Array<int32_t, 2> found({6100, 6});
    ops::knn(ops::PointIndex(clouds), clouds, found.view(), {});
    std::vector<float> expected;
    for (int64_t cloud = 0; cloud < 3; ++cloud)
        for (int64_t i = batch.begin(cloud) * 6; i < batch.end(cloud) * 6; ++i) {
            const float* from = inputs[0].data() + 3 * (batch.begin(cloud) + found.data()[i]);
            expected.insert(expected.end(), from, from + 3);
        }
    EXPECT_EQ(run_on_cpu(write.program, batch, inputs)[0], expected);
}

TEST(EngineCpuSteps, NeighboursThatAreMissingAreThePointItself) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> points = {0, 0, 0, NAN, 0, 0, 1, 0, 0, 0, infinity, 0, 3e38f, 0, 0};
    const std::vector<int32_t> expected = {0, 2, 0, 1, 1, 1, 2, 0, 2, 3, 3, 3, 4, 4, 4};
    EXPECT_EQ(neighbours(points, 3), expected);
    std::vector<int32_t> tree(15);
    cpu::knn_tree(points.data(), 3, 5, 3, 3, tree.data());
    EXPECT_EQ(tree, expected);
}

}  // namespace
}  // namespace stipple::test
