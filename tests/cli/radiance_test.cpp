// stipple radiance: the group of commands and each of them through the program, on fields made by hand.

#include <cmath>

#include "stipple/io/format.h"
#include "stipple/io/image_file.h"
#include "stipple/io/npy.h"
#include "tests/cli/cli.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/radiance_fields.h"

namespace stipple::test {
namespace {

constexpr const char* kRadianceCommands[] = {"train", "render", "evaluate", "export", "info"};

class CliRadiance : public CliTest {
protected:
    /// A ball of radius 0.7 with 6 cameras about it.
    std::string ball(const std::string& name = "ball.field", bool cameras = true) const {
        radiance::DenseField dense = ball_field(24, 0.7f, 6, 48);
        dense.notes["scene"] = "ball";
        if (!cameras) dense.cameras.clear();
        radiance::save_field(folder / name, radiance::pack(dense), Overwrite::refuse);
        return folder / name;
    }
    std::string scene(int side = 24, int train = 6) const {
        std::filesystem::create_directory(folder / "scene");
        save_blender(folder / "scene", analytic_scene(side, train, 2, 1));
        return folder / "scene";
    }
    Mesh load(const std::string& path) const {
        io::Warnings warnings;
        return io::load(path, {}, warnings);
    }
};

TEST_F(CliRadiance, TheGroupListsItsCommandsAndTheirHelpFits) {
    const LaunchResult group = stipple({"radiance"});
    expect_success(group);
    for (const std::string command : kRadianceCommands) {
        EXPECT_TRUE(contains(group.out, "\n  " + command + " ")) << command;
        const LaunchResult result = stipple({"radiance", command, "--help"});
        expect_success(result);
        EXPECT_TRUE(contains(result.out, "Example:\n  stipple radiance " + command)) << result.out;
        EXPECT_LE(lines_of(result.out).size(), 45u) << result.out;
    }
}

TEST_F(CliRadiance, InfoAndThePlainInfoSayTheSame) {
    const std::string field = ball();
    const LaunchResult own = stipple({"radiance", "info", field}), plain = stipple({"info", field});
    expect_success(own);
    EXPECT_EQ(own.out, plain.out);
    for (const char* text : {"radiance field", "24 x 24 x 24 = 13,824", "cameras", "-1 to 1", "white", "scene"})
        EXPECT_TRUE(contains(own.out, text)) << text << own.out;
    const Json json = Json::parse(stipple({"radiance", "info", field, "--json"}).out);
    EXPECT_EQ(json["files"][0]["nodes"], 13824);
    EXPECT_EQ(json["files"][0]["cameras"], 6);
    EXPECT_EQ(json["files"][0]["notes"]["scene"], "ball");
    EXPECT_TRUE(contains(stipple({"radiance", "info", field, "--table", "csv"}).out, "file,nodes,voxel"));
}

TEST_F(CliRadiance, PathsOfAStepAreForGpus) {
    const auto train = [&](const char* path) {
        return stipple({"radiance", "train", folder / "scene", "-o", folder / "x.field", "--device", "cpu", "--set",
                        std::string("path=") + path});
    };
    scene();
    expect_error(train("quick"), 2, "reference, fused_adam, fused_rendering, per_ray_weights, final");
    expect_error(train("reference"), 2, "on CUDA alone");
    EXPECT_FALSE(std::filesystem::exists(folder / "x.field"));
}

TEST_F(CliRadiance, ExportsPoints) {
    const std::string field = ball(), out = folder / "ball.ply";
    const LaunchResult result = stipple({"radiance", "export", field, "--points", "--count", "1000", "-o", out});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "1,000 points with normals, colours and confidence, seen by 6 cameras"))
        << result.out;
    const Mesh cloud = load(out);
    EXPECT_EQ(cloud.vertices.size(), 1000);
    for (const char* name : {"normal", "color", "confidence"})
        EXPECT_TRUE(find(cloud.vertices.attributes, name)) << name;
    for (int64_t i = 0; i < 1000; ++i) EXPECT_NEAR(length(to_vec3(cloud.vertices.positions.data() + 3 * i)), 0.7, 0.2);
    const LaunchResult many =
        stipple({"radiance", "export", field, "--points", "--count", "1e6", "-o", folder / "many.ply"});
    EXPECT_EQ(many.exit_code, 0);
    EXPECT_TRUE(contains(many.err, "fewer than the 1,000,000 asked for")) << many.err;
    expect_success(stipple({"radiance", "export", field, "--points", "--spacing", "0.2", "--box", "0", "inf", "inf",
                            "inf", "inf", "inf", "-o", folder / "half.ply"}));
    const Mesh half = load(folder / "half.ply");
    EXPECT_GT(half.vertices.size(), 30);
    for (int64_t i = 0; i < half.vertices.size(); ++i) EXPECT_GE(half.vertices.positions.data()[3 * i], 0);
}

