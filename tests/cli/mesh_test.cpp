// stipple mesh: the group of commands and each of them through the program, on shapes whose answers are known.

#include <cmath>
#include <map>
#include <set>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

/// The first `faces` of the unit cube's, outwards; the last two are its top. Vertices begin at `low` on every axis.
std::string cube_off(int faces = 12, double low = 0) {
    std::string text = fmt::format("OFF\n8 {} 0\n", faces);
    for (int i = 0; i < 8; ++i)
        text += fmt::format("{} {} {}\n", low + (i & 1), low + (i >> 1 & 1), low + (i >> 2 & 1));
    const char* corners[] = {"0 2 1", "1 2 3", "0 1 4", "1 5 4", "0 4 2", "2 4 6",
                             "1 3 5", "3 7 5", "2 6 3", "3 6 7", "4 5 6", "5 7 6"};
    for (int i = 0; i < faces; ++i) text += fmt::format("3 {}\n", corners[i]);
    return text;
}

class CliMesh : public CliTest {
protected:
    Mesh load(const std::string& path) const {
        io::Warnings warnings;
        return io::load(path, {}, warnings);
    }
    std::string cube() const { return file("cube.off", cube_off()); }
};

constexpr const char* kCommands[] = {"info", "sample", "watertight", "distance", "rays", "surface", "simplify"};

TEST_F(CliMesh, TheGroupListsItsCommands) {
    const LaunchResult result = stipple({"mesh"});
    expect_success(result);
    EXPECT_EQ(result.out, stipple({"mesh", "--help"}).out);
    for (const char* command : kCommands) EXPECT_TRUE(contains(result.out, fmt::format("\n  {} ", command))) << command;
    EXPECT_TRUE(contains(stipple({"--help"}).out, "\n  mesh "));
}

TEST_F(CliMesh, HelpFitsAScreenAndShowsAnExample) {
    for (const std::string command : kCommands) {
        const LaunchResult result = stipple({"mesh", command, "--help"});
        expect_success(result);
        EXPECT_TRUE(contains(result.out, "Usage: stipple mesh " + command + " ")) << result.out;
        EXPECT_TRUE(contains(result.out, "Example:\n  stipple mesh " + command)) << result.out;
        EXPECT_LE(lines_of(result.out).size(), 40u) << result.out;
        for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 105u) << line;
    }
}

TEST_F(CliMesh, WrongWordsAreNamedWithTheNearest) {
    const LaunchResult command = stipple({"mesh", "smaple", "a.ply"});
    expect_error(command, 2, "unknown mesh command smaple");
    EXPECT_TRUE(contains(command.err, "did you mean sample? See: stipple mesh --help")) << command.err;
    const LaunchResult option = stipple({"mesh", "sample", "a.ply", "--cuont=3"});
    expect_error(option, 2, "unknown option --cuont");
    EXPECT_TRUE(contains(option.err, "did you mean --count? See: stipple mesh sample --help")) << option.err;
    // Options of the whole program are options here too.
    EXPECT_TRUE(contains(stipple({"mesh", "info", "--treads", "2"}).err, "did you mean --threads?"));
    expect_error(stipple({"mesh", "sample"}), 2, "MESH is missing: which file?");
    EXPECT_TRUE(contains(stipple({"mesh", "sample"}).err, "see: stipple mesh sample --help"));
    expect_error(stipple({"mesh", "--print-config"}), 2, "--print-config needs a command");
    const LaunchResult json = stipple({"mesh", "sample", "--frobnicate", "--json"});
    EXPECT_EQ(json_of(json)["command"], "mesh sample");
    EXPECT_EQ(json_of(json)["error"]["code"], "bad_argument");
}

