#pragma once
// What shells and man know of the program, made from its options: completions for bash, zsh and fish, manual pages.

#include <string>
#include <utility>
#include <vector>

#include "stipple/cli/common/options.h"

namespace stipple::cli {

/// A script that completes commands, options, their words, and files. `shell`: "bash", "zsh" or "fish"; throws
/// Error{bad_argument} for another.
std::string completion_script(const Arguments& program, const std::string& shell);

/// A page in the man macros for the program and for each command: "stipple.1", "stipple-mesh-sample.1" and their texts.
std::vector<std::pair<std::string, std::string>> manual_pages(const Arguments& program, const std::string& version);

}  // namespace stipple::cli
