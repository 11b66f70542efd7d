#pragma once
// What writers of layouts share. The table is in save_data_set.cpp.

#include "stipple/core/atomic_folder.h"
#include "stipple/data/save_data_set.h"

namespace stipple::data {

struct SaveRequest {
    const AtomicFolder& folder;
    std::span<const DataSet> splits;
    const std::function<void()>& advance;  // after each item
    io::Warnings& warnings;
};

void save_text(const std::string& path, std::string_view text);
/// parts.json of categories: {"Airplane": [[0, "body"], ...], ...}
std::string parts_json(const DataSet& set);
/// Throws Error{bad_argument} unless each class is a line of a text that reads back as it is; with `is_word` without
/// blanks.
void require_line_names(const std::vector<std::string>& classes, bool is_word);

void save_modelnet_hdf5(const SaveRequest& request);
void save_part_hdf5(const SaveRequest& request);
void save_class_folders(const SaveRequest& request);
void save_part_folders(const SaveRequest& request);

}  // namespace stipple::data
