// The end of a training step as a CUDA graph: launched again and again with new gradients, it decides and steps as the
// ops on the CPU do, and the host never waits to tell it what to do.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/half.h"
#include "stipple/core/rng.h"
#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/dropout.h"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/update_rules.h"
#include "tests/ops/guarded.h"

namespace stipple::test {
namespace {

using ops::ControlSlot, ops::LogSlot, ops::StepSlot;

constexpr int64_t kSteps = 6, kLong = 5003, kShort = 300;

/// All that a step touches, on one device: a parameter of float32, one of float16 with a master, running statistics,
/// averages.
struct StepOnDevice {
    explicit StepOnDevice(Device on)
        : device(on),
          value(numbers(kLong, 1)),
          gradient(numbers(kLong, 2)),
          first(array_of(std::vector<float>(kLong), on)),
          second(array_of(std::vector<float>(kLong), on)),
          average(numbers(kLong, 1)),
          master(numbers(kShort, 3)),
          master_first(array_of(std::vector<float>(kShort), on)),
          master_second(array_of(std::vector<float>(kShort), on)),
          statistics(numbers(70, 4)),
          saved(numbers(70, 4)),
          short_value(array_of(std::vector<uint16_t>(kShort), on)),
          short_gradient(array_of(std::vector<uint16_t>(kShort, float_to_half(3)), on)),
          dropped(array_of(std::vector<float>(kLong), on)),
          norm(array_of(std::vector<float>(1), on)),
          step(array_of(std::vector<int64_t>(1), on)),
          loss(array_of(std::vector<double>(1), on)),
          first_step(array_of(std::vector<double>(1), on)),
          rates(array_of(std::vector<double>(kSteps, 0.01), on)),
          state(array_of(std::vector<double>{0, 0, 0, 64, 0, 0, 0}, on)),
          control(array_of(std::vector<double>(ControlSlot::count), on)),
          log(array_of(std::vector<double>(kSteps * LogSlot::count), on)) {}

    Array<float, 1> numbers(int64_t count, uint64_t seed) const {
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i) values.push_back(Rng(seed).normal(static_cast<uint64_t>(i)));
        return array_of(values, device);
    }

    void run(Stream stream) {
        ops::dropout({value.data(), DType::f32, 1, kLong, device}, 0.5f, 7, step.data(), 0, dropped.data(), stream);
        const std::vector<ops::GradientTensor> gradients = {{gradient.data(), DType::f32, kLong},
                                                            {short_gradient.data(), DType::f16, kShort}};
        ops::gradient_norm(gradients, norm.view(), stream);
        ops::UpdateRules rules;
        rules.clip = 0.5;
        rules.average_decay = 0.9;
        rules.has_loss_scale = true;
        ops::update_rules(rules, rates.view(), first_step.view(), norm.view(), loss.view(), state.view(),
                          control.view(), View<double, 2>(log.data(), {kSteps, LogSlot::count}, device), stream);
        const std::vector<ops::UpdatedTensor> tensors = {{.value = value.data(),
                                                          .gradient = gradient.data(),
                                                          .first = first.data(),
                                                          .second = second.data(),
                                                          .count = kLong},
                                                         {.value = short_value.data(),
                                                          .value_type = DType::f16,
                                                          .gradient = short_gradient.data(),
                                                          .gradient_type = DType::f16,
                                                          .first = master_first.data(),
                                                          .second = master_second.data(),
                                                          .master = master.data(),
                                                          .count = kShort}};
        ops::optimizer_update(tensors, {}, control.view(), stream);
        const std::vector<ops::RestoredTensor> restored = {{statistics.data(), saved.data(), DType::f32, 70}};
        ops::restore_skipped(restored, control.view(), stream);
        const std::vector<ops::AveragedTensor> averages = {{value.data(), DType::f32, average.data(), kLong}};
        ops::average_update(averages, control.view(), stream);
    }