TEST_F(CliMesh, ConfigurationHasATableInATable) {
    const std::string input = cube();
    const std::vector<std::string> call = {"mesh", "sample", "-n", "7", "--method", "uniform", "--print-config"};
    const LaunchResult first = stipple(call);
    expect_success(first);
    EXPECT_TRUE(contains(first.out, "\n[mesh.sample]\n")) << first.out;
    const std::string config = file("mesh.toml", first.out + "output = \"" + (folder / "out.xyz") + "\"\n");
    expect_success(stipple({"mesh", "sample", input, "--config", config}));
    EXPECT_EQ(load(folder / "out.xyz").vertices.size(), 7);
    EXPECT_EQ(stipple({"mesh", "sample", "--print-config", "--config", file("a.toml", first.out)}).out, first.out);
    // Tables of other commands are checked and have no effect.
    expect_success(stipple({"mesh", "info", input, "--config", config}));
    const LaunchResult table = stipple({"mesh", "info", input, "--config", file("b.toml", "[mesh.smaple]\n")});
    expect_error(table, 2, "b.toml:1: unknown table [mesh.smaple]");
    EXPECT_TRUE(contains(table.err, "did you mean [mesh.sample]?")) << table.err;
    expect_error(stipple({"mesh", "info", input, "--config", file("c.toml", "[mesh . sample]\ncuont = 3\n")}), 2,
                 "c.toml:2: unknown key cuont in [mesh.sample]");
    expect_error(stipple({"mesh", "info", input, "--config", file("d.toml", "[mesh]\ncount = 3\n")}), 2,
                 "d.toml:2: unknown key count in [mesh]");
}

