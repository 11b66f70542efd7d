#include "stipple/ops/linear_max.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stipple/core/parallel.h"
#include "tests/ops/grouping.h"
#include "tests/ops/products/factors.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::MatrixView;

class LinearMax : public OnDevice {
    void SetUp() override {
        if (device().type == DeviceType::cuda && !ops::can_linear_max_cuda(16, 64)) GTEST_SKIP() << "older than sm_80";
    }
};
STIPPLE_ON_EVERY_DEVICE(LinearMax);

double product_of(const double* row, const double* weight, int64_t k) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += row[j] * weight[j];
    return sum;
}

struct LargestProducts {
    std::vector<double> largest;
    std::vector<int32_t> winners;
};

/// What the header says, in double.
LargestProducts largest_products(const std::vector<double>& rows, const Batch& batch, const std::vector<double>& weight,
                                 int64_t k, int64_t channels) {
    LargestProducts result;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        for (int64_t c = 0; c < channels; ++c) {
            double best = -std::numeric_limits<double>::infinity();
            int32_t winner = -1;
            for (int64_t r = 0; r < batch.size(cloud) && !std::isnan(best); ++r) {
                const double x = product_of(rows.data() + (batch.begin(cloud) + r) * k, weight.data() + c * k, k);
                if (winner >= 0 && !(x > best) && !std::isnan(x)) continue;
                best = x;
                winner = static_cast<int32_t>(r);
            }
            result.largest.push_back(best);
            result.winners.push_back(winner);
        }
    return result;
}

/// The op's answer, from between margins.
struct Answer {
    Array<float, 2> largest;
    Array<int32_t, 2> winners;
};
Answer call(const Factors& rows, const Batch& batch, const Factors& weight, Device device) {
    const int64_t channels = weight.view().rows;
    Guarded<float, 2> largest({batch.clouds(), channels}, device);
    Guarded<int32_t, 2> winners({batch.clouds(), channels}, device);
    ops::linear_max(rows.view(), batch, weight.view(), largest.view(), winners.view());
    return {largest.get(), winners.get()};
}

void expect_exactly(const Answer& answer, const LargestProducts& expected) {
    for (int64_t i = 0; i < answer.largest.elements(); ++i) {
        const auto want = static_cast<float>(expected.largest[i]);
        const float found = answer.largest.data()[i];
        ASSERT_TRUE(std::isnan(want) ? std::isnan(found) : found == want) << i << ": " << found << " and " << want;
        ASSERT_EQ(answer.winners.data()[i], expected.winners[i]) << i << ", " << want;
    }
}

void compare_whole(int64_t k, int64_t channels, const Batch& batch, DType dtype, Device device) {
    SCOPED_TRACE(fmt::format("{} rows in {} clouds, k {}, {} channels, {}", batch.rows(), batch.clouds(), k, channels,
                             name_of(dtype)));
    const Factors rows = whole_factors(batch.rows(), k, dtype, device, 1);
    const Factors weight = whole_factors(channels, k, dtype, device, 2);
    expect_exactly(call(rows, batch, weight, device), largest_products(rows.values, batch, weight.values, k, channels));
}

const Batch kRaggedClouds = Batch::ragged({0, 0, 5, 5, 40, 41, 173, 301, 301});

TEST_P(LinearMax, WholeNumbersAreExactInEveryShape) {
    std::vector<std::pair<int64_t, int64_t>> shapes = {{16, 64}, {32, 128}, {48, 192},  {64, 256},
                                                       {80, 64}, {96, 128}, {112, 320}, {128, 1024}};
    if (device().type == DeviceType::cpu)
        for (const auto& shape : {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {3, 70}, {17, 15}, {130, 33}})
            shapes.push_back(shape);
    for (const auto& [k, channels] : shapes)
        for (DType dtype : kFactorTypes) compare_whole(k, channels, kRaggedClouds, dtype, device());
}

