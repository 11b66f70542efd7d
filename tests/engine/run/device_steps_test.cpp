// Every step but chains on every device, against plain loops: dense and ragged batches, one point, one cloud, k = n,
// several widths; on the CPU the same bits on 1 and 3 threads (device_programs.h).

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/core/array.h"
#include "stipple/ops/knn.h"
#include "tests/engine/device_programs.h"
#include "tests/support/devices.h"

namespace stipple::test {
namespace {

using namespace engine;
using network::clouds_of;
using network::points_of;
using network::rows_of;

/// What a step may lose, of the largest number of its output: on the CPU, and on a GPU, whose exponentials are not
/// those of libm.
struct Loss {
    double cpu, gpu;
};
constexpr Loss kExact = {0, 0};
constexpr Loss kRounding = {3e-7, 1e-6};  // a few roundings of float32

TensorType indices_of(int64_t k) {
    return {Level::point, k, 1, true};
}

Step step_of(StepKind kind, std::vector<Source> inputs = {}) {
    Step step;
    step.kind = kind;
    step.inputs = std::move(inputs);
    return step;
}

class EngineSteps : public OnDevice {
protected:
    void expect_program(const Program& program, int64_t least_points, const Loss& loss) const {
        const double tolerance = device().type == DeviceType::cpu ? loss.cpu : loss.gpu;
        expect_on(device(), program, least_points, {{Precision::fp32, tolerance}});
    }

    /// One step with one output; types of its inputs and of its output.
    void expect_step(Step step, const std::vector<TensorType>& inputs, TensorType output, const Loss& loss) const {
        ProgramWriter write;
        for (size_t i = 0; i < inputs.size(); ++i) {
            const Value value = write.input("x" + std::to_string(i), inputs[i]);
            if (step.inputs.size() <= i) step.inputs.push_back({value});
            step.inputs[i].value = value;
        }
        write.output("y", write.step(std::move(step), output));
        expect_program(write.program, 1, loss);
    }

    /// One step on one row of points.
    std::vector<float> run_row(Step step, const std::vector<float>& row) const {
        const auto channels = static_cast<int64_t>(row.size());
        ProgramWriter write;
        step.inputs = {{write.input("x", points_of(channels))}};
        write.output("y", write.step(std::move(step), points_of(channels)));
        return run_on(device(), write.program, ops::Batch::single(1), {row})[0];
    }
};
STIPPLE_ON_EVERY_DEVICE(EngineSteps);

TEST_P(EngineSteps, SliceAndReverse) {
    Step slice = step_of(StepKind::slice);
    slice.begin = 2;
    slice.end = 7;
    expect_step(slice, {points_of(9)}, points_of(5), kExact);
    expect_step(slice, {clouds_of(9)}, clouds_of(5), kExact);
    expect_step(slice, {rows_of(4, 7)}, rows_of(4, 5), kExact);
    for (const int64_t c : {1, 2, 3, 17}) expect_step(step_of(StepKind::reverse), {points_of(c)}, points_of(c), kExact);
    expect_step(step_of(StepKind::reverse), {rows_of(3, 3)}, rows_of(3, 3), kExact);
    expect_step(step_of(StepKind::reverse), {clouds_of(5)}, clouds_of(5), kExact);
}

TEST_P(EngineSteps, Activation) {
    Step step = step_of(StepKind::activation);
    for (const Activation& activation : {Activation{}, network::relu(), network::leaky_relu(0.05f)}) {
        step.activation = activation;
        expect_step(step, {points_of(5)}, points_of(5), kExact);
        expect_step(step, {clouds_of(130)}, clouds_of(130), kExact);
    }
}

TEST_P(EngineSteps, ActivationOfNumbersThatAreNotFinite) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const Activation& activation : {Activation{}, network::relu(), network::leaky_relu(0.5f)}) {
        Step step = step_of(StepKind::activation);
        step.activation = activation;
        const std::vector<float> y = run_row(step, {infinity, -infinity, NAN});
        EXPECT_EQ(y[0], infinity);
        EXPECT_EQ(y[1], activation.kind == ActivationKind::relu ? 0 : -infinity);
        EXPECT_TRUE(std::isnan(y[2]));
    }
}

