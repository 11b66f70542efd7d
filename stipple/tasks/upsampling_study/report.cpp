#include "stipple/tasks/upsampling_study/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/tasks/upsampling_study/csv.h"

namespace stipple::tasks::study {
namespace {

bool begins_group(const ReportTable& table, size_t row) {
    return std::find(table.groups.begin(), table.groups.end(), row) != table.groups.end();
}

}  // namespace

Cell::Cell(double value, int digits, double scale)
    : text(std::isnan(value) ? "" : fmt::format("{:.{}f}", value, digits)), exact(csv_text(value / scale)) {}

std::string to_csv(const ReportTable& table) {
    Csv csv;
    for (const Column& column : table.columns) csv.columns.push_back(column.csv.empty() ? column.title : column.csv);
    for (const std::vector<Cell>& row : table.rows) {
        std::vector<std::string>& cells = csv.rows.emplace_back();
        for (const Cell& cell : row) cells.push_back(cell.exact.empty() ? cell.text : cell.exact);
    }
    return to_csv(csv);
}

std::string latex_text(std::string_view text) {
    std::string made;
    for (const char c : text) {
        switch (c) {
            case '\\': made += "\\textbackslash{}"; break;
            case '~': made += "\\textasciitilde{}"; break;
            case '^': made += "\\textasciicircum{}"; break;
            case '<': made += "\\textless{}"; break;
            case '>': made += "\\textgreater{}"; break;
            case '|': made += "\\textbar{}"; break;
            case '"': made += "\\textquotedbl{}"; break;
            case '&':
            case '%':
            case '$':
            case '#':
            case '_':
            case '{':
            case '}':
                made += '\\';
                made += c;
                break;
            case '\n': made += ' '; break;
            default: made += c;
        }
    }
    return made;
}

std::string to_latex(const ReportTable& table, std::string_view label) {
    std::string align, head;
    for (const Column& column : table.columns) {
        if (!column.is_for_print) continue;
        align += column.is_number ? 'r' : 'l';
        head += (head.empty() ? "" : " & ") + latex_text(column.title);
    }
    std::string text = fmt::format(
        "% needs \\usepackage{{booktabs}}\n\\begin{{table}}\n  \\centering\n  \\caption{{{}}}\n  "
        "\\label{{tab:{}}}\n  \\begin{{tabular}}{{{}}}\n    \\toprule\n    {} \\\\\n    \\midrule\n",
        latex_text(table.caption), label, align, head);
    for (size_t r = 0; r < table.rows.size(); ++r) {
        if (r > 0 && begins_group(table, r)) text += "    \\midrule\n";
        std::string line;
        bool is_first = true;
        for (size_t c = 0; c < table.columns.size(); ++c) {
            if (!table.columns[c].is_for_print) continue;
            line += (is_first ? "" : " & ") + latex_text(table.rows[r][c].text);
            is_first = false;
        }
        text += "    " + line + " \\\\\n";
    }
    return text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
}

std::string to_markdown(const ReportTable& table) {
    const auto cell = [](const std::string& text) {
        std::string made;
        for (const char c : text) made += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
        return " " + made + " |";
    };
    std::string head = "|", rule = "|", rows;
    for (const Column& column : table.columns) {
        if (!column.is_for_print) continue;
        head += cell(column.title);
        rule += column.is_number ? "---:|" : "---|";
    }
    for (const std::vector<Cell>& row : table.rows) {
        rows += "|";
        for (size_t c = 0; c < row.size(); ++c)
            if (table.columns[c].is_for_print) rows += cell(row[c].text);
        rows += "\n";
    }
    return table.caption + "\n\n" + head + "\n" + rule + "\n" + rows;
}

std::string html_text(std::string_view text) {
    std::string made;
    for (const char c : text) {
        switch (c) {
            case '&': made += "&amp;"; break;
            case '<': made += "&lt;"; break;
            case '>': made += "&gt;"; break;
            case '"': made += "&quot;"; break;
            case '\'': made += "&#39;"; break;
            default: made += c;
        }
    }
    return made;
}

std::string to_html(const ReportTable& table) {
    std::string text = fmt::format("<table>\n<caption>{}</caption>\n<tr>", html_text(table.caption));
    for (const Column& column : table.columns)
        text += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"n\"" : "", html_text(column.title));
    text += "</tr>\n";
    for (size_t r = 0; r < table.rows.size(); ++r) {
        text += begins_group(table, r) ? "<tr class=\"g\">" : "<tr>";
        for (size_t c = 0; c < table.columns.size(); ++c)
            text += fmt::format("<td{}>{}</td>", table.columns[c].is_number ? " class=\"n\"" : "",
                                html_text(table.rows[r][c].text));
        text += "</tr>\n";
    }
    return text + "</table>\n";
}

std::string to_page(const Report& report) {
    std::string text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>\n"
        "body {{ font-family: sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222; }}\n"
        "table {{ border-collapse: collapse; margin: 1.5em 0; font-size: 0.9em; }}\n"
        "caption {{ text-align: left; padding: 0.4em 0; }}\n"
        "th, td {{ padding: 0.2em 0.7em; text-align: left; }}\n"
        "th {{ border-top: 2px solid #222; border-bottom: 1px solid #222; }}\n"
        "tr.g td {{ border-top: 1px solid #bbb; }}\n"
        ".n {{ text-align: right; font-variant-numeric: tabular-nums; }}\n"
        "figure {{ margin: 2em 0; }} img {{ max-width: 100%; }} pre {{ white-space: pre-wrap; }}\n"
        "</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        html_text(report.title));
    for (const std::string& paragraph : report.paragraphs) text += fmt::format("<p>{}</p>\n", html_text(paragraph));
    for (const ReportTable& table : report.tables) text += to_html(table);
    for (const ReportFigure& figure : report.figures)
        text += fmt::format("<figure><img src=\"{0}\" alt=\"{1}\"><figcaption>{1}</figcaption></figure>\n",
                            html_text(figure.file), html_text(figure.caption));
    if (!report.command.empty()) text += fmt::format("<p>Made by</p>\n<pre>{}</pre>\n", html_text(report.command));
    return text + "</body>\n</html>\n";
}

}  // namespace stipple::tasks::study
