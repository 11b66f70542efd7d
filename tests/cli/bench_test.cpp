#include <set>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliBench : public CliTest {};

TEST_F(CliBench, ListNamesEveryOpOfTheProgram) {
    const LaunchResult result = stipple({"bench", "ops", "--list", "--device", "cpu", "--json"});
    expect_success(result);
    std::set<std::string> listed, known;
    const Json json = json_of(result);
    for (const Json& c : json["cases"]) listed.insert(c["op"].get<std::string>());
    const Json ops = json_of(stipple({"info", "--json"}))["ops"];
    for (const Json& op : ops)
        if (op["cpu"]) known.insert(op["name"].get<std::string>());
    EXPECT_FALSE(known.empty());
    EXPECT_EQ(listed, known);
}

TEST_F(CliBench, TimesTheOpsAskedFor) {
    const LaunchResult result = stipple({"bench", "ops", "--op", "gather", "--device", "cpu", "--quick", "--repeat",
                                         "2", "--threads", "1", "--json", "--progress", "never"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["command"], "bench");
    EXPECT_EQ(json["threads"], 1);
    EXPECT_EQ(json["device"], "cpu");
    EXPECT_GT(json["copy_gb_per_s"].get<double>(), 0.1);
    ASSERT_FALSE(json["cases"].empty());
    for (const Json& c : json["cases"]) {
        EXPECT_EQ(c["op"], "gather");
        EXPECT_GE(c["runs"].get<int>(), 2);
        EXPECT_GT(c["best_ms"].get<double>(), 0);
        EXPECT_GE(c["median_ms"].get<double>(), c["best_ms"].get<double>());
        EXPECT_NEAR(c["points_per_s"].get<double>() * c["best_ms"].get<double>() * 1e-3, c["points"].get<double>(), 1);
    }
    const LaunchResult table = stipple(
        {"bench", "ops", "--op", "gather", "--device", "cpu", "--quick", "--table", "md", "--progress", "never"});
    expect_success(table);
    EXPECT_EQ(lines_of(table.out).size(), json["cases"].size() + 2) << table.out;
    EXPECT_TRUE(contains(table.out, "best (ms)")) << table.out;
}

TEST_F(CliBench, RefusesWhatItDoesNotKnow) {
    expect_error(stipple({"bench", "ops", "--op", "knm"}), 2, "--op knm: no such op");
    expect_error(stipple({"bench", "opps"}), 2, "opps");
    expect_error(stipple({"bench", "ops", "--repeat", "0"}), 2, "--repeat");
}

TEST_F(CliBench, InfoTellsTheOps) {
    const LaunchResult table = stipple({"info", "--ops"});
    expect_success(table);
    const Json ops = json_of(stipple({"info", "--ops", "--json"}))["ops"];
    EXPECT_EQ(lines_of(table.out).size(), ops.size() + 1) << table.out;
    const std::string all = stipple({"info"}).out;
    EXPECT_TRUE(contains(all, std::to_string(ops.size()) + " ops\n")) << all;
    for (const Json& op : ops) {
        EXPECT_TRUE(contains(all, op["name"].get<std::string>())) << op;
        for (const char* key : {"cpu", "cuda", "gradient"}) EXPECT_TRUE(op[key].is_boolean()) << op;
        EXPECT_NE(op["cost"], "") << op;
    }
    EXPECT_EQ(stipple({"info", "--ops", "--markdown"}).out,
              read_file(std::string(STIPPLE_SOURCE_DIR) + "/docs/ops.md"));
    expect_error(stipple({"info", "a.ply", "--ops"}), 2, "takes no files");
}

}  // namespace
}  // namespace stipple::test