TEST_F(CliMesh, JsonNamesBothWords) {
    const std::string input = cube();
    const Json json = json_of(stipple({"mesh", "info", input, "--json"}));
    EXPECT_EQ(json["command"], "mesh info");
    EXPECT_EQ(json["ok"], true);
    EXPECT_EQ(json["inputs"], Json::array({input}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_TRUE(json["timing"]["seconds"].is_number());
}

TEST_F(CliMesh, InfoCounts) {
    const Json closed = json_of(stipple({"mesh", "info", cube(), "--json"}))["meshes"][0];
    EXPECT_EQ(closed["vertices"], 8);
    EXPECT_EQ(closed["faces"], 12);
    EXPECT_EQ(closed["watertight"], true);
    EXPECT_EQ(closed["components"], 1);
    EXPECT_EQ(closed["euler"], 2);
    EXPECT_DOUBLE_EQ(closed["area"], 6);
    EXPECT_DOUBLE_EQ(closed["volume"], 1);
    EXPECT_EQ(closed["bounds"]["max"], Json::array({1.0, 1.0, 1.0}));
    const std::string open = file("open.off", cube_off(10));
    const Json counts = json_of(stipple({"mesh", "info", open, "--json"}))["meshes"][0];
    EXPECT_EQ(counts["watertight"], false);
    EXPECT_EQ(counts["boundary_edges"], 4);
    EXPECT_TRUE(counts["volume"].is_null());
    const LaunchResult text = stipple({"mesh", "info", open});
    expect_success(text);
    EXPECT_TRUE(contains(text.out, "watertight             no\n")) << text.out;
    EXPECT_TRUE(contains(text.out, "boundary edges         4\n")) << text.out;
    const LaunchResult table = stipple({"mesh", "info", cube(), open, "--table", "csv"});
    expect_success(table);
    ASSERT_EQ(lines_of(table.out).size(), 3u);
    EXPECT_TRUE(contains(lines_of(table.out)[1], ",8,12,yes,1,0,0,0,0,6.0,")) << table.out;
}

TEST_F(CliMesh, WhatIsNoMeshIsRefused) {
    const std::string points = cloud("points.ply", 5);
    const std::string broken = file("nan.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 nan 0\n3 0 1 2\n");
    const std::vector<std::vector<std::string>> calls = {{"info"},
                                                         {"sample", "-n", "5", "-o", folder / "x.ply"},
                                                         {"watertight", "-o", folder / "x.ply"},
                                                         {"rays", "--camera", "-o", folder / "x.ply"}};
    for (std::vector<std::string> call : calls) {
        call.insert(call.begin(), "mesh");
        call.insert(call.begin() + 2, points);
        expect_error(stipple(call), 3, "points.ply: has 5 points but no faces: a mesh is wanted");
        call[2] = broken;
        expect_error(stipple(call), 3, "nan.off: vertex 2 of a face is not finite");
        call[2] = folder / "no.ply";
        expect_error(stipple(call), 3, "No such file");
    }
    expect_error(stipple({"mesh", "distance", points, points}), 3, "no faces");
    expect_entries({"points.ply", "nan.off"});
}

TEST_F(CliMesh, SamplesLieOnTheSurface) {
    const std::string input = file("far.off", cube_off(12, 500000));
    for (const std::string method : {"uniform", "poisson"}) {
        const std::string out = folder / (method + ".ply");
        const LaunchResult result =
            stipple({"mesh", "sample", input, "-n", "300", "--method", method, "--normals", "-o", out});
        expect_success(result);
        EXPECT_EQ(result.out, "wrote " + out + ": 300 points of 12 faces by " + method + "\n");
        const PointCloud points = load(out).vertices;
        ASSERT_EQ(points.size(), 300);
        std::set<double> places;  // float32 has 33 places for a coordinate here
        for (int64_t i = 0; i < points.size(); ++i) places.insert(points.world(i, 0));
        EXPECT_GT(places.size(), 100u);
        const Attribute* normal = find(points.attributes, "normal");
        ASSERT_TRUE(normal);
        for (int64_t i = 0; i < points.size(); ++i) {
            // On the side that the normal tells, to the precision that an origin keeps at such coordinates.
            double side = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const double p = points.world(i, axis) - 500000, n = normal->value(i, axis);
                EXPECT_GE(p, -1e-6);
                EXPECT_LE(p, 1 + 1e-6);
                side += n * (p - 0.5);
            }
            EXPECT_NEAR(side, 0.5, 1e-6);
        }
    }
}

TEST_F(CliMesh, SamplesBySeedAndWithWhatTheMeshCarries) {
    const std::string input = file("a.ply",
                                   "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
                                   "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
                                   "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
                                   "0 0 0 0 0 200\n1 0 0 100 0 200\n0 1 0 0 200 200\n3 0 1 2\n");
    const auto sampled = [&](const std::vector<std::string>& more) {
        std::vector<std::string> call = {"mesh", "sample", input, "-n", "50", "-o", "-", "--format", "ply"};
        call.insert(call.end(), more.begin(), more.end());
        return stipple(call).out;
    };
    EXPECT_EQ(sampled({"--seed", "4"}), sampled({"--seed", "4", "--threads", "1"}));
    EXPECT_NE(sampled({"--seed", "4"}), sampled({"--seed", "5"}));
    const PointCloud points = load(file("b.ply", sampled({}))).vertices;
    const Attribute* color = find(points.attributes, "color");
    ASSERT_TRUE(color);
    for (int64_t i = 0; i < points.size(); ++i) {
        EXPECT_NEAR(color->value(i, 0), 100 * points.world(i, 0), 0.501);
        EXPECT_NEAR(color->value(i, 1), 200 * points.world(i, 1), 0.501);
        EXPECT_EQ(color->value(i, 2), 200);
    }
    EXPECT_FALSE(find(points.attributes, "normal"));
    expect_success(stipple(
        {"mesh", "sample", input, "-n", "50", "-o", folder / "c.ply", "--picture", folder / "c.png", "--dry-run"}));
    expect_entries({"a.ply", "b.ply"});
    expect_error(stipple({"mesh", "sample", input, "-o", folder / "c.ply"}), 2, "how many points? Give -n COUNT");
    expect_error(stipple({"mesh", "sample", input, "-n", "5", "--method", "best", "-o", folder / "c.ply"}), 2, "best");
    const std::string flat = file("flat.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n2 0 0\n3 0 1 2\n");
    expect_error(stipple({"mesh", "sample", flat, "-n", "5", "-o", folder / "c.ply"}), 2, "flat.off: ");
}

TEST_F(CliMesh, WatertightClosesABox) {
    const std::string open = file("open.off", cube_off(11, 500000)), out = folder / "solid.ply";
    const LaunchResult result = stipple({"mesh", "watertight", open, "--resolution", "24", "-o", out});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "hollow: ")) << result.err;
    EXPECT_TRUE(contains(result.err, "--cap-holes N")) << result.err;
    EXPECT_TRUE(contains(result.out, "before")) << result.out;
    EXPECT_TRUE(contains(result.out, "wrote " + out + ": ")) << result.out;
    const Json after = json_of(stipple({"mesh", "info", out, "--json"}))["meshes"][0];
    EXPECT_EQ(after["watertight"], true);
    for (int axis = 0; axis < 3; ++axis) {  // around the input, far from the origin
        EXPECT_NEAR(after["bounds"]["min"][axis], 500000, 1.0 / 24);
        EXPECT_NEAR(after["bounds"]["max"][axis], 500001, 1.0 / 24);
    }
    EXPECT_LT(after["volume"], 0.1);  // an open box is a shell ...
    const Json capped = json_of(stipple({"mesh", "watertight", open, "--resolution", "24", "--cap-holes", "12", "-o",
                                         folder / "capped.ply", "--json"}));
    EXPECT_EQ(capped["ok"], true) << capped;
    EXPECT_EQ(capped["before"]["boundary_edges"], 3);
    EXPECT_EQ(capped["after"]["watertight"], true);
    EXPECT_GT(capped["after"]["volume"], 0.9);  // ... unless its hole is capped
    EXPECT_LT(capped["hollow"], 0.01);          // a hundredth of the places tried lie between two walls at a corner
    EXPECT_EQ(capped["warnings"], Json::array());
    const auto refused = [&](const char* option, const char* value, const std::string& text) {
        expect_error(stipple({"mesh", "watertight", open, option, value, "-o", folder / "no.ply"}), 2, text);
    };
    refused("--resolution", "1", "--resolution must be 2 to 2048, got 1");
    refused("--cap-holes", "65", "--cap-holes must be 0 to the resolution, 64, got 65");
    refused("--offset", "1", "--offset must be 0.01 to 0.5, got 1");
    expect_error(stipple({"mesh", "watertight", open, "-o", out}), 4, "exists already");
    expect_entries({"open.off", "solid.ply", "capped.ply"});
}

