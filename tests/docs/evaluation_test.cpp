// docs/evaluation.md: what a default was tuned on does not judge it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

struct Row {
    std::string what;
    std::vector<std::string> tuned, judged;
};

/// Returns what stands between pairs of backticks.
std::vector<std::string> names_in(const std::string& cell) {
    std::vector<std::string> names;
    for (size_t begin = cell.find('`'); begin != std::string::npos;) {
        const size_t end = cell.find('`', begin + 1);
        names.push_back(cell.substr(begin + 1, end - begin - 1));
        begin = cell.find('`', end + 1);
    }
    return names;
}

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    for (size_t begin = 1; begin < line.size();) {
        const size_t end = line.find('|', begin);
        if (end == std::string::npos) break;
        cells.push_back(line.substr(begin, end - begin));
        begin = end + 1;
    }
    return cells;
}

std::vector<Row> rows_of(const std::string& text) {
    std::vector<Row> rows;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::vector<std::string> cells = cells_of(text.substr(begin, end - begin));
        if (cells.size() == 4 && text[begin] == '|' && cells[0].find('`') != std::string::npos)
            rows.push_back({cells[0], names_in(cells[1]), names_in(cells[2])});
        begin = end + 1;
    }
    return rows;
}

/// Whether one is the other, or contains it: a/b contains a/b/c and a/b:train.
bool overlap(const std::string& a, const std::string& b) {
    const std::string &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
    if (!longer.starts_with(shorter)) return false;
    return longer.size() == shorter.size() || longer[shorter.size()] == '/' || longer[shorter.size()] == ':';
}

TEST(Evaluation, NothingJudgesWhatItTuned) {
    const std::vector<Row> rows = rows_of(read_file(std::string(STIPPLE_SOURCE_DIR) + "/docs/evaluation.md"));
    ASSERT_GE(rows.size(), 9u);
    for (const Row& row : rows) {
        EXPECT_FALSE(row.tuned.empty()) << row.what;
        EXPECT_FALSE(row.judged.empty()) << row.what;
        for (const std::string& tuned : row.tuned)
            for (const std::string& judged : row.judged)
                EXPECT_FALSE(overlap(tuned, judged)) << row.what << ": " << tuned << " and " << judged;
    }
}

TEST(Evaluation, OverlapIsFound) {
    EXPECT_TRUE(overlap("real/scans", "real/scans"));
    EXPECT_TRUE(overlap("real/scans/a", "real/scans"));
    EXPECT_TRUE(overlap("modelnet40", "modelnet40:test"));
    EXPECT_FALSE(overlap("modelnet40:train", "modelnet40:test"));
    EXPECT_FALSE(overlap("real/scans", "real/scanners"));
    const std::vector<Row> rows = rows_of("| `x`: y | `a/b`, `c` | `a` (old) | z |\n|---|---|---|---|\n");
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].tuned, (std::vector<std::string>{"a/b", "c"}));
    EXPECT_TRUE(overlap(rows[0].tuned[0], rows[0].judged[0]));
}

}  // namespace
}  // namespace stipple::test
