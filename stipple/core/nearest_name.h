#pragma once

#include <string>
#include <vector>

namespace stipple {

/// The name nearest to `word` by edit distance, or nothing when none is near.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

}  // namespace stipple
