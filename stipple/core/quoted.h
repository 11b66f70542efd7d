#pragma once

#include <string>
#include <string_view>

namespace stipple {

/// Bytes of a file as hostile text, fit for a message: at most 40 characters, quotes around, control characters out.
std::string quoted(std::string_view text);

}  // namespace stipple