TEST_F(CliRadiance, ExportsMeshAndDensity) {
    const std::string field = ball("plain.field", false);
    const LaunchResult mesh = stipple({"radiance", "export", field, "--mesh", "-o", folder / "ball.ply"});
    expect_success(mesh);
    EXPECT_TRUE(contains(mesh.out, "in 1 part, with colours")) << mesh.out;
    EXPECT_GT(load(folder / "ball.ply").faces(), 500);
    const LaunchResult density = stipple({"radiance", "export", field, "--density", "-o", folder / "ball.npy"});
    expect_success(density);
    EXPECT_TRUE(contains(density.out, "density at 24 x 24 x 24 nodes from -1 -1 -1 to 1 1 1")) << density.out;
    const std::string bytes = read_file(folder / "ball.npy");
    io::MemorySource source(std::as_bytes(std::span(bytes.data(), bytes.size())));
    io::ByteReader reader(source);
    EXPECT_EQ(io::parse_npy_array(reader).shape, (std::vector<int64_t>{24, 24, 24}));
    // A dry run writes nothing.
    expect_success(stipple({"radiance", "export", field, "--mesh", "-o", folder / "dry.ply", "--dry-run"}));
    EXPECT_FALSE(std::filesystem::exists(folder / "dry.ply"));
}

TEST_F(CliRadiance, ExportsWrongly) {
    const std::string field = ball(), out = folder / "out.ply";
    const auto wrong = [&](std::vector<std::string> words, int code, const std::string& text) {
        std::vector<std::string> all = {"radiance", "export"};
        all.insert(all.end(), words.begin(), words.end());
        expect_error(stipple(all), code, text);
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    wrong({field, "-o", out}, 2, "one of --points, --mesh and --density");
    wrong({field, "--points", "--mesh", "-o", out}, 2, "one of --points, --mesh and --density");
    wrong({field, "--mesh", "--count", "3", "-o", out}, 2, "--count is for --points");
    wrong({field, "--points", "--level", "0.2", "-o", out}, 2, "--level is for --mesh");
    wrong({field, "--points", "--count", "3", "--spacing", "1", "-o", out}, 2, "give one of them");
    wrong({field, "--mesh", "--level", "1", "-o", out}, 2, "--level must be above 0, below 1, got 1");
    wrong({field, "--mesh", "--box", "0", "0", "0", "1", "1", "0", "-o", out}, 2, "from 0 to 0 is nothing");
    wrong({field, "--mesh", "--box", "5", "5", "5", "6", "6", "6", "-o", out}, 3, "no voxel there");
    wrong({field, "--points", "--box", "5", "5", "5", "6", "6", "6", "-o", out}, 3, "see no surface there");
    wrong({field, "--density", "-o", out}, 2, "name it .npy");
    wrong({field, "--points", "-o", folder / "none/out.ply"}, 4, "none");
    wrong({ball("plain.field", false), "--points", "-o", out}, 2, "has no cameras");
    wrong({file("cloud.ply", "ply\n"), "--mesh", "-o", out}, 3, "cloud.ply");
    wrong({folder / "nothing.field", "--mesh", "-o", out}, 3, "nothing.field");
    wrong({folder.path(), "--mesh", "-o", out}, 3, "folder");
}

TEST_F(CliRadiance, RendersFromNewPlaces) {
    const std::string field = ball(), out = folder / "turn";
    const LaunchResult turn =
        stipple({"radiance", "render", field, "--path", "orbit", "--frames", "3", "--size", "32x24", "-o", out});
    expect_success(turn);
    EXPECT_TRUE(contains(turn.out, "3 views of 32 x 24")) << turn.out;
    for (const char* name : {"0000.png", "0001.png", "0002.png"}) {
        const Image image = io::load_image(out + "/" + name);
        EXPECT_EQ(image.width(), 32);
        EXPECT_EQ(image.height(), 24);
        EXPECT_EQ(image.channels(), 3);
        EXPECT_EQ(image.at(0, 0)[0], 255);  // the background
        const uint8_t* middle = image.at(16, 12);
        EXPECT_LT(std::min(middle[0], middle[2]), 40);  // red or blue
    }
    expect_error(stipple({"radiance", "render", field, "--camera", "0", "-o", out}), 4, "exists");
    // Straight from above the ball is red.
    expect_success(stipple(
        {"radiance", "render", field, "--eye", "0", "0", "4", "--size", "20", "--geometry", "-o", folder / "above"}));
    const Image above = io::load_image(folder / "above/0000.png");
    EXPECT_GT(above.at(10, 10)[0], 240);
    EXPECT_LT(above.at(10, 10)[2], 15);
    const Image normal = io::load_image(folder / "above/0000_normal.png");
    EXPECT_GT(normal.at(10, 10)[2], 240);
    const Image alpha = io::load_image(folder / "above/0000_alpha.png");
    EXPECT_EQ(alpha.channels(), 1);
    EXPECT_EQ(*alpha.at(0, 0), 0);
    EXPECT_GT(*alpha.at(10, 10), 250);
    const std::string bytes = read_file(folder / "above/0000_depth.npy");
    io::MemorySource source(std::as_bytes(std::span(bytes.data(), bytes.size())));
    io::ByteReader reader(source);
    const io::NpyArray depth = io::parse_npy_array(reader);
    EXPECT_EQ(depth.shape, (std::vector<int64_t>{20, 20}));
    EXPECT_NEAR(reinterpret_cast<const float*>(depth.data.data())[10 * 20 + 10], 3.3, 0.1);
    EXPECT_TRUE(std::isinf(reinterpret_cast<const float*>(depth.data.data())[0]));
    EXPECT_TRUE(std::filesystem::exists(folder / "above/0000_depth.png"));
}

TEST_F(CliRadiance, VideoNeedsFfmpegAndSaysSo) {
    const std::string field = ball();
    const LaunchResult result =
        stipple({"radiance", "render", field, "--camera", "0", "1", "--video", "-o", folder / "views"},
                {.arguments = {}, .environment = {{"PATH", folder.path()}}});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "no video: ffmpeg is not on the PATH")) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder / "views/0001.png"));
    EXPECT_FALSE(std::filesystem::exists(folder / "views/video.mp4"));
    // A program of that name that does as it is told.
    std::filesystem::create_directory(folder / "bin");
    const std::string ffmpeg = folder / "bin/ffmpeg";
    write_file(ffmpeg, "#!/bin/sh\nfor last; do :; done\necho \"$@\" > \"$last\"\n");
    std::filesystem::permissions(ffmpeg, std::filesystem::perms::owner_all);
    const LaunchResult with =
        stipple({"radiance", "render", field, "--camera", "0", "--video", "--fps", "12", "-o", folder / "100%"},
                {.arguments = {}, .environment = {{"PATH", folder / "bin:/usr/bin:/bin"}}});
    expect_success(with);
    EXPECT_TRUE(contains(with.out, "video.mp4")) << with.out;
    const std::string words = read_file(folder / "100%/video.mp4");
    EXPECT_TRUE(contains(words, "-framerate 12")) << words;
    EXPECT_TRUE(contains(words, "100%%") && contains(words, "/%04d.png")) << words;
}

