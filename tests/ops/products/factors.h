#pragma once
// Matrices for the tests of products: of every type, as they were rounded, and with NaN around them.

#include <cstring>
#include <functional>
#include <vector>

#include "stipple/core/half.h"
#include "stipple/core/rng.h"
#include "stipple/ops/matrix_view.h"
#include "tests/ops/guarded.h"
#include "tests/support/not_finite.h"

namespace stipple::test {

inline constexpr DType kFactorTypes[] = {DType::f32, DType::f16, DType::bf16};

/// A matrix of a type on a device, and the numbers that it holds as they were rounded. NaN before and behind it:
/// whoever reads too far finds them.
class Factors {
public:
    Factors(int64_t rows, int64_t columns, DType dtype, Device device, const std::function<float(int64_t)>& number)
        : values(static_cast<size_t>(rows * columns)), rows_(rows), columns_(columns), dtype_(dtype) {
        const int64_t words = size_of(dtype) / 2, count = rows * columns;
        Array<uint16_t, 1> bits({(count + 2 * kMargin) * words});
        for (int64_t i = -kMargin; i < count + kMargin; ++i) {
            const float x = i < 0 || i >= count ? kNan : number(i);
            uint16_t* at = bits.data() + (i + kMargin) * words;
            if (dtype == DType::f32) std::memcpy(at, &x, sizeof x);
            if (dtype == DType::f16) *at = float_to_half(x);
            if (dtype == DType::bf16) *at = float_to_bfloat16(x);
            if (i >= 0 && i < count) values[i] = load_as_double(dtype, at);
        }
        memory_ = bits.to(device);
    }
    ops::MatrixView view() const {
        return {memory_.data() + kMargin * (size_of(dtype_) / 2), dtype_, rows_, columns_, memory_.device()};
    }
    std::vector<double> values;

private:
    static constexpr int64_t kMargin = 64;  // numbers; keeps the alignment
    int64_t rows_, columns_;
    DType dtype_;
    Array<uint16_t, 1> memory_;
};

/// Whole numbers from -most to most: their products and sums are exact in every type, and many are equal.
inline Factors whole_factors(int64_t rows, int64_t columns, DType dtype, Device device, uint64_t seed, int most = 2) {
    const Rng rng(seed, 55);
    return {rows, columns, dtype, device,
            [&, most](int64_t i) { return static_cast<float>(static_cast<int>(rng.below(i, 2 * most + 1)) - most); }};
}
inline Factors real_factors(int64_t rows, int64_t columns, DType dtype, Device device, uint64_t seed) {
    const Rng rng(seed, 56);
    return {rows, columns, dtype, device, [&](int64_t i) { return rng.normal(i); }};
}

/// A matrix of a type to be written, between margins, and its numbers.
class WrittenMatrix {
public:
    WrittenMatrix(int64_t rows, int64_t columns, DType dtype, Device device)
        : rows_(rows), columns_(columns), dtype_(dtype), bits_(rows * columns * (size_of(dtype) / 2), device) {}
    ops::MutableMatrixView view() { return {bits_.view().data(), dtype_, rows_, columns_, bits_.view().device()}; }
    std::vector<uint16_t> bits() const { return bits_.values(); }
    std::vector<double> values() const {
        const std::vector<uint16_t> all = bits();
        const size_t words = static_cast<size_t>(size_of(dtype_) / 2);
        std::vector<double> numbers(all.size() / words);
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = load_as_double(dtype_, all.data() + i * words);
        return numbers;
    }

private:
    int64_t rows_, columns_;
    DType dtype_;
    Guarded<uint16_t> bits_;
};

/// A number as a matrix of a type stores it.
inline float rounded_to(DType dtype, float x) {
    if (dtype == DType::f16) return half_to_float(float_to_half(x));
    if (dtype == DType::bf16) return bfloat16_to_float(float_to_bfloat16(x));
    return x;
}

}  // namespace stipple::test
