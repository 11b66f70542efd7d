// Contexts on streams of the caller's: work of one context is in order even when the caller changes streams.

#include <gtest/gtest.h>

#include "stipple/core/array.h"
#include "stipple/core/cuda/check.h"
#include "tests/engine/programs.h"
#include "tests/support/devices.h"

namespace stipple::test {
namespace {

using namespace engine;

/// Layers enough to keep the GPU busy while the next run is queued.
Program deep_program() {
    ProgramWriter write;
    Dense first = random_dense("first", 3, 128, network::relu(), 1);
    first.parts = {{write.input("x", network::points_of(3))}};
    std::vector<Dense> layers = {first};
    for (uint64_t i = 0; i < 12; ++i) layers.push_back(random_dense("next", 128, 128, network::relu(), 2 + i));
    Step step;
    step.layers = layers;
    step.reduce = Reduce::none;
    const Value deep = write.step(step, network::points_of(128));
    Dense last = random_dense("last", 128, 8, {}, 99);
    last.parts = {{deep}};
    step.layers = {last};
    step.reduce = Reduce::max_points;
    write.output("y", write.step(step, network::clouds_of(8)));
    return write.program;
}

class EngineStreams : public OnDevice {};
STIPPLE_ON_EVERY_GPU(EngineStreams);

TEST_P(EngineStreams, OneContextOnSeveralStreams) {
    const ops::Batch batch = ops::Batch::dense(8, 4000);
    Context context(compile(deep_program(), {.device = device(), .max_batch = 8, .max_points = 4000}));
    Context other(compile(deep_program(), {.device = device(), .max_batch = 8, .max_points = 4000}));
    constexpr int kRuns = 6;
    std::vector<Array<float, 2>> inputs, expected, found;
    for (int i = 0; i < kRuns; ++i) {
        const std::vector<float> numbers = random_numbers(batch.rows() * 3, 50 + i);
        Array<float, 2> host({batch.rows(), 3});
        std::copy(numbers.begin(), numbers.end(), host.data());
        inputs.push_back(host.to(device()));
        expected.push_back(Array<float, 2>({8, 8}, device()));
        found.push_back(Array<float, 2>({8, 8}, device()));
        other.run(batch, {{"x", inputs.back().view()}}, {{"y", expected.back().view()}});
    }
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < 3; ++round)  // run, record, replay
        for (int i = 0; i < kRuns; ++i)
            context.run(batch, {{"x", inputs[i].view()}}, {{"y", found[i].view()}}, Stream{streams[i % 2]});
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
    for (cudaStream_t stream : streams) STIPPLE_CHECK_CUDA(cudaStreamDestroy(stream));
    for (int i = 0; i < kRuns; ++i) {
        const Array<float, 2> a = expected[i].to(Device{}), b = found[i].to(Device{});
        for (int64_t j = 0; j < a.elements(); ++j) ASSERT_EQ(a.data()[j], b.data()[j]) << "run " << i;
    }
}

TEST_P(EngineStreams, ManyRunsKeepTheirMemory) {
    const ops::Batch batch = ops::Batch::dense(2, 64);
    Context context(compile(deep_program(), {.device = device(), .max_batch = 4, .max_points = 64}));
    Array<float, 2> x({256, 3}, device()), y({4, 8}, device());
    STIPPLE_CHECK_CUDA(cudaMemset(x.data(), 0, 256 * 3 * 4));
    const auto run = [&](int64_t clouds, int64_t points) {
        context.run(ops::Batch::dense(clouds, points),
                    {{"x", View<const float, 2>(x.data(), {clouds * points, 3}, device())}},
                    {{"y", View<float, 2>(y.data(), {clouds, 8}, device())}});
    };
    const auto free_bytes = [] {
        size_t free_now = 0, total = 0;
        STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
        STIPPLE_CHECK_CUDA(cudaMemGetInfo(&free_now, &total));
        return static_cast<int64_t>(free_now);
    };
    // More shapes than are remembered: graphs come and go.
    const auto sweep = [&] {
        for (int64_t clouds = 1; clouds <= 4; ++clouds)
            for (int64_t points = 60; points <= 64; ++points)
                for (int repeat = 0; repeat < 3; ++repeat) run(clouds, points);
    };
    for (int i = 0; i < 20; ++i) sweep();
    const int64_t before = free_bytes();
    for (int i = 0; i < 100; ++i) sweep();
    for (int i = 0; i < 20000; ++i) run(4, 64);
    EXPECT_LE(before - free_bytes(), int64_t{4} << 20);
}

}  // namespace
}  // namespace stipple::test
