#pragma once

#include <string>
#include <string_view>

namespace stipple {

/// (Not "quoted": std::quoted would be found before it for a std::string.)
/// Bytes of a file as hostile text, fit for a message: at most 40 characters, quotes around, control characters out.
std::string in_quotes(std::string_view text);

}  // namespace stipple
