#include "stipple/ops/dropout.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/ops/guarded.h"
#include "tests/ops/training/typed_numbers.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::MatrixView;

class Dropout : public OnDevice {
protected:
    /// The op's answer, from between margins.
    std::vector<uint32_t> call(const TypedNumbers& x, int64_t rows, float rate, uint64_t key, int64_t step,
                               int64_t first, int64_t shift = 0) const {
        TypedNumbers out(
            x.count(), x.dtype(), device(), [](int64_t) { return 9.0f; }, shift);
        const Array<int64_t, 1> step_there = array_of<int64_t>({step}, device());
        ops::dropout({x.data(), x.dtype(), rows, rows == 0 ? 0 : x.count() / rows, device()}, rate, key,
                     step_there.data(), first, out.data());
        return out.bits();
    }
};
STIPPLE_ON_EVERY_DEVICE(Dropout);

float drawn_number(int64_t i) {
    return Rng(3, 91).normal(static_cast<uint64_t>(i));
}

/// What the header says.
std::vector<uint32_t> dropped_by_rule(const TypedNumbers& x, float rate, uint64_t key, int64_t step, int64_t first) {
    const Rng rng(key, static_cast<uint64_t>(step));
    const auto factor = static_cast<float>(1 / (1 - static_cast<double>(rate)));
    std::vector<uint32_t> expected;
    uint64_t index = static_cast<uint64_t>(first);
    for (const double number : x.values())
        expected.push_back(
            bits_of(static_cast<float>(number) * (rng.uniform(index++) >= rate ? factor : 0.0f), x.dtype()));
    return expected;
}

TEST_P(Dropout, KeepsWhatTheGeneratorSays) {
    for (const DType dtype : kNumberTypes)
        for (const int64_t count : {0, 1, 3, 7, 8, 9, 64, 2047, 2048, 5003})
            for (const int64_t first :
                 {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{400}, (int64_t{1} << 40) + 6})
                for (const int64_t shift : {0, 1}) {
                    SCOPED_TRACE(
                        fmt::format("{} numbers of {} from {}, shifted by {}", count, name_of(dtype), first, shift));
                    const TypedNumbers x(count, dtype, device(), drawn_number, shift);
                    expect_same_numbers(call(x, count == 0 ? 0 : 1, 0.3f, 11, 5, first, shift),
                                        dropped_by_rule(x, 0.3f, 11, 5, first), dtype);
                }
}

/// Input and output aligned differently, several rows, rates at the ends, keys and steps of 64 bits.
TEST_P(Dropout, TakesEveryRateKeyAndStep) {
    const TypedNumbers x(4096, DType::f16, device(), drawn_number);
    for (const float rate : {0.0f, 0x1p-25f, 1e-3f, 0.5f, 0.7f, 1 - 0x1p-24f})
        for (const uint64_t key : {uint64_t{0}, uint64_t{0x123456789abcdef0}})
            for (const int64_t step : {int64_t{0}, int64_t{1}, int64_t{1} << 33, int64_t{-1}}) {
                SCOPED_TRACE(fmt::format("rate {}, key {}, step {}", rate, key, step));
                expect_same_numbers(call(x, 64, rate, key, step, 12, 3), dropped_by_rule(x, rate, key, step, 12),
                                    DType::f16);
            }
}

TEST_P(Dropout, DropsItsShareAndKeepsTheMean) {
    const int64_t count = 200'000;
    const TypedNumbers ones(count, DType::f32, device(), [](int64_t) { return 1.0f; });
    std::vector<uint32_t> before;
    for (const int64_t step : {1, 2}) {
        const std::vector<uint32_t> bits = call(ones, 100, 0.3f, 4, step, 0);
        double sum = 0;
        for (const uint32_t one : bits) sum += load_as_double(DType::f32, &one);
        EXPECT_NEAR(sum / count, 1, 0.008);
        EXPECT_NE(bits, before) << "another step draws another mask";
        before = bits;
    }
}

