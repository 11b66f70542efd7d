#pragma once
// Data sets written in layouts that load_data_set reads.

#include <functional>
#include <span>

#include "stipple/core/atomic_file.h"
#include "stipple/core/fields.h"
#include "stipple/data/data_set.h"

namespace stipple::data {

inline constexpr const char* kWritableLayouts[] = {"modelnet-hdf5", "part-hdf5", "class-folders", "part-folders"};

/// A data set in another layout.
struct ConvertOptions {
    std::string layout;  // one of kWritableLayouts
    int64_t points = 0;  // the first so many of each cloud; 0: all
};
const Fields& convert_fields();

/// What was written.
struct ConvertedSet {
    std::string from;  // the layout that was read
    std::vector<std::string> splits;
    int64_t items = 0;  // of all splits
};
const Fields& converted_set_fields();
ConvertedSet converted_set_of(std::span<const DataSet> splits);

struct SaveOptions {
    Overwrite overwrite = Overwrite::refuse;  // replaces a folder that was written so before, and no other
    std::function<void(int64_t done, int64_t total)> on_progress = {};  // items
};

/// The splits of one set, in a folder that appears complete or not at all. HDF5 layouts call a set that is not split
/// "train", with a warning. Names that are no names of files become numbers.
///
/// Throws Error{bad_argument}: an unknown layout, splits of different sets, a set without the classes or parts that the
/// layout needs, clouds of different sizes for HDF5, names of classes that its files cannot hold; Error{cannot_write}:
/// a folder that exists, or with Overwrite::allow one that save_data_set has not written (it has no converted.json).
void save_data_set(const std::string& folder, std::span<const DataSet> splits, const std::string& layout,
                   const SaveOptions& options, io::Warnings& warnings);

/// The checks of the folder alone: call before a long computation.
void require_writable_set(const std::string& folder, Overwrite overwrite);

}  // namespace stipple::data
