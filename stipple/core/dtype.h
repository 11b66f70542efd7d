#pragma once
// Element types of arrays whose type is known at run time only: attributes, tensors, files.

#include <cstdint>
#include <string_view>

namespace stipple {

enum class DType { u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64, boolean };

int64_t size_of(DType dtype);           // bytes of one element
std::string_view name_of(DType dtype);  // "uint8", "float32", "bfloat16", "bool"
bool is_integer(DType dtype);           // u8 .. i64; bool is not
bool is_float(DType dtype);

/// One element, converted to double. Exact except for integers beyond 2^53.
double load_as_double(DType dtype, const void* element);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<uint8_t> {
    static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<int8_t> {
    static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<uint16_t> {
    static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<int16_t> {
    static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<uint32_t> {
    static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<int32_t> {
    static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<uint64_t> {
    static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<int64_t> {
    static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<float> {
    static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
    static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bool> {
    static constexpr DType value = DType::boolean;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace stipple
