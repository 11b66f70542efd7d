// Every metric is in the registry, has a contract, tests and a line in docs/metrics.md.

#include "stipple/metrics/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/metrics/metrics.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;
using metrics::MetricInfo;

const fs::path kRoot = STIPPLE_SOURCE_DIR;

TEST(MetricsRegistry, NamesAreUniqueAndRowsComplete) {
    std::set<std::string> names, groups;
    std::string group;
    for (const MetricInfo& info : metrics::registry()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name << " is there twice";
        if (group != info.group) {
            EXPECT_TRUE(groups.insert(info.group).second) << info.group << " is in two parts";
        }
        group = info.group;
        EXPECT_STRNE(info.formula, "") << info.name;
        EXPECT_STRNE(info.unit, "") << info.name;
        const std::string stem = fs::path(info.header).stem().string();
        EXPECT_TRUE(fs::exists(kRoot / "stipple/metrics" / info.header)) << info.name;
        EXPECT_TRUE(fs::exists(kRoot / "tests/metrics" / (stem + "_test.cpp"))) << info.name;
    }
}

TEST(MetricsRegistry, TheDocumentHoldsTheTable) {
    const std::string document = read_file((kRoot / "docs/metrics.md").string());
    EXPECT_NE(document.find(metrics::registry_markdown()), std::string::npos) << "docs/metrics.md must hold:\n"
                                                                              << metrics::registry_markdown();
}

TEST(MetricsRegistry, ScoresTakeTheirWordsFromIt) {
    const metrics::Score score = metrics::make_score("f_score", 0.5, "none", {}, "r = 0.01");
    EXPECT_EQ(score.name, "f_score");
    EXPECT_EQ(score.convention, "2 P R / (P + R), r = 0.01");
    EXPECT_EQ(score.unit, "ratio");
    EXPECT_EQ(score.better, metrics::Better::higher);
    EXPECT_EQ(metrics::make_score("p2f_mean", 1, "none", "p2f").name, "p2f");
    EXPECT_EQ(bad_argument_of([] { metrics::make_score("cd", 1, "none"); }), "no metric is called cd");
    EXPECT_EQ(metrics::find({&score, 1}, "f_score"), &score);
    EXPECT_EQ(metrics::find({&score, 1}, "cd"), nullptr);
}

}  // namespace
}  // namespace stipple::test
