// stipple normals: what it adds and keeps, orientation in world coordinates, and what it refuses.

#include <cmath>

#include "stipple/core/rng.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliNormals : public CliTest {
protected:
    Mesh load(const std::string& path) const {
        io::Warnings warnings;
        return io::load(path, {}, warnings);
    }
    Mesh with_normals(const std::string& input, std::vector<std::string> arguments, const std::string& out = "n.ply") {
        arguments.insert(arguments.begin(), {"normals", input, "-o", folder / out, "--overwrite"});
        const LaunchResult result = stipple(arguments);
        expect_success(result);
        return result.exit_code == 0 ? load(folder / out) : Mesh();
    }
    /// n points of a sphere of radius 1.
    static Mesh sphere(int64_t n) {
        Mesh mesh;
        mesh.vertices = PointCloud(n);
        const Rng rng(4);
        for (int64_t i = 0; i < n; ++i) {
            double x[3], length = 0;
            for (int axis = 0; axis < 3; ++axis) {
                x[axis] = rng.normal(static_cast<uint64_t>(3 * i + axis));
                length += x[axis] * x[axis];
            }
            for (int axis = 0; axis < 3; ++axis)
                mesh.vertices.positions.data()[3 * i + axis] = static_cast<float>(x[axis] / std::sqrt(length));
        }
        return mesh;
    }
    /// How many normals point away from the middle.
    static int64_t outwards(const PointCloud& cloud, const std::array<double, 3>& middle) {
        const Attribute* normal = find(cloud.attributes, "normal");
        if (!normal) return -1;
        int64_t count = 0;
        for (int64_t i = 0; i < cloud.size(); ++i) {
            double cosine = 0;
            for (int axis = 0; axis < 3; ++axis)
                cosine += normal->value(i, axis) * (cloud.world(i, axis) - middle[axis]);
            count += cosine > 0;
        }
        return count;
    }
};

TEST_F(CliNormals, AddsNormalsAndKeepsTheRest) {
    Mesh mesh = random_mesh(300);
    add_attribute(mesh.vertices, "label", DType::i32);
    add_colors(mesh.vertices);
    mesh.vertices.origin = {500000, 5400000, 120};
    const std::string input = save_as("a.ply", mesh);
    Mesh out = with_normals(input, {"--curvature", "--k", "8"});
    ASSERT_EQ(out.vertices.size(), 300);
    const Attribute *normal = find(out.vertices.attributes, "normal"),
                    *curvature = find(out.vertices.attributes, "curvature");
    ASSERT_TRUE(normal && curvature);
    EXPECT_EQ(normal->dtype(), DType::f32);
    for (int64_t i = 0; i < 300; ++i) {
        EXPECT_NEAR(std::hypot(normal->value(i, 0), normal->value(i, 1), normal->value(i, 2)), 1, 1e-6);
        EXPECT_GE(curvature->value(i), 0);
        EXPECT_LE(curvature->value(i), 1.0 / 3 + 1e-6);
    }
    std::erase_if(out.vertices.attributes,
                  [](const Attribute& a) { return a.name() == "normal" || a.name() == "curvature"; });
    EXPECT_EQ(difference(out, load(input)), "");  // faces, colours, labels, origin
}

TEST_F(CliNormals, ReplacesOldNormals) {
    Mesh mesh = sphere(500);
    add_normals(mesh.vertices);
    const Mesh out = with_normals(save_as("a.ply", mesh), {});
    EXPECT_EQ(outwards(out.vertices, {0, 0, 0}), 500);
    EXPECT_EQ(out.vertices.attributes.size(), 1u);
}

TEST_F(CliNormals, OrientsOutwardsOrTowardsAPlaceInTheWorld) {
    Mesh mesh = sphere(2000);
    mesh.vertices.origin = {600000, 5300000, 50};
    const std::string input = save_as("a.ply", mesh);
    const std::array<double, 3> middle = {600000, 5300000, 50};
    EXPECT_EQ(outwards(with_normals(input, {}).vertices, middle), 2000);
    EXPECT_EQ(
        outwards(with_normals(input, {"--orient", "viewpoint", "--viewpoint", "600000", "5300000", "50"}).vertices,
                 middle),
        0);
    const int64_t either = outwards(with_normals(input, {"--orient", "none"}).vertices, middle);
    EXPECT_GT(either, 500);
    EXPECT_LT(either, 1500);
}

