#pragma once
// Numbers in messages for people. (Numbers in files: io/text.h.)

#include <cstdint>
#include <string>

namespace stipple {

/// "40,256"
std::string grouped(int64_t number);

/// "1.2 MB": three digits, units of 1000.
std::string bytes_text(int64_t bytes);

}  // namespace stipple