TEST_F(CliMesh, WatertightHasAsManyFacesAsTheShapeNeeds) {
    const std::string box = file("box.off", cube_off(12, 500000));
    const auto converted = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments = {"mesh", "watertight", box, "-o", folder / "solid.ply", "--overwrite"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        arguments.push_back("--json");
        return json_of(stipple(arguments));
    };
    const Json all = converted({"--tolerance", "0"}), few = converted({});
    EXPECT_GT(all["after"]["faces"], 50000);
    EXPECT_LT(few["after"]["faces"], 200);
    for (const Json& result : {all, few, converted({"--faces", "40"}), converted({"--ratio", "4"})}) {
        EXPECT_EQ(result["after"]["watertight"], true) << result;
        EXPECT_NEAR(result["after"]["volume"], 1, 0.03) << result;
        for (const char* way : {"input_to_result", "result_to_input"}) {
            EXPECT_GT(result[way]["largest"], result[way]["mean"]) << result;
            EXPECT_LT(result[way]["largest"], 1.0 / 64) << result;  // a voxel
        }
    }
    EXPECT_LE(converted({"--faces", "40"})["after"]["faces"], 40);
    EXPECT_LE(converted({"--ratio", "4"})["after"]["faces"], 48);
    EXPECT_TRUE(contains(converted({"--faces", "2"})["warnings"].dump(), "faces are left, fewer would break"));
    const auto refused = [&](std::vector<std::string> more, const std::string& text) {
        std::vector<std::string> arguments = {"mesh", "watertight", box, "-o", folder / "no.ply"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        expect_error(stipple(arguments), 2, text);
    };
    refused({"--tolerance", "2"}, "--tolerance must be 0 to 1, got 2");
    refused({"--tolerance", "nan"}, "--tolerance must be");
    refused({"--ratio", "-1"}, "--ratio must be from 0, got -1");
    refused({"--ratio", "2", "--faces", "9"}, "--faces and --ratio: give one of them");
}

TEST_F(CliMesh, DistancesInTheWorld) {
    // The files have different origins: readers choose them by the coordinates.
    const std::string mesh = file("far.off", cube_off(12, 500000));
    const std::string points =
        file("p.xyz", "500000.5 500000.5 500000.5\n500000.5 500000.5 500003\n500001 500001 500001\n");
    const LaunchResult result =
        stipple({"mesh", "distance", mesh, points, "--signed", "-o", folder / "d.ply", "--picture", folder / "d.png"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "  inside       1\n")) << result.out;
    const PointCloud measured = load(folder / "d.ply").vertices;
    const Attribute *distance = find(measured.attributes, "distance"), *face = find(measured.attributes, "face");
    ASSERT_TRUE(distance && face);
    EXPECT_NEAR(distance->value(0), -0.5, 1e-6);
    EXPECT_NEAR(distance->value(1), 2, 1e-6);
    EXPECT_NEAR(distance->value(2), 0, 1e-6);
    EXPECT_GE(face->value(1), 10);  // one of the top
    const Json json = json_of(stipple({"mesh", "distance", mesh, points, "--json"}));
    EXPECT_EQ(json["command"], "mesh distance");
    EXPECT_NEAR(json["distance"]["mean"], 2.5 / 3, 1e-6);
    EXPECT_NEAR(json["distance"]["median"], 0.5, 1e-6);
    EXPECT_NEAR(json["distance"]["max"], 2, 1e-6);
    EXPECT_NEAR(json["distance"]["std"], std::sqrt(4.25 / 3 - 6.25 / 9), 1e-6);
    EXPECT_TRUE(json["inside"].is_null());
    EXPECT_EQ(json_of(stipple({"info", folder / "d.png", "--json"}))["files"][0]["format"], "PNG");
    expect_error(stipple({"mesh", "distance", mesh}), 2, "POINTS is missing");
    expect_error(stipple({"mesh", "distance", "-", "-"}), 2, "standard input");
}

TEST_F(CliMesh, OneRay) {
    const std::string mesh = file("far.off", cube_off(12, 500000));
    const std::vector<std::string> call = {"mesh",   "rays",        mesh, "--origin", "500000.25", "500000.5",
                                           "500004", "--direction", "0",  "0",        "-2"};
    const LaunchResult result = stipple(call);
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "at t = 1.5: 500000.25 500000.5 500001\n")) << result.out;
    std::vector<std::string> with_json = call;
    with_json.push_back("--json");
    const Json json = json_of(stipple(with_json));
    EXPECT_EQ(json["hits"], 1);
    EXPECT_GE(json["face"], 10);
    std::vector<std::string> away = call;
    away.back() = "2";
    EXPECT_EQ(stipple(away).out, "0 of 1 rays hit\n");
    expect_error(stipple({"mesh", "rays", mesh}), 2, "where from?");
    expect_error(stipple({"mesh", "rays", mesh, "--camera", "--eye", "1", "2", "3"}), 2, "where from?");
    expect_error(stipple({"mesh", "rays", mesh, "--origin", "1", "2", "3"}), 2, "--origin and --direction go together");
    expect_error(stipple({"mesh", "rays", mesh, "--origin", "1", "2"}), 2, "--origin");
    expect_error(stipple({"mesh", "rays", mesh, "--camera", "--fov", "180"}), 2,
                 "--fov must be above 0, below 180, got 180");
    expect_error(stipple({"mesh", "rays", mesh, "--camera", "--size", "3"}), 2, "--size must be 16 to 16384");
}

