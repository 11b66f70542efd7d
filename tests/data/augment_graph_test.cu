// A captured augment_batch, replayed: order, first and epoch are read on the device each time.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "stipple/core/cuda/check.h"
#include "tests/data/augment_batches.h"

namespace stipple::data {
namespace {

TEST(AugmentBatchGraph, ReplaysForAllBatches) {
    const Device gpu{DeviceType::cuda, 0};
    const BatchSet host = stored_set({1024, 700, 33, 1000, 4096, 1, 256, 512}), set = host.to(gpu);
    const NamedAugmentation how = recipe_augmentations()[0];
    constexpr int64_t kClouds = 4;
    Array<int64_t, 1> numbers({2}, gpu);
    Array<float, 2> points({kClouds * how.points, 3}, gpu);
    AugmentBatch batch;
    batch.order = set.order.view(), batch.first = numbers.data(), batch.epoch = numbers.data() + 1;
    batch.clouds = kClouds, batch.points = how.points, batch.used = how.used;
    batch.options = how.options, batch.seed = 6;

    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());  // the stream does not wait for the copies above
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    STIPPLE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    augment_batch(set.view(), batch, points.view(), {}, {stream});
    STIPPLE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    STIPPLE_CHECK_CUDA(cudaGraphInstantiate(&replay, graph, 0));
    for (int64_t epoch = 0; epoch < 3; ++epoch)
        for (int64_t first = 0; first < 12; first += kClouds) {
            const int64_t values[] = {first, epoch};
            STIPPLE_CHECK_CUDA(cudaMemcpyAsync(numbers.data(), values, sizeof(values), cudaMemcpyHostToDevice, stream));
            STIPPLE_CHECK_CUDA(cudaGraphLaunch(replay, stream));
            STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
            const Array<float, 2> found = points.to(Device{});
            const std::vector<float> expected = expected_batch(host, how, kClouds, first, 6, epoch, 0).points;
            ASSERT_EQ(found.elements(), static_cast<int64_t>(expected.size()));
            EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0)
                << "epoch " << epoch << ", first " << first;
        }
    STIPPLE_CHECK_CUDA(cudaGraphExecDestroy(replay));
    STIPPLE_CHECK_CUDA(cudaGraphDestroy(graph));
    STIPPLE_CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace stipple::data
