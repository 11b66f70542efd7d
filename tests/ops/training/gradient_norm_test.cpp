#include "stipple/ops/gradient_norm.h"

#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/ops/guarded.h"
#include "tests/ops/training/typed_numbers.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::GradientTensor;

std::vector<GradientTensor> list_of(const std::vector<TypedNumbers>& tensors) {
    std::vector<GradientTensor> list;
    for (const TypedNumbers& tensor : tensors) list.push_back({tensor.data(), tensor.dtype(), tensor.count()});
    return list;
}

class GradientNorm : public OnDevice {
protected:
    float norm_of(const std::vector<TypedNumbers>& tensors) const {
        Guarded<float, 1> norm(1, device());
        ops::gradient_norm(list_of(tensors), norm.view());
        return norm.values()[0];
    }
    TypedNumbers random_numbers(int64_t count, DType dtype, uint64_t seed, float scale = 1, int64_t shift = 0) const {
        const Rng rng(seed, 92);
        return {count, dtype, device(), [&, scale](int64_t i) { return scale * rng.normal(i); }, shift};
    }
};
STIPPLE_ON_EVERY_DEVICE(GradientNorm);

double norm_by_formula(const std::vector<TypedNumbers>& tensors) {
    double sum = 0;
    for (const TypedNumbers& tensor : tensors)
        for (const double x : tensor.values()) sum += x * x;
    return std::sqrt(sum);
}

TEST_P(GradientNorm, IsThatOfTheFormula) {
    for (const DType dtype : kNumberTypes)
        for (const int64_t count : {1, 3, 4, 5, 1024, 4095, 4096, 4097, 100'003})
            for (const int64_t shift : {0, 1}) {
                SCOPED_TRACE(fmt::format("{} numbers of {}, shifted by {}", count, name_of(dtype), shift));
                std::vector<TypedNumbers> tensors;
                tensors.push_back(random_numbers(count, dtype, 1, 1, shift));
                const double expected = norm_by_formula(tensors);
                EXPECT_NEAR(norm_of(tensors), expected, expected * 0x1p-23);
            }
}

/// More tensors than a launch takes, of all types, empty ones and one that outweighs the others.
TEST_P(GradientNorm, OfManyTensorsIsThatOfAll) {
    std::vector<TypedNumbers> tensors;
    for (int i = 0; i < 300; ++i)
        tensors.push_back(random_numbers(i % 7 == 3 ? 0 : (i * 37) % 301 + 1, kNumberTypes[i % 3], i,
                                         i == 257 ? 30.0f : 1.0f, i % 5));
    tensors.push_back(random_numbers(50'000, DType::f16, 1000));
    const double expected = norm_by_formula(tensors);
    EXPECT_NEAR(norm_of(tensors), expected, expected * 0x1p-23);
    EXPECT_EQ(norm_of(tensors), norm_of(tensors));
    // Every tensor counts: without one of them the norm is another.
    for (const size_t gone : {size_t{1}, size_t{127}, size_t{151}, size_t{299}, size_t{300}}) {
        std::vector<GradientTensor> list = list_of(tensors);
        list[gone].count = 0;
        Guarded<float, 1> norm(1, device());
        ops::gradient_norm(list, norm.view());
        EXPECT_LT(norm.values()[0], expected * (1 - 1e-6)) << gone;
    }
}

TEST_P(GradientNorm, OfNothingIsZero) {
    EXPECT_EQ(norm_of({}), 0);
    std::vector<TypedNumbers> tensors;
    tensors.push_back(random_numbers(0, DType::f32, 1));
    EXPECT_EQ(norm_of(tensors), 0);
}

TEST_P(GradientNorm, DoesNotOverflowOrVanish) {
    for (const float scale : {1e30f, 1e-30f, 3e-45f}) {
        std::vector<TypedNumbers> tensors;
        tensors.emplace_back(40'000, DType::f32, device(), [scale](int64_t) { return scale; });
        const double expected = norm_by_formula(tensors);
        EXPECT_NEAR(norm_of(tensors), expected, expected * 0x1p-23) << scale;
    }
    std::vector<TypedNumbers> tensors;
    tensors.emplace_back(2, DType::f32, device(), [](int64_t) { return std::numeric_limits<float>::max(); });
    EXPECT_EQ(norm_of(tensors), kInfinity) << "what float32 cannot hold";
}

TEST_P(GradientNorm, WhatIsNotFiniteIsSeenAnywhere) {
    for (const DType dtype : kNumberTypes)
        for (const int64_t at : {0, 1, 7, 8, 2047, 9000, 9002})
            for (const float bad : {kNan, kInfinity, -kInfinity}) {
                std::vector<TypedNumbers> tensors;
                tensors.push_back(random_numbers(100, dtype, 1));
                tensors.emplace_back(9003, dtype, device(), [&](int64_t i) { return i == at ? bad : 1.0f; });
                EXPECT_FALSE(std::isfinite(norm_of(tensors))) << name_of(dtype) << " " << at << " " << bad;
            }
}

TEST(GradientNormCpu, TheSameBitsOnAnyNumberOfThreads) {
    expect_same_on_threads([] {
        const Array<float, 2> x = make_features(90'000, 3);
        const GradientTensor list[] = {{x.data(), DType::f32, 100'001}, {x.data() + 100'001, DType::f32, 169'999}};
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{1, 1});
        ops::gradient_norm(list, View<float, 1>(results[0].data(), {1}));
        return results;
    });
}

TEST(GradientNormCpu, SaysWhatIsWrong) {
    Array<float, 1> norm({1}), two({2});
    const auto complaint = [&](const GradientTensor& tensor) {
        return bad_argument_of([&] { ops::gradient_norm(std::span(&tensor, 1), norm.view()); });
    };
    EXPECT_EQ(complaint({norm.data(), DType::i32, 1}),
              "gradient_norm: a gradient must be float32, float16 or bfloat16, got int32");
    EXPECT_EQ(complaint({norm.data(), DType::f32, -1}), "gradient_norm: gradient 0 has -1 numbers");
    EXPECT_EQ(complaint({nullptr, DType::f32, 1}), "gradient_norm: gradient 0 lacks an array");
    EXPECT_EQ(bad_argument_of([&] { ops::gradient_norm({}, two.view()); }), "gradient_norm: norm must be [1], got [2]");
}

TEST(GradientNormCpu, SurvivesFailedAllocations) {
    const Array<float, 2> x = make_features(100, 3);
    const GradientTensor list[] = {{x.data(), DType::f32, 300}};
    Array<float, 1> norm({1});
    for_each_allocation_failure([&] { ops::gradient_norm(list, norm.view()); });
}

}  // namespace
}  // namespace stipple::test
