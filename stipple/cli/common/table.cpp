#include "stipple/cli/common/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "stipple/cli/common/help_text.h"
#include "stipple/core/terminal.h"
#include "stipple/core/utf8.h"

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
    size_t count = 0;
    for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
    return count;
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

struct Column {
    size_t width = 0;
    bool right = false;  // numbers
};

std::vector<Column> columns_of(const Table& table) {
    std::vector<Column> columns;
    for (size_t i = 0; i < table.columns.size(); ++i) {
        Column column{width_of(table.columns[i]), !table.rows.empty()};
        for (const auto& row : table.rows) {
            column.width = std::max(column.width, width_of(cell_text(row[i])));
            column.right &= row[i].is_number() || row[i].is_null();
        }
        columns.push_back(column);
    }
    return columns;
}

std::string without_end_blanks(std::string line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
}

std::string format_markdown(const Table& table) {
    const std::vector<Column> columns = columns_of(table);
    const auto escaped = [](const std::string& cell) {  // a bar would end the cell
        std::string text;
        for (char c : cell) {
            if (c == '|') text += '\\';
            text += c;
        }
        return text;
    };
    const auto line_of = [&](auto&& text_at) {
        std::vector<std::string> cells;
        for (size_t i = 0; i < columns.size(); ++i)
            cells.push_back(padded(escaped(text_at(i)), columns[i].width, columns[i].right));
        return fmt::format("| {} |\n", join(cells, " | "));
    };
    std::string text = line_of([&](size_t i) { return table.columns[i]; }) + "|";
    for (const Column& column : columns) text += std::string(column.width + 1, '-') + (column.right ? ":" : "-") + "|";
    text += "\n";
    for (const auto& row : table.rows) text += line_of([&](size_t i) { return cell_text(row[i]); });
    return text;
}

constexpr size_t kGap = 2, kLeastText = 12;

/// The text with an ellipsis for what is too much. Ends of paths tell more than their beginnings.
std::string shortened(const std::string& text, size_t width) {
    const size_t all = width_of(text);
    if (all <= width || width == 0) return text;
    const bool path = text.find('/') != std::string::npos;
    const auto byte_of = [&](size_t characters) {
        size_t at = 0;
        while (at < text.size() && characters > 0) next_code_point(text, at), --characters;
        return at;
    };
    return path ? "\u2026" + text.substr(byte_of(all - width + 1)) : text.substr(0, byte_of(width - 1)) + "\u2026";
}

/// Narrower texts until a line fits, or none can be narrower.
void shorten_texts(std::vector<Column>& columns, size_t limit) {
    size_t total = 0;
    for (const Column& column : columns) total += column.width + kGap;
    total -= kGap;
    while (total > limit) {
        Column* widest = nullptr;
        for (Column& column : columns)
            if (!column.right && column.width > kLeastText && (!widest || column.width > widest->width))
                widest = &column;
        if (!widest) return;
        --widest->width, --total;
    }
}

/// Which columns stand in each block of lines.
std::vector<std::vector<size_t>> blocks_of(const std::vector<Column>& columns, size_t limit) {
    std::vector<std::vector<size_t>> blocks(1);
    size_t used = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
        if (blocks.back().size() > (blocks.size() > 1 ? 1u : 0u) && used + kGap + columns[i].width > limit) {
            blocks.push_back({0});
            used = columns[0].width;
        }
        used += (blocks.back().empty() ? 0 : kGap) + columns[i].width;
        blocks.back().push_back(i);
    }
    return blocks;
}

}  // namespace

std::string format_table(const Table& table, const std::string& style) {
    if (style == "csv") return format_csv(table);
    if (style == "json") return format_json(table);
    if (style == "md") return format_markdown(table);
    return format_screen_table(table, stdout_is_terminal() ? stdout_width() : 0, use_color_on_stdout());
}

std::string format_screen_table(const Table& table, int limit, bool bold) {
    std::vector<Column> columns = columns_of(table);
    std::vector<std::vector<size_t>> blocks(1);
    for (size_t i = 0; i < columns.size(); ++i) blocks[0].push_back(i);
    if (limit > 0 && !columns.empty()) {
        shorten_texts(columns, static_cast<size_t>(limit));
        blocks = blocks_of(columns, static_cast<size_t>(limit));
    }
    std::string text;
    for (const std::vector<size_t>& block : blocks) {
        const auto line_of = [&](auto&& text_at) {
            std::vector<std::string> cells;
            for (const size_t i : block)
                cells.push_back(padded(shortened(text_at(i), columns[i].width), columns[i].width, columns[i].right));
            return without_end_blanks(join(cells, "  "));
        };
        if (&block != &blocks[0]) text += "\n";
        const std::string head = line_of([&](size_t i) { return table.columns[i]; });
        text += bold && !head.empty() ? "\033[1m" + head + "\033[0m\n" : head + "\n";
        for (const auto& row : table.rows) text += line_of([&](size_t i) { return cell_text(row[i]); }) + "\n";
    }
    return text;
}

std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int indent) {
    size_t width = 0;
    for (const auto& [name, value] : pairs) width = std::max(width, width_of(name));
    const size_t before = static_cast<size_t>(indent) + width + 2;
    std::string text;
    for (const auto& [name, value] : pairs) {
        const std::string line = std::string(static_cast<size_t>(indent), ' ') +
                                 padded(printable(name), width + 2, false) + printable(value);
        text += stdout_is_terminal() ? fold_line(line, static_cast<size_t>(stdout_width()), before) : line + "\n";
    }
    return text;
}

}  // namespace stipple::cli