TEST_P(Dropout, PartsDrawWhatTheWholeDraws) {
    for (const DType dtype : kNumberTypes) {
        const TypedNumbers whole(3000, dtype, device(), drawn_number);
        const std::vector<uint32_t> all = call(whole, 30, 0.4f, 8, 2, 100);
        std::vector<uint32_t> parts;
        for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 1000}, {1000, 1}, {1001, 1999}}) {
            const TypedNumbers part(count, dtype, device(),
                                    [from = begin](int64_t i) { return drawn_number(from + i); });
            const std::vector<uint32_t> some = call(part, 1, 0.4f, 8, 2, 100 + begin);
            parts.insert(parts.end(), some.begin(), some.end());
        }
        expect_same_numbers(all, parts, dtype);
    }
}

TEST_P(Dropout, WorksInPlace) {
    for (const DType dtype : kNumberTypes) {
        TypedNumbers x(2500, dtype, device(), drawn_number);
        const std::vector<uint32_t> expected = dropped_by_rule(x, 0.25f, 1, 1, 0);
        const Array<int64_t, 1> step = array_of<int64_t>({1}, device());
        ops::dropout({x.data(), dtype, 25, 100, device()}, 0.25f, 1, step.data(), 0, x.data());
        expect_same_numbers(x.bits(), expected, dtype);
    }
}

TEST_P(Dropout, WhatIsNotFiniteIsSeen) {
    for (const DType dtype : kNumberTypes) {
        const TypedNumbers x(64, dtype, device(), [](int64_t i) {
            const float kinds[] = {kNan, kInfinity, -kInfinity, -1};
            return kinds[i % 4];
        });
        const std::vector<uint32_t> bits = call(x, 8, 0.5f, 3, 3, 0);
        const Rng rng(3, 3);
        int dropped = 0;
        for (size_t i = 0; i < bits.size(); ++i) {
            const double y = load_as_double(dtype, &bits[i]);
            const bool is_kept = rng.uniform(i) >= 0.5f;
            dropped += !is_kept;
            if (i % 4 == 0 || (i % 4 < 3 && !is_kept)) {
                EXPECT_TRUE(std::isnan(y)) << i;
            } else if (i % 4 < 3) {
                EXPECT_TRUE(std::isinf(y) && (y > 0) == (i % 4 == 1)) << i;
            } else {
                EXPECT_EQ(y, is_kept ? -2 : 0) << i;
            }
        }
        EXPECT_GT(dropped, 16);
    }
}

TEST(DropoutCpu, TheSameBitsOnAnyNumberOfThreads) {
    const int64_t rows = 300, c = 211, step = 9;
    expect_same_on_threads([&] {
        const Array<float, 2> x = make_features(rows, c);
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{rows, c});
        ops::dropout(x.view(), 0.3f, 5, &step, 3, results[0].data());
        return results;
    });
}

TEST(DropoutCpu, SaysWhatIsWrong) {
    Array<float, 2> x = make_features(3, 4);
    const int64_t step = 0;
    const auto complaint = [&](const MatrixView& matrix, float rate, const int64_t* at, int64_t first, void* out) {
        return bad_argument_of([&] { ops::dropout(matrix, rate, 0, at, first, out); });
    };
    const MatrixView view = std::as_const(x).view();
    EXPECT_EQ(complaint({x.data(), DType::f64, 3, 4, {}}, 0.5f, &step, 0, x.data()),
              "dropout: x must be float32, float16 or bfloat16, got float64");
    EXPECT_EQ(complaint({x.data(), DType::f32, -3, 4, {}}, 0.5f, &step, 0, x.data()),
              "dropout: x must be [rows, c], got [-3, 4]");
    EXPECT_EQ(complaint(view, 1, &step, 0, x.data()), "dropout: rate must be at least 0 and below 1, got 1");
    EXPECT_EQ(complaint(view, -0.5f, &step, 0, x.data()), "dropout: rate must be at least 0 and below 1, got -0.5");
    EXPECT_EQ(complaint(view, kNan, &step, 0, x.data()), "dropout: rate must be at least 0 and below 1, got nan");
    EXPECT_EQ(complaint(view, 0.5f, &step, -1, x.data()), "dropout: first must be at least 0, got -1");
    EXPECT_EQ(complaint(view, 0.5f, nullptr, 0, x.data()), "dropout: no step");
    EXPECT_EQ(complaint(view, 0.5f, &step, 0, nullptr), "dropout: no memory for 12 numbers");
}

}  // namespace
}  // namespace stipple::test
