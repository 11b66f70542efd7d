#include "stipple/engine/precision.h"

#include <iterator>

#include "stipple/core/error.h"

namespace stipple::engine {

std::string_view name_of(Precision precision) {
    return kPrecisionWords[static_cast<size_t>(precision)];
}

Precision parse_precision(std::string_view text) {
    for (size_t i = 0; i < std::size(kPrecisionWords); ++i)
        if (text == kPrecisionWords[i]) return static_cast<Precision>(i);
    throw Error(ErrorCode::bad_argument,
                fmt::format("unknown precision '{}': fp32, tf32, fp16, bf16, int8 or fp8", text));
}

int bytes_of(Precision precision) {
    constexpr int kBytes[] = {4, 4, 2, 2, 1, 1};
    return kBytes[static_cast<size_t>(precision)];
}

}  // namespace stipple::engine
