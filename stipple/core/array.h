#pragma once
// Array: owned, contiguous elements of known type and rank on one device. Copies are explicit: clone(), to().

#include <span>

#include "stipple/core/buffer.h"
#include "stipple/core/view.h"

namespace stipple {

template <class T, int Rank>
class Array {
public:
    using Shape = std::array<int64_t, Rank>;

    Array() = default;

    /// Uninitialised. Throws Error{out_of_memory}, or Error{bad_argument} for a negative or overflowing shape.
    explicit Array(Shape shape, Device device = {}) : Array(Buffer(bytes_of(shape), device), shape) {}

    /// Takes over a buffer of at least the shape's bytes.
    Array(Buffer buffer, Shape shape) : buffer_(std::move(buffer)), shape_(shape) {
        STIPPLE_REQUIRE(buffer_.bytes() >= bytes_of(shape), "{} bytes for shape {}", buffer_.bytes(),
                        shape_text(shape.data(), Rank));
    }

    T* data() { return reinterpret_cast<T*>(buffer_.data()); }
    const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }
    const Shape& shape() const { return shape_; }
    int64_t size(int dimension) const { return shape_[dimension]; }
    int64_t elements() const { return view().elements(); }
    Device device() const { return buffer_.device(); }

    View<T, Rank> view() { return {data(), shape_, device()}; }
    View<const T, Rank> view() const { return {data(), shape_, device()}; }
    std::span<T> span() { return {data(), static_cast<size_t>(elements())}; }
    std::span<const T> span() const { return {data(), static_cast<size_t>(elements())}; }

    Array clone() const { return {buffer_.clone(), shape_}; }
    Array to(Device device) const { return {buffer_.to(device), shape_}; }

private:
    static int64_t bytes_of(Shape shape) {
        // The view's rules first: an array that could be made but not viewed would be of no use.
        return checked_mul(View<T, Rank>(nullptr, shape).elements(), sizeof(T));
    }

    Buffer buffer_;
    Shape shape_{};
};

}  // namespace stipple
