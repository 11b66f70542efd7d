#pragma once
// Steps on the command line: `--then crop --box 0 0 0 1 1 1 --then clean` are two of them. A parser of options would
// take --box for one of its own, so that the words of a step are made one before it looks at them.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/cli/common/options.h"

namespace stipple::cli {

inline constexpr std::string_view kThen = "--then";

/// The command line `words`, with the words behind every --then as one: `--then=crop --box 0 0 0 1 1 1`. Options that
/// are the program's or the command's (-o, --overwrite) may stand in the midst of a step and are none of its words; no
/// step may have an option of such a name. The words are left alone unless they name a command that has the option.
std::vector<std::string> with_steps_joined(const std::vector<std::string>& words, const Arguments& program);

/// A word as a shell reads it back: in single quotes where it must be.
std::string shell_word(const std::string& text);
/// Words as a shell would take them, with quotes and backslashes but nothing else: no variables, no patterns. Throws
/// Error{bad_argument} for a quote that is not closed.
std::vector<std::string> split_words(std::string_view text);

}  // namespace stipple::cli
