#pragma once
// Lines for narrow terminals.

#include <string>

namespace stipple::cli {

/// The line, with a line end, in pieces of at most `columns` characters, cut at blanks; the rest of it begins below
/// column `indent`, or the middle. Words that are longer stay whole. `end` stands behind each piece but the last.
std::string fold_line(std::string line, size_t columns, size_t indent, const std::string& end = {});

/// Help with lines of at most `columns` characters (from 40): words go on below the words that they belong to, calls of
/// the program behind a backslash, as a shell reads them.
std::string fold_help(const std::string& text, int columns);

}  // namespace stipple::cli
