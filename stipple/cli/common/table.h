#pragma once
// Tables: one value, printed aligned for a terminal, or as Markdown, CSV or JSON.

#include <string>
#include <utility>
#include <vector>

#include "stipple/core/json.h"

namespace stipple::cli {

struct Table {
    std::vector<std::string> columns;     // with units: "size (bytes)"
    std::vector<std::vector<Json>> rows;  // strings and numbers
};

/// `style` is "", "md", "csv" or "json" (an array of objects). Ends with a line end. Aligned ones are as wide as
/// standard output at most where that is a terminal, and complete where it is not.
std::string format_table(const Table& table, const std::string& style);

/// Aligned, of at most `columns` characters a line (0: any): first texts are shortened, the widest columns first, down
/// to 12 characters, with an ellipsis, paths at their front; what still does not fit goes below, behind the first
/// column again. `bold`: of the heads, by an escape code.
std::string format_screen_table(const Table& table, int columns, bool bold);

/// "name   value" lines, names aligned; for descriptions of one thing.
std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int indent);

}  // namespace stipple::cli
