#pragma once
// Which global part numbers each category has, from the files that tell it.

#include <optional>

#include "stipple/data/layouts/common.h"

namespace stipple::data {

/// A line of all_object_categories.txt or synsetoffset2category.txt: the name and its synset, which may be absent.
struct CategoryLine {
    std::string name, synset;
};

/// Throws Error{bad_file} for none, for two of one name or synset, for more words, and for a synset that is no name of
/// a folder; for one that is absent when `with_synsets`.
std::vector<CategoryLine> load_categories(const std::string& path, bool with_synsets);

/// Ranges of ShapeNet-part by name, whatever the order; nothing when one is not among its 16.
std::optional<std::vector<PartCategory>> shapenet_ranges(const std::vector<CategoryLine>& categories);

/// overallid_to_catid_partid.json: [["02691156", 1], ...], one for each global part.
std::vector<PartCategory> load_overall_ids(const std::string& path, const std::vector<CategoryLine>& categories);

/// parts.json: {"Airplane": [[0, "body"], ...], ...}
std::vector<PartCategory> load_named_parts(const std::string& path, const std::vector<CategoryLine>& categories,
                                           std::vector<std::string>& part_names);

/// num_seg_classes.txt: lines of a name and its number of parts; ranges follow each other in the order of `categories`.
std::vector<PartCategory> load_part_counts(const std::string& path, const std::vector<CategoryLine>& categories);

}  // namespace stipple::data
