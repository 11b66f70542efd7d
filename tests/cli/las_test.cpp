// `stipple convert` and `stipple info` on LAS files.

#include <filesystem>

#include "tests/cli/cli.h"
#include "tests/support/laz_writer.h"

namespace stipple::test {
namespace {

class CliLas : public CliTest {
protected:
    /// Points of a decimetre, with labels and colours.
    std::string scan() const {
        std::string text = "x,y,z,label,red,green,blue\n";
        for (int i = 0; i < 60; ++i)
            text += fmt::format("{:.1f},{:.1f},{:.1f},{},{},{},{}\n", 500000 + 0.1 * i, 4649776 + 0.3 * (i % 7),
                                0.1 * i, i % 3 + 1, 256 * i, 7 * 256, 255 * 256);
        expect_success(stipple({"convert", file("scan.csv", text), "-o", folder / "scan.las"}));
        return folder / "scan.las";
    }
    std::string content(const std::string& name) const { return read_file(folder / name); }
};

TEST_F(CliLas, FromLasToLasNothingChanges) {
    const std::string las = scan();
    expect_success(stipple({"convert", las, "-o", folder / "same.las"}));
    EXPECT_TRUE(content("same.las") == content("scan.las"));
    // By standard input, a file or a pipe, and from another format.
    expect_success(shell("$S convert - -o piped.las < scan.las", {.arguments = {}, .folder = folder.path()}));
    EXPECT_TRUE(content("piped.las") == content("scan.las"));
    expect_success(shell("cat scan.las | $S convert - -o cat.las", {.arguments = {}, .folder = folder.path()}));
    EXPECT_TRUE(content("cat.las") == content("scan.las"));
    expect_success(shell("$S convert - --from csv -o csv.las < scan.csv", {.arguments = {}, .folder = folder.path()}));
    EXPECT_TRUE(content("csv.las") == content("scan.las"));
    const LaunchResult dry = stipple({"convert", las, "-o", folder / "dry.las", "--dry-run"});
    EXPECT_TRUE(contains(dry.out, "would write")) << report(dry);
    expect_error(stipple({"convert", las, "-o", folder / "same.las"}), 4, "exists already");
}

TEST_F(CliLas, LazIsReadAsTheLasThatItWas) {
    const std::string las = read_file(scan());
    const auto* bytes = reinterpret_cast<const std::byte*>(las.data());
    LazOptions options;
    options.chunk_points = 25;
    const std::vector<std::byte> packed = to_laz({bytes, bytes + las.size()}, options);
    const std::string laz(reinterpret_cast<const char*>(packed.data()), packed.size());
    expect_success(stipple({"convert", file("scan.laz", laz), "-o", folder / "back.las"}));
    EXPECT_TRUE(content("back.las") == las);
    expect_success(shell("cat scan.laz | $S convert - -o piped.las", {.arguments = {}, .folder = folder.path()}));
    EXPECT_TRUE(content("piped.las") == las);
    expect_success(stipple({"convert", folder / "scan.laz", "-o", folder / "near.las", "--shift", "1", "2", "3"}));
    expect_success(stipple({"convert", folder / "scan.laz", "-o", folder / "scan.ply"}));
    const Json one = json_of(stipple({"info", folder / "scan.laz", "--json"}))["files"][0];
    const Json two = json_of(stipple({"info", folder / "scan.las", "--json"}))["files"][0];
    EXPECT_EQ(one["las"], two["las"]);
    EXPECT_EQ(one["bounds"], two["bounds"]);

    const LaunchResult written = stipple({"convert", folder / "scan.las", "-o", folder / "out.laz"});
    expect_error(written, 2, "LAZ is read, not written");
    EXPECT_TRUE(contains(written.err, "laszip -i out.las -o out.laz")) << report(written);
    expect_error(stipple({"info", file("cut.laz", laz.substr(0, laz.size() - 40))}), 3, "the file is cut off");
    expect_error(stipple({"info", file("text.laz", "1 2 3\n")}), 3, "not a LAS file");
    EXPECT_FALSE(std::filesystem::exists(folder / "out.laz"));
}

TEST_F(CliLas, GridsAndShifts) {
    const std::string las = scan();
    expect_success(
        stipple({"convert", las, "-o", folder / "fine.las", "--scale", "0.001", "--offset", "500000", "4649000", "0"}));
    const Json fine = json_of(stipple({"info", folder / "fine.las", "--json"}))["files"][0];
    EXPECT_EQ(fine["las"]["scale"], (std::vector<double>{0.001, 0.001, 0.001}));
    EXPECT_EQ(fine["las"]["offset"], (std::vector<double>{500000, 4649000, 0}));
    EXPECT_NEAR(fine["bounds"]["max"][0].get<double>(), 500005.9, 1e-6);
    expect_success(stipple({"convert", las, "-o", folder / "near.las", "--shift", "-500000", "-4649776", "0"}));
    const Json near = json_of(stipple({"info", folder / "near.las", "--json"}))["files"][0];
    EXPECT_NEAR(near["bounds"]["max"][0].get<double>(), 5.9, 1e-6);
    EXPECT_NEAR(near["bounds"]["min"][1].get<double>(), 0, 1e-6);

    expect_error(stipple({"convert", las, "-o", folder / "x.las", "--scale", "0"}), 2,
                 "--scale must be above 0, got 0");
    expect_error(stipple({"convert", las, "-o", folder / "x.las", "--scale", "1", "2"}), 2,
                 "--scale takes one number or three");
    expect_error(stipple({"convert", las, "-o", folder / "x.las", "--scale", "1e-12"}), 2,
                 "do not fit the integers of LAS");
    expect_error(stipple({"convert", las, "-o", folder / "x.ply", "--scale", "1"}), 2,
                 "--scale and --offset are for LAS");
    EXPECT_FALSE(std::filesystem::exists(folder / "x.las"));
}

TEST_F(CliLas, ShiftsOfPcdAreRemembered) {
    const LaunchResult made =
        stipple({"convert", scan(), "-o", folder / "s.pcd", "--shift", "-500000", "-4649776", "0"});
    EXPECT_EQ(made.exit_code, 0);
    EXPECT_TRUE(contains(content("s.pcd"), "# stipple origin 500000 4649776 0\n"));
    const Json back = json_of(stipple({"info", folder / "s.pcd", "--json"}))["files"][0];
    EXPECT_NEAR(back["bounds"]["max"][0].get<double>(), 500005.9, 1e-6);
}

TEST_F(CliLas, InfoTellsWhatTheFileIs) {
    const LaunchResult told = stipple({"info", scan()});
    for (const char* part : {"LAS 1.2, point format 2", "scale", "0.1 0.1 0.1", "coordinate system", "not told",
                             "unclassified, 20 points", "ground, 20 points", "low vegetation, 20 points"})
        EXPECT_TRUE(contains(told.out, part)) << part << "\n" << told.out;
    const Json las = json_of(stipple({"info", folder / "scan.las", "--json"}))["files"][0]["las"];
    EXPECT_EQ(las["version"], "1.2");
    EXPECT_EQ(las["classes"][1]["name"], "ground");
}

TEST_F(CliLas, ColoursOfSixteenBits) {
    const std::string las = scan();
    stipple({"convert", las, "-o", folder / "c.off"});  // which cannot hold labels and says so
    EXPECT_TRUE(contains(content("c.off"), " 3 7 255\n")) << content("c.off").substr(0, 200);
    stipple({"convert", las, "-o", folder / "c.ply", "--ascii"});
    EXPECT_TRUE(contains(content("c.ply"), "property uchar red"));
    stipple({"convert", las, "-o", folder / "k.ply", "--ascii", "--keep-16-bit"});
    EXPECT_TRUE(contains(content("k.ply"), "property ushort red"));
}

}  // namespace
}  // namespace stipple::test