TEST_P(LinearMax, WholeNumbersAreExactInEveryBatch) {
    const Batch batches[] = {Batch::single(0),         Batch::single(1),
                             Batch::single(31),        Batch::single(64),
                             Batch::single(65),        Batch::single(127),
                             Batch::single(129),       Batch::single(5000),
                             Batch::dense(3, 128),     Batch::dense(0, 10),
                             Batch::dense(500, 3),     Batch::ragged({0}),
                             Batch::ragged({0, 0, 0}), Batch::ragged({0, 2000, 2001, 2001, 2500})};
    for (const Batch& batch : batches)
        for (DType dtype : kFactorTypes) {
            compare_whole(32, 64, batch, dtype, device());
            if (batch.rows() < 2000) compare_whole(128, 192, batch, dtype, device());
        }
}

/// Sums in float32 of rounded factors; a winner other than the oracle's must be as good.
TEST_P(LinearMax, RealNumbersAreNear) {
    for (DType dtype : kFactorTypes)
        for (int64_t k : {16, 64, 128}) {
            const int64_t channels = 128;
            const Batch batch = Batch::ragged({0, 7, 7, 300, 600});
            const Factors rows = real_factors(batch.rows(), k, dtype, device(), 3);
            const Factors weight = real_factors(channels, k, dtype, device(), 4);
            const Answer answer = call(rows, batch, weight, device());
            const LargestProducts expected = largest_products(rows.values, batch, weight.values, k, channels);
            const bool is_tf32 = dtype == DType::f32 && device().type == DeviceType::cuda;
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
                for (int64_t c = 0; c < channels; ++c) {
                    const int64_t i = cloud * channels + c;
                    const int32_t winner = answer.winners.data()[i];
                    if (batch.size(cloud) == 0) {
                        ASSERT_EQ(winner, -1);
                        ASSERT_EQ(answer.largest.data()[i], -kInfinity);
                        continue;
                    }
                    ASSERT_GE(winner, 0);
                    ASSERT_LT(winner, batch.size(cloud));
                    const double *row = rows.values.data() + (batch.begin(cloud) + winner) * k,
                                 *w = weight.values.data() + c * k;
                    double magnitude = 0;
                    for (int64_t j = 0; j < k; ++j) magnitude += std::abs(row[j] * w[j]);
                    const double own = product_of(row, w, k);
                    const double limit = magnitude * (static_cast<double>(k) * 0x1p-22 + (is_tf32 ? 0x1p-10 : 0));
                    ASSERT_NEAR(answer.largest.data()[i], own, limit) << i;
                    ASSERT_NEAR(own, expected.largest[i], 4 * limit) << i;
                }
        }
}

