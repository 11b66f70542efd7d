#pragma once
// Precisions of products. Sums are kept in float32 (int32 for int8) whatever the precision of the factors.

#include <string_view>

namespace stipple::engine {

enum class Precision { fp32, tf32, fp16, bf16, int8, fp8 };  // fp8: e4m3

inline constexpr const char* kPrecisionWords[] = {"fp32", "tf32", "fp16", "bf16", "int8", "fp8"};

std::string_view name_of(Precision precision);  // "bf16"

/// Throws Error{bad_argument} with the list of names.
Precision parse_precision(std::string_view text);

/// Bytes of one factor.
int bytes_of(Precision precision);

}  // namespace stipple::engine
