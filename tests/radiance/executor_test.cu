// What the step-by-step reference asks of a GPU against plain loops: products of all shapes, selections, sums.

#include <gtest/gtest.h>

#include <cstring>

#include "stipple/core/device.h"
#include "stipple/core/rng.h"
#include "stipple/radiance/cuda/reference/colours.h"
#include "stipple/radiance/cuda/reference/executor.cuh"
#include "tests/radiance/host_executor.h"

namespace stipple::radiance::reference {
namespace {

bool has_gpu() {
    for (const DeviceInfo& info : list_devices())
        if (info.device.type == DeviceType::cuda) return true;
    return false;
}

std::vector<float> random_numbers(int64_t count, uint64_t stream) {
    std::vector<float> values(static_cast<size_t>(count));
    const Rng rng(5, stream);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * rng.uniform(i) - 1;
    return values;
}

/// Rows x inner and inner x columns, either of them transposed in memory.
void expect_product(CudaExecutor& gpu, int64_t rows, int64_t columns, int64_t inner, bool turn_a, bool turn_b,
                    int slices) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << inner << ", " << slices << " slices");
    const std::vector<float> a = random_numbers(rows * inner, 1), b = random_numbers(inner * columns, 2);
    std::vector<float> expected(static_cast<size_t>(slices * rows * columns));
    Product p{a.data(),
              turn_a ? 1 : inner,
              turn_a ? rows : 1,
              b.data(),
              turn_b ? 1 : columns,
              turn_b ? inner : 1,
              expected.data(),
              rows,
              columns,
              inner,
              slices};
    HostExecutor().multiply("", p);
    const auto device_a = gpu.upload(a), device_b = gpu.upload(b);
    const auto c = gpu.upload(random_numbers(slices * rows * columns, 3));
    p.a = device_a.get(), p.b = device_b.get(), p.c = c.get();
    gpu.multiply("", p);
    const std::vector<float> found = gpu.download(c);
    for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-5 * std::sqrt(static_cast<double>(inner + 1))) << i;
    }
}

TEST(RadianceExecutorCuda, Products) {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    CudaExecutor gpu(0);
    for (const bool turn_a : {false, true}) {
        for (const bool turn_b : {false, true}) {
            expect_product(gpu, 1, 1, 1, turn_a, turn_b, 1);
            expect_product(gpu, 64, 64, 16, turn_a, turn_b, 1);
            expect_product(gpu, 130, 128, 40, turn_a, turn_b, 1);
            expect_product(gpu, 128, 40, 333, turn_a, turn_b, 7);
            expect_product(gpu, 128, 128, 5, turn_a, turn_b, 16);  // slices without a number are 0
        }
    }
    expect_product(gpu, 0, 128, 40, false, true, 1);
    expect_product(gpu, 128, 40, 0, true, false, 3);
}

TEST(RadianceExecutorCuda, SelectionsAndSums) {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    CudaExecutor gpu(0);
    HostExecutor host;
    for (const int64_t n : {0, 1, 31, 1000, 300001}) {
        std::vector<uint8_t> flags;
        std::vector<int32_t> counts;
        for (int64_t i = 0; i < n; ++i) {
            flags.push_back(Rng(9, 1).uniform(static_cast<uint64_t>(i)) < 0.3f);
            counts.push_back(static_cast<int32_t>(Rng(9, 2).below(static_cast<uint64_t>(i), 5)));
        }
        std::vector<int32_t> list(static_cast<size_t>(n)), sums(static_cast<size_t>(n));
        const int64_t chosen = host.choose("", flags.data(), n, list.data());
        const int64_t total = host.sum_before("", counts.data(), n, sums.data());
        const auto device_flags = gpu.upload(flags);
        const auto device_counts = gpu.upload(counts);
        const auto device_list = gpu.make<int32_t>(n), device_sums = gpu.make<int32_t>(n);
        EXPECT_EQ(gpu.choose("", device_flags.get(), n, device_list.get()), chosen);
        EXPECT_EQ(gpu.sum_before("", device_counts.get(), n, device_sums.get()), total);
        std::vector<int32_t> found = gpu.download(device_list);
        found.resize(static_cast<size_t>(chosen));
        list.resize(static_cast<size_t>(chosen));
        EXPECT_EQ(found, list);
        EXPECT_EQ(gpu.download(device_sums), sums);

        const std::vector<float> values = random_numbers(n, 4);
        double expected = 1.5;
        host.add_all("", values.data(), n, &expected);
        const auto device_values = gpu.upload(values);
        const auto sum = gpu.upload(std::vector<double>{1.5});
        gpu.add_all("", device_values.get(), n, sum.get());
        EXPECT_NEAR(gpu.download(sum)[0], expected, 1e-9 * static_cast<double>(n + 1));
    }
}

/// Times of parts by name, in the order in which they came.
TEST(RadianceExecutorCuda, Parts) {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    CudaExecutor gpu(0);
    auto values = gpu.make<float>(1 << 20);
    gpu.clear("before", values, values.count());
    gpu.begin_profile();
    for (int i = 0; i < 3; ++i) {
        gpu.clear("zeros", values, values.count());
        gpu.each("rectifiers", values.count(), Rectify{values.get(), values.get()});
        gpu.wait();
    }
    const std::vector<StepPart> parts = gpu.end_profile();
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].name, "zeros");
    EXPECT_EQ(parts[1].name, "rectifiers");
    EXPECT_GT(parts[1].milliseconds, 0);
    EXPECT_TRUE(gpu.end_profile().empty());
}

}  // namespace
}  // namespace stipple::radiance::reference
