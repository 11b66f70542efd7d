#include "stipple/ops/row_norm.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "tests/ops/grouping.h"
#include "tests/ops/products/factors.h"

namespace stipple::test {
namespace {

using ops::MatrixView;
using ops::NormColumns;

class RowNorm : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(RowNorm);

struct NormShape {
    int64_t n, c;
};
/// One block and many, vectors and single numbers, threads without columns.
const std::vector<NormShape> kNormShapes = {{1, 1},      {1, 128},    {2, 3},      {7, 40},    {7, 1024},
                                            {64, 512},   {1000, 1},   {1000, 4},   {1000, 64}, {1000, 12},
                                            {1000, 129}, {257, 1000}, {130, 1024}, {3, 2072},  {20'000, 8}};
const std::vector<NormShape> kNormLongShapes = {{100'003, 1}, {100'003, 3}, {100'003, 40}, {20'011, 128}};

std::string name_of_case(const NormShape& shape, DType dtype) {
    return fmt::format("{} x {} {}", shape.n, shape.c, name_of(dtype));
}

/// Numbers of columns, on a device.
struct ColumnNumbers {
    std::vector<float> host;
    Array<float, 1> there;

    ColumnNumbers(int64_t c, Device device, const std::function<float(int64_t)>& number)
        : host(static_cast<size_t>(c)) {
        for (int64_t j = 0; j < c; ++j) host[j] = number(j);
        there = array_of(host, device);
    }
    View<const float, 1> view() const { return there.view(); }
    float operator[](int64_t j) const { return host[static_cast<size_t>(j)]; }
};

/// Some that rectify about half of normal numbers.
struct SomeColumns {
    ColumnNumbers mean, inverse, scale, shift, sum_g, sum_gx;

    SomeColumns(int64_t c, Device device)
        : mean(c, device, [](int64_t j) { return 0.25f * static_cast<float>(j % 5 - 2); }),
          inverse(c, device, [](int64_t j) { return 0.5f + 0.125f * static_cast<float>(j % 7); }),
          scale(c, device, [](int64_t j) { return static_cast<float>(j % 3 - 1) + 0.3f; }),
          shift(c, device, [](int64_t j) { return 0.1f * static_cast<float>(j % 4 - 2); }),
          sum_g(c, device, [](int64_t j) { return 3.3f * static_cast<float>(j % 6 - 3); }),
          sum_gx(c, device, [](int64_t j) { return 7.7f * static_cast<float>(j % 5 - 1); }) {}
    NormColumns view() const { return {mean.view(), inverse.view(), scale.view(), shift.view()}; }
};

struct ColumnStatistics {
    std::vector<float> mean, variance;
};
ColumnStatistics call_statistics(const MatrixView& rows, Device device) {
    Guarded<float> mean(rows.columns, device), variance(rows.columns, device);
    ops::column_statistics(rows, mean.view(), variance.view());
    return {mean.values(), variance.values()};
}

/// In two passes, in double.
struct StatisticsOracle {
    std::vector<double> mean, variance;

    StatisticsOracle(const std::vector<double>& x, int64_t n, int64_t c) : mean(c), variance(c) {
        for (int64_t i = 0; i < n * c; ++i) mean[i % c] += x[i];
        for (double& m : mean) m /= static_cast<double>(n);
        for (int64_t i = 0; i < n * c; ++i) variance[i % c] += (x[i] - mean[i % c]) * (x[i] - mean[i % c]);
        for (double& v : variance) v /= static_cast<double>(n);
    }
};

void expect_near_statistics(const ColumnStatistics& found, const StatisticsOracle& wanted, double tolerance) {
    for (size_t j = 0; j < wanted.mean.size(); ++j) {
        const double deviation = std::sqrt(wanted.variance[j]);
        ASSERT_NEAR(found.mean[j], wanted.mean[j], 1.2e-7 * std::abs(wanted.mean[j]) + tolerance * deviation) << j;
        ASSERT_NEAR(found.variance[j], wanted.variance[j], tolerance * wanted.variance[j]) << j;
    }
}

TEST_P(RowNorm, StatisticsOfEveryShape) {
    for (DType dtype : kFactorTypes)
        for (const auto& shapes : {kNormShapes, kNormLongShapes})
            for (const NormShape& shape : shapes) {
                SCOPED_TRACE(name_of_case(shape, dtype));
                const Factors rows = real_factors(shape.n, shape.c, dtype, device(), 41);
                expect_near_statistics(call_statistics(rows.view(), device()),
                                       StatisticsOracle(rows.values, shape.n, shape.c), 1e-5);
            }
}

/// A difference of sums of squares in float32 would have no digit right.
TEST_P(RowNorm, StatisticsFarFromZero) {
    for (const bool has_outlier : {false, true})
        for (const NormShape& shape : {NormShape{30'000, 8}, {30'000, 3}, {100, 64}}) {
            SCOPED_TRACE(name_of_case(shape, DType::f32) + (has_outlier ? " with an outlier" : ""));
            const Rng rng(42, 92);
            const Factors rows(shape.n, shape.c, DType::f32, device(), [&](int64_t i) {
                return has_outlier && i < shape.c ? 1010.0f : 1000 + 0.01f * rng.normal(i);
            });
            expect_near_statistics(call_statistics(rows.view(), device()),
                                   StatisticsOracle(rows.values, shape.n, shape.c), 3e-5);
        }
}

TEST_P(RowNorm, EqualNumbersHaveNoVariance) {
    for (DType dtype : kFactorTypes)
        for (const NormShape& shape : kNormShapes) {
            SCOPED_TRACE(name_of_case(shape, dtype));
            const Factors rows(shape.n, shape.c, dtype, device(),
                               [&](int64_t i) { return 0.1f + 3.7f * static_cast<float>(i % shape.c % 10); });
            const ColumnStatistics found = call_statistics(rows.view(), device());
            for (int64_t j = 0; j < shape.c; ++j) {
                ASSERT_EQ(found.mean[j], rows.values[j]) << j;
                ASSERT_EQ(found.variance[j], 0) << j;
            }
        }
}

TEST_P(RowNorm, StatisticsOfWhatIsNotFinite) {
    for (DType dtype : kFactorTypes)
        for (const NormShape& shape : {NormShape{5000, 40}, {5000, 3}, {1, 16}, {9, 5}})
            for (const float bad : {kNan, kInfinity, -kInfinity})
                for (int64_t row : {int64_t{0}, shape.n / 2, shape.n - 1}) {
                    SCOPED_TRACE(fmt::format("{}, {} in row {}", name_of_case(shape, dtype), bad, row));
                    const int64_t column = 2;
                    const Rng rng(43, 93);
                    const Factors rows(shape.n, shape.c, dtype, device(),
                                       [&](int64_t i) { return i == row * shape.c + column ? bad : rng.uniform(i); });
                    const ColumnStatistics found = call_statistics(rows.view(), device());
                    for (int64_t j = 0; j < shape.c; ++j) {
                        ASSERT_EQ(std::isnan(found.mean[j]), j == column) << j;
                        ASSERT_EQ(std::isnan(found.variance[j]), j == column) << j;
                    }
                }
}

/// Numbers about 0, some of them not finite, and zeros of both signs.
Factors awkward_factors(int64_t rows, int64_t columns, DType dtype, Device device, uint64_t seed) {
    const Rng rng(seed, 94);
    return {rows, columns, dtype, device, [&](int64_t i) {
                const uint32_t kind = rng.below(2 * i, 50);
                if (kind < 5) return std::array{kNan, kInfinity, -kInfinity, 0.0f, -0.0f}[kind];
                return rng.normal(2 * i + 1);
            }};
}

/// The same bits, but for those of NaN, as numbers that were rounded to the type.
void expect_exact_numbers(const std::vector<double>& found, const std::vector<float>& wanted, DType dtype) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
        const float want = rounded_to(dtype, wanted[i]);
        const bool is_same =
            std::isnan(want) ? std::isnan(found[i]) : found[i] == want && std::signbit(found[i]) == std::signbit(want);
        ASSERT_TRUE(is_same) << i << ": " << found[i] << " and " << want;
    }
}

std::vector<float> normalised(const std::vector<double>& x, const SomeColumns& columns, int64_t c, bool has_relu) {
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const auto j = static_cast<int64_t>(i) % c;
        const float product = static_cast<float>(x[i]) * columns.scale[j];
        y[i] = product + columns.shift[j];
        if (has_relu && y[i] < 0) y[i] = 0;
    }
    return y;
}

TEST_P(RowNorm, RowsOfEveryShapeAndTypeAreExact) {
    for (DType from : kFactorTypes)
        for (DType to : kFactorTypes)
            for (const NormShape& shape : kNormShapes)
                for (const bool has_relu : {false, true}) {
                    SCOPED_TRACE(fmt::format("{} to {}", name_of_case(shape, from), name_of(to)));
                    const Factors rows = awkward_factors(shape.n, shape.c, from, device(), 44);
                    const SomeColumns columns(shape.c, device());
                    WrittenMatrix out(shape.n, shape.c, to, device());
                    ops::normalise_rows(rows.view(), columns.scale.view(), columns.shift.view(), has_relu, out.view());
                    expect_exact_numbers(out.values(), normalised(rows.values, columns, shape.c, has_relu), to);
                }
}

TEST_P(RowNorm, RowsInTheirOwnMemory) {
    for (DType dtype : kFactorTypes)
        for (const NormShape& shape : {NormShape{5000, 64}, {5000, 3}}) {
            SCOPED_TRACE(name_of_case(shape, dtype));
            const Factors rows = awkward_factors(shape.n, shape.c, dtype, device(), 45);
            const SomeColumns columns(shape.c, device());
            WrittenMatrix both(shape.n, shape.c, dtype, device());
            copy_bytes(both.view().data, device(), rows.view().data, device(), shape.n * shape.c * size_of(dtype));
            ops::normalise_rows(both.view(), columns.scale.view(), columns.shift.view(), true, both.view());
            expect_exact_numbers(both.values(), normalised(rows.values, columns, shape.c, true), dtype);
        }
}

/// What is left of a gradient, as the op decides it.
double left_of_gradient(double g, double x, float scale, float shift, bool has_relu) {
    const float product = static_cast<float>(x) * scale;
    return !has_relu || product + shift > 0 ? g : 0;
}

struct GradientSums {
    std::vector<float> g, gx;
};
GradientSums call_sums(const MatrixView& gradient, const MatrixView& rows, const SomeColumns& columns, bool has_relu,
                       Device device) {
    Guarded<float> sum_g(rows.columns, device), sum_gx(rows.columns, device);
    ops::norm_backward_sums(gradient, rows, columns.view(), has_relu, sum_g.view(), sum_gx.view());
    return {sum_g.values(), sum_gx.values()};
}

void compare_sums(const NormShape& shape, DType of_gradient, DType of_rows, bool has_relu, Device device) {
    SCOPED_TRACE(fmt::format("{}, gradient of {}", name_of_case(shape, of_rows), name_of(of_gradient)));
    const int64_t c = shape.c;
    const Factors rows = real_factors(shape.n, c, of_rows, device, 46);
    const Factors gradient = real_factors(shape.n, c, of_gradient, device, 47);
    const SomeColumns columns(c, device);
    std::vector<double> g(c), gx(c), of_g(c), of_gx(c);  // and the sums of magnitudes
    for (int64_t i = 0; i < shape.n * c; ++i) {
        const int64_t j = i % c;
        const double one =
            left_of_gradient(gradient.values[i], rows.values[i], columns.scale[j], columns.shift[j], has_relu);
        const double product = one * (rows.values[i] - columns.mean[j]) * columns.inverse[j];
        g[j] += one, of_g[j] += std::abs(one);
        gx[j] += product, of_gx[j] += std::abs(product);
    }
    const GradientSums found = call_sums(gradient.view(), rows.view(), columns, has_relu, device);
    for (int64_t j = 0; j < c; ++j) {
        ASSERT_NEAR(found.g[j], g[j], 2e-6 * of_g[j]) << j;
        ASSERT_NEAR(found.gx[j], gx[j], 2e-6 * of_gx[j]) << j;
    }
}

TEST_P(RowNorm, SumsOfGradientsOfEveryShapeAndType) {
    for (DType of_gradient : kFactorTypes)
        for (DType of_rows : kFactorTypes)
            for (const NormShape& shape : kNormShapes)
                compare_sums(shape, of_gradient, of_rows, (shape.n + shape.c) % 2 == 0, device());
    for (const NormShape& shape : kNormLongShapes)
        for (const bool has_relu : {false, true}) compare_sums(shape, DType::f16, DType::f16, has_relu, device());
}

TEST_P(RowNorm, GradientsOfEveryShapeAndTypeAreExact) {
    for (DType of_gradient : kFactorTypes)
        for (DType of_rows : kFactorTypes)
            for (const NormShape& shape : kNormShapes) {
                const bool has_relu = (shape.n + shape.c) % 2 == 0;
                SCOPED_TRACE(fmt::format("{}, gradient of {}", name_of_case(shape, of_rows), name_of(of_gradient)));
                const Factors rows = awkward_factors(shape.n, shape.c, of_rows, device(), 48);
                const Factors gradient = awkward_factors(shape.n, shape.c, of_gradient, device(), 49);
                const SomeColumns columns(shape.c, device());
                const double count = 3.5 * static_cast<double>(shape.n);
                WrittenMatrix out(shape.n, shape.c, of_rows, device());
                ops::norm_backward_rows(gradient.view(), rows.view(), columns.view(), columns.sum_g.view(),
                                        columns.sum_gx.view(), count, has_relu, out.view());
                std::vector<float> wanted(rows.values.size());
                for (size_t i = 0; i < wanted.size(); ++i) {
                    const auto j = static_cast<int64_t>(i) % shape.c;
                    const auto x = static_cast<float>(rows.values[i]);
                    const auto g = static_cast<float>(
                        left_of_gradient(gradient.values[i], x, columns.scale[j], columns.shift[j], has_relu));
                    const auto constant = static_cast<float>(columns.sum_g[j] * (1 / count));
                    const auto slope = static_cast<float>(columns.sum_gx[j] * (1 / count) * columns.inverse[j]);
                    const float along = (x - columns.mean[j]) * slope;
                    wanted[i] = columns.scale[j] * ((g - constant) - along);
                }
                expect_exact_numbers(out.values(), wanted, of_rows);
            }
}

/// All four together, against differences of a loss that is written down in double.
TEST_P(RowNorm, GradientsAreThoseOfFiniteDifferences) {
    const int64_t n = 11, c = 5;
    const double epsilon = 1e-3;
    for (const bool has_relu : {false, true}) {
        const Factors rows = real_factors(n, c, DType::f32, device(), 50);
        const Factors weight = real_factors(n, c, DType::f32, device(), 51);
        const std::vector<float> gamma = {1.5f, -0.5f, 0.75f, 2, 1}, beta = {0.1f, 0.2f, -0.3f, 0, 0.4f};
        const auto loss = [&](const std::vector<double>& x) {
            const StatisticsOracle all(x, n, c);
            double sum = 0;
            for (int64_t i = 0; i < n * c; ++i) {
                const int64_t j = i % c;
                const double y = (x[i] - all.mean[j]) / std::sqrt(all.variance[j] + epsilon) * gamma[j] + beta[j];
                sum += weight.values[i] * (has_relu && y < 0 ? 0 : y);
            }
            return sum;
        };
        const ColumnStatistics found = call_statistics(rows.view(), device());
        const auto of_columns = [&](const std::function<double(size_t)>& number) {
            return ColumnNumbers(c, device(),
                                 [&](int64_t j) { return static_cast<float>(number(static_cast<size_t>(j))); });
        };
        const auto inverse_at = [&](size_t j) { return 1 / std::sqrt(found.variance[j] + epsilon); };
        const auto mean = of_columns([&](size_t j) { return found.mean[j]; });
        const auto inverse = of_columns(inverse_at);
        const auto scale = of_columns([&](size_t j) { return gamma[j] * inverse_at(j); });
        const auto shift = of_columns([&](size_t j) { return beta[j] - found.mean[j] * gamma[j] * inverse_at(j); });
        const NormColumns columns = {mean.view(), inverse.view(), scale.view(), shift.view()};
        Array<float, 1> sum_g({c}, device()), sum_gx({c}, device());
        WrittenMatrix out(n, c, DType::f32, device());
        ops::norm_backward_sums(weight.view(), rows.view(), columns, has_relu, sum_g.view(), sum_gx.view());
        ops::norm_backward_rows(weight.view(), rows.view(), columns, sum_g.view(), sum_gx.view(), n, has_relu,
                                out.view());
        const std::vector<double> gradient = out.values();
        for (size_t i = 0; i < gradient.size(); ++i)
            ASSERT_NEAR(gradient[i], central_difference(loss, rows.values, i, 1e-6), 2e-4) << i;
    }
}

/// Widths that vectors would take, at addresses that they do not.
TEST_P(RowNorm, MatricesThatBeginAnywhere) {
    const int64_t n = 300, c = 64, count = n * c;
    for (DType dtype : kFactorTypes) {
        SCOPED_TRACE(name_of(dtype));
        const Factors longer = real_factors(1, count + 1, dtype, device(), 52);
        const std::vector<double> values(longer.values.begin() + 1, longer.values.end());
        const auto behind_one = [&](const auto& view) {
            using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(view.data)>>,
                                            const std::byte, std::byte>;
            auto moved = view;
            moved.data = static_cast<Byte*>(view.data) + size_of(dtype);
            moved.rows = n, moved.columns = c;
            return moved;
        };
        const MatrixView rows = behind_one(longer.view());
        const SomeColumns columns(c, device());
        expect_near_statistics(call_statistics(rows, device()), StatisticsOracle(values, n, c), 1e-5);
        WrittenMatrix out(1, count + 1, dtype, device());
        ops::normalise_rows(rows, columns.scale.view(), columns.shift.view(), true, behind_one(out.view()));
        std::vector<double> found = out.values();
        found.erase(found.begin());
        expect_exact_numbers(found, normalised(values, columns, c, true), dtype);

        const Factors aligned = real_factors(n, c, dtype, device(), 53);
        WrittenMatrix straight(n, c, dtype, device());
        const auto backward = [&](const ops::MutableMatrixView& to) {
            ops::norm_backward_rows(aligned.view(), rows, columns.view(), columns.sum_g.view(), columns.sum_gx.view(),
                                    n, true, to);
        };
        backward(straight.view());
        backward(behind_one(out.view()));
        found = out.values();
        found.erase(found.begin());
        EXPECT_EQ(found, straight.values());
    }
}

TEST_P(RowNorm, NoRowsAndNoColumns) {
    for (const NormShape& shape : {NormShape{0, 8}, {0, 3}, {5, 0}, {0, 0}}) {
        SCOPED_TRACE(name_of_case(shape, DType::f16));
        const Factors rows = real_factors(shape.n, shape.c, DType::f16, device(), 54);
        const SomeColumns columns(shape.c, device());
        WrittenMatrix out(shape.n, shape.c, DType::f16, device());
        ops::normalise_rows(rows.view(), columns.scale.view(), columns.shift.view(), true, out.view());
        ops::norm_backward_rows(rows.view(), rows.view(), columns.view(), columns.sum_g.view(), columns.sum_gx.view(),
                                1, true, out.view());
        EXPECT_TRUE(out.values().empty());
        const GradientSums sums = call_sums(rows.view(), rows.view(), columns, true, device());
        EXPECT_EQ(sums.g, std::vector<float>(static_cast<size_t>(shape.c)));
        EXPECT_EQ(sums.gx, std::vector<float>(static_cast<size_t>(shape.c)));
        if (shape.n > 0) {
            EXPECT_TRUE(call_statistics(rows.view(), device()).mean.empty());
        }
    }
}

TEST_P(RowNorm, TheSameBitsAgain) {
    for (const NormShape& shape : {NormShape{50'000, 64}, {50'000, 7}, {90, 512}}) {
        const Factors rows = real_factors(shape.n, shape.c, DType::f16, device(), 55);
        const Factors gradient = real_factors(shape.n, shape.c, DType::f16, device(), 56);
        const SomeColumns columns(shape.c, device());
        const ColumnStatistics once = call_statistics(rows.view(), device());
        const GradientSums sums = call_sums(gradient.view(), rows.view(), columns, true, device());
        for (int i = 0; i < 3; ++i) {
            const ColumnStatistics again = call_statistics(rows.view(), device());
            const GradientSums sums_again = call_sums(gradient.view(), rows.view(), columns, true, device());
            expect_same_bits(once.mean, again.mean);
            expect_same_bits(once.variance, again.variance);
            expect_same_bits(sums.g, sums_again.g);
            expect_same_bits(sums.gx, sums_again.gx);
        }
    }
}

TEST(RowNormCpu, TheSameBitsOnAnyNumberOfThreads) {
    const NormShape shape = {9'001, 37};
    const int before = threads();
    for (DType dtype : kFactorTypes) {
        const Factors rows = real_factors(shape.n, shape.c, dtype, {}, 57);
        const Factors gradient = real_factors(shape.n, shape.c, dtype, {}, 58);
        const SomeColumns columns(shape.c, {});
        std::vector<std::vector<float>> first;
        std::vector<uint16_t> first_bits;
        for (int count : {1, 2, 7}) {
            set_threads(count);
            const ColumnStatistics statistics = call_statistics(rows.view(), {});
            const GradientSums sums = call_sums(gradient.view(), rows.view(), columns, true, {});
            WrittenMatrix out(shape.n, shape.c, dtype, {});
            ops::norm_backward_rows(gradient.view(), rows.view(), columns.view(), columns.sum_g.view(),
                                    columns.sum_gx.view(), 9'001, true, out.view());
            const std::vector<std::vector<float>> all = {statistics.mean, statistics.variance, sums.g, sums.gx};
            if (count == 1) first = all, first_bits = out.bits();
            for (size_t i = 0; i < all.size(); ++i) expect_same_bits(all[i], first[i]);
            expect_same_bits(out.bits(), first_bits);
        }
        set_threads(before);
    }
}

TEST(RowNormCpu, SaysWhatIsWrong) {
    const Array<float, 2> matrix({6, 4}), wider({6, 5});
    Array<float, 1> mean({4}), variance({4}), three({3});
    Array<float, 2> out({6, 4}), short_out({5, 4});
    const MatrixView rows(matrix.view());
    const View<const float, 1> some = std::as_const(mean).view();
    const NormColumns columns = {some, some, some, some};
    const auto statistics = [&](const MatrixView& x, View<float, 1> a, View<float, 1> b) {
        return bad_argument_of([&] { ops::column_statistics(x, a, b); });
    };
    EXPECT_EQ(statistics(rows, three.view(), variance.view()), "column_statistics: mean must be [4], got [3]");
    EXPECT_EQ(statistics(rows, mean.view(), three.view()), "column_statistics: variance must be [4], got [3]");
    EXPECT_EQ(statistics({matrix.data(), DType::f32, 0, 4, {}}, mean.view(), variance.view()),
              "column_statistics: no rows, which have no mean");
    EXPECT_EQ(statistics({matrix.data(), DType::f64, 6, 4, {}}, mean.view(), variance.view()),
              "column_statistics: rows must be float32, float16 or bfloat16, got float64");
    EXPECT_EQ(statistics({matrix.data(), DType::f32, 6, 4, kFakeCuda}, mean.view(), variance.view()),
              "column_statistics: points on cuda:0, mean on cpu");
    EXPECT_EQ(statistics({matrix.data(), DType::f32, 6, -4, {}}, mean.view(), variance.view()),
              "column_statistics: rows of shape [6, -4]");

    EXPECT_EQ(bad_argument_of([&] { ops::normalise_rows(rows, some, some, true, short_out.view()); }),
              "normalise_rows: out must be [6, 4], got [5, 4]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::normalise_rows(rows, some, some, true, {out.data(), DType::i16, 6, 4, {}});
              }),
              "normalise_rows: out must be float32, float16 or bfloat16, got int16");
    EXPECT_EQ(bad_argument_of([&] { ops::normalise_rows(rows, some, three.view(), true, out.view()); }),
              "normalise_rows: shift must be [4], got [3]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::MutableMatrixView(View<float, 2>(out.data(), {3, 2}, {4, 1}));
              }),
              "a matrix of [3, 2] numbers must be contiguous");

    EXPECT_EQ(bad_argument_of(
                  [&] { ops::norm_backward_sums(wider.view(), rows, columns, true, mean.view(), variance.view()); }),
              "norm_backward_sums: dL_dout must be [6, 4], got [6, 5]");
    EXPECT_EQ(bad_argument_of([&] {
                  const NormColumns bad = {some, three.view(), some, some};
                  ops::norm_backward_sums(rows, rows, bad, true, mean.view(), variance.view());
              }),
              "norm_backward_sums: inverse must be [4], got [3]");
    const auto backward = [&](double count, const ops::MutableMatrixView& to) {
        return bad_argument_of([&] { ops::norm_backward_rows(rows, rows, columns, some, some, count, true, to); });
    };
    EXPECT_EQ(backward(0, out.view()), "norm_backward_rows: a count of 0 rows");
    EXPECT_EQ(backward(kNan, out.view()), "norm_backward_rows: a count of nan rows");
    EXPECT_EQ(backward(6, {out.data(), DType::f16, 6, 4, {}}),
              "norm_backward_rows: rows of float32, dL_drows of float16");
    EXPECT_EQ(backward(6, {out.data(), DType::f32, 6, 4, kFakeCuda}),
              "norm_backward_rows: points on cpu, dL_drows on cuda:0");
}

TEST(RowNormCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const Factors rows = real_factors(6, 8, DType::f16, {}, 59), gradient = real_factors(6, 8, DType::bf16, {}, 60);
    const SomeColumns columns(8, {});
    Array<float, 1> first({8}), second({8});
    Array<uint16_t, 1> out({48});
    const ops::MutableMatrixView to(out.data(), DType::f16, 6, 8, {});
    const int before = threads();
    set_threads(1);
    const auto run = [&] {
        ops::column_statistics(rows.view(), first.view(), second.view());
        ops::normalise_rows(rows.view(), columns.scale.view(), columns.shift.view(), true, to);
        ops::norm_backward_sums(gradient.view(), rows.view(), columns.view(), true, first.view(), second.view());
        ops::norm_backward_rows(gradient.view(), rows.view(), columns.view(), columns.sum_g.view(),
                                columns.sum_gx.view(), 6, true, to);
    };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
    set_threads(before);
}

}  // namespace
}  // namespace stipple::test
