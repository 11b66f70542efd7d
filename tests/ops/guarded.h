#pragma once
// Outputs with sentinels on both sides: a write out of bounds is seen on any device.

#include <cstring>

#include "tests/ops/ops.h"

namespace stipple::test {

template <class T>
class Guarded {
public:
    Guarded(int64_t count, Device device) : count_(count) {
        Array<T, 1> host({count + 2 * kGuard});
        std::memset(static_cast<void*>(host.data()), kByte, host.elements() * sizeof(T));
        all_ = host.to(device);
    }

    View<T, 1> view() { return {all_.data() + kGuard, {count_}, all_.device()}; }
    View<T, 2> rows(int64_t columns) { return {all_.data() + kGuard, {count_ / columns, columns}, all_.device()}; }

    /// The output, once the device is done; a test failure when anything around it has changed.
    std::vector<T> values() const {
        const Array<T, 1> host = all_.to(Device{});
        const auto* bytes = reinterpret_cast<const unsigned char*>(host.data());
        const int64_t guard = kGuard * sizeof(T), end = (kGuard + count_) * sizeof(T);
        for (int64_t i = 0; i < guard; ++i) {
            EXPECT_EQ(bytes[i], kByte) << "before the output";
            EXPECT_EQ(bytes[end + i], kByte) << "behind the output";
            if (bytes[i] != kByte || bytes[end + i] != kByte) break;
        }
        return std::vector<T>(host.data() + kGuard, host.data() + kGuard + count_);
    }

private:
    static constexpr int64_t kGuard = 16;
    static constexpr unsigned char kByte = 0x5a;
    int64_t count_;
    Array<T, 1> all_;
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