TEST_F(CliNormals, CountsPointsWithoutNormals) {
    const std::string input = file("a.xyz", "0 0 0\n1 0 0\nnan 1 1\n0 1 0\n1 1 0\n");
    const LaunchResult result = stipple({"normals", input, "-o", folder / "n.ply", "--json"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(contains(result.err, "1 of 5 points get the normal 0 0 0")) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["command"], "normals");
    EXPECT_EQ(json["points"], 5);
    EXPECT_EQ(json["without_normal"], 1);
    EXPECT_EQ(json["k"], 16);
    EXPECT_EQ(json["radius"], nullptr);
    EXPECT_EQ(json["orient"], "mst");
    EXPECT_EQ(json["outputs"][0]["points"], 5);
    const Mesh out = load(folder / "n.ply");
    const Attribute* normal = find(out.vertices.attributes, "normal");
    ASSERT_TRUE(normal);
    EXPECT_EQ(normal->value(2, 2), 0);
    for (const int64_t i : {0, 1, 3, 4}) EXPECT_EQ(normal->value(i, 2), 1) << i;
    const std::string line = file("line.xyz", "0 0 0\n1 0 0\n2 0 0\n3 0 0\n");
    EXPECT_EQ(json_of(stipple({"normals", line, "-o", folder / "l.ply", "--json"}))["without_normal"], 4);
}

TEST_F(CliNormals, RadiusThreadsTableAndDryRun) {
    const std::string input = save_as("a.ply", sphere(1500));
    const auto bytes = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"normals", input, "-o", "-", "--format", "ply"});
        return stipple(more).out;
    };
    EXPECT_EQ(bytes({"--threads", "1"}), bytes({"--threads", "3"}));
    EXPECT_NE(bytes({"--radius", "0.05"}), bytes({}));
    const LaunchResult dry = stipple({"normals", input, "-o", folder / "n.ply", "--dry-run"});
    expect_success(dry);
    EXPECT_EQ(dry.out, "would write " + (folder / "n.ply") + ": normals of 1,500 points, oriented by mst\n");
    expect_entries({"a.ply"});
    const LaunchResult table = stipple({"normals", input, "-o", folder / "n.ply", "--table", "csv"});
    EXPECT_EQ(lines_of(table.out).size(), 2u);
    EXPECT_EQ(lines_of(table.out)[0], "file,format,points,without_normal,orient,written");
}

TEST_F(CliNormals, DrawsInputAndNormals) {
    const std::string input = save_as("a.ply", sphere(500));
    const LaunchResult result =
        stipple({"normals", input, "-o", folder / "n.ply", "--picture", folder / "n.png", "--orient", "none"});
    expect_success(result);
    EXPECT_EQ(result.out, "wrote " + (folder / "n.ply") + ": normals of 500 points, not oriented\nwrote " +
                              (folder / "n.png") + "\n");
    EXPECT_EQ(json_of(stipple({"info", folder / "n.png", "--json"}))["files"][0]["format"], "PNG");
}

TEST_F(CliNormals, RefusesWhatMakesNoSense) {
    const std::string input = cloud("a.ply", 20), out = folder / "n.ply";
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"normals", input, "-o", out});
        expect_error(stipple(arguments), exit_code, text);
    };
    fails({"--k", "2"}, "--k must be 3 to 128, got 2");
    fails({"--k", "129"}, "--k must be 3 to 128, got 129");
    fails({"--k", "many"}, "--k");
    fails({"--radius", "-1"}, "--radius must be from 0, got -1");
    fails({"--radius", "nan"}, "--radius must be from 0, got nan");
    fails({"--radius", "1e-60"}, "--radius must be above 0");
    fails({"--orient", "up"}, "--orient");
    fails({"--orient", "viewpoint"}, "--orient viewpoint needs --viewpoint X Y Z");
    fails({"--orient", "mst", "--viewpoint", "1", "2", "3"}, "--viewpoint is for --orient viewpoint");
    fails({"--orient", "viewpoint", "--viewpoint", "1", "2"}, "--viewpoint");
    fails({"--orient", "viewpoint", "--viewpoint", "1", "2", "inf"}, "--viewpoint must be a number, got inf");
    fails({"--picture", folder / "a.jpg"}, "PNG");
    fails({"--what"}, "unknown option --what");
    expect_error(stipple({"normals", input}), 2, "--output is missing");
    expect_error(stipple({"normals", "-o", out}), 2, "INPUT is missing");
    expect_error(stipple({"normals", input, "-o", folder / "n.what"}), 2, "n.what");
    expect_error(stipple({"normals", folder / "none.ply", "-o", out}), 3, "none.ply");
    expect_entries({"a.ply"});
    write_file(out, "mine");
    fails({}, "n.ply: exists already", 4);
}

TEST_F(CliNormals, FaceTheSensorThatTheFileKnows) {
    // A ball seen from a place on its own x axis, in PCD; and about the origin, as sweeps are, in KITTI.
    Mesh ball;
    ball.vertices = PointCloud(2000);
    for (int64_t i = 0; i < ball.vertices.size(); ++i) {
        const double z = 1 - (2 * static_cast<double>(i) + 1) / 2000, r = std::sqrt(1 - z * z),
                     a = 2.4 * static_cast<double>(i);
        const double at[3] = {r * std::cos(a), r * std::sin(a), z};
        for (int c = 0; c < 3; ++c) ball.vertices.positions.data()[3 * i + c] = static_cast<float>(at[c]);
    }
    const auto facing = [&](const std::string& input, const std::array<double, 3>& sensor) {
        const LaunchResult result = stipple({"normals", input, "-o", folder / "n.ply", "--overwrite", "-q"});
        expect_success(result);
        EXPECT_TRUE(contains(result.out, "oriented by viewpoint")) << result.out;
        io::Warnings warnings;
        const Mesh made = io::load(folder / "n.ply", {}, warnings);
        const Attribute& normals = *find(made.vertices.attributes, "normal");
        int64_t right = 0;
        for (int64_t i = 0; i < made.vertices.size(); ++i) {
            double along = 0;
            for (int c = 0; c < 3; ++c)
                along += normals.value(i, c) * (sensor[static_cast<size_t>(c)] - made.vertices.world(i, c));
            right += along >= 0;
        }
        return right;
    };
    save_as("sweep.bin", ball);
    EXPECT_EQ(facing(folder / "sweep.bin", {0, 0, 0}), 2000);
    ball.vertices.facts.viewpoint = {{5, 0, 0, 1, 0, 0, 0}};
    save_as("scan.pcd", ball);
    EXPECT_EQ(facing(folder / "scan.pcd", {5, 0, 0}), 2000);
}

}  // namespace
}  // namespace stipple::test
