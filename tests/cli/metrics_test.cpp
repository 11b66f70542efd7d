// stipple metrics: scores with their conventions, folders and their pairs, limits for CI, errors of points.

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/cli/cli.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

namespace fs = std::filesystem;

/// Four points of the plane z = height, and one that is off it by 0.3.
std::string square(double height, double off = 0) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += fmt::format("{} {} {}\n", i & 1, i >> 1, height + (i == 3 ? off : 0));
    return text;
}

constexpr const char* kPlane = "OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n3 0 1 2\n3 1 3 2\n";

class CliMetrics : public CliTest {
protected:
    /// A file in a folder of the test's folder.
    std::string in(const std::string& sub, const std::string& name, std::string_view text) const {
        fs::create_directories(folder / sub);
        return file(sub + "/" + name, text);
    }
    /// Two shapes: pred/, truth/ and meshes/. Distances are 0.1 for one, 0.3 for the other.
    void make_set() const {
        in("pred", "a.xyz", square(0.1));
        in("pred", "b.xyz", square(0.3));
        for (const char* name : {"a.xyz", "b.xyz"}) in("truth", name, square(0));
        for (const char* name : {"a.off", "b.off"}) in("meshes", name, kPlane);
    }
    Json json(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), "metrics");
        arguments.push_back("--json");
        return json_of(stipple(arguments));
    }
    static double value(const Json& result, const std::string& name) {
        for (const Json& score : result["scores"])
            if (score["name"] == name) return score["value"];
        ADD_FAILURE() << "no score " << name << " in " << result.dump(2);
        return -1;
    }
};

TEST_F(CliMetrics, EachProtocolHasItsConventions) {
    const std::string pred = file("p.xyz", square(0.1, 0.1)), truth = file("t.xyz", square(0)),
                      mesh = file("m.off", kPlane);
    // Distances 0.1, 0.1, 0.1, 0.2, the same both ways.
    const double mean_squared = (3 * 0.01 + 0.04) / 4;
    const Json pudm = json({pred, truth, "--mesh", mesh, "--protocol", "pudm"});
    EXPECT_EQ(pudm["command"], "metrics");
    EXPECT_EQ(pudm["protocol"], "pudm");
    EXPECT_NEAR(value(pudm, "cd"), mean_squared, 1e-8);
    EXPECT_NEAR(value(pudm, "hd"), 0.04, 1e-8);
    EXPECT_NEAR(value(pudm, "p2f"), 0.125, 1e-8);
    const Json gan = json({pred, truth, "--mesh", mesh});
    EXPECT_EQ(gan["protocol"], "pu-gan");
    EXPECT_NEAR(value(gan, "cd_raw"), 2 * mean_squared, 1e-8);
    EXPECT_NEAR(value(gan, "hd_raw"), 0.08, 1e-8);
    EXPECT_NEAR(value(gan, "p2f"), 0.125, 1e-8);
    EXPECT_LT(value(gan, "cd"), 0.5 * value(gan, "cd_raw"));  // the spheres' middles coincide
    const Json raw = json({pred, truth, "--protocol", "raw"});
    EXPECT_NEAR(value(raw, "chamfer_squared_sum"), 2 * mean_squared, 1e-8);
    EXPECT_NEAR(value(raw, "chamfer_l1_half"), 0.125, 1e-8);
    EXPECT_NEAR(value(raw, "hausdorff"), 0.2, 1e-7);
    for (const Json& result : {pudm, gan, raw})
        for (const Json& score : result["scores"])
            for (const char* field : {"metric", "unit", "convention", "normalisation", "better"})
                EXPECT_TRUE(score[field].is_string() && score[field] != "") << score;
}

