#include "stipple/tasks/upsampling_study/csv.h"

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"

namespace stipple::tasks::study {
namespace {

std::vector<std::string> cells_of(std::string_view line, const io::ByteReader& reader) {
    std::vector<std::string> cells(1);
    bool is_quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (is_quoted) {
            if (c != '"')
                cells.back() += c;
            else if (i + 1 < line.size() && line[i + 1] == '"')
                cells.back() += line[++i];
            else
                is_quoted = false;
        } else if (c == '"') {
            is_quoted = true;
        } else if (c == ',') {
            cells.emplace_back();
        } else {
            cells.back() += c;
        }
    }
    if (is_quoted) reader.fail_line("a quote has no end");
    return cells;
}

std::string csv_line(const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + csv_cell(cells[i]);
    return line + "\n";
}

}  // namespace

size_t Csv::column(std::string_view name) const {
    for (size_t i = 0; i < columns.size(); ++i)
        if (columns[i] == name) return i;
    throw Error(ErrorCode::bad_file, fmt::format("has no column {}", name));
}

std::string csv_cell(std::string_view text) {
    std::string cell;
    for (const char c : text) cell += c == '\n' || c == '\r' ? ' ' : c;
    if (cell.find_first_of(",\"") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::string to_csv(const Csv& table) {
    std::string text = csv_line(table.columns);
    for (const std::vector<std::string>& row : table.rows) text += csv_line(row);
    return text;
}

Csv load_csv(const std::string& path) {
    Csv table;
    try {
        io::FileSource source(path);
        io::ByteReader reader(source);
        while (const auto line = reader.line()) {
            if (io::trimmed(*line).empty() || line->front() == '#') continue;
            std::vector<std::string> cells = cells_of(*line, reader);
            if (table.columns.empty()) {
                table.columns = std::move(cells);
                continue;
            }
            if (cells.size() != table.columns.size())
                reader.fail_line(fmt::format("{} cells in a table of {} columns", cells.size(), table.columns.size()));
            table.rows.push_back(std::move(cells));
        }
        if (table.columns.empty()) throw Error(ErrorCode::bad_file, "is empty: a table is wanted");
    } catch (const Error& error) {
        throw error.at_path(path);
    }
    return table;
}

double csv_number(const std::string& text) {
    double value = NAN;
    if (!text.empty() && !io::parse_number(text, value))
        throw Error(ErrorCode::bad_file, fmt::format("\"{}\" is no number", text));
    return value;
}

std::string csv_text(double value) {
    std::string text;
    if (!std::isnan(value)) io::append_number(text, value);
    return text;
}

}  // namespace stipple::tasks::study
