#include "stipple/ops/gram.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "tests/ops/grouping.h"
#include "tests/ops/products/factors.h"

namespace stipple::test {
namespace {

class Gram : public OnDevice {
protected:
    void SetUp() override {
        if (device().type == DeviceType::cuda && !ops::can_gram_cuda(16)) GTEST_SKIP() << "older than sm_80";
    }
    std::vector<DType> types() const {
        if (device().type == DeviceType::cuda) return {DType::f16, DType::bf16};
        return {DType::f32, DType::f16, DType::bf16};
    }
};
STIPPLE_ON_EVERY_DEVICE(Gram);

struct GramAnswer {
    std::vector<double> sum, products;
};

GramAnswer call_gram(const Factors& rows, Device device) {
    const int64_t k = rows.view().columns;
    Guarded<double> sum(k, device);
    Guarded<double, 2> products({k, k}, device);
    ops::gram(rows.view(), sum.view(), products.view());
    return {sum.values(), products.values()};
}

/// What the header says, in double; magnitudes: of the terms.
struct GramOracle : GramAnswer {
    std::vector<double> sum_magnitudes, product_magnitudes;

    explicit GramOracle(const Factors& rows) {
        const int64_t n = rows.view().rows, k = rows.view().columns;
        sum.resize(k), sum_magnitudes.resize(k);
        products.resize(k * k), product_magnitudes.resize(k * k);
        for (int64_t r = 0; r < n; ++r) {
            const double* x = rows.values.data() + r * k;
            for (int64_t i = 0; i < k; ++i) {
                sum[i] += x[i], sum_magnitudes[i] += std::abs(x[i]);
                for (int64_t j = 0; j < k; ++j) {
                    products[i * k + j] += x[i] * x[j];
                    product_magnitudes[i * k + j] += std::abs(x[i] * x[j]);
                }
            }
        }
    }
};

void expect_equal_or_both_nan(const std::vector<double>& found, const std::vector<double>& wanted, const char* what) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i)
        ASSERT_TRUE(std::isnan(wanted[i]) ? std::isnan(found[i]) : found[i] == wanted[i])
            << what << " " << i << ": " << found[i] << " and " << wanted[i];
}

void compare_whole_gram(int64_t n, int64_t k, DType dtype, Device device) {
    SCOPED_TRACE(fmt::format("{} x {} {}", n, k, name_of(dtype)));
    const Factors rows = whole_factors(n, k, dtype, device, 31);
    const GramAnswer found = call_gram(rows, device);
    const GramOracle wanted(rows);
    expect_equal_or_both_nan(found.sum, wanted.sum, "sum");
    expect_equal_or_both_nan(found.products, wanted.products, "product");
}

TEST_P(Gram, WholeNumbersAreExactInEveryShape) {
    std::vector<int64_t> widths = {16, 32, 48, 64, 80, 96, 112, 128};
    if (device().type == DeviceType::cpu)
        for (int64_t k : {1, 3, 17, 130}) widths.push_back(k);
    for (DType dtype : types())
        for (int64_t k : widths)
            for (int64_t n : {0, 1, 2, 7, 16, 63, 65, 300, 1000}) compare_whole_gram(n, k, dtype, device());
}

