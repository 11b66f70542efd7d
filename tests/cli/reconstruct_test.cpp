// stipple reconstruct through the program, with random weights: files, counts, refusals; weights that tell what they
// know; register --method learned.

#include <cmath>
#include <filesystem>

#include "stipple/io/safetensors.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliReconstruct : public CliTest {
protected:
    /// Random weights that make 100 points.
    std::string model() const {
        const std::string path = folder / "m.safetensors";
        if (!std::filesystem::exists(path))
            expect_success(
                stipple({"engine", "new", "autoencoder", "--set", "count=100", "--set", "hidden=16", "-o", path}));
        return path;
    }
    /// The same, which refuse what is unlike some clouds of the classes bowl and cup.
    std::string knowing_model() const {
        for (int i = 0; i < 12; ++i) {
            const std::string name = std::string("set/") + (i % 3 == 0 ? "bowl" : i % 3 == 1 ? "cup" : "vase");
            std::filesystem::create_directories(folder / name);
            save_as(name + "/" + std::to_string(i) + ".ply", random_cloud(80, static_cast<uint64_t>(i)));
        }
        const std::string path = folder / "k.safetensors";
        const LaunchResult result = stipple({"weights", "confidence", model(), "--data", folder / "set", "--split", "",
                                             "--classes", "bowl", "--classes", "cup", "-o", path, "--device", "cpu"});
        expect_success(result);
        EXPECT_TRUE(contains(result.out, "measured on 8 clouds")) << result.out;
        return path;
    }
    LaunchResult rebuild(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"reconstruct", "--device", "cpu"});
        return stipple(arguments);
    }
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
    /// With limits that clouds of 30 points keep and those of 80 do not.
    std::string strict_model() const {
        io::TensorFile weights = io::load_safetensors(knowing_model());
        weights.metadata["stipple.likeness"] =
            R"({"sizes":[{"points":30,"to_made":9.0,"from_made":9.0},{"points":80,"to_made":0.001,"from_made":9.0}]})";
        io::save_safetensors(folder / "s.safetensors", weights, Overwrite::refuse);
        return folder / "s.safetensors";
    }
};

TEST_F(CliReconstruct, MakesACloudOfFewPoints) {
    const std::string input = cloud("few.ply", 30), out = folder / "full.ply";
    const LaunchResult result = rebuild({input, "--model", model(), "-o", out, "--picture", folder / "p.png"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.out, "full.ply: 100 points of 30, which lie ")) << result.out;
    EXPECT_TRUE(contains(result.err, "do not tell what is unlike")) << result.err;
    EXPECT_TRUE(contains(result.err, "weights are random")) << result.err;
    EXPECT_EQ(load(out).size(), 100);
    EXPECT_EQ(read_file(folder / "p.png").substr(1, 3), "PNG");
    const Json json = json_of(rebuild({input, "--model", model(), "-n", "12", "-o", folder / "b.ply", "--json"}));
    EXPECT_EQ(json["model"], "autoencoder");
    EXPECT_EQ(json["files"][0]["rebuilt"], 12);
    EXPECT_EQ(json["files"][0]["seen"], 30);
    EXPECT_TRUE(json["files"][0]["unlikeness"].is_null());
    EXPECT_GT(json["files"][0]["rms_to_rebuilt"], 0.0);
    EXPECT_EQ(load(folder / "b.ply").size(), 12);
    const Json posed =
        json_of(rebuild({input, "--model", model(), "--poses", "--up", "y", "-o", folder / "c.ply", "--json"}));
    EXPECT_TRUE(contains(posed["files"][0]["pose"], "up y, turned by ")) << posed;
    const Json turned = json_of(rebuild({input, "--model", model(), "--turns", "8", "-o", folder / "e.ply", "--json"}));
    EXPECT_EQ(std::fmod(turned["files"][0]["turned_degrees"].get<double>(), 45), 0) << turned;
    EXPECT_EQ(lines_of(rebuild({input, "--model", model(), "-o", folder / "d.ply", "--table", "csv"}).out)[0],
              "file,points,rebuilt,rms,unlikeness,written");
    // As a step, byte for byte.
    EXPECT_EQ(stipple({"run", input, "--then", "reconstruct", "--model", model(), "-o", folder / "run.ply", "--device",
                       "cpu"})
                  .exit_code,
              0);
    EXPECT_EQ(read_file(folder / "run.ply"), read_file(out));
}

