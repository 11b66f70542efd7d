#pragma once
// Descriptions of files, for `stipple info`.

#include "stipple/cli/command.h"

namespace stipple::cli {

struct Description {
    std::string format;                                      // "PLY", "PNG"
    std::string summary;                                     // attributes, tensors: one cell of a table
    std::vector<std::pair<std::string, std::string>> pairs;  // for people
    Json fields = Json::object();                            // for --json
};

/// x, y, z, diagonal and origin, as far as there are finite points.
void describe_bounds(const PointCloud& cloud, Description& description);

/// Any file that stipple reads. Throws as its reader does.
Description describe_file(const std::string& path, const std::string& from, int64_t item, const Common& common,
                          io::Warnings& warnings);

}  // namespace stipple::cli
