#include "stipple/engine/precision.h"

#include <array>

#include "stipple/core/error.h"

namespace stipple::engine {
namespace {

struct Entry {
    Precision precision;
    std::string_view name;
    int bytes;
};

constexpr std::array kEntries = {
    Entry{Precision::fp32, "fp32", 4}, Entry{Precision::tf32, "tf32", 4}, Entry{Precision::fp16, "fp16", 2},
    Entry{Precision::bf16, "bf16", 2}, Entry{Precision::int8, "int8", 1}, Entry{Precision::fp8, "fp8", 1},
};

}  // namespace

std::string_view name_of(Precision precision) {
    return kEntries[static_cast<size_t>(precision)].name;
}

Precision parse_precision(std::string_view text) {
    for (const Entry& entry : kEntries)
        if (entry.name == text) return entry.precision;
    throw Error(ErrorCode::bad_argument,
                fmt::format("unknown precision '{}': fp32, tf32, fp16, bf16, int8 or fp8", text));
}

int bytes_of(Precision precision) {
    return kEntries[static_cast<size_t>(precision)].bytes;
}

}  // namespace stipple::engine
