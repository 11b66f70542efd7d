#pragma once
// What must be refused, ignored or carried along.

#include <limits>

namespace stipple::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace stipple::test
