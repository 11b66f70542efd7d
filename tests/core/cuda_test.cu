// CPU and CUDA agree: random bits, uniforms and squared distances bit for bit, normals to 1e-6; memory travels intact.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/cuda/check.h"
#include "stipple/core/numeric.h"
#include "stipple/core/rng.h"

namespace stipple {
namespace {

constexpr int64_t kCount = 1 << 20;
const Device kGpu{DeviceType::cuda, 0};

__global__ void draw(Rng rng, uint32_t* bits, float* uniforms, float* normals, uint32_t* below, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i >= n) return;
    bits[i] = rng.bits(static_cast<uint64_t>(i));
    uniforms[i] = rng.uniform(static_cast<uint64_t>(i));
    normals[i] = rng.normal(static_cast<uint64_t>(i));
    below[i] = rng.below(static_cast<uint64_t>(i), 1000);
}

__global__ void measure(const float* points, float* out, int64_t n) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) out[i] = distance_sq(points + 6 * i, points + 6 * i + 3);
}

void expect_launched() {
    STIPPLE_CHECK_CUDA(cudaGetLastError());
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
}

TEST(CoreCuda, RandomNumbersEqualTheCpu) {
    const Rng rng(0x123456789abcdef0u, 77);
    Array<uint32_t, 1> bits({kCount}, kGpu), below({kCount}, kGpu);
    Array<float, 1> uniforms({kCount}, kGpu), normals({kCount}, kGpu);
    draw<<<kCount / 256, 256>>>(rng, bits.data(), uniforms.data(), normals.data(), below.data(), kCount);
    expect_launched();
    const Array<uint32_t, 1> host_bits = bits.to({}), host_below = below.to({});
    const Array<float, 1> host_uniforms = uniforms.to({}), host_normals = normals.to({});
    double worst = 0;
    for (int64_t i = 0; i < kCount; ++i) {
        const auto index = static_cast<uint64_t>(i);
        ASSERT_EQ(host_bits.data()[i], rng.bits(index));
        ASSERT_EQ(host_below.data()[i], rng.below(index, 1000));
        ASSERT_EQ(host_uniforms.data()[i], rng.uniform(index));
        worst = std::max(worst, std::abs(double{host_normals.data()[i]} - rng.normal(index)));
    }
    EXPECT_LE(worst, 1e-6);
}

TEST(CoreCuda, SquaredDistancesEqualTheCpu) {
    Array<float, 1> points({6 * kCount});
    for (int64_t i = 0; i < 6 * kCount; ++i) points.data()[i] = Rng(5).normal(static_cast<uint64_t>(i));
    const Array<float, 1> on_gpu = points.to(kGpu);
    Array<float, 1> out({kCount}, kGpu);
    measure<<<kCount / 256, 256>>>(on_gpu.data(), out.data(), kCount);
    expect_launched();
    const Array<float, 1> host = out.to({});
    for (int64_t i = 0; i < kCount; ++i) {
        const float expected = distance_sq(points.data() + 6 * i, points.data() + 6 * i + 3);
        ASSERT_EQ(std::memcmp(host.data() + i, &expected, 4), 0) << i;
    }
}

TEST(CoreCuda, MemoryTravelsIntact) {
    Array<double, 2> there({1000, 7});
    for (int64_t i = 0; i < 7000; ++i) there.data()[i] = static_cast<double>(i) / 3;
    const Array<double, 2> back = there.to(kGpu).clone().to({});
    EXPECT_EQ(std::memcmp(back.data(), there.data(), 56000), 0);
}

TEST(CoreCuda, TooMuchMemoryIsAnErrorAndTheDeviceStaysUsable) {
    try {
        Buffer(int64_t{1} << 45, kGpu);
        FAIL() << "32 TiB were given";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_NE(std::string(error.what()).find("35184372088832 bytes wanted"), std::string::npos) << error.what();
    }
    EXPECT_NO_THROW(Buffer(1 << 20, kGpu));
}

TEST(CoreCuda, DevicesAreListedAndParsed) {
    const std::vector<DeviceInfo> devices = list_devices();
    ASSERT_GE(devices.size(), 2u);
    EXPECT_EQ(devices[1].device, kGpu);
    EXPECT_GE(devices[1].compute_capability, 75);
    EXPECT_EQ(parse_device("auto"), kGpu);
    EXPECT_EQ(parse_device("cuda"), kGpu);
    EXPECT_THROW(parse_device("cuda:99"), Error);
}

}  // namespace
}  // namespace stipple
