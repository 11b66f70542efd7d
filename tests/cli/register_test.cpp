// stipple register: what it finds, what it writes, and what it refuses.

#include <cmath>

#include "stipple/core/rng.h"
#include "tests/cli/cli.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

/// The corner of a room with things in it: nothing that slides along itself. Turned by `degrees` about z, then moved.
Mesh scene(int64_t n, uint64_t seed, double degrees = 0, const std::array<double, 3>& shift = {}) {
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    mesh.triangles = Array<int32_t, 2>({0, 3});
    const Rng rng(seed);
    const double c = std::cos(degrees * M_PI / 180), s = std::sin(degrees * M_PI / 180);
    for (int64_t i = 0; i < n; ++i) {
        const double u = rng.uniform(static_cast<uint64_t>(2 * i)) * 2,
                     v = rng.uniform(static_cast<uint64_t>(2 * i + 1));
        const double bump = 0.1 * std::sin(5 * u) * std::sin(4 * v);
        double p[3] = {};
        if (i % 3 == 0) p[0] = u, p[1] = v, p[2] = bump;
        if (i % 3 == 1) p[0] = u, p[1] = bump, p[2] = v;
        if (i % 3 == 2) p[0] = bump, p[1] = v, p[2] = u / 2;
        float* to = mesh.vertices.positions.data() + 3 * i;
        to[0] = static_cast<float>(c * p[0] - s * p[1] + shift[0]);
        to[1] = static_cast<float>(s * p[0] + c * p[1] + shift[1]);
        to[2] = static_cast<float>(p[2] + shift[2]);
    }
    return mesh;
}

class CliRegister : public CliTest {
protected:
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    const std::string target = save_as("target.ply", scene(6000, 1));
    const std::string source = save_as("source.ply", scene(6000, 1, 4, {0.05, -0.03, 0.02}));
};

