#pragma once
// Pictures of clouds by a number that each point has: distances, errors.

#include "stipple/cli/command.h"
#include "stipple/core/image.h"

namespace stipple::cli {

struct ValuePicture {
    std::string attribute;   // of every cloud
    std::string title;       // of the colour bar
    bool is_signed = false;  // colours about 0 instead of from 0
    std::string up = "z";    // as picture::up_axis_names()
};

/// --up.
void add_up(Arguments& app, std::string& up);

/// A panel for each cloud with its caption, one colour bar for all: it ends at the size that 98 % of all values stay
/// within.
Image draw_values(const std::vector<const PointCloud*>& clouds, const std::vector<std::string>& captions,
                  const ValuePicture& how);

}  // namespace stipple::cli
