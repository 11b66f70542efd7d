#pragma once
// Configuration: command line, then environment (STIPPLE_NAME), then --config FILE, then defaults.

#include <string>

#include "stipple/cli/common/options.h"

namespace stipple::cli {

/// Fills options that the command line did not set, from the environment and from the TOML file at `path` (none when
/// empty): options of the root at its top, a command's in a table of its name ([mesh.sample]). Throws Error{bad_config}
/// for unknown keys (with the nearest name), duplicates and values of the wrong type.
void apply_config(const Arguments& root, const Arguments& command, const std::string& path);

/// The fully resolved configuration of one command, as a file that --config reads back.
std::string resolved_config(const Arguments& root, const Arguments& command);

}  // namespace stipple::cli
