#pragma once
// What the tests of training ops share: numbers of a type on a device, between margins.

#include <cstring>
#include <functional>
#include <vector>

#include "stipple/core/half.h"
#include "tests/ops/ops.h"

namespace stipple::test {

inline constexpr DType kNumberTypes[] = {DType::f32, DType::f16, DType::bf16};

/// x rounded to a type, as its bits.
inline uint32_t bits_of(float x, DType dtype) {
    if (dtype == DType::f16) return float_to_half(x);
    if (dtype == DType::bf16) return float_to_bfloat16(x);
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

/// Numbers of a type, `shift` of them behind an address that is a multiple of 16 bytes. The margins are NaN, which
/// whoever reads too far finds, and must stay as they are.
class TypedNumbers {
public:
    TypedNumbers(int64_t count, DType dtype, Device device, const std::function<float(int64_t)>& number,
                 int64_t shift = 0)
        : count_(count), shift_(shift), dtype_(dtype) {
        Array<uint8_t, 1> host({(count + 2 * kMargin) * size()});
        std::memset(host.data(), kByte, static_cast<size_t>(host.elements()));
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t bits = bits_of(number(i), dtype);
            std::memcpy(host.data() + at(i), &bits, static_cast<size_t>(size()));
        }
        memory_ = host.to(device);
    }

    void* data() { return memory_.data() + at(0); }
    const void* data() const { return memory_.data() + at(0); }
    int64_t count() const { return count_; }
    DType dtype() const { return dtype_; }

    /// The bits of each number, once the device is done.
    std::vector<uint32_t> bits() const {
        const Array<uint8_t, 1> host = memory_.to(Device{});
        for (int64_t i = 0; i < host.elements(); ++i)
            if (i < at(0) || i >= at(count_)) {
                EXPECT_EQ(host.data()[i], kByte) << "written at byte " << i - at(0) << " of " << at(count_) - at(0);
                if (host.data()[i] != kByte) break;
            }
        std::vector<uint32_t> result(static_cast<size_t>(count_));
        for (int64_t i = 0; i < count_; ++i)
            std::memcpy(&result[static_cast<size_t>(i)], host.data() + at(i), static_cast<size_t>(size()));
        return result;
    }
    std::vector<double> values() const {
        std::vector<double> result;
        for (const uint32_t one : bits()) result.push_back(load_as_double(dtype_, &one));
        return result;
    }

private:
    static constexpr int64_t kMargin = 64;  // numbers; keeps the alignment
    static constexpr uint8_t kByte = 0xff;
    int64_t size() const { return size_of(dtype_); }
    int64_t at(int64_t i) const { return (kMargin + shift_ + i) * size(); }

    int64_t count_, shift_;
    DType dtype_;
    Array<uint8_t, 1> memory_;
};

/// Bits that agree, or are both of NaN.
inline void expect_same_numbers(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, DType dtype) {
    ASSERT_EQ(a.size(), b.size());
    const auto is_nan = [&](uint32_t bits) {
        const double x = load_as_double(dtype, &bits);
        return x != x;
    };
    for (size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i] == b[i] || (is_nan(a[i]) && is_nan(b[i])))
            << "number " << i << " of " << a.size() << ", " << name_of(dtype) << ": " << load_as_double(dtype, &a[i])
            << " and " << load_as_double(dtype, &b[i]);
}

}  // namespace stipple::test
