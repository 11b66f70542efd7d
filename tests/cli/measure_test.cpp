// distance, stats, sample --spacing and mesh simplify.

#include <cmath>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliMeasure : public CliTest {
protected:
    PointCloud read(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
};

TEST_F(CliMeasure, DistanceBetweenCloudsOfDifferentOrigins) {
    Mesh a = random_cloud(200, 1), b = random_cloud(300, 2);
    a.vertices.origin = {700000, 5000000, 0};
    b.vertices.origin = {700001, 5000000, 0};
    for (int64_t i = 0; i < 300; ++i) b.vertices.positions.data()[3 * i] -= 1;
    b.vertices.positions.data()[6] = NAN;
    const std::string from = save_as("a.npz", a), to = save_as("b.npz", b);
    const LaunchResult result =
        stipple({"distance", from, to, "-o", folder / "d.ply", "--picture", folder / "d.png", "--json"});
    expect_success(result);
    const PointCloud measured = read(folder / "d.ply"), first = read(from), second = read(to);
    const Attribute *distance = find(measured.attributes, "distance"), *nearest = find(measured.attributes, "nearest");
    ASSERT_TRUE(distance && nearest);
    double sum = 0;
    for (int64_t i = 0; i < 200; ++i) {
        double best = HUGE_VAL;
        for (int64_t j = 0; j < 300; ++j) {
            double squares = 0;
            for (int axis = 0; axis < 3; ++axis) squares += std::pow(first.world(i, axis) - second.world(j, axis), 2);
            if (squares < best) best = squares;
        }
        ASSERT_NEAR(distance->value(i), std::sqrt(best), 1e-6) << i;
        double again = 0;
        for (int axis = 0; axis < 3; ++axis)
            again += std::pow(first.world(i, axis) - second.world(static_cast<int64_t>(nearest->value(i)), axis), 2);
        ASSERT_NEAR(std::sqrt(again), std::sqrt(best), 1e-6) << i;
        sum += std::sqrt(best);
    }
    EXPECT_NEAR(json_of(result)["distance"]["mean"].get<double>(), sum / 200, 1e-6);
    EXPECT_EQ(json_of(result)["inputs"], Json::array({from, to}));
}

TEST_F(CliMeasure, DistanceToASurfaceOrItsPoints) {
    const std::string mesh = file("m.off", "OFF\n3 1 0\n0 0 0\n4 0 0\n0 4 0\n3 0 1 2\n"),
                      points = file("p.xyz", "1 1 2\n0 0 -1\n");
    const Json surface = json_of(stipple({"distance", points, mesh, "--json"})),
               corners = json_of(stipple({"distance", points, mesh, "--to", "points", "--json"}));
    EXPECT_NEAR(surface["distance"]["max"].get<double>(), 2, 1e-6);
    EXPECT_NEAR(corners["distance"]["max"].get<double>(), std::sqrt(6.0), 1e-6);
    const LaunchResult old = stipple({"mesh", "distance", mesh, points});
    expect_success(old);
    EXPECT_EQ(old.out, stipple({"distance", points, mesh}).out);
    expect_error(stipple({"distance", points, points, "--signed"}), 2, "--signed needs a surface");
    expect_error(stipple({"distance", points, points, "--to", "surface"}), 3, "no faces");
    expect_error(stipple({"distance", points, file("n.xyz", "nan 0 0\n")}), 3, "n.xyz: has no finite points");
    expect_error(stipple({"distance", points}), 2, "REFERENCE is missing");
    expect_error(stipple({"distance", "-", "-"}), 2, "standard input");
}