TEST_F(CliMesh, RaysOfAFile) {
    const std::string mesh = cube();
    const std::string rays = file("rays.csv", "x,y,z,dx,dy,dz\n0.5,0.5,3,0,0,-1\n0.5,0.5,3,0,0,1\n-2,0.25,0.5,4,0,0\n");
    const LaunchResult result = stipple({"mesh", "rays", mesh, "--rays", rays, "-o", folder / "hits.ply"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "2 of 3 rays hit, t from 0.5 to 2\n")) << result.out;
    const PointCloud hits = load(folder / "hits.ply").vertices;
    ASSERT_EQ(hits.size(), 2);
    EXPECT_EQ(find(hits.attributes, "ray")->value(1), 2);
    EXPECT_EQ(find(hits.attributes, "t")->value(1), 0.5);
    const double at[] = {0, 0.25, 0.5};
    for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(hits.world(1, axis), at[axis], 1e-6);
    const LaunchResult none = stipple({"mesh", "rays", mesh, "--rays", cloud("c.ply", 4)});
    expect_error(none, 3, "c.ply: has no directions of rays");
    EXPECT_TRUE(contains(none.err, "dx,dy,dz"));
}

TEST_F(CliMesh, CamerasSeeDepths) {
    const std::string mesh = cube();
    const LaunchResult placed =
        stipple({"mesh", "rays", mesh, "--eye", "0.5", "0.5", "4", "--look-at", "0.5", "0.5", "0", "--size", "40x30",
                 "--fov", "20", "-o", folder / "a.ply", "--picture", folder / "a.png"});
    expect_success(placed);
    const PointCloud hits = load(folder / "a.ply").vertices;
    // The top of the cube is 3 away and fills 1 / (2 * 3 * tan 10 deg) of the smaller side, squared.
    const double share = std::pow(30 / (2 * 3 * std::tan(10 * M_PI / 180)), 2);
    EXPECT_NEAR(static_cast<double>(hits.size()), share, 0.1 * share);
    for (int64_t i = 0; i < hits.size(); ++i) {
        EXPECT_NEAR(find(hits.attributes, "t")->value(i), 3, 1e-5);
        EXPECT_NEAR(hits.world(i, 2), 1, 1e-6);
    }
    EXPECT_GT(json_of(stipple({"info", folder / "a.png", "--json"}))["files"][0]["width"], 40);
    // An orbit sees three sides of it.
    const Json json =
        json_of(stipple({"mesh", "rays", mesh, "--camera", "--size", "64", "-o", folder / "b.ply", "--json"}));
    EXPECT_EQ(json["rays"], 64 * 64);
    EXPECT_GT(json["hits"], 64 * 64 / 4);
    EXPECT_LT(json["hits"], 64 * 64);
    const PointCloud orbit = load(folder / "b.ply").vertices;
    std::map<int, int> sides;
    for (int64_t i = 0; i < orbit.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            for (int side : {0, 1})
                if (std::abs(orbit.world(i, axis) - side) < 1e-6) ++sides[2 * axis + side];
    EXPECT_GT(sides[5], 100);  // from above
    EXPECT_LT(sides[4], 100);  // not from below: edges only
    expect_error(stipple({"mesh", "rays", mesh, "--rays", folder / "a.ply", "--picture", folder / "c.png"}), 2,
                 "--picture is for --camera and --eye");
}

TEST_F(CliMesh, ASphereOfPointsBecomesASurface) {
    std::string with = "x,y,z,nx,ny,nz\n", without;
    for (int i = 0; i < 2000; ++i) {
        const double z = 1 - (2 * i + 1) / 2000.0, r = std::sqrt(1 - z * z), a = i * 2.399963229728653;
        const std::string place = fmt::format("{},{},{}", 2 * r * std::cos(a), 2 * r * std::sin(a), 2 * z);
        with += fmt::format("{},{},{},{}\n", place, r * std::cos(a), r * std::sin(a), z);
        without += place + "\n";
    }
    const std::string oriented = file("a.csv", with), bare = file("b.csv", without);
    const LaunchResult result = stipple({"mesh", "surface", oriented, "-o", folder / "a.ply"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "watertight: yes")) << result.out;
    const Json info = json_of(stipple({"mesh", "info", folder / "a.ply", "--json"}))["meshes"][0];
    EXPECT_EQ(info["watertight"], true);
    EXPECT_NEAR(info["volume"], 4.0 / 3 * M_PI * 8, 0.5);
    const LaunchResult estimated = stipple({"mesh", "surface", bare, "-o", folder / "b.ply", "--json"});
    EXPECT_EQ(estimated.exit_code, 0);
    EXPECT_TRUE(contains(estimated.err, "has no normals: estimated")) << estimated.err;
    EXPECT_EQ(json_of(estimated)["normals"], "estimated");
    EXPECT_NEAR(json_of(estimated)["surface"]["volume"], 4.0 / 3 * M_PI * 8, 0.5);
    expect_error(stipple({"mesh", "surface", bare, "--k", "2", "-o", folder / "c.ply"}), 2, "--k must be 3 to 127");
    expect_error(stipple({"mesh", "surface", file("two.xyz", "0 0 0\n1 1 1\n"), "-o", folder / "c.ply", "-q"}), 3,
                 "two.xyz: ");
}

TEST_F(CliMesh, PointsThatAreNotFiniteMakeNoEmptySurface) {
    std::string few = "x,y,z,nx,ny,nz\n", none = few, some = few;
    for (int i = 0; i < 600; ++i) {
        const double z = 1 - (2 * i + 1) / 600.0, r = std::sqrt(1 - z * z), a = i * 2.399963229728653;
        const std::string place = fmt::format("{},{},{}", r * std::cos(a), r * std::sin(a), z);
        few += (i % 120 == 0 ? place : "nan,nan,nan") + "," + place + "\n";
        none += place + ",nan,nan,nan\n";
        some += place + "," + (i % 3 == 0 ? "nan,nan,nan" : place) + "\n";
    }
    const std::string out = folder / "out.ply";
    expect_error(stipple({"mesh", "surface", file("few.csv", few), "-q", "-o", out}), 3,
                 "few.csv: 5 points are too few or too far apart: they make no surface");
    expect_error(stipple({"mesh", "surface", file("none.csv", none), "-o", out}), 3,
                 "none.csv: 0 of 600 points are finite with a normal, a surface needs at least 4");
    expect_error(stipple({"mesh", "surface", file("all.xyz", "nan nan nan\n"), "-o", out}), 3, "has no finite points");
    const LaunchResult result = stipple({"mesh", "surface", file("some.csv", some), "-o", out, "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "200 of 600 points have no usable normal, left out")) << result.err;
    EXPECT_EQ(json_of(result)["surface"]["watertight"], true);
}

}  // namespace
}  // namespace stipple::test
