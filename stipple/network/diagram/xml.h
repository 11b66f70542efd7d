#pragma once
// Text for XML.

#include <string>
#include <string_view>

namespace stipple::network {

/// Any bytes as character data or an attribute's value: what XML reserves is escaped, what it forbids (most control
/// characters, bytes that are not UTF-8) becomes '?'.
std::string xml_text(std::string_view text);

}  // namespace stipple::network