TEST_P(Gram, WholeNumbersAreExactInManyRows) {
    for (DType dtype : types()) {
        compare_whole_gram(300'003, 16, dtype, device());
        compare_whole_gram(20'001, 48, dtype, device());
        compare_whole_gram(9'000, 128, dtype, device());
    }
}

/// Rows that make a block sum up several times, with means that are no 0: sums of equal sign, which float32 likes
/// least.
TEST_P(Gram, RealNumbersAreNear) {
    for (DType dtype : types())
        for (int64_t k : {16, 128}) {
            const int64_t n = k == 16 ? 300'000 : 9'000;
            SCOPED_TRACE(fmt::format("{} x {} {}", n, k, name_of(dtype)));
            const Rng rng(32, 90);
            const Factors rows(n, k, dtype, device(), [&](int64_t i) { return 1 + rng.uniform(i); });
            const GramAnswer found = call_gram(rows, device());
            const GramOracle wanted(rows);
            for (int64_t i = 0; i < k; ++i) {
                ASSERT_NEAR(found.sum[i], wanted.sum[i], 2e-6 * wanted.sum_magnitudes[i]) << i;
                for (int64_t j = 0; j < k; ++j) {
                    const size_t at = static_cast<size_t>(i * k + j);
                    ASSERT_NEAR(found.products[at], wanted.products[at], 4e-6 * wanted.product_magnitudes[at])
                        << i << ", " << j;
                    ASSERT_EQ(found.products[at], found.products[static_cast<size_t>(j * k + i)]) << i << ", " << j;
                }
            }
        }
}

TEST_P(Gram, NotFinite) {
    for (DType dtype : types())
        for (const float bad : {kNan, kInfinity, -kInfinity})
            for (int64_t row : {0, 130, 299}) {
                SCOPED_TRACE(fmt::format("{} in row {} of {}", bad, row, name_of(dtype)));
                const int64_t k = 48;
                const Rng rng(33, 91);
                const Factors rows(300, k, dtype, device(), [&](int64_t i) {
                    if (i == row * k + 21) return bad;
                    return static_cast<float>(1 + rng.below(static_cast<uint64_t>(i), 3));
                });
                const GramAnswer found = call_gram(rows, device());
                const GramOracle wanted(rows);
                ASSERT_FALSE(std::isfinite(wanted.products[21]));
                expect_equal_or_both_nan(found.sum, wanted.sum, "sum");
                expect_equal_or_both_nan(found.products, wanted.products, "product");
            }
}

TEST_P(Gram, TheSameBitsAgain) {
    for (DType dtype : types()) {
        const Factors rows = real_factors(30'000, 96, dtype, device(), 34);
        const GramAnswer once = call_gram(rows, device()), again = call_gram(rows, device());
        expect_same_bits(once.sum, again.sum);
        expect_same_bits(once.products, again.products);
    }
}

class GramOnGpu : public Gram {};
STIPPLE_ON_EVERY_GPU(GramOnGpu);

/// So many that every block adds up its sums more than once, which takes the oracle too long.
TEST_P(GramOnGpu, ManyWideRowsAreThoseOfTheCpu) {
    const int64_t n = 400'000, k = 128;
    const auto number = [](int64_t i) { return static_cast<float>(i * i % 7 - i % 5); };
    const GramAnswer found = call_gram(Factors(n, k, DType::f16, device(), number), device());
    const GramAnswer wanted = call_gram(Factors(n, k, DType::f16, {}, number), {});
    expect_equal_or_both_nan(found.sum, wanted.sum, "sum");
    expect_equal_or_both_nan(found.products, wanted.products, "product");
}

TEST(GramCpu, TheSameBitsOnAnyNumberOfThreads) {
    const int before = threads();
    for (DType dtype : kFactorTypes) {
        const Factors rows = real_factors(9'000, 31, dtype, {}, 35);
        std::vector<GramAnswer> answers;
        for (int count : {1, 2, 7}) {
            set_threads(count);
            answers.push_back(call_gram(rows, {}));
        }
        set_threads(before);
        for (size_t i = 1; i < answers.size(); ++i) {
            expect_same_bits(answers[0].sum, answers[i].sum);
            expect_same_bits(answers[0].products, answers[i].products);
        }
    }
}

TEST(GramCpu, KnowsWhatCudaTakes) {
    for (int64_t k : {-16, 0, 8, 24, 144}) EXPECT_FALSE(ops::can_gram_cuda(k)) << k;
#ifndef STIPPLE_WITH_CUDA
    EXPECT_TRUE(ops::can_gram_cuda(16));
    EXPECT_TRUE(ops::can_gram_cuda(128));
#endif
}

TEST(GramCpu, SaysWhatIsWrong) {
    const Array<float, 2> rows({6, 16});
    Array<double, 1> sum({16}), short_sum({15});
    Array<double, 2> products({16, 16}), narrow({16, 15});
    const auto complaint = [&](const ops::MatrixView& x, Array<double, 1>& a, Array<double, 2>& b) {
        return bad_argument_of([&] { ops::gram(x, a.view(), b.view()); });
    };
    EXPECT_EQ(complaint(rows.view(), short_sum, products), "gram: sum must be [16], got [15]");
    EXPECT_EQ(complaint(rows.view(), sum, narrow), "gram: products must be [16, 16], got [16, 15]");
    EXPECT_EQ(complaint({rows.data(), DType::f64, 6, 16, {}}, sum, products),
              "gram: rows must be float32, float16 or bfloat16, got float64");
    EXPECT_EQ(complaint({rows.data(), DType::f32, -1, 16, {}}, sum, products), "gram: rows of shape [-1, 16]");
    EXPECT_EQ(complaint({rows.data(), DType::f16, 6, 16, kFakeCuda}, sum, products),
              "gram: points on cuda:0, sum on cpu");
    const auto on_cuda = [&](const void* data, DType dtype, int64_t k) {
        return bad_argument_of([&] {
            ops::gram({data, dtype, 6, k, kFakeCuda}, View<double, 1>(nullptr, {k}, kFakeCuda),
                      View<double, 2>(nullptr, {k, k}, kFakeCuda));
        });
    };
    EXPECT_EQ(on_cuda(nullptr, DType::f32, 16), "gram: on CUDA rows must be float16 or bfloat16, got float32");
    EXPECT_EQ(on_cuda(nullptr, DType::f16, 24), "gram: on CUDA k must be a multiple of 16 up to 128, got 24");
    EXPECT_EQ(on_cuda(reinterpret_cast<const void*>(8), DType::f16, 16),
              "gram: on CUDA rows must begin at a multiple of 16 bytes, and is at 0x8");
}

TEST(GramCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const Factors rows = real_factors(6, 8, DType::f16, {}, 36);
    Array<double, 1> sum({8});
    Array<double, 2> products({8, 8});
    const int before = threads();
    set_threads(1);
    const auto run = [&] { ops::gram(rows.view(), sum.view(), products.view()); };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
    set_threads(before);
}

}  // namespace
}  // namespace stipple::test
