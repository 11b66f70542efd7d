#pragma once
// Attribute: a named column of per-point (or per-face) values of any element type.
//
// Names that every reader, writer and operation understands:
//   normal     float32 [n, 3]
//   color      uint8, uint16 or float32 (0 to 1), [n, 3] or [n, 4] (with alpha); what full brightness is tells
//              color_maximum()
//   intensity  any type [n, 1]
//   label      any integer type [n, 1]
//   time       float64 [n, 1]
// Any other name is carried along as it is.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/dtype.h"

namespace stipple {

class Attribute {
public:
    Attribute() = default;

    /// Uninitialised values. Throws as Buffer does.
    Attribute(std::string name, DType dtype, int64_t rows, int64_t components, Device device = {});

    /// Takes over a buffer of at least rows * components elements.
    Attribute(std::string name, DType dtype, int64_t rows, int64_t components, Buffer data);

    const std::string& name() const { return name_; }
    void rename(std::string name) { name_ = std::move(name); }
    DType dtype() const { return dtype_; }
    int64_t rows() const { return rows_; }
    int64_t components() const { return components_; }
    int64_t row_bytes() const { return components_ * size_of(dtype_); }
    Device device() const { return data_.device(); }

    std::byte* data() { return data_.data(); }
    const std::byte* data() const { return data_.data(); }

    /// Typed access; throws Error{bad_argument} when T is not the element type.
    template <class T>
    View<T, 2> as() {
        require(dtype_of<T>);
        return {reinterpret_cast<T*>(data_.data()), {rows_, components_}, data_.device()};
    }
    template <class T>
    View<const T, 2> as() const {
        require(dtype_of<T>);
        return {reinterpret_cast<const T*>(data_.data()), {rows_, components_}, data_.device()};
    }

    /// One value, whatever the type; exact except for integers beyond 2^53. CPU only.
    double value(int64_t row, int64_t component = 0) const {
        return load_as_double(dtype_, data_.data() + (row * components_ + component) * size_of(dtype_));
    }

    Attribute clone() const;
    bool operator==(const Attribute& other) const;  // bit for bit, CPU only

private:
    void require(DType dtype) const;

    std::string name_;
    DType dtype_ = DType::f32;
    int64_t rows_ = 0, components_ = 1;
    Buffer data_;
};

using Attributes = std::vector<Attribute>;

/// Null when absent.
const Attribute* find(const Attributes& attributes, std::string_view name);
Attribute* find(Attributes& attributes, std::string_view name);

/// The value of full brightness: 1 for floats, 255 for uint8, and for uint16 65535, or 255 where no red, green or blue
/// exceeds 255: most LAS files hold 8-bit values in their 16-bit fields, and no picture worth seeing is that dark.
/// Looks at all rows, up to the first large one. CPU only.
double color_maximum(const Attribute& color);

/// The rows at `indices`, in that order. Throws Error{bad_argument} for an index out of range. CPU only.
Attribute select(const Attribute& attribute, View<const int32_t, 1> indices);

}  // namespace stipple
