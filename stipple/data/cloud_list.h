#pragma once
// Lists of clouds as people name them: files, folders of files, HDF5 sets of many clouds.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/io/format.h"
#include "stipple/io/hdf5.h"

namespace stipple::data {

/// One cloud of a list.
struct CloudEntry {
    std::string path;
    int64_t item = -1;                             // of a set
    std::shared_ptr<const io::CloudSet> set = {};  // that it is part of
    std::optional<Error> error = {};               // a set that could not be read

    /// "train.h5[12]"
    std::string name() const;
    /// Its class, where the set tells it.
    std::optional<int64_t> label() const;
};

/// Files as they are named, those of a folder (not of folders in it) with an extension that stipple knows, in the order
/// of their names, and every cloud of an HDF5 file. Sets are read here, and one that cannot be read is an entry with
/// its error; other files are not opened. Throws Error{bad_argument} for a folder without such a file.
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
