#pragma once
// Configuration: command line, then environment (STIPPLE_NAME), then --config FILE, then defaults.

#include <CLI/CLI.hpp>

#include <string>

#include "stipple/core/nearest_name.h"

namespace stipple::cli {

/// The words that choose a command, below the program's own name: "mesh sample" for ' ', "mesh.sample" for '.'.
std::string path_of(const CLI::App& app, char separator);

/// Fills options that the command line did not set, from the environment and from the TOML file at `path` (none when
/// empty): options of the root at its top, a command's in a table of its name ([mesh.sample]). Throws Error{bad_config}
/// for unknown keys (with the nearest name), duplicates and values of the wrong type.
void apply_config(CLI::App& root, CLI::App& command, const std::string& path);

/// The fully resolved configuration of one command, as a file that --config reads back.
std::string resolved_config(CLI::App& root, CLI::App& command);

}  // namespace stipple::cli
