#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/tasks/radiance_study/tables.h"
#include "tests/support/temporary_folder.h"

namespace stipple::tasks::study {
namespace {

using radiance::StepPath;

RadianceRow radiance_row(const std::string& scene, int64_t voxels, StepPath path, uint64_t seed, double psnr,
                         double seconds) {
    RadianceRow row;
    row.scene = scene;
    row.voxels = voxels;
    row.path = path;
    row.seed = seed;
    row.settings = "fine.pg_scale=[1000 2000], \"folder, with a comma\"";
    row.psnr = psnr;
    row.ssim = 0.9;
    row.seconds = seconds;
    row.ms_per_fine_step = seconds / 20;
    row.peak_bytes = 1234567890123;
    row.kept = 83000;
    row.parts = {{"march", seconds / 100}, {"Adam, mask: density", seconds / 50}};
    return row;
}

std::vector<RadianceRow> two_seeds() {
    return {radiance_row("lego", 160, StepPath::reference, 0, 34.5, 100),
            radiance_row("lego", 160, StepPath::reference, 1, 34.7, 110),
            radiance_row("lego", 160, StepPath::final, 0, 34.6, 8),
            radiance_row("lego", 160, StepPath::final, 1, 34.8, 8),
            radiance_row("mic", 160, StepPath::final, 0, 33.1, 5)};
}

TEST(RadianceStudy, MeansSpreadsAndSpeedups) {
    const std::vector<RadianceMean> means = radiance_means(two_seeds());
    ASSERT_EQ(means.size(), 3u);
    EXPECT_EQ(means[0].seeds, 2);
    EXPECT_DOUBLE_EQ(means[0].psnr, 34.6);
    EXPECT_NEAR(means[0].psnr_deviation, std::sqrt(0.02), 1e-12);
    EXPECT_DOUBLE_EQ(means[0].speedup, 1);
    EXPECT_DOUBLE_EQ(means[1].speedup, 105.0 / 8);
    EXPECT_DOUBLE_EQ(means[2].speedup, 1);  // of another scene
    EXPECT_TRUE(std::isnan(means[2].psnr_deviation));
    ASSERT_EQ(means[0].parts.size(), 2u);
    EXPECT_DOUBLE_EQ(means[0].parts[0].milliseconds, 1.05);
    EXPECT_EQ(minutes_text(59.6), "01:00");
    EXPECT_EQ(minutes_text(335), "05:35");
    EXPECT_EQ(minutes_text(NAN), "");
}

TEST(RadianceStudy, TablesHaveTheRowsOfTheLog) {
    const std::vector<RadianceMean> means = radiance_means(two_seeds());
    const auto options = [](int64_t voxels) { return radiance::parity_options(voxels); };
    const ReportTable table = radiance_table(means, options);
    ASSERT_EQ(table.rows.size(), 3u);
    EXPECT_EQ(table.groups, (std::vector<size_t>{0, 2}));
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
    const std::string csv = to_csv(table);
    EXPECT_NE(csv.find("lego,4096000,final,2,"), std::string::npos) << csv;
    EXPECT_NE(csv.find("5000,20000,\"1000,2000,3000,4000\""), std::string::npos) << csv;
    const std::string markdown = to_markdown(table);
    EXPECT_NE(markdown.find("| lego | 160^3 | final | 2 | 34.70 |"), std::string::npos) << markdown;
    EXPECT_NE(markdown.find("| 01:45 |"), std::string::npos) << markdown;
    EXPECT_NE(markdown.find("| 13.1x |"), std::string::npos) << markdown;
    EXPECT_EQ(markdown.find("SSIM"), std::string::npos);
    const ReportTable parts = radiance_parts_table(means);
    ASSERT_EQ(parts.rows.size(), 6u);
    EXPECT_EQ(parts.rows[1][3].text, "Adam, mask: density");
    EXPECT_EQ(parts.rows[1][5].text, "66.7");
    EXPECT_NE(to_markdown({.caption = "c", .columns = {{"a|b"}}, .rows = {{"x|y"}}}).find("| x\\|y |"),
              std::string::npos);
}

TEST(RadianceStudy, RowsReadBack) {
    const test::TemporaryFolder folder;
    const std::vector<RadianceRow> rows = two_seeds();
    test::write_file(folder / "results.csv", radiance_rows_to_csv(rows));
    EXPECT_EQ(load_radiance_rows(folder.path())[3].parts.size(), 0u);
    test::write_file(folder / "parts.csv", radiance_parts_to_csv(rows));
    const std::vector<RadianceRow> found = load_radiance_rows(folder.path());
    ASSERT_EQ(found.size(), rows.size());
    EXPECT_EQ(found[1].settings, rows[1].settings);
    EXPECT_EQ(found[1].path, StepPath::reference);
    EXPECT_EQ(found[1].peak_bytes, rows[1].peak_bytes);
    EXPECT_EQ(found[1].psnr, rows[1].psnr);
    ASSERT_EQ(found[4].parts.size(), 2u);
    EXPECT_EQ(found[4].parts[1].name, "Adam, mask: density");
    EXPECT_EQ(found[4].parts[1].milliseconds, rows[4].parts[1].milliseconds);
}

TEST(RadianceStudy, BrokenFilesAreRefusedByName) {
    const test::TemporaryFolder folder;
    const std::string good = radiance_rows_to_csv(two_seeds());
    const auto refused = [&](const std::string& text) {
        test::write_file(folder / "results.csv", text);
        try {
            load_radiance_rows(folder.path());
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
            return std::string(error.what()).find("results.csv") != std::string::npos;
        }
        return false;
    };
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    EXPECT_TRUE(refused(""));
    EXPECT_TRUE(refused("scene,voxels\nlego,160\n"));
    EXPECT_TRUE(refused("scene,voxels\n"));
    EXPECT_TRUE(refused(with("reference", "referenc")));
    EXPECT_TRUE(refused(with("lego,160", "lego,-1")));
    EXPECT_TRUE(refused(with("lego,160", "lego,1e300")));
    EXPECT_TRUE(refused(with("lego,160", "lego,nan")));
    EXPECT_TRUE(refused(with("34.5", "good")));
    EXPECT_TRUE(refused(good.substr(0, good.size() - 20)));
    EXPECT_FALSE(refused(good));
}

TEST(RadianceStudy, SettingsTellOptionsApart) {
    radiance::TrainOptions a = radiance::parity_options(160), b = a;
    EXPECT_EQ(settings_text(a), settings_text(b));
    b.fine.pg_scale.pop_back();
    EXPECT_NE(settings_text(a), settings_text(b));
    b = a;
    b.jitter = true;
    EXPECT_NE(settings_text(a), settings_text(b));
    b = a;
    b.coarse.lrate_density = 0.2f;
    EXPECT_NE(settings_text(a), settings_text(b));
}

}  // namespace
}  // namespace stipple::tasks::study
