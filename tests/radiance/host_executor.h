#pragma once
// Runs the operations of the step-by-step reference as loops, so that all of it but its kernels is tested without a
// GPU.

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "stipple/radiance/cuda/reference/memory.h"
#include "stipple/radiance/train.h"

namespace stipple::radiance::reference {

class HostExecutor {
public:
    template <class T>
    class Array {
    public:
        Array() = default;
        explicit Array(std::vector<T> values) : values_(std::move(values)) {}
        Array(Array&&) noexcept = default;
        Array& operator=(Array&&) noexcept = default;
        T* get() const { return values_.empty() ? nullptr : const_cast<T*>(values_.data()); }
        int64_t count() const { return static_cast<int64_t>(values_.size()); }
        const std::vector<T>& values() const { return values_; }

    private:
        std::vector<T> values_;
    };

    /// Filled with what no operation may read.
    template <class T>
    Array<T> make(int64_t n) {
        std::vector<T> values(static_cast<size_t>(n));
        std::memset(static_cast<void*>(values.data()), 0x7f, values.size() * sizeof(T));
        return Array<T>(std::move(values));
    }
    template <class T>
    Array<T> upload(const std::vector<T>& values) {
        return Array<T>(values);
    }
    template <class T>
    std::vector<T> download(const Array<T>& array) {
        return array.values();
    }
    template <class Body>
    void each(std::string_view, int64_t n, const Body& body) {
        for (int64_t i = n; i-- > 0;) body(i);  // in any order
    }
    template <class T>
    void clear(std::string_view, Array<T>& array, int64_t n) {
        std::fill_n(array.get(), n, T{});
    }
    int64_t choose(std::string_view, const uint8_t* flags, int64_t n, int32_t* list) {
        int64_t count = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (flags[i]) list[count++] = static_cast<int32_t>(i);
        }
        return count;
    }
    int64_t sum_before(std::string_view, const int32_t* counts, int64_t n, int32_t* sums) {
        int32_t sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            sums[i] = sum;
            sum += counts[i];
        }
        return sum;
    }
    void multiply(std::string_view, const Product& p) {
        const int64_t each = (p.inner + p.slices - 1) / p.slices;
        for (int64_t slice = 0; slice < p.slices; ++slice) {
            for (int64_t row = 0; row < p.rows; ++row) {
                for (int64_t column = 0; column < p.columns; ++column) {
                    float sum = 0;
                    for (int64_t k = slice * each; k < std::min((slice + 1) * each, p.inner); ++k) {
                        sum += p.a[row * p.a_row + k * p.a_inner] * p.b[k * p.b_inner + column * p.b_column];
                    }
                    p.c[(slice * p.rows + row) * p.columns + column] = sum;
                }
            }
        }
    }
    void add_all(std::string_view, const float* values, int64_t n, double* to) {
        for (int64_t i = 0; i < n; ++i) *to += double{values[i]};
    }
    void wait() {}
    int64_t bytes() const { return 0; }
    int64_t peak_bytes() const { return 0; }
    void begin_profile() {}
    std::vector<StepPart> end_profile() { return {}; }
};

}  // namespace stipple::radiance::reference
