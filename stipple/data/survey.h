#pragma once
// What a data set holds: its splits, its classes with their parts, its bounds.

#include <array>
#include <optional>

#include "stipple/core/fields.h"
#include "stipple/data/data_set.h"

namespace stipple::data {

struct SplitFacts {
    std::string name;
    int64_t items = 0, points = 0;               // points of all clouds
    int64_t fewest_points = 0, most_points = 0;  // of a cloud
    bool has_normals = false, has_parts = false, has_names = false, is_pairs = false;
};

struct ClassFacts {
    std::string name = {};
    std::vector<std::pair<std::string, int64_t>> items = {};  // of each split, by its name
    std::optional<int64_t> first_part = {}, parts = {};       // of a set with parts
};

struct SetFacts {
    std::string layout;
    std::optional<int> bits = {};  // of a coordinate, in a packed file
    std::vector<SplitFacts> splits = {};
    std::vector<ClassFacts> classes = {};
    std::vector<std::string> part_names = {};
    struct Box {
        std::array<double, 3> min, max;
    } bounds = {};
};
const Fields& set_facts_fields();

/// Every split that the folder or file has is read by `load`, one after the other: the largest alone is in memory.
/// Throws as recognise_data_set() and `load` do.
SetFacts survey(const std::string& path, const std::string& layout,
                const std::function<DataSet(const std::string& split)>& load);

}  // namespace stipple::data
