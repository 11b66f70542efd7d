// Tables of studies: kept rows, means, published values, and their text.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/tasks/upsampling_study/ablations.h"
#include "stipple/tasks/upsampling_study/csv.h"
#include "stipple/tasks/upsampling_study/published.h"
#include "stipple/tasks/upsampling_study/report.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

using test::message_of;

Row row_of(const std::string& shape, uint64_t seed, int64_t points, double value) {
    Row row{.input = "c", .shape = shape, .method = "m", .seed = seed, .key = "k,\"1\"", .points = points};
    row.seconds = NAN;
    row.scores.fill(value);
    return row;
}

TEST(StudyReport, RowsSurviveAFile) {
    const test::TemporaryFolder folder;
    std::vector<Row> rows = {row_of("a", 0, 10, 0.1), row_of("b", 3, 20, 1.0 / 3)};
    rows[1].scores[6] = NAN;
    test::write_file(folder / "r.csv", rows_to_csv(rows));
    const std::vector<Row> read = load_rows(folder / "r.csv");
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].key, "k,\"1\"");
    EXPECT_EQ(read[1].seed, 3u);
    EXPECT_EQ(read[1].points, 20);
    EXPECT_EQ(read[1].scores[0], 1.0 / 3);
    EXPECT_TRUE(std::isnan(read[1].scores[6]));
    EXPECT_TRUE(std::isnan(read[0].seconds));
}

TEST(StudyReport, FilesThatAreNoTables) {
    const test::TemporaryFolder folder;
    const auto message = [&](const char* text) {
        test::write_file(folder / "r.csv", text);
        return message_of([&] { load_rows(folder / "r.csv"); });
    };
    EXPECT_TRUE(test::contains(message(""), "r.csv: is empty"));
    EXPECT_TRUE(test::contains(message("a,b\n1\n"), "r.csv:2: 1 cells in a table of 2 columns"));
    EXPECT_TRUE(test::contains(message("a,b\n1,\"2\n"), "r.csv:2: a quote has no end"));
    EXPECT_TRUE(test::contains(message("a,b\n1,2\n"), "has no column input"));
    std::string text = rows_to_csv({row_of("a", 0, 10, 0.25)});
    text.replace(text.find(",10,"), 4, ",ten,");
    EXPECT_TRUE(test::contains(message(text.c_str()), "\"ten\" is no number"));
}

TEST(StudyReport, MeansOverShapesThenSeeds) {
    // p2f, score 4, counts points; all others shapes.
    const std::vector<Mean> means =
        means_of({row_of("a", 0, 10, 1), row_of("b", 0, 30, 2), row_of("a", 1, 10, 3), row_of("b", 1, 30, 4)});
    ASSERT_EQ(means.size(), 1u);
    EXPECT_DOUBLE_EQ(means[0].mean[0], 2.5);
    EXPECT_DOUBLE_EQ(means[0].mean[4], (1.75 + 3.75) / 2);
    EXPECT_DOUBLE_EQ(means[0].deviation[0], std::sqrt(2.0));
    EXPECT_EQ(means[0].shapes, 2);
    EXPECT_EQ(means[0].seeds, 2);
    EXPECT_TRUE(std::isnan(means_of({row_of("a", 0, 10, 1)})[0].deviation[0]));
}

