#pragma once
// stipple study registration --pose-graph.

#include "stipple/cli/common/files.h"

namespace stipple::cli {

struct FragmentArguments {
    std::string data, output;
    std::vector<std::string> methods;
    bool rotate = false;  // each fragment, and their order, at random
};

/// All fragments of each scene that the pairs of `data` name, in one frame, beside their true poses.
Result run_registration_scenes(const FragmentArguments& arguments, const Arguments& app, const Common& common);

}  // namespace stipple::cli
