#pragma once
// Descriptions of files for `stipple info` and `stipple mesh info`: for people and for --json.

#include "stipple/cli/command.h"
#include "stipple/tasks/describe.h"

namespace stipple::cli {

struct Description {
    std::string summary;                                     // attributes, tensors: one cell of a table
    std::vector<std::pair<std::string, std::string>> pairs;  // for people
    Json fields = Json::object();                            // for --json
};

/// x, y, z, diagonal and origin, as far as there are finite points.
void add_bounds(const Bounds& bounds, const std::array<double, 3>& origin, Description& description);

Description description_of(const std::string& path, const tasks::FileSummary& file);

}  // namespace stipple::cli
