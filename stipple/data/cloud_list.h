#pragma once
// Lists of clouds as people name them: files, folders of files, data sets of many clouds.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/data/data_set.h"

namespace stipple::data {

/// One cloud of a list.
struct CloudEntry {
    std::string path;
    int64_t item = -1;                        // of a set
    std::shared_ptr<const DataSet> set = {};  // that it is part of
    std::optional<Error> error = {};          // a set that could not be read

    /// "train.h5[12]"
    std::string name() const;
    /// The number of its class, where the set tells it.
    std::optional<int64_t> label() const;
    /// The name of its class: of a set that names them; of a file the folder that it is in, or the one above where that
    /// is called train, val or test: chair/test/a.ply. Whether this is a class, who knows the classes must say. Empty
    /// where nothing tells it.
    std::string class_name() const;
};

/// Files as they are named, those of a folder (not of folders in it) with an extension that stipple knows, in the order
/// of their names, and every cloud of an HDF5 file (classes are named by shape_names.txt beside it) and of a packed set
/// (.stpk). Of a folder without such a file that is a data set (data_set.h) the clouds of the split test, of all where
/// it has none: files of a set in folders, which are not read, else every cloud. Sets are read here, and a file that
/// cannot be read is an entry with its error; other files are not opened. Throws Error{bad_argument} for a folder
/// without clouds.
std::vector<CloudEntry> list_clouds(const std::vector<std::string>& inputs);

/// How files are read: `format` when content and name do not tell one (else empty), `on_progress` for each block.
struct ReadClouds {
    std::string format = {};
    std::function<void(const std::string& path, int64_t done, int64_t total)> on_progress = {};  // bytes
};

/// The entry's mesh or cloud, with all its points; what its reader warns of, after its name. Throws the entry's error
/// and Error{bad_file}, with the path.
Mesh load_entry(const CloudEntry& entry, const ReadClouds& how, io::Warnings& warnings);

}  // namespace stipple::data
