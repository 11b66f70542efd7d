#pragma once
// A layout: how it is recognised and read. The table is in data_set.cpp.

#include <algorithm>

#include "stipple/data/data_set.h"

namespace stipple::data {

/// What a loader is asked for.
struct SetRequest {
    std::string folder;  // without a slash at its end
    std::string split;   // one of the layout's
    const DataSetOptions& options;
    io::Warnings& warnings;

    void report(int64_t done, size_t total) const {
        if (options.on_progress) options.on_progress(done, static_cast<int64_t>(total));
    }
    /// Points to take of a cloud of n.
    int64_t taken(int64_t n) const { return options.points > 0 ? std::min(options.points, n) : n; }
};

struct Layout {
    LayoutInfo info;
    /// The splits that are there; none when this is another layout. Opens no clouds but HDF5 files, whose keys tell.
    std::vector<std::string> (*splits)(const std::string& folder);
    /// Fills everything but layout and split. The caller checks that there are items.
    void (*load)(const SetRequest& request, DataSet& set);
};

extern const Layout kPacked, kModelNetHdf5, kModelNetText, kPartHdf5, kPartText, kPartNormalText, kPatchHdf5,
    kPatchRecords, kPairFolders, kPartFolders, kClassFolders;

}  // namespace stipple::data
