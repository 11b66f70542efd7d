// The fused chains of the GPU, both kernels and every precision, against plain loops in float32.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "stipple/engine/cuda/chain.h"
#include "tests/engine/chain_reference.h"
#include "tests/support/devices.h"

namespace stipple::test {
namespace {

using namespace engine;
using engine::cuda::ChainKernel;

struct Numbers {
    Rng rng{7};
    uint64_t next = 0;
    std::vector<float> operator()(int64_t n, float scale) {
        std::vector<float> all(static_cast<size_t>(n));
        for (float& x : all) x = scale * (2 * rng.uniform(next++) - 1);
        return all;
    }
};

struct Case {
    std::vector<Dense> layers;
    std::vector<int64_t> offsets;              // of the clouds
    std::vector<float> x;                      // [rows, 3]
    std::vector<std::vector<float>> matrices;  // for each layer [clouds, out * in], or empty
};

/// 3 -> 64 -> ... -> 128 -> out; bit i of `of_cloud`: layer i has a matrix for every cloud.
Case make_case(int middle, int64_t out, unsigned of_cloud, std::vector<int64_t> offsets, Activation last) {
    Numbers numbers;
    Case c;
    c.offsets = std::move(offsets);
    c.x = numbers(3 * c.offsets.back(), 1);
    const auto clouds = static_cast<int64_t>(c.offsets.size()) - 1;
    for (int i = 0; i < middle + 2; ++i) {
        Dense layer;
        layer.name = fmt::format("layer{}", i);
        layer.in = i == 0 ? 3 : i == middle + 1 ? 128 : 64;
        layer.out = i == middle + 1 ? out : i == middle ? 128 : 64;
        layer.bias = numbers(layer.out, 0.2f);
        layer.activation = i == middle + 1 ? last : i % 2 == 1 ? network::leaky_relu(0.1f) : network::relu();
        if (i == 0) layer.parts.push_back({0});
        const float scale = 2 / std::sqrt(static_cast<float>(layer.in));
        const bool has_matrix = of_cloud >> i & 1;
        c.matrices.push_back(has_matrix ? numbers(clouds * layer.out * layer.in, scale) : std::vector<float>());
        if (has_matrix)
            layer.matrix = 1;
        else
            layer.weight = numbers(layer.out * layer.in, scale);
        c.layers.push_back(layer);
    }
    return c;
}

/// Layers up to `count`, of all clouds: the maximum over their points, or all rows.
std::vector<float> reference(const Case& c, size_t count, Reduce reduce) {
    std::vector<Dense> layers(c.layers.begin(), c.layers.begin() + static_cast<int64_t>(count));
    for (Dense& layer : layers) layer.precision = Precision::fp32;
    const int64_t out = layers.back().out, clouds = static_cast<int64_t>(c.offsets.size()) - 1;
    std::vector<float> result(static_cast<size_t>(reduce == Reduce::none ? c.offsets.back() * out : clouds * out),
                              -std::numeric_limits<float>::infinity());
    for (int64_t cloud = 0; cloud < clouds; ++cloud) {
        std::vector<const float*> matrices;
        for (size_t i = 0; i < count; ++i)
            matrices.push_back(c.matrices[i].empty() ? nullptr
                                                     : &c.matrices[i][cloud * c.layers[i].out * c.layers[i].in]);
        cpu::ChainPart part;
        part.data = &c.x[3 * c.offsets[cloud]];
        part.stride = 3;
        part.channels = 3;
        cpu::ChainTask task;
        task.rows = c.offsets[cloud + 1] - c.offsets[cloud];
        task.parts = {&part, 1};
        task.matrices = matrices;
        task.out = &result[(reduce == Reduce::none ? c.offsets[cloud] : cloud) * out];
        task.out_stride = out;
        run_chain_reference(layers, reduce, task);
        if (reduce == Reduce::max_points) finish_chain_reference(layers, task.out);
    }
    return result;
}

template <class T>
Array<T, 1> on_device(const std::vector<T>& values, Device device) {
    Array<T, 1> host({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), host.data());
    return host.to(device);
}

std::vector<float> run(const Case& c, Device device, ChainKernel kernel, bool dense) {
    const auto chain = engine::cuda::make_fused_chain(c.layers, Reduce::max_points, device, kernel);
    if (!chain) {
        ADD_FAILURE() << "no fused kernel";
        return {};
    }
    const int64_t clouds = static_cast<int64_t>(c.offsets.size()) - 1;
    engine::cuda::FusedChainTask task;
    task.clouds = clouds;
    for (int64_t i = 0; i < clouds; ++i) task.points = std::max(task.points, c.offsets[i + 1] - c.offsets[i]);
    const auto offsets = on_device(std::vector<int32_t>(c.offsets.begin(), c.offsets.end()), device);
    if (!dense) task.offsets = offsets.data();
    const auto x = on_device(c.x, device);
    task.x = x.data();
    std::vector<Array<float, 1>> matrices;
    for (const auto& matrix : c.matrices) {
        matrices.push_back(on_device(matrix, device));
        task.matrices.push_back(matrix.empty() ? nullptr : matrices.back().data());
    }
    Array<float, 1> out({clouds * c.layers.back().out}, device);
    Buffer scratch(chain->scratch_bytes(clouds, task.points), device);
    task.out = out.data();
    task.scratch = scratch.data();
    chain->run(task, {});
    const auto host = download(out);
    return {host.span().begin(), host.span().end()};
}

struct Limit {
    Precision precision;
    double error;  // largest, of the largest result. Measured: 4e-4, 4e-3, 5e-4, 1e-2, 6e-2
};
constexpr Limit kLimits[] = {{Precision::fp16, 1e-3},
                             {Precision::bf16, 1e-2},
                             {Precision::tf32, 1e-3},
                             {Precision::int8, 2e-2},
                             {Precision::fp8, 1e-1}};

class FusedChainTest : public OnDevice {
protected:
    void check(Case c, bool dense = false) {
        const std::vector<float> expected = reference(c, c.layers.size(), Reduce::max_points);
        float input_range = 0, largest = 0;
        for (const float v : reference(c, c.layers.size() - 1, Reduce::none)) input_range = std::max(input_range, v);
        for (const float v : expected) largest = std::max(largest, std::abs(v));
        for (const Limit& limit : kLimits)
            for (const ChainKernel kernel : {ChainKernel::fastest, ChainKernel::mma}) {
                for (Dense& layer : c.layers) layer.precision = limit.precision;
                c.layers.back().input_range = input_range;
                const std::vector<float> got = run(c, device(), kernel, dense);
                ASSERT_EQ(got.size(), expected.size());
                double worst = 0;
                for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, double(std::abs(got[i] - expected[i])));
                EXPECT_LE(worst, limit.error * largest)
                    << name_of(limit.precision) << (kernel == ChainKernel::mma ? " mma" : "");
            }
    }
};
STIPPLE_ON_EVERY_GPU(FusedChainTest);

TEST_P(FusedChainTest, OneMiddleLayer) {
    check(make_case(1, 1024, 0, {0, 300, 600}, network::relu()), true);
}
TEST_P(FusedChainTest, MatricesOfClouds) {
    check(make_case(1, 1024, 3, {0, 300, 812}, {}));
    check(make_case(2, 256, 5, {0, 300, 812}, {}));
}
TEST_P(FusedChainTest, ThreeMiddleLayers) {
    check(make_case(3, 512, 2, {0, 700}, network::leaky_relu(0.2f)), true);
}
TEST_P(FusedChainTest, RaggedFromOnePointOn) {
    check(make_case(1, 2048, 0, {0, 1, 2, 258, 770, 1283}, network::relu()));
}
TEST_P(FusedChainTest, ManyClouds) {  // enough for the large tiles
    std::vector<int64_t> offsets = {0};
    for (int i = 0; i < 140; ++i) offsets.push_back(offsets.back() + 257);
    check(make_case(1, 256, 0, offsets, network::relu()), true);
}

TEST_P(FusedChainTest, OtherShapesAreNotFused) {
    const auto fused = [&](const Case& c) {
        return engine::cuda::make_fused_chain(c.layers, Reduce::max_points, device()) != nullptr;
    };
    Case c = make_case(1, 1024, 0, {0, 10}, {});
    for (Dense& layer : c.layers) layer.precision = Precision::fp16;
    EXPECT_TRUE(fused(c));
    EXPECT_EQ(engine::cuda::make_fused_chain(c.layers, Reduce::none, device()), nullptr);
    Case other = c;
    other.layers.back().precision = Precision::int8;  // without a range
    EXPECT_FALSE(fused(other));
    other = c;
    other.layers.back().precision = Precision::fp32;
    EXPECT_FALSE(fused(other));
    other = c;
    other.layers.back().out = 1000;
    EXPECT_FALSE(fused(other));
}

}  // namespace
}  // namespace stipple::test
