// stipple register from any pose, and with --pose-graph.

#include "tests/cli/cli.h"
#include "tests/geometry/registration/shapes.h"

namespace stipple::test {
namespace {

Mesh mesh_of(PointCloud cloud) {
    Mesh mesh;
    mesh.vertices = std::move(cloud);
    mesh.triangles = Array<int32_t, 2>({0, 3});
    return mesh;
}

class CliRegisterScans : public CliTest {
protected:
    /// Three overlapping parts of a body, each in a frame of its own, and the poses that undo it.
    void save_parts() {
        std::string poses;
        const geometry::Vector3 sides[3] = {{1, 0, 0.2}, {-0.6, 1, 0}, {-0.3, -0.8, 0.5}};
        for (int i = 0; i < 3; ++i) {
            const geometry::RigidTransform pose = any_pose(static_cast<uint64_t>(40 + i), 2);
            const PointCloud part = part_of(lumpy_body(3000, static_cast<uint64_t>(i)), sides[i], -0.55);
            const std::string name = "part" + std::to_string(i) + ".ply";
            parts.push_back(save_as(name, mesh_of(geometry::transformed(part, geometry::inverse(pose)))));
            poses += "scan " + name + "\n" + geometry::to_text(pose);
        }
        truth = file("truth.txt", poses);
    }
    std::vector<std::string> with(std::vector<std::string> more) const {
        std::vector<std::string> words = {"register", parts[0], parts[1], parts[2], "--pose-graph"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::vector<std::string> parts;
    std::string truth;
};

TEST_F(CliRegisterScans, AnyPoseOfTwoIsFound) {
    const geometry::RigidTransform pose = any_pose(7, 20);
    const std::string source = save_as("source.ply", mesh_of(lumpy_body(2500, 1)));
    const std::string target = save_as("target.ply", mesh_of(geometry::transformed(lumpy_body(2500, 2), pose)));
    const std::string known = file("T.txt", geometry::to_text(pose));
    const LaunchResult result = stipple({"register", source, target, "--truth", known, "--json"});
    expect_success(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["method"], "global");
    EXPECT_TRUE(contains(json["story"].get<std::string>(), "all poses were searched"));
    EXPECT_LT(json["truth"]["rotation_error_degrees"], 1);
    EXPECT_DOUBLE_EQ(json["truth"]["rotation_error_doubled_degrees"],
                     2 * json["truth"]["rotation_error_degrees"].get<double>());
    EXPECT_GT(json["confidence"], 0.5);
    EXPECT_GT(json["overlap"], 0.8);
    const LaunchResult text = stipple({"register", source, target, "--truth", known, "--method", "global"});
    for (const char* word : {"confidence", "overlap", "doubled", "global"})
        EXPECT_TRUE(contains(text.out, word)) << text.out;
    expect_error(stipple({"register", source, target, target}), 2, "3 clouds: two are registered, or several");
    expect_error(stipple({"register", source, target, "--truth", file("bad.conf", "bmesh source.ply 1 2\n")}), 3,
                 "bad.conf:1: expected bmesh NAME and seven numbers");
    expect_error(stipple({"register", source, target, "--truth", file("few.conf", "bmesh source.ply 0 0 0 0 0 0 1\n")}),
                 3, "holds no pose of target.ply");
}

TEST_F(CliRegisterScans, PartsBecomeOneBody) {
    save_parts();
    const LaunchResult merged =
        stipple(with({"-o", folder / "all.ply", "--transform-to", folder / "poses.txt", "--truth", truth, "--json"}));
    expect_success(merged);
    const Json json = json_of(merged);
    EXPECT_EQ(json["verdict"], "good");
    EXPECT_EQ(json["pairs"].size(), 3u);
    for (const Json& scan : json["scans"]) {
        EXPECT_TRUE(scan["placed"]);
        EXPECT_LT(scan["truth"]["rotation_error_degrees"], 1) << scan["path"];
        EXPECT_LT(scan["truth"]["rms_displacement"], 0.02) << scan["path"];
    }
    io::Warnings warnings;
    const PointCloud all = io::load_cloud(folder / "all.ply", {}, warnings);
    int64_t points = 0;
    for (const Json& scan : json["scans"]) points += scan["points"].get<int64_t>();
    EXPECT_EQ(all.size(), points);
    EXPECT_NE(find(all.attributes, "scan"), nullptr);
    // What was written is read as the truth: nothing is off.
    const LaunchResult again =
        stipple(with({"-o", folder / "moved/", "--truth", folder / "poses.txt", "--picture", folder / "p.png"}));
    expect_success(again);
    EXPECT_TRUE(contains(again.out, "3 registered with confidence, 0 of them dropped")) << again.out;
    EXPECT_EQ(io::load_cloud(folder / "moved/part1.ply", {}, warnings).size(), json["scans"][1]["points"]);
    expect_error(stipple(with({"-o", folder / "moved/"})), 4, "exists already");
}

TEST_F(CliRegisterScans, AFolderOfScansThatShareNothingIsNotWritten) {
    const auto ring = [](double radius, double tube) {  // places of a torus, uneven so that nothing turns
        PointCloud cloud(4000);
        const Rng rng(9);
        for (int64_t i = 0; i < cloud.size(); ++i) {
            const double u = 2 * M_PI * rng.uniform(static_cast<uint64_t>(2 * i)),
                         v = 2 * M_PI * rng.uniform(static_cast<uint64_t>(2 * i + 1));
            const double wide = tube * (1 + 0.4 * std::sin(3 * u + 1) + 0.2 * std::cos(u)),
                         out = radius + wide * std::cos(v);
            const double place[3] = {out * std::cos(u), out * std::sin(u), wide * std::sin(v)};
            for (int axis = 0; axis < 3; ++axis) cloud.positions.data()[3 * i + axis] = static_cast<float>(place[axis]);
        }
        return cloud;
    };
    const PointCloud body = lumpy_body(6000, 1);
    std::filesystem::create_directory(folder / "scans");
    // Opposite caps of a body, and a ring.
    save_as("scans/front.ply", mesh_of(part_of(body, {1, 0, 0}, 0.35)));
    save_as("scans/back.ply", mesh_of(part_of(body, {-1, 0, 0}, 0.35)));
    save_as("scans/ring.ply", mesh_of(ring(1, 0.3)));
    const std::vector<std::string> words = {
        "register", folder / "scans/front.ply", folder / "scans/back.ply", folder / "scans/ring.ply", "--pose-graph",
        "-o",       folder / "all.ply"};
    expect_error(stipple(words), 7, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "all.ply"));
}

TEST_F(CliRegisterScans, PoseGraphsRefuseWhatMakesNoSense) {
    save_parts();
    expect_error(stipple({"register", parts[0], parts[1], parts[0], "--pose-graph"}), 2,
                 "two scans have the name part0.ply");
    expect_error(stipple(with({"--init", truth})), 2, "--init is for two clouds");
    expect_error(stipple(with({"--min-confidence", "2"})), 2, "--min-confidence must be 0 to 1");
    expect_error(stipple(with({"--truth", file("T.txt", "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")})), 3,
                 "T.txt: holds no poses of scans");
    expect_error(stipple({"register", parts[0], "-", "--pose-graph"}), 2, "takes files, not standard input");
}

}  // namespace
}  // namespace stipple::test
