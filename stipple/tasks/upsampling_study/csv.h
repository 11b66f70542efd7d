#pragma once
// Comma-separated tables as files: what studies keep, and what they read back.

#include <string>
#include <string_view>
#include <vector>

namespace stipple::tasks::study {

struct Csv {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;  // each as long as columns

    /// Position of a column. Throws Error{bad_file} that names it where there is none.
    size_t column(std::string_view name) const;
};

/// A cell as it stands in a file: in quotes where it has a comma or a quote; line ends become spaces.
std::string csv_cell(std::string_view text);
std::string to_csv(const Csv& table);

/// First the columns' names, then a row a line; empty lines and those that begin with '#' are passed over. Cells may be
/// in quotes. Throws Error{bad_file} with path and line for a row of another length or an open quote, and for a file
/// without columns.
Csv load_csv(const std::string& path);

/// Of a cell; "" is NaN. Throws Error{bad_file} for what is no number.
double csv_number(const std::string& text);
/// As short as reads back; "" for NaN.
std::string csv_text(double value);

}  // namespace stipple::tasks::study
