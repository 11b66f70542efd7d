#pragma once
// The text of a study's report: one table as CSV, LaTeX and HTML, and a page around it.

#include <string>
#include <string_view>
#include <vector>

namespace stipple::tasks::study {

struct Cell {
    std::string text = {};   // as people read it; in CSV too, unless there is
    std::string exact = {};  // what CSV has instead: all digits

    Cell() = default;
    Cell(std::string shown) : text(std::move(shown)) {}  // NOLINT
    Cell(const char* shown) : text(shown) {}             // NOLINT
    Cell(std::string shown, std::string in_csv) : text(std::move(shown)), exact(std::move(in_csv)) {}
    /// A number with so many digits after the point; nothing for NaN. CSV has value / scale, all digits of it.
    Cell(double value, int digits, double scale = 1);
};

struct Column {
    std::string title;
    std::string csv = {};      // its name in CSV; the title where empty
    bool is_number = false;    // stands right
    bool is_for_print = true;  // also in LaTeX; else in CSV and HTML alone
};

struct ReportTable {
    std::string caption = {};
    std::vector<Column> columns = {};
    std::vector<std::vector<Cell>> rows = {};  // each as long as columns
    std::vector<size_t> groups = {};           // rows that begin a group: a rule stands above them
};

std::string to_csv(const ReportTable& table);

/// What LaTeX takes for commands becomes plain characters.
std::string latex_text(std::string_view text);
/// A table environment with the rules of the package booktabs, to be put in with \input.
std::string to_latex(const ReportTable& table, std::string_view label);

/// For texts that hold tables between bars; the caption stands above.
std::string to_markdown(const ReportTable& table);

std::string html_text(std::string_view text);
std::string to_html(const ReportTable& table);

struct ReportFigure {
    std::string file;  // relative to the page
    std::string caption;
};

struct Report {
    std::string title = {};
    std::vector<std::string> paragraphs = {};  // what was done, what is missing
    std::vector<ReportTable> tables = {};
    std::vector<ReportFigure> figures = {};
    std::string command = {};  // that made it
};

/// One page, without scripts or anything from elsewhere but the figures beside it.
std::string to_page(const Report& report);

}  // namespace stipple::tasks::study