TEST_F(CliMetrics, PeopleReadUnitsAndConventions) {
    const std::string pred = file("p.xyz", square(0.1)), truth = file("t.xyz", square(0));
    const LaunchResult result = stipple({"metrics", pred, truth, "--mesh", file("m.off", kPlane), "--floor"});
    expect_success(result);
    for (const char* part : {"protocol pu-gan", "x1e-3", "length^2", "mean_p d^2 + mean_t d^2", "largest radius",
                             "in units of the mesh", "floor: 4 farthest points of the mesh"})
        EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
    const LaunchResult raw = stipple({"metrics", pred, truth, "--protocol", "raw", "-q"});
    expect_success(raw);
    EXPECT_FALSE(contains(raw.out, "x1e-3")) << raw.out;  // plain numbers
    const LaunchResult table = stipple({"metrics", pred, truth, "--protocol", "pudm", "--table", "csv"});
    expect_success(table);
    EXPECT_EQ(lines_of(table.out)[0], "score,value,unit,normalisation,convention");
    EXPECT_EQ(lines_of(table.out)[1].rfind("cd,0.01", 0), 0u) << table.out;
}

TEST_F(CliMetrics, FoldersArePairedByName) {
    make_set();
    in("truth", "notes.md", "no cloud");  // neither is hidden nor unknown
    in("truth", ".hidden.xyz", "1 2 3\n");
    const std::vector<std::string> call = {folder / "pred",   folder / "truth", "--mesh",
                                           folder / "meshes", "--protocol",     "pudm"};
    const Json result = json(call);
    EXPECT_EQ(result["shapes"], 2);
    EXPECT_NEAR(value(result, "cd"), (0.01 + 0.09) / 2, 1e-8);
    EXPECT_NEAR(value(result, "p2f"), 0.2, 1e-8);
    ASSERT_EQ(result["per_shape"].size(), 2u);
    EXPECT_EQ(result["per_shape"][1]["shape"], "b");
    EXPECT_NEAR(result["per_shape"][1]["scores"]["hd"], 0.09, 1e-8);
    std::vector<std::string> text = call;
    text.insert(text.begin(), "metrics");
    const LaunchResult printed = stipple(text);
    expect_success(printed);
    EXPECT_TRUE(contains(printed.out, "cd x1e-3")) << printed.out;
    EXPECT_TRUE(contains(printed.out, "all 2")) << printed.out;
    text.insert(text.end(), {"--table", "csv"});
    const std::vector<std::string> rows = lines_of(stipple(text).out);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[0], "shape,points,truth,cd,hd,p2f");
    EXPECT_EQ(rows[3].rfind("all 2,8,8,0.05", 0), 0u) << rows[3];
    // Clouds of meshes are their vertices, and that is told once.
    const LaunchResult meshes = stipple({"metrics", folder / "meshes", folder / "truth", "--protocol", "pudm"});
    EXPECT_EQ(meshes.exit_code, 0);
    EXPECT_EQ(meshes.err, "stipple: warning: " + (folder / "meshes/a.off") +
                              " and 1 more have faces: only their vertices are compared\n");
    // Extensions do not matter.
    fs::rename(folder / "pred/a.xyz", folder / "pred/a.txt");
    EXPECT_EQ(json(call)["shapes"], 2);
}

