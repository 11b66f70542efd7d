#pragma once
// Size arithmetic that cannot wrap. Every size that comes from a file or a caller goes through here.

#include <cstdint>
#include <limits>
#include <type_traits>

#include "stipple/core/error.h"

namespace stipple {

/// a * b and a + b of non-negative sizes; throws Error{bad_argument} when the result does not fit in int64.
inline int64_t checked_mul(int64_t a, int64_t b) {
    int64_t result = 0;
    STIPPLE_REQUIRE(!__builtin_mul_overflow(a, b, &result), "size {} x {} overflows 64 bits", a, b);
    return result;
}

inline int64_t checked_add(int64_t a, int64_t b) {
    int64_t result = 0;
    STIPPLE_REQUIRE(!__builtin_add_overflow(a, b, &result), "size {} + {} overflows 64 bits", a, b);
    return result;
}

/// Narrows an integer, or throws Error{bad_argument} naming `what`.
template <class To, class From>
To checked_narrow(From value, const char* what) {
    static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
    const To narrow = static_cast<To>(value);
    STIPPLE_REQUIRE(static_cast<From>(narrow) == value && ((narrow < To{}) == (value < From{})),
                    "{} {} does not fit in {} bits", what, value, 8 * sizeof(To));
    return narrow;
}

}  // namespace stipple