TEST_F(CliRadiance, RendersWrongly) {
    const std::string field = ball(), out = folder / "out";
    const auto wrong = [&](std::vector<std::string> words, int code, const std::string& text) {
        std::vector<std::string> all = {"radiance", "render", field, "-o", out};
        all.insert(all.end(), words.begin(), words.end());
        expect_error(stipple(all), code, text);
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    wrong({}, 2, "which views?");
    wrong({"--path", "orbit", "--camera", "1"}, 2, "which views?");
    wrong({"--path", "circle"}, 2, "circle");
    wrong({"--path", "orbit", "--frames", "0"}, 2, "--frames must be 1 to 9999");
    wrong({"--path", "orbit", "--size", "0x3"}, 2, "0x3");
    wrong({"--path", "orbit", "--fov", "300"}, 2, "--fov must be 1 to 170");
    wrong({"--camera", "6"}, 2, "the field has 6 cameras");
    wrong({"--camera", "0", "--size", "10"}, 2, "--size and --fov are for --path and --eye");
    wrong({"--aim", "0", "0", "0", "--path", "orbit"}, 2, "--aim is for --eye");
    wrong({"--eye", "0", "0", "0"}, 2, "no direction");
    wrong({"--data", folder / "missing"}, 3, "missing");
    expect_error(stipple({"radiance", "render", field, "--camera", "0", "-o", folder / "none/out"}), 4, "none");
}

TEST_F(CliRadiance, EvaluatesAndRendersPhotographs) {
    const std::string field = ball(), data = scene();
    const LaunchResult result = stipple({"radiance", "evaluate", field, "--data", data});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "PSNR (dB)") && contains(result.out, "mean")) << result.out;
    const Json json = Json::parse(stipple({"radiance", "evaluate", field, "--data", data, "--json"}).out);
    ASSERT_EQ(json["scores"].size(), 2u);
    EXPECT_NEAR(json["psnr"].get<double>(),
                (json["scores"][0]["psnr"].get<double>() + json["scores"][1]["psnr"].get<double>()) / 2, 1e-9);
    EXPECT_GT(json["psnr"].get<double>(), 3);
    const Json views =
        Json::parse(stipple({"radiance", "render", field, "--data", data, "-o", folder / "views", "--json"}).out);
    EXPECT_EQ(views["psnr"], json["psnr"]);
    EXPECT_TRUE(std::filesystem::exists(folder / "views/0001.png"));
    const Json train =
        Json::parse(stipple({"radiance", "evaluate", field, "--data", data, "--split", "train", "--json"}).out);
    EXPECT_EQ(train["scores"].size(), 6u);
    expect_error(stipple({"radiance", "evaluate", field, "--data", data, "--split", "val"}), 3,
                 "no pictures of the split val");
    expect_error(stipple({"radiance", "evaluate", field}), 2, "--data is missing");
    expect_error(stipple({"radiance", "evaluate", file("a.field", "x"), "--data", data}), 3, "a.field");
}