TEST_F(CliMetrics, MissingPairsAreErrors) {
    make_set();
    const std::string pred = folder / "pred", truth = folder / "truth", meshes = folder / "meshes";
    for (const char* name : {"c.xyz", "d.xyz", "e.xyz", "f.xyz"}) in("truth", name, square(0));
    const LaunchResult many = stipple({"metrics", pred, truth});
    expect_error(many, 3, "pred: files are missing for 4 of 6 truths: c, d, e and 1 more");
    EXPECT_TRUE(contains(many.err, "paired by their names"));
    in("pred", "zoo.xyz", square(0));
    expect_error(stipple({"metrics", pred, truth}), 3, "truth: a file is missing for 1 of 3 predictions: zoo");
    in("one", "a.xyz", square(0));
    in("one_mesh", "b.off", kPlane);
    expect_error(stipple({"metrics", folder / "one", folder / "one", "--mesh", folder / "one_mesh"}), 3,
                 "one_mesh: a file is missing for 1 of 1 shapes: a");
    fs::create_directories(folder / "empty");
    expect_error(stipple({"metrics", folder / "empty", truth}), 3, "empty: is a folder without clouds");
    in("twice", "a.xyz", square(0));
    in("twice", "a.txt", square(0));
    expect_error(stipple({"metrics", folder / "twice", truth}), 2, "would both be the shape a");
    expect_error(stipple({"metrics", pred, truth + "/a.xyz"}), 2, "give two files or two folders");
    expect_error(stipple({"metrics", pred, truth, "--mesh", meshes + "/a.off"}), 2, "a folder is wanted");
    expect_error(stipple({"metrics", pred + "/a.xyz", truth + "/a.xyz", "--mesh", meshes}), 2, "a file is wanted");
    expect_error(stipple({"metrics", folder / "nowhere", truth}), 3, "nowhere: cannot open: No such file");
    expect_error(stipple({"metrics", pred}), 2, "TRUTH is missing: which file or folder?");
}

TEST_F(CliMetrics, BadFilesAreNamed) {
    const std::string good = file("good.xyz", square(0)), bad = file("bad.xyz", "0 0 0\nnan 0 0\n1 1 1\n");
    const LaunchResult refused = stipple({"metrics", bad, good});
    expect_error(refused, 3, "bad.xyz: 1 of 3 points are not finite");
    EXPECT_TRUE(contains(refused.err, "--drop-nonfinite"));
    const LaunchResult dropped = stipple({"metrics", bad, good, "--drop-nonfinite", "--json"});
    EXPECT_EQ(dropped.exit_code, 0);
    EXPECT_EQ(json_of(dropped)["per_shape"][0]["points"], 2);
    expect_error(stipple({"metrics", good, good, "--mesh", good}), 3, "no faces: a mesh is wanted");
    expect_error(stipple({"metrics", good, file("none.xyz", "nan nan nan\n")}), 3, "none.xyz: has no finite points");
    expect_error(stipple({"metrics", good, file("cut.ply", "ply\n")}), 3, "cut.ply");
    // Sizes that differ are told once.
    const LaunchResult sizes = stipple({"metrics", good, file("more.xyz", square(0) + "5 5 5\n")});
    EXPECT_EQ(sizes.exit_code, 0);
    EXPECT_EQ(lines_of(sizes.err).size(), 1u) << sizes.err;
    EXPECT_TRUE(contains(sizes.err, "good: 4 points against 5")) << sizes.err;
}

TEST_F(CliMetrics, ChoosesMetrics) {
    const std::string pred = file("p.xyz", square(0.1, 0.1)), truth = file("t.xyz", square(0)),
                      mesh = file("m.off", kPlane);
    const auto names = [&](const std::string& words, std::vector<std::string> more = {}) {
        more.insert(more.begin(), {pred, truth, "--mesh", mesh, "--metrics", words});
        std::vector<std::string> found;
        const Json result = json(more);
        for (const Json& score : result["scores"]) found.push_back(score["name"]);
        return found;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names("hd,cd"), (Names{"cd", "hd"}));
    EXPECT_EQ(names("p2f, emd"), (Names{"p2f", "emd_auction"}));
    EXPECT_EQ(names("hausdorff"), (Names{"hausdorff"}));
    EXPECT_EQ(names("f_score,recall"), (Names{"f_score", "recall"}));
    EXPECT_EQ(names("chamfer").size(), 9u);
    EXPECT_EQ(names("p2f,p2f_max", {"--protocol", "raw"}), (Names{"p2f_mean", "p2f_max"}));
    EXPECT_NEAR(value(json({pred, truth, "--metrics", "f_score", "--radius", "0.15", "--protocol", "pudm"}), "f_score"),
                0.75, 1e-9);
    const LaunchResult unknown = stipple({"metrics", pred, truth, "--metrics", "cd,hausdorf"});
    expect_error(unknown, 2, "--metrics: no metric is called \"hausdorf\"");
    EXPECT_TRUE(contains(unknown.err, "did you mean hausdorff?")) << unknown.err;
    EXPECT_TRUE(contains(unknown.err, "emd_exact")) << unknown.err;
    expect_error(stipple({"metrics", pred, truth, "--metrics", "cd,,hd"}), 2, "a name is missing");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "p2f"}), 2, "the metric p2f needs --mesh");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "uniformity"}), 2, "needs --mesh");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "normals"}), 2, "p.xyz: normals needs normals");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "rotation_error"}), 2, "no metric is called");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "cd", "--protocol", "raw"}), 2,
                 "--protocol raw has no cd");
    expect_error(stipple({"metrics", pred, truth, "--metrics", "cd", "--radius", "1"}), 2, "--radius is for f_score");
    expect_error(stipple({"metrics", pred, truth, "--protocol", "pu-net"}), 2, "pu-net");
}