/// NaN wins and the first of them stays; infinities are numbers; where nothing is above -infinity, the first row wins.
TEST_P(LinearMax, NotFinite) {
    const int64_t n = 301, k = 32, channels = 64;
    const Batch batch = Batch::ragged({0, n, n + 140});
    struct At {
        int64_t row;
        float value;
    };
    const std::vector<std::vector<At>> cases = {
        {{0, kNan}},
        {{31, kNan}, {32, kNan}},
        {{300, kNan}, {301, kNan}},
        {{200, kNan}, {131, kNan}, {130, kInfinity}},
        {{5, kInfinity}, {4, -kInfinity}},
        {{440, kNan}, {129, kInfinity}, {257, kInfinity}},
    };
    for (DType dtype : kFactorTypes)
        for (size_t i = 0; i <= cases.size() + 1; ++i) {
            SCOPED_TRACE(fmt::format("case {} in {}", i, name_of(dtype)));
            const bool all_below = i == cases.size(), weight_is_nan = i > cases.size();
            const Rng rng(7, 57);
            // No zeros, which would make NaN of infinities everywhere; all of one sign where all is to be below.
            const auto number = [&](int64_t at) {
                const auto magnitude = static_cast<float>(1 + rng.below(at, 3));
                return rng.bits(at + 1'000'000) % 2 == 0 || all_below ? magnitude : -magnitude;
            };
            const Factors rows(batch.rows(), k, dtype, device(), [&](int64_t at) {
                if (all_below && at % k == 3) return -kInfinity;
                if (i < cases.size() && at % k == 5)
                    for (const At& one : cases[i])
                        if (one.row == at / k) return one.value;
                return number(at);
            });
            const Factors weight(channels, k, dtype, device(), [&](int64_t at) {
                return weight_is_nan && at / k % 3 == 1 && at % k == 31 ? kNan : number(at + 500'000);
            });
            expect_exactly(call(rows, batch, weight, device()),
                           largest_products(rows.values, batch, weight.values, k, channels));
        }
}

TEST_P(LinearMax, TheSameBitsAgain) {
    const Batch batch = Batch::ragged({0, 700, 700, 1000});
    const Factors rows = real_factors(batch.rows(), 64, DType::f32, device(), 8);
    const Factors weight = real_factors(128, 64, DType::f32, device(), 9);
    const Answer once = call(rows, batch, weight, device()), again = call(rows, batch, weight, device());
    expect_same_bits(once.largest, again.largest, "largest");
    expect_same_bits(once.winners, again.winners, "winners");
}

/// d/dx of sum g largest, from differences of the oracle, which has no winner near another at these numbers.
TEST_P(LinearMax, GradientsAreThoseOfFiniteDifferences) {
    const int64_t k = 16, channels = 64;
    const Batch batch = Batch::ragged({0, 3, 3, 20, 31});
    for (DType dtype : kFactorTypes) {
        const Factors rows = real_factors(batch.rows(), k, dtype, device(), 10);
        const Factors weight = real_factors(channels, k, dtype, device(), 11);
        const auto gradient = random_array<float, 2>({batch.clouds(), channels}, 12);
        const LargestProducts best = largest_products(rows.values, batch, weight.values, k, channels);
        Array<int32_t, 2> winners({batch.clouds(), channels});
        std::copy(best.winners.begin(), best.winners.end(), winners.data());
        const auto winners_there = upload(winners);
        const auto gradient_there = upload(gradient);
        Array<float, 2> zeros({batch.rows(), k});
        std::fill(zeros.span().begin(), zeros.span().end(), 0.0f);
        Array<float, 2> dL_drows = upload(zeros), dL_dweight({channels, k}, device());
        ops::linear_max_backward_rows(batch, weight.view(), winners_there.view(), gradient_there.view(),
                                      dL_drows.view());
        ops::linear_max_backward_weight(rows.view(), batch, winners_there.view(), gradient_there.view(),
                                        dL_dweight.view());
        const auto loss = [&](const std::vector<double>& x, const std::vector<double>& w) {
            const LargestProducts all = largest_products(x, batch, w, k, channels);
            double sum = 0;
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
                for (int64_t c = 0; c < channels && batch.size(cloud) > 0; ++c)
                    sum += gradient.data()[cloud * channels + c] * all.largest[cloud * channels + c];
            return sum;
        };
        const auto found_rows = download(dL_drows), found_weight = download(dL_dweight);
        for (size_t i = 0; i < rows.values.size(); i += 7)
            ASSERT_NEAR(found_rows.data()[i],
                        central_difference([&](const auto& x) { return loss(x, weight.values); }, rows.values, i, 1e-6),
                        1e-4)
                << i;
        for (size_t i = 0; i < weight.values.size(); i += 13)
            ASSERT_NEAR(found_weight.data()[i],
                        central_difference([&](const auto& w) { return loss(rows.values, w); }, weight.values, i, 1e-6),
                        1e-4)
                << i;
    }
}

/// Whole numbers, exact in any order, with winners of every kind: none, out of range, one row that many name.
TEST_P(LinearMax, GradientsOfWholeNumbersAreExact) {
    struct Size {
        int64_t k, channels;
        Batch batch;
    };
    std::vector<Size> sizes = {{16, 64, kRaggedClouds},     {48, 192, Batch::dense(700, 3)},
                               {64, 128, Batch::single(0)}, {96, 320, Batch::ragged({0, 1, 2, 50})},
                               {128, 1024, kRaggedClouds},  {128, 2112, Batch::dense(2, 30)},
                               {32, 64, Batch::dense(0, 5)}};
    if (device().type == DeviceType::cpu) {
        sizes.push_back({3, 5, kRaggedClouds});
        sizes.push_back({0, 5, kRaggedClouds});
        sizes.push_back({5, 0, kRaggedClouds});
    }
    for (const auto& [k, channels, batch] : sizes)
        for (DType dtype : kFactorTypes) {
            SCOPED_TRACE(fmt::format("{} rows in {} clouds, k {}, {} channels, {}", batch.rows(), batch.clouds(), k,
                                     channels, name_of(dtype)));
            const Factors rows = whole_factors(batch.rows(), k, dtype, device(), 13);
            const Factors weight = whole_factors(channels, k, dtype, device(), 14);
            Array<int32_t, 2> winners = make_indices(Batch::dense(batch.clouds(), 1), channels, batch, 15);
            for (int64_t c = 0; c < channels && batch.clouds() > 1; ++c)  // of one cloud all go to one row
                winners.data()[(batch.clouds() - 2) * channels + c] = 0;
            Array<float, 2> gradient({batch.clouds(), channels}), before({batch.rows(), k});
            const Rng rng(16);
            for (int64_t i = 0; i < gradient.elements(); ++i)
                gradient.data()[i] = static_cast<float>(static_cast<int>(rng.below(i, 7)) - 3);
            for (int64_t i = 0; i < before.elements(); ++i) before.data()[i] = static_cast<float>(i % 11);

            std::vector<double> dL_drows = doubles(before), dL_dweight(channels * k);
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
                for (int64_t c = 0; c < channels; ++c) {
                    const int64_t winner = winners.data()[cloud * channels + c];
                    if (winner < 0 || winner >= batch.size(cloud)) continue;
                    const double g = gradient.data()[cloud * channels + c];
                    const int64_t row = batch.begin(cloud) + winner;
                    for (int64_t j = 0; j < k; ++j) {
                        dL_drows[row * k + j] += g * weight.values[c * k + j];
                        dL_dweight[c * k + j] += g * rows.values[row * k + j];
                    }
                }
            const auto winners_there = upload(winners);
            const auto gradient_there = upload(gradient);
            Guarded<float, 2> found_rows({batch.rows(), k}, device()), found_weight({channels, k}, device());
            copy_bytes(found_rows.view().data(), device(), before.data(), Device{},
                       before.elements() * static_cast<int64_t>(sizeof(float)));
            ops::linear_max_backward_rows(batch, weight.view(), winners_there.view(), gradient_there.view(),
                                          found_rows.view());
            ops::linear_max_backward_weight(rows.view(), batch, winners_there.view(), gradient_there.view(),
                                            found_weight.view());
            const auto got_rows = found_rows.get(), got_weight = found_weight.get();
            for (size_t i = 0; i < dL_drows.size(); ++i) ASSERT_EQ(got_rows.data()[i], dL_drows[i]) << i;
            for (size_t i = 0; i < dL_dweight.size(); ++i) ASSERT_EQ(got_weight.data()[i], dL_dweight[i]) << i;
        }
}

/// Rows of every type, scaled and moved before the winners are added: one rounding of exact sums.
TEST_P(LinearMax, RowsOfEveryTypeAreScaledAndMovedFirst) {
    const int64_t k = 48, channels = 192;
    const Batch batch = Batch::ragged({0, 7, 7, 260, 263});
    const Factors weight = whole_factors(channels, k, DType::f16, device(), 24);
    const Array<int32_t, 2> winners = make_indices(Batch::dense(batch.clouds(), 1), channels, batch, 25);
    Array<float, 2> gradient({batch.clouds(), channels});
    for (int64_t i = 0; i < gradient.elements(); ++i) gradient.data()[i] = static_cast<float>(i % 7 - 3);
    Array<float, 1> factor({1}), constant({k});
    factor.data()[0] = 0.5f;
    for (int64_t j = 0; j < k; ++j) constant.data()[j] = static_cast<float>(j % 5) - 2;
    const auto winners_there = upload(winners);
    const auto gradient_there = upload(gradient);
    const auto factor_there = upload(factor), constant_there = upload(constant);
    for (DType dtype : kFactorTypes)
        for (const bool has_before : {false, true}) {
            SCOPED_TRACE(fmt::format("{}, {}", name_of(dtype), has_before));
            const Factors rows = whole_factors(batch.rows(), k, dtype, device(), 26, 9);
            std::vector<double> expected = rows.values;
            for (size_t i = 0; i < expected.size() && has_before; ++i)
                expected[i] = 0.5 * expected[i] + constant.data()[i % k];
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
                for (int64_t c = 0; c < channels; ++c) {
                    const int64_t winner = winners.data()[cloud * channels + c];
                    if (winner < 0 || winner >= batch.size(cloud)) continue;
                    for (int64_t j = 0; j < k; ++j)
                        expected[(batch.begin(cloud) + winner) * k + j] +=
                            gradient.data()[cloud * channels + c] * weight.values[c * k + j];
                }
            const MatrixView there = rows.view();
            const ops::RowsBefore before = {factor_there.view(), constant_there.view()};
            ops::linear_max_backward_rows(
                batch, weight.view(), winners_there.view(), gradient_there.view(),
                {const_cast<void*>(there.data), dtype, there.rows, there.columns, there.device},
                has_before ? before : ops::RowsBefore{});
            std::vector<uint16_t> bits(expected.size() * static_cast<size_t>(size_of(dtype)) / 2);
            copy_bytes(bits.data(), Device{}, there.data, device(), static_cast<int64_t>(bits.size()) * 2);
            for (size_t i = 0; i < expected.size(); ++i) {
                const auto exact = static_cast<float>(expected[i]);
                uint16_t rounded = dtype == DType::f16 ? float_to_half(exact) : float_to_bfloat16(exact);
                const double want = dtype == DType::f32 ? expected[i] : load_as_double(dtype, &rounded);
                ASSERT_EQ(load_as_double(dtype, bits.data() + i * static_cast<size_t>(size_of(dtype)) / 2), want) << i;
            }
        }
}

TEST(LinearMaxCpu, TheSameBitsOnAnyNumberOfThreads) {
    const Batch batch = Batch::ragged({0, 90, 90, 100, 333});
    const int64_t k = 31, channels = 300;
    const auto gradient = random_array<float, 2>({batch.clouds(), channels}, 18);
    const int before = threads();
    for (DType dtype : kFactorTypes) {
        const Factors rows = real_factors(batch.rows(), k, dtype, {}, 16);
        const Factors weight = real_factors(channels, k, dtype, {}, 17);
        std::vector<Answer> answers;
        std::vector<Array<float, 2>> of_rows, of_weight;
        for (int count : {1, 2, 7}) {
            set_threads(count);
            answers.push_back(call(rows, batch, weight, {}));
            const View<const int32_t, 2> winners = std::as_const(answers.back().winners).view();
            of_rows.push_back(make_features(batch.rows(), k));
            of_weight.emplace_back(std::array<int64_t, 2>{channels, k});
            ops::linear_max_backward_rows(batch, weight.view(), winners, gradient.view(), of_rows.back().view());
            ops::linear_max_backward_weight(rows.view(), batch, winners, gradient.view(), of_weight.back().view());
        }
        set_threads(before);
        for (size_t i = 1; i < answers.size(); ++i) {
            expect_same_bits(answers[0].largest, answers[i].largest, "largest");
            expect_same_bits(answers[0].winners, answers[i].winners, "winners");
            expect_same_bits(of_rows[0], of_rows[i], "gradient of rows");
            expect_same_bits(of_weight[0], of_weight[i], "gradient of weight");
        }
    }
}

TEST(LinearMaxCpu, KnowsWhatCudaTakes) {
    for (const auto& [k, channels] :
         {std::pair<int64_t, int64_t>{0, 64}, {8, 64}, {24, 64}, {144, 64}, {128, 0}, {128, 96}, {-16, 64}})
        EXPECT_FALSE(ops::can_linear_max_cuda(k, channels)) << k << ", " << channels;
#ifndef STIPPLE_WITH_CUDA
    EXPECT_TRUE(ops::can_linear_max_cuda(16, 64));
    EXPECT_TRUE(ops::can_linear_max_cuda(128, 1024));
#endif
}

TEST(LinearMaxCpu, SaysWhatIsWrong) {
    const Array<float, 2> rows({6, 16}), weight({64, 16});
    Array<float, 2> largest({2, 64});
    Array<int32_t, 2> winners({2, 64});
    const Batch batch = Batch::dense(2, 3);
    const MatrixView x(rows.view()), w(weight.view());
    const auto complaint = [&](const MatrixView& a, const Batch& clouds, const MatrixView& b) {
        return bad_argument_of([&] { ops::linear_max(a, clouds, b, largest.view(), winners.view()); });
    };
    EXPECT_EQ(complaint(x, Batch::dense(2, 4), w), "linear_max: rows must be [8, k], got [6, 16]");
    EXPECT_EQ(complaint(x, batch, {weight.data(), DType::f32, 64, 8, {}}),
              "linear_max: weight must be [channels, 16], got [64, 8]");
    EXPECT_EQ(complaint(x, batch, {weight.data(), DType::f16, 64, 16, {}}),
              "linear_max: rows of float32, weight of float16");
    EXPECT_EQ(complaint({rows.data(), DType::f64, 6, 16, {}}, batch, w),
              "linear_max: rows must be float32, float16 or bfloat16, got float64");
    EXPECT_EQ(complaint(x, batch, {weight.data(), DType::f32, 64, 16, kFakeCuda}),
              "linear_max: points on cpu, weight on cuda:0");
    EXPECT_EQ(complaint(x, batch, {weight.data(), DType::f32, 32, 16, {}}),
              "linear_max: largest must be [2, 32], got [2, 64]");
    EXPECT_EQ(bad_argument_of([&] {
                  MatrixView(View<const float, 2>(rows.data(), {3, 8}, {16, 1}));
              }),
              "a matrix of [3, 8] numbers must be contiguous");

    const View<const int32_t, 2> named = std::as_const(winners).view();
    const View<const float, 2> gradient = std::as_const(largest).view();
    Array<float, 2> narrow({6, 15});
    EXPECT_EQ(bad_argument_of([&] { ops::linear_max_backward_rows(batch, w, named, gradient, narrow.view()); }),
              "linear_max_backward_rows: dL_drows must be [6, 16], got [6, 15]");
    EXPECT_EQ(bad_argument_of([&] { ops::linear_max_backward_weight(x, batch, named, gradient, narrow.view()); }),
              "linear_max_backward_weight: winners must be [2, 6], got [2, 64]");

    // What the CPU takes and CUDA does not: said before anything is run.
    const auto on_cuda = [&](const void* data, int64_t k, int64_t channels) {
        return bad_argument_of([&] {
            ops::linear_max({data, DType::f32, 6, k, kFakeCuda}, batch, {data, DType::f32, channels, k, kFakeCuda},
                            View<float, 2>(nullptr, {2, channels}, kFakeCuda),
                            View<int32_t, 2>(nullptr, {2, channels}, kFakeCuda));
        });
    };
    EXPECT_EQ(on_cuda(nullptr, 24, 64),
              "linear_max: on CUDA k must be a multiple of 16 up to 128 and channels one of "
              "64, got k 24 and 64 channels");
    EXPECT_EQ(on_cuda(nullptr, 16, 32),
              "linear_max: on CUDA k must be a multiple of 16 up to 128 and channels one of "
              "64, got k 16 and 32 channels");
    EXPECT_EQ(on_cuda(reinterpret_cast<const void*>(8), 16, 64),
              "linear_max: on CUDA rows must begin at a multiple of 16 bytes, and is at 0x8");
}

TEST(LinearMaxCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const Batch batch = Batch::dense(2, 3);
    const Factors rows = real_factors(6, 8, DType::f16, {}, 20), weight = real_factors(20, 8, DType::f16, {}, 21);
    Array<float, 2> largest({2, 20}), dL_drows = make_features(6, 8), dL_dweight({20, 8});
    Array<int32_t, 2> winners({2, 20});
    const int before = threads();
    set_threads(1);
    const auto run = [&] {
        ops::linear_max(rows.view(), batch, weight.view(), largest.view(), winners.view());
        ops::linear_max_backward_rows(batch, weight.view(), std::as_const(winners).view(),
                                      std::as_const(largest).view(), dL_drows.view());
        ops::linear_max_backward_weight(rows.view(), batch, std::as_const(winners).view(),
                                        std::as_const(largest).view(), dL_dweight.view());
    };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
    set_threads(before);
}

}  // namespace
}  // namespace stipple::test