TEST_F(CliMeasure, StatsOfCoordinatesAndAttributes) {
    const std::string input =
        file("a.csv", "x,y,z,intensity\n500000.25,0,1,10\n500001.25,0,2,20\n500002.25,0,nan,40\n");
    const Json json = json_of(stipple({"stats", input, "--json", "--bins", "2"}));
    ASSERT_EQ(json["values"].size(), 4u);
    EXPECT_EQ(json["values"][0]["name"], "x");
    EXPECT_EQ(json["values"][0]["min"], 500000.25);
    EXPECT_EQ(json["values"][2]["non_finite"], 1);
    EXPECT_EQ(json["values"][3]["percentiles"]["50"], 20);
    EXPECT_EQ(json["values"][3]["histogram"]["counts"], Json::array({2, 1}));
    EXPECT_NEAR(json["density"]["spacing"].get<double>(), std::sqrt(2.0), 1e-6);
    const LaunchResult text = stipple({"stats", input, "--of", "x,intensity", "--picture", folder / "s.png"});
    expect_success(text);
    EXPECT_TRUE(contains(text.out, "500000.25")) << text.out;
    EXPECT_FALSE(contains(text.out, "\nz ")) << text.out;
    EXPECT_EQ(lines_of(stipple({"stats", input, "--of", "z", "--table", "csv"}).out)[1],
              "z,1.0,1.0,1.0,1.0,1.0,2.0,2.0,2.0,2.0,1.5,0.5,1");
    expect_error(stipple({"stats", input, "--of", "w"}), 2, "a.csv: no attribute \"w\"");
    expect_error(stipple({"stats", input, "--bins", "0"}), 2, "--bins must be 1 to 10000, got 0");
    Mesh none = random_cloud(0);
    expect_success(stipple({"stats", save_as("none.ply", none), "--picture", folder / "n.png"}));
}

TEST_F(CliMeasure, SampleBySpacing) {
    const std::string input = cloud("a.ply", 2000);
    const Json json = json_of(stipple({"sample", input, "--spacing", "0.05", "-o", folder / "b.ply", "--json"}));
    EXPECT_EQ(json["method"], "spacing");
    const PointCloud whole = read(input), few = read(folder / "b.ply");
    ASSERT_GT(few.size(), 50);
    ASSERT_LT(few.size(), 2000);
    const auto distance = [](const PointCloud& a, int64_t i, const PointCloud& b, int64_t j) {
        return std::hypot(a.world(i, 0) - b.world(j, 0), a.world(i, 1) - b.world(j, 1), a.world(i, 2) - b.world(j, 2));
    };
    for (int64_t i = 0; i < few.size(); ++i)
        for (int64_t j = 0; j < i; ++j) ASSERT_GT(distance(few, i, few, j), 0.05f);
    for (int64_t i = 0; i < whole.size(); ++i) {  // nowhere could another be added
        double least = HUGE_VAL;
        for (int64_t j = 0; j < few.size(); ++j) least = std::min(least, distance(whole, i, few, j));
        ASSERT_LE(least, 0.05f);
    }
    expect_error(stipple({"sample", input, "--spacing", "-1", "-o", folder / "c.ply"}), 2,
                 "--spacing must be from 0, got -1");
    expect_error(stipple({"sample", input, "--spacing", "1", "-n", "3", "-o", folder / "c.ply"}), 2, "takes no count");
    expect_error(stipple({"sample", input, "--method", "spacing", "-o", folder / "c.ply"}), 2, "needs --spacing D");
    expect_error(stipple({"sample", input, "--method", "random", "-n", "3", "--spacing", "1", "-o", folder / "c.ply"}),
                 2, "--spacing is for --method spacing");
}

TEST_F(CliMeasure, MeshSimplify) {
    const std::string mesh = std::string(STIPPLE_SOURCE_DIR) + "/examples/data/knot_mesh.off";
    const Json json = json_of(stipple({"mesh", "simplify", mesh, "--faces", "2000", "-o", folder / "a.ply", "--json"}));
    EXPECT_LE(json["faces"].get<int64_t>(), 2000);
    EXPECT_GT(json["faces"].get<int64_t>(), 1900);
    EXPECT_LT(json["deviation"]["max"].get<double>(), 1);
    const Json info = json_of(stipple({"mesh", "info", folder / "a.ply", "--json"}));
    EXPECT_EQ(info["meshes"][0]["faces"], json["faces"]);
    EXPECT_EQ(info["meshes"][0]["watertight"],
              json_of(stipple({"mesh", "info", mesh, "--json"}))["meshes"][0]["watertight"]);
    expect_success(stipple({"mesh", "simplify", mesh, "--ratio", "0.5", "-o", folder / "b.ply"}));
    expect_error(stipple({"mesh", "simplify", mesh, "-o", folder / "c.ply"}), 2, "how many faces?");
    expect_error(stipple({"mesh", "simplify", mesh, "--ratio", "2", "-o", folder / "c.ply"}), 2, "--ratio");
    expect_error(stipple({"mesh", "simplify", mesh, "--ratio", "1", "--faces", "2", "-o", folder / "c.ply"}), 2,
                 "how many faces?");
    expect_error(stipple({"mesh", "simplify", cloud("p.ply"), "--faces", "9", "-o", folder / "c.ply"}), 3, "no faces");
}

}  // namespace
}  // namespace stipple::test