TEST_P(EngineSteps, AddAndCouple) {
    for (const float factor : {1.0f, -1.0f}) {
        Step add = step_of(StepKind::add);
        add.factor = factor;
        expect_step(add, {points_of(6), points_of(6)}, points_of(6), kExact);
        expect_step(add, {clouds_of(3), clouds_of(3)}, clouds_of(3), kExact);
        for (const int64_t begin : {0, 1, 2}) {
            Step couple = step_of(StepKind::couple);
            couple.begin = begin;
            couple.factor = factor;
            expect_step(couple, {rows_of(4, 3), rows_of(4, 3 - begin)}, rows_of(4, 3), kExact);
        }
    }
}

TEST_P(EngineSteps, Inject) {
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

TEST_P(EngineSteps, OverTheChannels) {
    for (const int64_t c : {1, 3, 50}) {
        expect_step(step_of(StepKind::sum_channels), {points_of(c)}, points_of(1), kRounding);
        expect_step(step_of(StepKind::sum_channels), {clouds_of(c)}, clouds_of(1), kRounding);
    }
    for (const int64_t c : {1, 3, 4, 50})
        expect_step(step_of(StepKind::log_softmax), {points_of(c)}, points_of(c), kRounding);
    expect_step(step_of(StepKind::log_softmax), {clouds_of(40)}, clouds_of(40), kRounding);
}

TEST_P(EngineSteps, LogSoftmaxOfLargeNumbers) {
    EXPECT_EQ(run_row(step_of(StepKind::log_softmax), {1e30f, 5, -1e30f}), (std::vector<float>{0, -1e30f, -2e30f}));
}

TEST_P(EngineSteps, OverTheRowsOfAPoint) {
    for (const int64_t w : {1, 4, 16}) expect_step(step_of(StepKind::max_rows), {rows_of(w, 9)}, points_of(9), kExact);
    for (const int64_t w : {1, 8})
        for (const int64_t c : {1, 4, 33})
            expect_step(step_of(StepKind::softmax_rows), {rows_of(w, c)}, rows_of(w, c), kRounding);
    for (const int64_t r : {1, 4, 16})
        expect_step(step_of(StepKind::interpolate), {rows_of(8, r), rows_of(8, 3)}, rows_of(r, 3), {6e-7, 1e-6});
}

TEST_P(EngineSteps, OverThePointsOfACloud) {
    for (const auto& [type, out] : {std::pair{points_of(1), clouds_of(1)}, std::pair{points_of(100), clouds_of(100)},
                                    std::pair{rows_of(3, 5), clouds_of(5)}}) {
        expect_step(step_of(StepKind::max_points), {type}, out, kExact);
        expect_step(step_of(StepKind::sum_points), {type}, out, kRounding);
    }
    Step log_det = step_of(StepKind::log_det);
    log_det.factor = -0.375f;
    expect_step(log_det, {points_of(3)}, clouds_of(1), kExact);
    expect_step(step_of(StepKind::gaussian_log_density), {points_of(3)}, clouds_of(1), kRounding);
}

TEST_P(EngineSteps, FoldMatrix) {
    // k, out: widths beside and beyond the blocks that it works in.
    for (const auto& [k, out] :
         {std::pair<int64_t, int64_t>{3, 64}, {3, 1}, {64, 128}, {65, 40}, {128, 70}, {16, 300}}) {
        Step step = step_of(StepKind::fold_matrix);
        step.weight = random_numbers(out * k, 3);
        expect_step(step, {clouds_of(k * k)}, clouds_of(out * k), {1e-6, 2e-6});
        step.weight = {};  // T^T
        expect_step(step, {clouds_of(k * k)}, clouds_of(k * k), kExact);
    }
}

// Points and their neighbours, then steps that use both.
TEST_P(EngineSteps, NeighboursAndWhatUsesThem) {
    for (const int64_t k : {1, 5, 16, 40, 70}) {
        ProgramWriter write;
        const Value points = write.input("points", points_of(3)), x = write.input("x", points_of(7));
        const Value cloud = write.input("cloud", clouds_of(2));
        const Value indices = write.step(step_of(StepKind::knn, {{points}}), indices_of(k));
        write.output("gather", write.step(step_of(StepKind::gather, {{x}, {indices}}), rows_of(k, 7)));
        const Value edges = write.step(step_of(StepKind::edge_distance, {{points}, {indices}}), rows_of(k, 10));
        write.output("edges", edges);
        const int64_t fewer = (k + 1) / 2;
        const Value nearest = write.step(step_of(StepKind::first_neighbours, {{indices}}), indices_of(fewer));
        write.output("nearest", write.step(step_of(StepKind::gather, {{x}, {nearest}}), rows_of(fewer, 7)));
        // All ways to find a row, side by side.
        const Step copy =
            step_of(StepKind::copy,
                    {{edges}, {cloud, Access::cloud}, {x, Access::point}, {points, Access::neighbour, indices}});
        write.output("copy", write.step(copy, rows_of(k, 10 + 2 + 7 + 3)));
        expect_program(write.program, k, kRounding);  // the least batch: k = n
    }
}

TEST_P(EngineSteps, NeighboursInOtherDimensions) {
    for (const int64_t c : {1, 2, 8, 20}) {
        ProgramWriter write;
        const Value x = write.input("x", points_of(c));
        const Value indices = write.step(step_of(StepKind::knn, {{x}}), indices_of(4));
        write.output("gather", write.step(step_of(StepKind::gather, {{x}, {indices}}), rows_of(4, c)));
        expect_program(write.program, 4, kExact);
    }
}

/// The indices that knn finds, told by gathering each point's own number.
std::vector<float> neighbours(Device device, const std::vector<float>& points, int64_t k) {
    const auto n = static_cast<int64_t>(points.size()) / 3;
    ProgramWriter write;
    const Value x = write.input("points", points_of(3)), number = write.input("number", points_of(1));
    const Value indices = write.step(step_of(StepKind::knn, {{x}}), indices_of(k));
    write.output("found", write.step(step_of(StepKind::gather, {{number}, {indices}}), rows_of(k, 1)));
    std::vector<float> numbers(static_cast<size_t>(n));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    return run_on(device, write.program, ops::Batch::single(n), {points, numbers})[0];
}

TEST_P(EngineSteps, NeighboursAreThoseOfTheOp) {
    // A grid: nearly all distances are ties. 5000 points: more than a block stages at a time.
    std::vector<float> grid = random_numbers(5000 * 3, 4);
    for (float& x : grid) x = std::round(x * 4);
    for (const std::vector<float>& points : {grid, random_numbers(5000 * 3, 5)})
        for (const int64_t k : {9, 33}) {
            std::vector<int32_t> expected(static_cast<size_t>(5000 * k));
            const ops::Clouds cloud(View<const float, 2>(points.data(), {5000, 3}));
            ops::knn(ops::PointIndex(cloud), cloud, View<int32_t, 2>(expected.data(), {5000, k}), {});
            const std::vector<float> found = neighbours(device(), points, k);
            EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
        }
}

TEST_P(EngineSteps, NeighboursOfALargeCloudBesideSmallOnes) {
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
    EXPECT_EQ(run_on(device(), write.program, batch, inputs)[0], expected);
}

TEST_P(EngineSteps, NeighboursThatAreMissingAreThePointItself) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> points = {0, 0, 0, NAN, 0, 0, 1, 0, 0, 0, infinity, 0, 3e38f, 0, 0};
    const std::vector<float> expected = {0, 2, 0, 1, 1, 1, 2, 0, 2, 3, 3, 3, 4, 4, 4};
    EXPECT_EQ(neighbours(device(), points, 3), expected);
}

}  // namespace
}  // namespace stipple::test