TEST_F(CliRegister, LaysTheSourceOnTheTarget) {
    const LaunchResult result = stipple({"register", source, target, "-o", folder / "aligned.ply", "--transform-to",
                                         folder / "T.txt", "--picture", folder / "both.png", "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_TRUE(json["converged"]);
    EXPECT_NEAR(json["rotation_degrees"], 4, 1e-3);
    EXPECT_EQ(json["fitness"], 1);
    EXPECT_EQ(json["undetermined"], 0);
    EXPECT_EQ(json["transform"].size(), 4u);
    EXPECT_EQ(json["levels"].size(), 2u);
    EXPECT_EQ(json["history"].size(), json["iterations"]);
    EXPECT_EQ(json["outputs"].size(), 3u);
    const PointCloud aligned = load(folder / "aligned.ply"), wanted = load(target);
    ASSERT_EQ(aligned.size(), wanted.size());
    for (int64_t i = 0; i < aligned.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) ASSERT_NEAR(aligned.world(i, axis), wanted.world(i, axis), 2e-5) << i;
    expect_entries({"T.txt", "aligned.ply", "both.png", "source.ply", "target.ply"});
    // What was written is where it ends when it starts there, and the truth.
    const Json again = json_of(stipple({"register", source, target, "--init", folder / "T.txt", "--truth",
                                        folder / "T.txt", "--max-distance", "0.02", "--json"}));
    EXPECT_LT(again["truth"]["rotation_error_degrees"], 1e-3);
    EXPECT_LT(again["truth"]["translation_error"], 1e-4);
    EXPECT_LT(again["truth"]["rms_displacement"], 2e-5);
}

TEST_F(CliRegister, TellsPeopleAndTables) {
    const LaunchResult text = stipple({"register", source, target, "--metric", "point", "--kernel", "huber"});
    expect_success(text);
    for (const char* word : {"rotation", "translation", "fitness", "rmse", "iterations", "converged"})
        EXPECT_TRUE(contains(text.out, word)) << text.out;
    const LaunchResult table = stipple({"register", source, target, "--table", "csv"});
    expect_success(table);
    EXPECT_EQ(lines_of(table.out).size(), 2u) << table.out;
    const LaunchResult dry =
        stipple({"register", source, target, "-o", folder / "a.ply", "--transform-to", folder / "T.txt", "--dry-run"});
    expect_success(dry);
    EXPECT_TRUE(contains(dry.out, "would write")) << dry.out;
    expect_entries({"source.ply", "target.ply"});
}

TEST_F(CliRegister, OriginsAreNotLost) {
    Mesh far_target = scene(5000, 1), far_source = scene(5000, 1, 3, {0.02, 0.01, 0});
    far_target.vertices.origin = {500000, 4000000, 100};
    far_source.vertices.origin = {499998, 4000003, 100};
    const std::string a = save_as("far_source.ply", far_source), b = save_as("far_target.ply", far_target);
    const std::string start = file("start.txt", "1 0 0 2\n0 1 0 -3\n0 0 1 0\n0 0 0 1\n");
    const LaunchResult result =
        stipple({"register", a, b, "--init", start, "-o", folder / "out.ply", "--max-distance", "0.5", "--json"});
    expect_success(result);
    EXPECT_NEAR(json_of(result)["rotation_degrees"], 3, 1e-3);
    const PointCloud aligned = load(folder / "out.ply");
    for (int64_t i = 0; i < aligned.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            ASSERT_NEAR(aligned.world(i, axis), far_target.vertices.world(i, axis), 2e-5) << i;
}

TEST_F(CliRegister, MeshesKeepTheirFacesAndGapsAreCounted) {
    Mesh mesh = scene(3000, 1, 2);
    mesh.triangles = Array<int32_t, 2>({1, 3});
    for (int i = 0; i < 3; ++i) mesh.triangles.data()[i] = i;
    mesh.vertices.positions.data()[3 * 100] = NAN;
    const std::string input = save_as("mesh.ply", mesh);
    const LaunchResult result = stipple({"register", input, target, "-o", folder / "out.ply", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "1 of 3,000 points not finite, not registered")) << result.err;
    io::Warnings warnings;
    const Mesh moved = io::load(folder / "out.ply", {}, warnings);
    EXPECT_EQ(moved.faces(), 1);
    EXPECT_EQ(moved.vertices.size(), 3000);
}

TEST_F(CliRegister, TroubleIsTold) {
    const std::string far = save_as("far.ply", scene(1000, 1, 0, {100, 0, 0}));
    expect_error(stipple({"register", far, target, "--method", "icp", "-o", folder / "out.ply"}), 7,
                 "too little overlap: 0 pairs");
    const LaunchResult apart = stipple({"register", far, target, "--method", "icp", "--keep-failed", "--json"});
    EXPECT_EQ(apart.exit_code, 0) << report(apart);
    EXPECT_TRUE(contains(apart.err, "registration failed: too little overlap: 0 pairs")) << apart.err;
    EXPECT_TRUE(json_of(apart)["rmse"].is_null());
    EXPECT_EQ(json_of(apart)["verdict"], "failed");
    expect_error(
        stipple({"register", far, target, "--method", "icp", "-o", folder / "out.ply", "--require-convergence"}), 7,
        "too little overlap");
    expect_error(stipple({"register", source, target, "--method", "icp", "-o", folder / "out.ply", "--iterations", "1",
                          "--require-convergence"}),
                 7, "did not converge in 2 iterations");
    expect_error(
        stipple({"register", far, target, "--method", "icp", "-o", folder / "out.ply", "--min-fitness", "0.5"}), 7,
        "fitness 0.000 is below 0.500");
    const LaunchResult brief = stipple({"register", source, target, "--method", "icp", "--iterations", "1"});
    EXPECT_TRUE(contains(brief.err, "did not converge")) << brief.err;
    expect_entries({"far.ply", "source.ply", "target.ply"});
    Mesh floor;
    floor.vertices = PointCloud(900);
    floor.triangles = Array<int32_t, 2>({0, 3});
    for (int64_t i = 0; i < 900; ++i) {
        const float p[3] = {static_cast<float>(i % 30), static_cast<float>(i / 30), 0};
        std::copy_n(p, 3, floor.vertices.positions.data() + 3 * i);
    }
    const std::string flat = save_as("floor.ply", floor);
    EXPECT_TRUE(contains(stipple({"register", flat, flat, "--method", "icp"}).err,
                         "3 of 6 directions of motion are not determined"));
}

TEST_F(CliRegister, WrongPosesOfScansAreDoubtedAndLostOnesFail) {
    STIPPLE_NEEDS_DATA("scans/bunny");
    const std::string scans = *data_file("scans/bunny/");
    const LaunchResult half_turn =
        stipple({"register", scans + "bun180.ply", scans + "bun000.ply", "--method", "icp", "--keep-failed", "--json"});
    EXPECT_EQ(half_turn.exit_code, 0) << report(half_turn);
    EXPECT_NE(json_of(half_turn)["verdict"], "good");
    EXPECT_LT(json_of(half_turn)["confidence"], json_of(half_turn)["good_from"]);
    EXPECT_GE(json_of(half_turn)["reasons"].size(), 1u);  // it need not converge either
    // Front and back share next to nothing: a search of all poses says so.
    expect_error(stipple({"register", scans + "bun180.ply", scans + "bun000.ply", "-o", folder / "out.ply"}), 7,
                 "is below 0.20: surfaces overlap by");
    const LaunchResult eighth = stipple({"register", scans + "bun045.ply", scans + "bun000.ply", "--json"});
    expect_success(eighth);
    EXPECT_EQ(json_of(eighth)["verdict"], "good");
    STIPPLE_NEEDS_DATA("scans/kitti");
    const std::string sweep = *data_file("scans/kitti/000008.bin");
    const std::string turned = file("turn.txt", "-1 0 0 0\n0 -1 0 0\n0 0 1 0\n0 0 0 1\n");
    expect_error(stipple({"register", sweep, sweep, "--method", "icp", "--init", turned, "-o", folder / "out.ply"}), 7,
                 "too little overlap: 0 pairs");
    expect_entries({"source.ply", "target.ply", "turn.txt"});
}

TEST_F(CliRegister, RefusesWhatMakesNoSense) {
    const auto expect_bad = [&](std::vector<std::string> more, const std::string& text) {
        more.insert(more.begin(), {"register", source, target});
        expect_error(stipple(more), 2, text);
    };
    expect_bad({"--method", "fpfh"}, "--method must be one of auto, icp, global, learned, got");
    expect_bad({"--metric", "line"}, "--metric");
    expect_bad({"--kernel", "soft"}, "--kernel");
    expect_bad({"--kernel-scale", "-1"}, "--kernel-scale must be auto or above 0, got -1");
    expect_bad({"--scale", "large"}, "--scale must be auto or above 0, got \"large\"");
    expect_bad({"--voxel", "0.1"}, "--voxel needs --max-distance");
    expect_bad({"--voxel", "0.1", "0.2", "--max-distance", "1"}, "2 x --voxel for 1 x --max-distance");
    expect_bad({"--max-distance", "0"}, "--max-distance must be above 0, got 0");
    expect_bad({"--max-distance", "1", "--scale", "2"}, "--scale and --max-distance both choose the distances");
    expect_bad({"--trim", "0"}, "--trim must be above 0, to 1, got 0");
    expect_bad({"--min-fitness", "2"}, "--min-fitness must be 0 to 1, got 2");
    expect_bad({"--iterations", "-3"}, "--iterations must be from 0, got -3");
    expect_bad({"-o", folder / "out.what"}, "out.what");
    expect_bad({"--picture", folder / "out.jpg"}, "pictures are PNG");
    expect_error(stipple({"register", source}), 2, "TARGET is missing");
    const std::string broken = file("T.txt", "1 0 0\n");
    expect_error(stipple({"register", source, target, "--init", broken}), 3,
                 "T.txt: a transform has 16 numbers (or 12), found 3");
    expect_error(stipple({"register", source, target, "--truth", folder / "none.txt"}), 3, "none.txt");
    expect_error(stipple({"register", source, target, "--transform-to", broken}), 4, "T.txt");
    const std::string empty = file("empty.xyz", "nan nan nan\n");
    expect_error(stipple({"register", empty, target}), 3, "has no finite points");
    expect_error(stipple({"register", source, empty}), 3, "has no finite points");
}

}  // namespace
}  // namespace stipple::test
