#pragma once
// Rows of numbers, one row a line, parsed in parallel into a PointTable: the body of every text format.

#include <functional>

#include "stipple/io/common/point_table.h"

namespace stipple::io {

struct TextRows {
    std::vector<Field> fields;  // one a column; integers are range-checked against their type
    int64_t row_bytes = 0;
    bool commas = false;         // ',' and ';' separate as blanks do
    bool comments = false;       // '#' and '//' begin a comment line
    bool extra_columns = false;  // further columns are ignored (else an error)
    int64_t count = -1;          // rows to read; -1: to the end of the input
};

/// Reads rows and appends them to `table`, whose fields must be those of `rows`. Blank lines are skipped. Leaves the
/// reader behind the last row. Errors name the line. When `count` rows are asked for and the input ends before, throws.
void parse_text_rows(ByteReader& reader, const TextRows& rows, PointTable& table);

/// The next row's text, not consumed; empty when none stands within the next 64 KiB.
std::string peek_text_row(ByteReader& reader, const TextRows& rows);

/// One line into one binary row; returns an empty text, or what is wrong with it.
std::string parse_text_row(std::string_view line, const TextRows& rows, std::byte* row);

/// Formats rows in parallel and writes them in order: `format_row(text, i)` appends row i with its line end.
void write_text_rows(ByteSink& sink, int64_t count,
                     const std::function<void(std::string& text, int64_t row)>& format_row);

/// Appends one value of an attribute as text; float32 and float64 shortest, integers in full.
void append_value(std::string& text, const Attribute& attribute, int64_t row, int64_t component);

}  // namespace stipple::io
