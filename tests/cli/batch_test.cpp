// Several inputs in one call: one that cannot be read is reported, the others are done.

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliBatch : public CliTest {
protected:
    int64_t error_lines(const LaunchResult& result) const {
        int64_t count = 0;
        for (size_t at = result.err.find("stipple: "); at != std::string::npos;
             at = result.err.find("stipple: ", at + 1))
            ++count;
        return count;
    }
};

TEST_F(CliBatch, InfoDescribesTheOthers) {
    const std::string good = cloud("a.ply", 12), bad = file("b.ply", "ply\nnonsense"), more = cloud("c.xyz", 7);
    const LaunchResult text = stipple({"info", good, bad, folder / "none.las", more});
    EXPECT_EQ(text.exit_code, 3) << report(text);
    EXPECT_TRUE(contains(text.out, "a.ply") && contains(text.out, "c.xyz")) << text.out;
    EXPECT_EQ(error_lines(text), 3) << text.err;  // one each, and how many
    for (const char* part : {"b.ply", "none.las", "2 of 4 files could not be read"})
        EXPECT_TRUE(contains(text.err, part)) << text.err;
    // Not to be silenced as warnings are.
    EXPECT_EQ(error_lines(stipple({"info", good, bad, "-q"})), 2);
    const LaunchResult table = stipple({"info", good, bad, more, "--table", "csv"});
    EXPECT_EQ(lines_of(table.out).size(), 3u) << table.out;

    const LaunchResult result = stipple({"info", bad, good, "--json"});
    EXPECT_EQ(result.exit_code, 3);
    const Json json = json_of(result);
    EXPECT_EQ(json["ok"], false);
    EXPECT_EQ(json["files"].size(), 1u);
    EXPECT_EQ(json["files"][0]["points"], 12);
    ASSERT_EQ(json["errors"].size(), 1u);
    EXPECT_EQ(json["errors"][0]["code"], "bad_file");
    EXPECT_EQ(json["errors"][0]["path"], bad);
    EXPECT_EQ(json["error"]["message"], "1 of 2 files could not be read");
    EXPECT_FALSE(json_of(stipple({"info", good, more, "--json"})).contains("errors"));
}

TEST_F(CliBatch, MeshInfoAndConvertToo) {
    const std::string mesh = save_as("a.off", random_mesh(9)), points = cloud("b.ply", 5);
    const LaunchResult info = stipple({"mesh", "info", points, mesh, "--json"});
    EXPECT_EQ(info.exit_code, 3) << report(info);
    EXPECT_EQ(json_of(info)["meshes"].size(), 1u);
    EXPECT_TRUE(contains(info.err, "b.ply: has 5 points but no faces"));

    const std::string bad = file("c.ply", "broken");
    const LaunchResult converted =
        stipple({"convert", bad, points, mesh, "-o", folder.path() + "/", "--format", "npz", "--json"});
    EXPECT_EQ(converted.exit_code, 3) << report(converted);
    expect_entries({"a.off", "b.ply", "c.ply", "a.npz", "b.npz"});
    EXPECT_EQ(json_of(converted)["outputs"].size(), 2u);
    EXPECT_EQ(json_of(converted)["errors"].size(), 1u);
    // What is wrong for all ends it, before anything is written.
    expect_error(stipple({"convert", points, mesh, "-o", folder.path() + "/", "--format", "npy", "--from", "best"}), 2,
                 "best");
}

TEST_F(CliBatch, TheFirstFailureGivesTheStatus) {
    const std::string mesh = save_as("m.ply", random_mesh(9)), bad = file("c.ply", "broken");
    // Faces are a wrong argument here (2), a broken file is not (3).
    std::vector<std::string> call = {"convert",           mesh,       bad,   "-o",
                                     folder.path() + "/", "--format", "xyz", "--drop-nonfinite"};
    EXPECT_EQ(stipple(call).exit_code, 2);
    std::swap(call[1], call[2]);
    EXPECT_EQ(stipple(call).exit_code, 3);
}

TEST_F(CliBatch, ShippedWeightsAreFoundByName) {
    const LaunchResult result =
        stipple({"classify", "--device", "cpu", "--model", "pointnet-cls", cloud("a.ply", 60), "--json"});
    expect_success(result);
    EXPECT_EQ(json_of(result)["model"], "pointnet-classifier");
}

}  // namespace
}  // namespace stipple::test