TEST_F(CliReconstruct, RefusesWhatItDoesNotKnow) {
    const std::string known = strict_model(), like = cloud("a30.ply", 30), unlike = cloud("a80.ply", 80);
    EXPECT_EQ(rebuild({like, "--model", known, "-o", folder / "a.ply"}).exit_code, 0);
    const LaunchResult refused = rebuild({unlike, "--model", known, "-o", folder / "b.ply"});
    expect_error(refused, 7, "a80.ply: unlike what can be rebuilt (bowl, cup)");
    EXPECT_TRUE(contains(refused.err, "--force")) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "b.ply"));
    const LaunchResult forced = rebuild({unlike, "--model", known, "--force", "-o", folder / "b.ply"});
    EXPECT_EQ(forced.exit_code, 0) << report(forced);
    EXPECT_TRUE(contains(forced.err, "not to be trusted")) << forced.err;
    const Json json = json_of(rebuild({unlike, "--model", known, "--force", "-o", folder / "c.ply", "--json"}));
    EXPECT_EQ(json["files"][0]["unlike"], true);
    EXPECT_EQ(json["classes"], Json::array({"bowl", "cup"}));

    // Of several the others are done.
    std::filesystem::create_directory(folder / "out");
    const LaunchResult many = rebuild({like, unlike, "--model", known, "-o", folder / "out/"});
    EXPECT_EQ(many.exit_code, 7) << report(many);
    EXPECT_TRUE(contains(many.err, "1 of 2 clouds are unlike what can be rebuilt")) << many.err;
    EXPECT_EQ(load(folder / "out/a30.ply").size(), 100);
    EXPECT_FALSE(std::filesystem::exists(folder / "out/a80.ply"));
}

TEST_F(CliReconstruct, RefusesWhatMakesNoSense) {
    const std::string input = cloud("few.ply", 30), few = cloud("7.ply", 7), out = folder / "o.ply";
    expect_error(rebuild({input, "--model", model(), "-n", "101", "-o", out}), 2, "these weights make 1 to 100");
    expect_error(rebuild({input, "--model", model(), "-n", "-1", "-o", out}), 2, "--count must be from 0, got -1");
    expect_error(rebuild({few, "--model", model(), "-o", out}), 2, "7.ply: a cloud is rebuilt from 8 distinct points");
    expect_error(rebuild({input, "--model", folder / "no.safetensors", "-o", out}), 3, "no.safetensors");
    expect_error(rebuild({input, "--model", "pointnet-cls", "-o", out}), 2, "rebuilds no clouds");
    expect_error(rebuild({input, "--model", model(), "--up", "w", "-o", out}), 2, "--up");
    expect_error(rebuild({input, "--model", model(), "--turns", "0", "-o", out}), 2, "--turns must be 1 to 360");
    expect_error(rebuild({file("bad.ply", "ply\nformat ascii 1.0\n"), "--model", model(), "-o", out}), 3, "bad.ply");
    expect_error(rebuild({file("nan.xyz", "nan 0 0\nnan 1 1\n"), "--model", model(), "-o", out}), 3,
                 "has no finite points");
    std::filesystem::create_directory(folder / "out");
    expect_error(rebuild({input, few, "--model", model(), "--picture", folder / "p.png", "-o", folder / "out/"}), 2,
                 "--picture is for one cloud");
    expect_error(stipple({"weights", "confidence", model(), "--data", folder / "none", "-o", out}), 3, "none");
    EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(CliReconstruct, RegisterAsksANetwork) {
    const std::string a = cloud("a.ply", 200), pcrnet = folder / "p.safetensors";
    expect_success(stipple({"engine", "new", "pcrnet", "--set", "features=16", "--set", "hidden=16", "-o", pcrnet}));
    const auto learned = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"register", a, a, "--method", "learned", "--device", "cpu"});
        return stipple(more);
    };
    // What random weights find is wrong or right by chance, and told as any other start.
    const LaunchResult result = learned({"--model", pcrnet, "--keep-failed", "--json"});
    EXPECT_EQ(result.exit_code, 0) << report(result);
    const Json json = json_of(result);
    EXPECT_EQ(json["method"], "learned");
    EXPECT_TRUE(contains(json["story"], "PCRNet, 8 iterations on 200 and 200 points")) << json["story"];
    for (const char* field : {"transform", "rmse", "overlap", "confidence", "verdict"})
        EXPECT_TRUE(json.contains(field)) << field;
    expect_error(learned({"--model", "pointnet-cls"}), 2, "finds no poses; pcrnet does");
    expect_error(learned({"--model", pcrnet, "--sampled", "-3"}), 2, "--sampled");
    expect_error(learned({"--model", pcrnet, "--init", folder / "T.txt"}), 2, "--method learned finds one");
    expect_error(stipple({"register", a, a, "--method", "icp", "--model", pcrnet}), 2,
                 "--model is for --method learned");
    expect_error(stipple({"register", a, a, "--method", "global", "--sampled", "64"}), 2,
                 "--sampled is for --method learned");
    expect_error(stipple({"register", a, cloud("b.ply", 200), "--pose-graph", "--method", "learned"}), 2,
                 "--method learned is for two clouds");
}

}  // namespace
}  // namespace stipple::test
