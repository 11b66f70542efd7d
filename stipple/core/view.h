#pragma once
// View: a typed, strided, non-owning window on array memory of known rank, on one device.

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "stipple/core/checked.h"
#include "stipple/core/device.h"

namespace stipple {

std::string shape_text(const int64_t* shape, int rank);  // "[1024, 3]"

template <class T, int Rank>
class View {
public:
    using Shape = std::array<int64_t, Rank>;

    View() = default;

    /// Contiguous, last dimension fastest. Throws Error{bad_argument} for negative or overflowing shapes.
    View(T* data, Shape shape, Device device = {}) : data_(data), shape_(shape), device_(device) {
        int64_t step = 1;
        for (int i = Rank - 1; i >= 0; --i) {
            STIPPLE_REQUIRE(shape[i] >= 0, "negative shape {}", shape_text(shape.data(), Rank));
            strides_[i] = step;
            // An empty dimension empties the view, not the strides; what overflows does so with or without it.
            step = checked_mul(step, shape[i] == 0 ? 1 : shape[i]);
        }
    }

    /// Any strides, in elements. Throws as above.
    View(T* data, Shape shape, Shape strides, Device device = {}) : View(data, shape, device) { strides_ = strides; }

    /// View<float> -> View<const float>.
    template <class U>
    operator View<U, Rank>() const  // NOLINT(google-explicit-constructor)
        requires(!std::is_const_v<T> && std::is_same_v<U, const T>) {
        View<const T, Rank> view;
        view.data_ = data_;
        view.shape_ = shape_;
        view.strides_ = strides_;
        view.device_ = device_;
        return view;
    }

    template <class... Index>
    T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == Rank);
        const int64_t at[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int i = 0; i < Rank; ++i) offset += at[i] * strides_[i];
        return data_[offset];
    }

    T* data() const { return data_; }
    int64_t size(int dimension) const { return shape_[dimension]; }
    int64_t stride(int dimension) const { return strides_[dimension]; }
    const Shape& shape() const { return shape_; }
    Device device() const { return device_; }

    int64_t elements() const {
        int64_t product = 1;
        for (int64_t extent : shape_) product *= extent;
        return product;
    }

    bool is_contiguous() const {
        int64_t step = 1;
        for (int i = Rank - 1; i >= 0; --i) {
            if (shape_[i] > 1 && strides_[i] != step) return false;
            step *= shape_[i] == 0 ? 1 : shape_[i];
        }
        return true;
    }

    /// Rows [begin, end) of the first dimension.
    View slice(int64_t begin, int64_t end) const {
        STIPPLE_REQUIRE(0 <= begin && begin <= end && end <= shape_[0], "rows {} to {} of {}", begin, end, shape_[0]);
        View part = *this;
        part.data_ += begin * strides_[0];
        part.shape_[0] = end - begin;
        return part;
    }

private:
    friend class View<std::remove_const_t<T>, Rank>;

    T* data_ = nullptr;
    Shape shape_{};
    Shape strides_{};
    Device device_;
};

}  // namespace stipple