TEST_F(CliMetrics, LimitsDecideTheExitStatus) {
    make_set();
    const std::vector<std::string> call = {"metrics", folder / "pred", folder / "truth", "--protocol", "pudm"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = call;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return stipple(arguments);
    };
    expect_success(with({"--fail-above", "cd=0.06,hd=0.06"}));
    const LaunchResult failed = with({"--fail-above", "cd=0.06,hd=0.04"});
    EXPECT_EQ(failed.exit_code, 7);
    EXPECT_EQ(failed.err, "stipple: hd is 0.05, above the limit 0.04\n");
    EXPECT_TRUE(contains(failed.out, "all 2")) << failed.out;  // the scores are there to be read
    const Json object = json_of(with({"--fail-above", "hd=0.04", "--json"}));
    EXPECT_EQ(object["ok"], false);
    EXPECT_EQ(object["error"]["code"], "check_failed");
    EXPECT_NEAR(value(object, "hd"), 0.05, 1e-8);
    const LaunchResult below = with({"--fail-below", "f_score=0.9", "--radius", "0.2"});
    EXPECT_EQ(below.exit_code, 7);
    EXPECT_EQ(below.err, "stipple: f_score is 0.5, below the limit 0.9\n");
    const auto refused = [&](const std::vector<std::string>& more, const std::string& text) {
        expect_error(with(more), 2, text);
    };
    refused({"--fail-above", "dc=1"}, "--fail-above: no metric is called \"dc\"");
    refused({"--fail-above", "cd"}, "\"cd\": expected METRIC=NUMBER");
    refused({"--fail-above", "cd=low"}, "expected METRIC=NUMBER");
    refused({"--fail-above", "cd=nan"}, "expected METRIC=NUMBER");
    refused({"--fail-above", "f_score=0.9"}, "f_score is better the higher it is");
    refused({"--fail-below", "cd=1"}, "cd is better the lower it is");
    refused({"--fail-above", "surface=1", "--mesh", folder / "meshes"}, "a group of metrics");
    refused({"--fail-above", "p2f=1"}, "there is no p2f to compare");
}

