#pragma once
// Options of the commands that read data sets.

#include "stipple/cli/command.h"
#include "stipple/data/data_set.h"

namespace stipple::cli {

struct DataArguments {
    std::string path, layout = "auto", split;
};

/// --layout.
void add_layout(Arguments& app, DataArguments& data);

/// The set, or of each cloud the first `points` (0: all), with a bar. Meshes are sampled, with --seed. Throws as
/// data::load_data_set does.
data::DataSet load_data(const DataArguments& data, const std::string& split, int64_t points, const Common& common,
                        io::Warnings& warnings);

/// The split that is named, or all that there are.
std::vector<data::DataSet> load_splits(const DataArguments& data, int64_t points, const Common& common,
                                       io::Warnings& warnings);

}  // namespace stipple::cli
