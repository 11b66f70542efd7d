#include "stipple/core/attribute.h"

#include <algorithm>
#include <cstring>

namespace stipple {

Attribute::Attribute(std::string name, DType dtype, int64_t rows, int64_t components, Device device)
    : Attribute(
          std::move(name), dtype, rows, components,
          Buffer(checked_mul(checked_mul(std::max<int64_t>(rows, 0), std::max<int64_t>(components, 0)), size_of(dtype)),
                 device)) {}

Attribute::Attribute(std::string name, DType dtype, int64_t rows, int64_t components, Buffer data)
    : name_(std::move(name)), dtype_(dtype), rows_(rows), components_(components), data_(std::move(data)) {
    STIPPLE_REQUIRE(rows >= 0 && components >= 1 && data_.bytes() >= rows * row_bytes(),
                    "attribute {}: {} rows of {} components in {} bytes", name_, rows, components, data_.bytes());
}

void Attribute::require(DType dtype) const {
    STIPPLE_REQUIRE(dtype == dtype_, "attribute {} is {}, not {}", name_, name_of(dtype_), name_of(dtype));
}

Attribute Attribute::clone() const {
    Attribute copy;
    copy.name_ = name_;
    copy.dtype_ = dtype_;
    copy.rows_ = rows_;
    copy.components_ = components_;
    copy.data_ = data_.clone();
    return copy;
}

bool Attribute::operator==(const Attribute& other) const {
    return name_ == other.name_ && dtype_ == other.dtype_ && rows_ == other.rows_ && components_ == other.components_ &&
           (rows_ == 0 || std::memcmp(data(), other.data(), static_cast<size_t>(rows_ * row_bytes())) == 0);
}

const Attribute* find(const Attributes& attributes, std::string_view name) {
    for (const Attribute& attribute : attributes)
        if (attribute.name() == name) return &attribute;
    return nullptr;
}

Attribute* find(Attributes& attributes, std::string_view name) {
    return const_cast<Attribute*>(find(static_cast<const Attributes&>(attributes), name));
}

double color_maximum(const Attribute& color) {
    if (color.dtype() == DType::u8) return 255;
    if (color.dtype() != DType::u16) return 1;
    const auto values = color.as<uint16_t>();
    const int64_t components = std::min<int64_t>(color.components(), 3);  // alpha tells nothing
    for (int64_t i = 0; i < color.rows(); ++i)
        for (int64_t c = 0; c < components; ++c)
            if (values(i, c) > 255) return 65535;
    return 255;
}

Attribute select(const Attribute& attribute, View<const int32_t, 1> indices) {
    Attribute result(attribute.name(), attribute.dtype(), indices.size(0), attribute.components());
    const int64_t bytes = attribute.row_bytes();
    for (int64_t i = 0; i < indices.size(0); ++i) {
        const int32_t row = indices(i);
        STIPPLE_REQUIRE(row >= 0 && row < attribute.rows(), "index {} of {} rows", row, attribute.rows());
        std::memcpy(result.data() + i * bytes, attribute.data() + row * bytes, static_cast<size_t>(bytes));
    }
    return result;
}

}  // namespace stipple