TEST_F(CliMetrics, WritesAndDrawsErrors) {
    make_set();
    const std::string pred = folder / "pred", truth = folder / "truth", meshes = folder / "meshes";
    const LaunchResult one = stipple({"metrics", pred + "/a.xyz", truth + "/a.xyz", "--mesh", meshes + "/a.off",
                                      "--errors-to", folder / "err.ply", "--picture", folder / "err.png"});
    expect_success(one);
    EXPECT_TRUE(contains(one.out, "wrote " + (folder / "err.ply") + ": 4 points with their errors\n")) << one.out;
    io::Warnings warnings;
    const PointCloud cloud = io::load_cloud(folder / "err.ply", {}, warnings);
    for (const char* name : {"error_to_truth", "error_to_mesh"}) {
        const Attribute* error = find(cloud.attributes, name);
        ASSERT_TRUE(error) << name;
        for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(error->value(i), 0.1, 1e-7);
    }
    EXPECT_EQ(json_of(stipple({"info", folder / "err.png", "--json"}))["files"][0]["format"], "PNG");
    expect_error(stipple({"metrics", pred, truth, "--errors-to", folder / "all.ply"}), 2,
                 "2 shapes need a folder that exists");
    fs::create_directories(folder / "errors");
    expect_success(
        stipple({"metrics", pred, truth, "--errors-to", folder / "errors", "--picture", folder / "all.png"}));
    EXPECT_TRUE(fs::exists(folder / "errors/a.ply") && fs::exists(folder / "errors/b.ply"));
    EXPECT_TRUE(fs::exists(folder / "all.png"));
    expect_error(stipple({"metrics", pred, truth, "--errors-to", folder / "errors"}), 4, "exists already");
    expect_success(stipple({"metrics", pred, truth, "--errors-to", folder / "errors", "--overwrite", "--dry-run"}));
}

TEST_F(CliMetrics, ListsEveryMetric) {
    const LaunchResult list = stipple({"metrics", "--list"});
    expect_success(list);
    const Json json = json_of(stipple({"metrics", "--list", "--json"}));
    EXPECT_GT(json["metrics"].size(), 40u);
    for (const Json& metric : json["metrics"])
        for (const char* field : {"name", "formula", "unit"})
            EXPECT_TRUE(contains(list.out, metric[field])) << metric << list.out;
    const std::vector<std::string> rows = lines_of(stipple({"metrics", "--list", "--table", "csv"}).out);
    EXPECT_EQ(rows.size(), 1 + json["metrics"].size());
}

TEST_F(CliMetrics, TheSameForAnyThreads) {
    const std::string pred = cloud("p.ply", 3000), truth = save_as("t.ply", random_cloud(3000, 2));
    const std::vector<std::string> call = {"metrics", pred, truth, "--protocol", "raw", "--table", "json", "-q"};
    const auto with = [&](const std::string& threads) {
        std::vector<std::string> arguments = call;
        arguments.insert(arguments.end(), {"--threads", threads});
        return stipple(arguments).out;
    };
    const std::string one = with("1");
    EXPECT_GT(one.size(), 100u);
    EXPECT_EQ(one, with("3"));
}

TEST_F(CliMetrics, HelpFitsAScreenAndConfigReadsBack) {
    const LaunchResult help = stipple({"metrics", "--help"});
    expect_success(help);
    EXPECT_LE(lines_of(help.out).size(), 40u);
    for (const std::string& line : lines_of(help.out)) EXPECT_LE(line.size(), 105u) << line;
    EXPECT_TRUE(contains(help.out, "Example:\n  stipple metrics"));
    const LaunchResult config = stipple({"metrics", "--protocol", "pudm", "--metrics", "cd,hd", "--print-config"});
    expect_success(config);
    EXPECT_EQ(stipple({"metrics", "--print-config", "--config", file("m.toml", config.out)}).out, config.out);
}

TEST_F(CliMetrics, TheDevelopmentSet) {
    STIPPLE_NEEDS_DATA("upsample_dev");
    const std::string set = *data_file("upsample_dev");
    const Json result = json({set + "/input_2048", set + "/gt_8192", "--mesh", set + "/meshes", "-q"});
    EXPECT_EQ(result["shapes"], 14);
    // Inputs are subsets of the truth: one direction of the raw chamfer distance is 0.
    EXPECT_GT(value(result, "cd_raw"), 1e-4);
    EXPECT_LT(value(result, "p2f"), 0.01);
}

}  // namespace
}  // namespace stipple::test