    Device device;
    Array<float, 1> value, gradient, first, second, average, master, master_first, master_second, statistics, saved;
    Array<uint16_t, 1> short_value, short_gradient;
    Array<float, 1> dropped, norm;
    Array<int64_t, 1> step;
    Array<double, 1> loss, first_step, rates, state, control, log;
};

template <class T>
void set_first(Array<T, 1>& array, T value) {
    STIPPLE_CHECK_CUDA(cudaMemcpy(array.data(), &value, sizeof value, cudaMemcpyDefault));
}

void expect_near(const Array<float, 1>& there, const Array<float, 1>& here, const char* what) {
    const Array<float, 1> found = there.to(Device{});
    for (int64_t i = 0; i < here.elements(); ++i)
        ASSERT_NEAR(found.data()[i], here.data()[i], 1e-6 * (1 + std::abs(here.data()[i]))) << what << ", " << i;
}

TEST(TrainingGraph, DecidesAndStepsAsTheCpu) {
    const Device gpu{DeviceType::cuda, 0};
    StepOnDevice here(Device{}), there(gpu);
    cudaStream_t stream = nullptr;
    STIPPLE_CHECK_CUDA(cudaStreamCreate(&stream));
    ops::gradient_norm({}, there.norm.view(), {stream});  // kernels are loaded before anything is captured
    ops::cuda::release_scratch(ops::cuda::allocate_scratch(8, stream), stream);  // and the pool of scratch is set up
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    STIPPLE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    there.run({stream});
    STIPPLE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    STIPPLE_CHECK_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    for (int64_t step = 0; step < kSteps; ++step) {
        SCOPED_TRACE(step);
        for (StepOnDevice* one : {&here, &there}) {
            set_first(one->step, step);
            set_first(one->loss, step == 3 ? std::nan("") : 1.0 / static_cast<double>(1 + step));
            set_first(one->gradient, step == 1 ? kInfinite : static_cast<float>(step));
            set_first(one->statistics, static_cast<float>(step));  // what a forward pass leaves
        }
        here.run({});
        STIPPLE_CHECK_CUDA(cudaGraphLaunch(ready, stream));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        const Array<double, 1> state = there.state.to(Device{});
        for (int i = 0; i < StepSlot::count; ++i) ASSERT_EQ(state.data()[i], here.state.data()[i]) << i;
        const Array<double, 1> control = there.control.to(Device{});
        for (int i = 0; i < ControlSlot::count; ++i)
            ASSERT_NEAR(control.data()[i], here.control.data()[i], 1e-6 * std::abs(here.control.data()[i])) << i;
        EXPECT_EQ(control.data()[ControlSlot::is_made], step == 1 || step == 3 ? 0 : 1);
        expect_near(there.value, here.value, "value");
        expect_near(there.first, here.first, "first");
        expect_near(there.second, here.second, "second");
        expect_near(there.average, here.average, "average");
        expect_near(there.master, here.master, "master");
        expect_near(there.statistics, here.statistics, "statistics");
        expect_near(there.dropped, here.dropped, "dropped");
    }
    const Array<double, 1> log = there.log.to(Device{});
    for (int64_t i = 0; i < log.elements(); ++i) {
        const double expected = here.log.data()[i], found = log.data()[i];
        EXPECT_TRUE(std::abs(found - expected) <= 1e-6 * std::abs(expected) || found == expected ||
                    (std::isnan(found) && std::isnan(expected)))
            << i << ": " << found << " and " << expected;
    }
    EXPECT_EQ(here.state.data()[StepSlot::skipped], 1);
    EXPECT_EQ(here.state.data()[StepSlot::loss_scale], 32);
    STIPPLE_CHECK_CUDA(cudaGraphExecDestroy(ready));
    STIPPLE_CHECK_CUDA(cudaGraphDestroy(graph));
    STIPPLE_CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace stipple::test
