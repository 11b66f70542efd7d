// stipple register --sequence.

#include <filesystem>

#include "tests/cli/cli.h"
#include "tests/support/lidar_drive.h"

namespace stipple::test {
namespace {

class CliRegisterSequence : public CliTest {
protected:
    static constexpr int kSweeps = 10;

    /// A folder of sweeps with times, and their true poses as KITTI writes them.
    void save_sweeps() {
        DriveOptions options;
        options.sweeps = kSweeps;
        options.rings = 16;
        options.columns = 240;
        const LidarDrive drive(options);
        std::filesystem::create_directory(folder / "sweeps");
        std::string text;
        for (int i = 0; i < kSweeps; ++i) {
            Mesh mesh;
            mesh.vertices = drive.sweep(i);
            mesh.triangles = Array<int32_t, 2>({0, 3});
            save_as(name_of(i), mesh);
            const geometry::RigidTransform pose = drive.truth(i);
            for (int row = 0; row < 3; ++row) {
                for (const double number : pose.rotation[row]) text += std::to_string(number) + " ";
                text += std::to_string(pose.translation[row]) + (row < 2 ? " " : "\n");
            }
        }
        sweeps = folder / "sweeps/";
        truth = file("truth.txt", text);
    }
    static std::string name_of(int i) { return "sweeps/00" + std::to_string(i) + ".pcd"; }
    std::string sweeps, truth;
};

TEST_F(CliRegisterSequence, ADriveBecomesPosesAndAMap) {
    save_sweeps();
    const LaunchResult first = stipple({"register", sweeps, "--sequence", "-o", folder / "poses.txt", "--map",
                                        folder / "map.las", "--truth", truth, "--json"});
    expect_success(first);
    const Json json = json_of(first);
    EXPECT_EQ(json["verdict"], "good");
    EXPECT_EQ(json["timed"], kSweeps);
    EXPECT_EQ(json["sweeps"].size(), static_cast<size_t>(kSweeps));
    EXPECT_LT(json["truth"]["end_translation"], 0.1);
    EXPECT_LT(json["truth"]["translation_percent"], 2);
    EXPECT_FALSE(json["truth"]["kitti"]);
    // The map lies where the town is: what a sweep sees of it, from its pose, is there.
    io::Warnings warnings;
    const PointCloud map = io::load_cloud(folder / "map.las", {}, warnings);
    EXPECT_EQ(map.size(), json["outputs"][1]["points"]);
    EXPECT_EQ(find(map.attributes, "scan")->value(map.size() - 1), kSweeps - 1);
    int64_t ground = 0, low = 0;
    for (int64_t i = 0; i < map.size(); ++i) {
        ground += std::abs(map.world(i, 2) + 1.73) < 0.1;
        low += map.world(i, 2) < -2.1;
    }
    EXPECT_GT(ground, map.size() / 5);
    EXPECT_LT(low, map.size() / 100);
    // What was written is read as the truth: nothing is off. Other formats and cells make another map of it.
    const LaunchResult again = stipple({"register", sweeps, "--sequence", "--truth", folder / "poses.txt", "--map",
                                        folder / "map.ply", "--map-voxel", "2"});
    expect_success(again);
    EXPECT_TRUE(contains(again.out, "drift       0.000 %, 0.0000 degrees in 100; the end is off by 0 and"))
        << again.out;
    EXPECT_TRUE(contains(again.out, "with times: freed of the sensor's motion")) << again.out;
    EXPECT_LT(io::load_cloud(folder / "map.ply", {}, warnings).size(), map.size() / 4);
    // Files instead of a folder, and the camera's frame.
    const std::string calibration = file("calib.txt", "Tr: 0 -1 0 0.1 0 0 -1 0.2 1 0 0 0.3\n");
    const LaunchResult camera = stipple({"register", folder / name_of(0), folder / name_of(1), folder / name_of(2),
                                         "--sequence", "--calibration", calibration, "--json"});
    expect_success(camera);
    const Json moved = json_of(camera)["sweeps"][2]["transform"];
    EXPECT_NEAR(moved[2][3].get<double>(), json["sweeps"][2]["transform"][0][3].get<double>(), 0.05);
    expect_error(stipple({"register", sweeps, "--sequence", "-o", folder / "poses.txt"}), 4, "exists already");
}

TEST_F(CliRegisterSequence, BrokenSweepsAreNamed) {
    save_sweeps();
    file(name_of(4), "no sweep");
    expect_error(stipple({"register", sweeps, "--sequence", "-o", folder / "poses.txt"}), 3, "004.pcd");
    EXPECT_FALSE(std::filesystem::exists(folder / "poses.txt"));
    const LaunchResult kept =
        stipple({"register", sweeps, "--sequence", "-o", folder / "poses.txt", "--truth", truth, "--keep-failed"});
    EXPECT_EQ(kept.exit_code, 0) << report(kept);
    EXPECT_TRUE(contains(kept.err, "004.pcd: 0 points in range are too few, its pose is a guess")) << kept.err;
    EXPECT_TRUE(contains(kept.out, "doubtful")) << kept.out;
}

TEST_F(CliRegisterSequence, WhatIsLostIsNotWritten) {
    save_sweeps();
    DriveOptions elsewhere;
    elsewhere.sweeps = kSweeps;
    elsewhere.rings = 16;
    elsewhere.columns = 240;
    elsewhere.seed = 9;
    // Other towns, one after the other.
    for (int i = 4; i < kSweeps; ++i) {
        elsewhere.seed = static_cast<uint64_t>(i);
        PointCloud sweep = LidarDrive(elsewhere).sweep(0);
        for (int64_t k = 0; k < sweep.size(); ++k) {  // on their side
            float* at = sweep.positions.data() + 3 * k;
            std::swap(at[1], at[2]);
        }
        Mesh mesh;
        mesh.vertices = std::move(sweep);
        mesh.triangles = Array<int32_t, 2>({0, 3});
        std::filesystem::remove(folder / name_of(i));
        save_as(name_of(i), mesh);
    }
    const std::vector<std::string> words = {"register",           sweeps,  "--sequence",      "-o",
                                            folder / "poses.txt", "--map", folder / "map.las"};
    expect_error(stipple(words), 7, "three sweeps in a row have no pose");
    EXPECT_FALSE(std::filesystem::exists(folder / "poses.txt"));
    EXPECT_FALSE(std::filesystem::exists(folder / "map.las"));
    std::vector<std::string> kept = words;
    kept.emplace_back("--keep-failed");
    const LaunchResult result = stipple(kept);
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "its pose is a guess")) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder / "poses.txt"));
}

