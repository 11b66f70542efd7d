#pragma once
// Tables: one value, printed aligned for a terminal, or as Markdown, CSV or JSON.

#include <string>
#include <utility>
#include <vector>

#include "stipple/cli/common/json.h"

namespace stipple::cli {

struct Table {
    std::vector<std::string> columns;     // with units: "size (bytes)"
    std::vector<std::vector<Json>> rows;  // strings and numbers
};

/// `style` is "", "md", "csv" or "json" (an array of objects). Ends with a line end.
std::string format_table(const Table& table, const std::string& style);

/// "name   value" lines, names aligned; for descriptions of one thing.
std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int indent);

}  // namespace stipple::cli
