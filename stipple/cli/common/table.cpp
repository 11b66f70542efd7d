#include "stipple/cli/common/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

std::string cell_text(const Json& cell) {
    if (cell.is_string()) return printable(cell.text());
    if (cell.is_null()) return "";
    if (cell.is_real()) return fmt::format("{:.6g}", cell.number());
    return cell.compact();
}

/// Characters, not bytes: a name in UTF-8 takes its width on the screen.
size_t width_of(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool right) {
    const std::string space(width - std::min(width, width_of(text)), ' ');
    return right ? space + text : text + space;
}

std::string csv_cell(const Json& cell) {
    std::string text = cell.is_real() ? cell.compact() : cell_text(cell);
    if (text.find_first_of(",\"") == std::string::npos) return text;
    std::string quoted = "\"";
    for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::string join(const std::vector<std::string>& cells, std::string_view separator) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) line += (i ? std::string(separator) : "") + cells[i];
    return line;
}

std::string format_csv(const Table& table) {
    std::vector<std::string> cells;
    for (const std::string& column : table.columns) cells.push_back(csv_cell(column));
    std::string text = join(cells, ",") + "\n";
    for (const auto& row : table.rows) {
        cells.clear();
        for (const Json& cell : row) cells.push_back(csv_cell(cell));
        text += join(cells, ",") + "\n";
    }
    return text;
}

std::string format_json(const Table& table) {
    Json array = Json::array();
    for (const auto& row : table.rows) {
        Json object = Json::object();
        for (size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = row[i];
        array.push_back(std::move(object));
    }
    return array.pretty();
}

std::string format_aligned(const Table& table, bool markdown) {
    std::vector<size_t> widths;
    std::vector<bool> right;
    for (size_t column = 0; column < table.columns.size(); ++column) {
        size_t width = width_of(table.columns[column]);
        bool numeric = !table.rows.empty();
        for (const auto& row : table.rows) {
            width = std::max(width, width_of(cell_text(row[column])));
            numeric &= row[column].is_number() || row[column].is_null();
        }
        widths.push_back(width);
        right.push_back(numeric);
    }
    const auto escaped = [&](const std::string& cell) {  // a bar would end the cell
        std::string text;
        for (char c : cell) {
            if (markdown && c == '|') text += '\\';
            text += c;
        }
        return text;
    };
    const auto line_of = [&](auto&& text_at) {
        std::vector<std::string> cells;
        for (size_t i = 0; i < widths.size(); ++i) cells.push_back(padded(escaped(text_at(i)), widths[i], right[i]));
        std::string line = markdown ? fmt::format("| {} |", join(cells, " | ")) : join(cells, "  ");
        while (!line.empty() && line.back() == ' ') line.pop_back();
        return line + "\n";
    };
    std::string text = line_of([&](size_t i) { return table.columns[i]; });
    if (markdown) {
        text += "|";
        for (size_t i = 0; i < widths.size(); ++i)
            text += std::string(widths[i] + 1, '-') + (right[i] ? ":" : "-") + "|";
        text += "\n";
    }
    for (const auto& row : table.rows) text += line_of([&](size_t i) { return cell_text(row[i]); });
    return text;
}

}  // namespace

std::string format_table(const Table& table, const std::string& style) {
    if (style == "csv") return format_csv(table);
    if (style == "json") return format_json(table);
    return format_aligned(table, style == "md");
}

std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int indent) {
    size_t width = 0;
    for (const auto& [name, value] : pairs) width = std::max(width, width_of(name));
    std::string text;
    for (const auto& [name, value] : pairs)
        text += std::string(static_cast<size_t>(indent), ' ') + padded(printable(name), width + 2, false) +
                printable(value) + "\n";
    return text;
}

}  // namespace stipple::cli
