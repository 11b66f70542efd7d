#pragma once
// Categories of part segmenters: which parts each has.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stipple::data {

struct PartCategory {
    std::string name;
    int64_t begin = 0, end = 0;  // of its parts among the network's classes
};

/// "stipple.categories" of the metadata: a JSON object {"airplane": [0, 4], ...} in the order of the network's one-hot
/// input; where it is absent, ShapeNet-part's for networks of 16 categories and 50 parts, else categories without names
/// that have all parts. Throws Error{bad_file} when it does not fit the network.
std::vector<PartCategory> part_categories(const std::map<std::string, std::string>& metadata, int64_t categories,
                                          int64_t parts);

/// By name, in any case, or by number. Throws Error{bad_argument} that lists the names; for an empty text, too.
size_t find_category(const std::vector<PartCategory>& categories, const std::string& text);

}  // namespace stipple::data
