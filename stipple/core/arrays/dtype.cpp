#include "stipple/core/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "stipple/core/error.h"

namespace stipple {
namespace {

template <class T>
double load(const void* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return static_cast<double>(value);
}

double load_half(const void* element) {
    uint16_t bits;
    std::memcpy(&bits, element, sizeof bits);
    const int sign = bits >> 15, exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
    double value;
    if (exponent == 0x1f)
        value = mantissa ? std::nan("") : INFINITY;
    else
        value = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    return sign ? -value : value;
}

double load_bfloat(const void* element) {
    uint16_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace

int64_t size_of(DType dtype) {
    switch (dtype) {
        case DType::u8:
        case DType::i8:
        case DType::boolean: return 1;
        case DType::u16:
        case DType::i16:
        case DType::f16:
        case DType::bf16: return 2;
        case DType::u32:
        case DType::i32:
        case DType::f32: return 4;
        case DType::u64:
        case DType::i64:
        case DType::f64: return 8;
    }
    STIPPLE_ASSERT(!"dtype");
}

std::string_view name_of(DType dtype) {
    switch (dtype) {
        case DType::u8: return "uint8";
        case DType::i8: return "int8";
        case DType::u16: return "uint16";
        case DType::i16: return "int16";
        case DType::u32: return "uint32";
        case DType::i32: return "int32";
        case DType::u64: return "uint64";
        case DType::i64: return "int64";
        case DType::f16: return "float16";
        case DType::bf16: return "bfloat16";
        case DType::f32: return "float32";
        case DType::f64: return "float64";
        case DType::boolean: return "bool";
    }
    STIPPLE_ASSERT(!"dtype");
}

bool is_float(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

bool is_integer(DType dtype) {
    return !is_float(dtype) && dtype != DType::boolean;
}

double load_as_double(DType dtype, const void* element) {
    switch (dtype) {
        case DType::u8:
        case DType::boolean: return load<uint8_t>(element);
        case DType::i8: return load<int8_t>(element);
        case DType::u16: return load<uint16_t>(element);
        case DType::i16: return load<int16_t>(element);
        case DType::u32: return load<uint32_t>(element);
        case DType::i32: return load<int32_t>(element);
        case DType::u64: return load<uint64_t>(element);
        case DType::i64: return load<int64_t>(element);
        case DType::f16: return load_half(element);
        case DType::bf16: return load_bfloat(element);
        case DType::f32: return load<float>(element);
        case DType::f64: return load<double>(element);
    }
    STIPPLE_ASSERT(!"dtype");
}

}  // namespace stipple