TEST(StudyReport, StoredRowsNameCommitAndCommand) {
    const test::TemporaryFolder folder;
    test::write_file(folder / "s.csv",
                     "# trained elsewhere\ninput,method,cd_raw,p2f,seeds,commit,command\n"
                     "c,mlp-decoder,0.0002,,5,abc1234,\"stipple train x, y\"\n");
    const std::vector<Mean> stored = load_stored(folder / "s.csv");
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0].source, "stored");
    EXPECT_EQ(stored[0].mean[2], 0.0002);
    EXPECT_TRUE(std::isnan(stored[0].mean[4]));
    EXPECT_TRUE(std::isnan(stored[0].mean[0]));
    EXPECT_EQ(stored[0].seeds, 5);
    EXPECT_EQ(stored[0].commit, "abc1234");
    EXPECT_EQ(stored[0].command, "stipple train x, y");
    const std::string missing = missing_ablations(stored);
    EXPECT_FALSE(test::contains(missing, "mlp-decoder"));
    EXPECT_TRUE(test::contains(missing, "no-likelihood, "));
    test::write_file(folder / "t.csv", "input,method,cd\nc,m,1\n");
    EXPECT_TRUE(test::contains(message_of([&] { load_stored(folder / "t.csv"); }), "has no column commit"));
}

TEST(StudyReport, PublishedValues) {
    EXPECT_EQ(published_for("c").size(), 7u);
    EXPECT_EQ(published_for("cs").size(), 7u);
    EXPECT_EQ(published_for("r").size(), 7u);
    EXPECT_EQ(published_for("x16").size(), 3u);
    EXPECT_TRUE(published_for("").empty());
    const Mean last = published_for("c").back();
    EXPECT_EQ(last.method, "PU-Gaussian (pu1k)");
    EXPECT_NEAR(last.mean[4], 1.37e-3, 1e-12);
    EXPECT_TRUE(std::isnan(last.mean[5]));
    EXPECT_TRUE(are_published_shapes({{"camel", "", ""}, {"pig", "", ""}}));
    EXPECT_FALSE(are_published_shapes({{"camel", "", ""}, {"own", "", ""}}));
}

ReportTable small_table() {
    ReportTable table{.caption = "50 % of a_b", .columns = {{"name"}, {"CD", "cd", true}, {"note", "", false, false}}};
    table.rows = {{"a & b", {0.25, 2, 1e3}, "x, y"}, {"<c>", {NAN, 2, 1e3}, ""}};
    table.groups = {0, 1};
    return table;
}

TEST(StudyReport, CsvHasAllDigits) {
    EXPECT_EQ(to_csv(small_table()), "name,cd,note\na & b,0.00025,\"x, y\"\n<c>,,\n");
    EXPECT_EQ(csv_cell("a\nb\"c"), "\"a b\"\"c\"");
    EXPECT_EQ(csv_text(csv_number("0.1")), "0.1");
}

TEST(StudyReport, LatexEscapes) {
    EXPECT_EQ(latex_text("a_b & 5 % $1 #2 {x} ~ ^ \\"),
              "a\\_b \\& 5 \\% \\$1 \\#2 \\{x\\} \\textasciitilde{} \\textasciicircum{} \\textbackslash{}");
    EXPECT_EQ(
        to_latex(small_table(), "noise"),
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}\n  \\centering\n  \\caption{50 \\% of a\\_b}\n  \\label{tab:noise}\n"
        "  \\begin{tabular}{lr}\n    \\toprule\n    name & CD \\\\\n    \\midrule\n    a \\& b & 0.25 \\\\\n"
        "    \\midrule\n    \\textless{}c\\textgreater{} &  \\\\\n    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

TEST(StudyReport, PageEscapes) {
    const std::string page = to_page({.title = "A <b>",
                                      .paragraphs = {"x & y"},
                                      .tables = {small_table()},
                                      .figures = {{"e.png", "\"errors\""}},
                                      .command = "stipple study 'a b'"});
    for (const char* part :
         {"<h1>A &lt;b&gt;</h1>", "<p>x &amp; y</p>", "<td>&lt;c&gt;</td>", "<td class=\"n\">0.25</td>",
          "<img src=\"e.png\" alt=\"&quot;errors&quot;\">", "<pre>stipple study &#39;a b&#39;</pre>"})
        EXPECT_TRUE(test::contains(page, part)) << part;
    EXPECT_FALSE(test::contains(page, "<script"));
}

}  // namespace
}  // namespace stipple::tasks::study
