// What goes wrong on a GPU: memory runs out, a launch fails. Each is an Error, and the device works on.

#include <gtest/gtest.h>

#include <vector>

#include "stipple/core/array.h"
#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/knn.h"
#include "tests/ops/device_memory.h"

namespace stipple::test {

int64_t cuda_memory_used(int index) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(index));
    size_t free_bytes = 0, total_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    return static_cast<int64_t>(total_bytes - free_bytes);
}

namespace {

const Device kGpu{DeviceType::cuda, 0};

/// All memory of the GPU but for a few megabytes.
class Filler {
public:
    Filler() {
        cudaMemPool_t pool = nullptr;
        STIPPLE_CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
        STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
        STIPPLE_CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));  // what earlier ops gave back
        for (size_t bytes = size_t{1} << 36; bytes >= size_t{1} << 20; bytes /= 2) {
            void* block = nullptr;
            while (cudaMalloc(&block, bytes) == cudaSuccess) blocks_.push_back(block);
            cudaGetLastError();
        }
    }
    ~Filler() {
        for (void* block : blocks_) cudaFree(block);
    }

private:
    std::vector<void*> blocks_;
};

TEST(OpsCuda, NoMemoryForScratchIsAnErrorAndTheDeviceStaysUsable) {
    constexpr int64_t kPoints = 2'000'000, kNeighbours = 4;
    Array<float, 2> host({kPoints, 3});
    for (int64_t i = 0; i < 3 * kPoints; ++i) host.data()[i] = static_cast<float>((i * 7919) % 1'000'003);
    const Array<float, 2> points = host.to(kGpu);
    Array<int32_t, 2> indices({kPoints, kNeighbours}, kGpu);
    const auto search = [&] {
        const ops::PointIndex index(points.view());
        ops::knn(index, points.view(), indices.view(), {});
        STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
    };
    {
        const Filler filler;
        try {
            search();
            ADD_FAILURE() << "an index of two million points fitted into a full device";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
            EXPECT_NE(std::string(error.what()).find("bytes of scratch wanted"), std::string::npos) << error.what();
        }
    }
    EXPECT_NO_THROW(search());
    EXPECT_EQ(indices.to(Device{}).data()[0], 0);
}

__global__ void do_nothing() {}

TEST(OpsCuda, AFailedLaunchNamesTheKernel) {
    do_nothing<<<1, 4096>>>();  // more threads than any block can have
    try {
        STIPPLE_CHECK_LAUNCH(do_nothing);
        FAIL() << "a block of 4096 threads was launched";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cuda);
        EXPECT_NE(std::string(error.what()).find("kernel do_nothing failed"), std::string::npos) << error.what();
    }
    do_nothing<<<1, 1>>>();
    EXPECT_NO_THROW(STIPPLE_CHECK_LAUNCH(do_nothing));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace stipple::test
