// What commands do with what a format can and cannot hold: products, clouds of no points.

#include <filesystem>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliFormats : public CliTest {
protected:
    std::string points() const { return file("a.xyz", "0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 0 1\n1 0 1\n"); }
    std::string no_points() const {
        return file("none.ply",
                    "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\n"
                    "end_header\n");
    }
};

TEST_F(CliFormats, AProductThatTheFormatCannotHoldIsRefusedBeforeAnyWork) {
    const std::string input = points(), none = folder / "none.xyz";  // which is not there: nothing is read
    for (const char* name : {"n.xyz", "n.bin", "n.npy", "n.pts", "n.xyzrgb"}) {
        const LaunchResult result = stipple({"normals", none, "-o", folder / name});
        expect_error(result, 2, "cannot hold the attribute normal");
        EXPECT_TRUE(contains(result.err, "formats that can: .ply, .xyzn, ")) << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder / name));
    }
    expect_error(stipple({"segment", "--model", folder / "no.safetensors", input, "-o", folder / "s.bin"}), 2,
                 "s.bin: KITTI cannot hold the attribute label");
    expect_error(stipple({"metrics", input, input, "--errors-to", folder / "e.xyz"}), 2,
                 "e.xyz: XYZ cannot hold the attribute error_to_truth");
    expect_error(stipple({"mesh", "distance", none, none, "-o", folder / "d.xyz"}), 2,
                 "d.xyz: XYZ cannot hold the attribute distance");

    expect_success(stipple({"normals", input, "--k", "3", "-o", folder / "n.xyzn"}));
    io::Warnings warnings;
    EXPECT_TRUE(find(io::load(folder / "n.xyzn", {}, warnings).vertices.attributes, "normal"));
    // What is no product may be lost, with a warning.
    const LaunchResult thinned = stipple({"sample", folder / "n.xyzn", "-n", "3", "-o", folder / "few.xyz"});
    EXPECT_EQ(thinned.exit_code, 0) << report(thinned);
    EXPECT_TRUE(contains(thinned.err, "XYZ cannot hold attribute normal: dropped")) << thinned.err;
}

TEST_F(CliFormats, CloudsOfNoPointsAreReadAndWritten) {
    const std::string none = no_points();
    EXPECT_EQ(json_of(stipple({"info", none, "--json"}))["files"][0]["points"], 0);
    for (const char* name : {"b.ply", "b.pcd", "b.las", "b.npy", "b.npz", "b.off", "b.pts"}) {
        expect_success(stipple({"convert", none, "-o", folder / name}));
        expect_success(stipple({"info", folder / name}));
        expect_success(stipple({"convert", folder / name, "-o", folder / "again.ply", "--overwrite"}));
    }
    expect_success(stipple({"convert", none, "-o", folder / "c.ply", "--drop-nonfinite"}));
    expect_success(stipple({"normals", none, "-o", folder / "n.ply"}));
    expect_error(stipple({"convert", none, "-o", folder / "b.xyz"}), 2, "b.xyz: XYZ cannot hold a cloud of no points");
    EXPECT_FALSE(std::filesystem::exists(folder / "b.xyz"));
    expect_success(stipple({"picture", none, "-o", folder / "b.png", "--size", "64"}));
}

TEST_F(CliFormats, CommandsThatNeedPointsSaySoInOneLine) {
    const std::string none = no_points(), some = points();
    const std::vector<std::vector<std::string>> calls = {
        {"sample", none, "-n", "1", "-o", folder / "o.ply"},
        {"clean", none, "-o", folder / "o.ply"},
        {"register", none, some, "-o", folder / "o.ply"},
        {"register", some, none, "-o", folder / "o.ply"},
        {"metrics", none, some},
        {"metrics", some, none},
        {"mesh", "info", none},
        {"mesh", "surface", none, "-o", folder / "o.ply"},
    };
    for (const std::vector<std::string>& call : calls) {
        const LaunchResult result = stipple(call);
        EXPECT_TRUE(result.exit_code == 2 || result.exit_code == 3) << call[0] << ' ' << result.exit_code;
        EXPECT_TRUE(contains(result.err, "none.ply")) << call[0] << ": " << result.err;
        EXPECT_LE(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder / "o.ply")) << call[0];
    }
}

TEST_F(CliFormats, NothingRemovedIsNotWrittenWhereTheFormatCannotSayIt) {
    const std::string input = points();
    const LaunchResult result =
        stipple({"clean", input, "-o", folder / "c.xyz", "--removed-to", folder / "rest.xyz", "--method", "nonfinite"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "rest.xyz: not written, nothing was removed")) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "rest.xyz"));
}

}  // namespace
}  // namespace stipple::test