TEST_F(CliRegisterSequence, RefusesWhatMakesNoSense) {
    std::filesystem::create_directory(folder / "empty");
    expect_error(stipple({"register", folder / "empty/", "--sequence"}), 2, "empty");
    save_sweeps();
    expect_error(stipple({"register", folder / name_of(0), "--sequence"}), 2, "holds one sweep");
    expect_error(stipple({"register", sweeps}), 2, "TARGET is missing");
    expect_error(stipple({"register", sweeps, "--sequence", "--pose-graph"}), 2, "exclude each other");
    expect_error(stipple({"register", sweeps, "--sequence", "--init", truth}), 2, "--init");
    expect_error(stipple({"register", sweeps, "--sequence", "--method", "icp"}), 2, "--method");
    expect_error(stipple({"register", sweeps, "--sequence", "--max-range", "-3"}), 2, "--max-range must be from 0");
    expect_error(stipple({"register", sweeps, "--sequence", "--map-voxel", "1"}), 2, "--map-voxel needs --map");
    expect_error(stipple({"register", sweeps, "--sequence", "--truth", file("t.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n")}), 2,
                 "t.txt: holds 1 poses for 10 sweeps");
    expect_error(stipple({"register", sweeps, "--sequence", "--truth", file("n.txt", "1 0 0\n")}), 3,
                 "n.txt:1: expected twelve numbers");
    expect_error(stipple({"register", folder / name_of(0), folder / name_of(1), "--map", folder / "m.las"}), 2,
                 "are for --sequence");
    expect_error(stipple({"register", "-", "--sequence"}), 2, "takes files, not standard input");
}

TEST_F(CliRegisterSequence, PointsThatAreNotFiniteAreCountedAndLeftOut) {
    save_sweeps();
    io::Warnings warnings;
    Mesh mesh;
    mesh.vertices = io::load_cloud(folder / name_of(3), {}, warnings);
    mesh.triangles = Array<int32_t, 2>({0, 3});
    for (int64_t i = 0; i < 20; ++i) mesh.vertices.positions.data()[30 * i] = std::nanf("");
    std::filesystem::remove(folder / name_of(3));
    save_as(name_of(3), mesh);
    const LaunchResult result =
        stipple({"register", sweeps, "--sequence", "--truth", truth, "--map", folder / "m.las"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "20 of ")) << result.err;
    EXPECT_TRUE(contains(result.err, "points not finite, not registered")) << result.err;
    EXPECT_TRUE(contains(result.out, "verdict     good")) << result.out;
}

}  // namespace
}  // namespace stipple::test
