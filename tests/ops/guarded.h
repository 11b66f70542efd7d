#pragma once
// Outputs between margins: a write out of bounds is seen on any device. The only such class of the tests of ops.

#include <array>
#include <cstring>
#include <vector>

#include "tests/ops/ops.h"

namespace stipple::test {

/// An output on a device between two margins of a known byte pattern. Reading it back is a test failure when a margin
/// was written to.
template <class T, int Rank = 1>
class Guarded {
public:
    Guarded(std::array<int64_t, Rank> shape, Device device) : shape_(shape) {
        int64_t elements = 1;
        for (const int64_t extent : shape) elements *= extent;
        Array<T, 1> host({elements + 2 * kMargin});
        std::memset(static_cast<void*>(host.data()), kByte, host.elements() * sizeof(T));
        memory_ = host.to(device);
    }
    Guarded(int64_t count, Device device) requires(Rank == 1) : Guarded(std::array<int64_t, 1>{count}, device) {}

    View<T, Rank> view() { return {memory_.data() + kMargin, shape_, memory_.device()}; }
    View<const T, Rank> view() const { return {memory_.data() + kMargin, shape_, memory_.device()}; }
    /// The same memory as rows of `columns`.
    View<T, 2> rows(int64_t columns) requires(Rank == 1) {
        return {memory_.data() + kMargin, {shape_[0] / columns, columns}, memory_.device()};
    }

    /// The output on the CPU, once the device is done.
    Array<T, Rank> get() const {
        const Array<T, 1> host = memory_.to(Device{});
        const auto* bytes = reinterpret_cast<const unsigned char*>(host.data());
        const int64_t margin = kMargin * sizeof(T), all = host.elements() * sizeof(T);
        for (int64_t i = 0; i < margin; ++i) {
            EXPECT_EQ(bytes[i], kByte) << "written " << margin - i << " bytes before the output";
            EXPECT_EQ(bytes[all - margin + i], kByte) << "written " << i << " bytes behind the output";
            if (bytes[i] != kByte || bytes[all - margin + i] != kByte) break;
        }
        Array<T, Rank> result(shape_);
        if (result.elements() > 0)
            std::memcpy(result.data(), host.data() + kMargin, static_cast<size_t>(result.elements()) * sizeof(T));
        return result;
    }
    std::vector<T> values() const {
        const Array<T, Rank> result = get();
        return {result.span().begin(), result.span().end()};
    }

private:
    static constexpr int64_t kMargin = 64;  // elements; keeps 16-byte alignment
    static constexpr unsigned char kByte = 0xA5;
    std::array<int64_t, Rank> shape_;
    Array<T, 1> memory_;
};

template <class T>
Array<T, 1> array_of(const std::vector<T>& values, Device device = {}) {
    Array<T, 1> host({static_cast<int64_t>(values.size())});
    if (!values.empty()) std::memcpy(host.data(), values.data(), values.size() * sizeof(T));
    return host.to(device);
}

/// Same bytes: NaN equals NaN, -0 does not equal 0.
template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace stipple::test