/// A voxel is opaque enough from the start that a few steps find the surface.
const std::vector<std::string> kFewSteps = {"--mode",
                                            "small",
                                            "--voxels",
                                            "16",
                                            "--set",
                                            "coarse.N_iters=120",
                                            "fine.N_iters=40",
                                            "coarse.N_rand=512",
                                            "fine.N_rand=256",
                                            "coarse.num_voxels=8000",
                                            "coarse.num_voxels_base=8000",
                                            "coarse.alpha_init=1e-3",
                                            "fine.pg_scale=20"};

TEST_F(CliRadiance, TrainsAFieldThatTheOtherCommandsTake) {
    const std::string data = scene(32, 12), out = folder / "a.field";
    std::vector<std::string> words = {"radiance", "train", data, "-o", out, "--device", "cpu", "--background", "black"};
    words.insert(words.end(), kFewSteps.begin(), kFewSteps.end());
    const LaunchResult result = stipple(words, {.arguments = {}, .seconds = 200});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    for (const char* text :
         {"blender", "12 to train on", "2 to 6", "fine, loop", "fine step", "samples of a step", "wrote"})
        EXPECT_TRUE(contains(result.out, text)) << text << result.out;
    const radiance::Field field = radiance::load_field(out);
    EXPECT_EQ(field.cameras.size(), 12u);
    EXPECT_EQ(field.background, radiance::Background::black);
    EXPECT_EQ(field.notes.at("steps"), "120 + 40");
    EXPECT_EQ(field.notes.at("mode"), "small");
    expect_success(stipple({"radiance", "info", out}));
    expect_success(stipple({"radiance", "render", out, "--camera", "0", "-o", folder / "view"}));
    expect_error(stipple(words), 4, "exists already");
}

TEST_F(CliRadiance, TrainsWrongly) {
    const std::string data = scene(), out = folder / "out.field";
    const auto wrong = [&](std::vector<std::string> words, int code, const std::string& text) {
        std::vector<std::string> all = {"radiance", "train", "-o", out, "--device", "cpu"};
        all.insert(all.end(), words.begin(), words.end());
        expect_error(stipple(all), code, text);
        EXPECT_FALSE(std::filesystem::exists(out));
    };
    wrong({data, "--set", "fine.N_iter=3"}, 2, "there is no key");
    wrong({data, "--set", "N_iters=3"}, 2, "there is no key");
    wrong({data, "--set", "fine.N_iters"}, 2, "expected KEY=VALUE");
    wrong({data, "--set", "fine.N_iters=many"}, 2, "--set fine.N_iters must be a whole number, from 0, got \"many\"");
    wrong({data, "--set", "fine.stepsize=x"}, 2, "--set fine.stepsize must be a number, got \"x\"");
    wrong({data, "--set", "jitter=1"}, 2, "--set jitter must be true or false");
    wrong({data, "--set", "seed=1"}, 2, "there is no key \"seed\"");  // that is --seed
    wrong({data, "--set", "fine.pg_scale=1,b"}, 2, "fine.pg_scale must be a whole number, from 0, got \"b\"");
    wrong({data, "--voxels", "3"}, 2, "--voxels must be 8 to 800");
    wrong({data, "--mode", "quick"}, 2, "quick");
    wrong({folder / "missing"}, 3, "missing");
    wrong({file("cloud.ply", "ply\n")}, 3, "cloud.ply");
    EXPECT_TRUE(contains(stipple({"radiance", "train", data, "-o", out, "--set", "fine.N_iter=3"}).err,
                         "did you mean fine.N_iters?"));
    expect_error(stipple({"radiance", "train", data, "-o", folder / "none/out.field"}), 4, "none");
    expect_success(stipple({"radiance", "train", data, "-o", out, "--dry-run"}));
    EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace stipple::test
