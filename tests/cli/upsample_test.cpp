#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliUpsample : public CliTest {
protected:
    std::string model() const {
        expect_success(stipple({"engine", "new", "flow-upsampler", "--set", "layers=1", "--set", "width=16", "--set",
                                "hidden=16", "-o", folder / "u.safetensors"}));
        return folder / "u.safetensors";
    }
    LaunchResult upsample(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"upsample", "--device", "cpu"});
        return stipple(arguments);
    }
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }
};

TEST_F(CliUpsample, WritesSoManyPointsWithTheirAttributes) {
    Mesh mesh = random_cloud(400);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    mesh.vertices.origin = {500000, 5400000, 120};
    const std::string input = save_as("a.npz", mesh), path = model();
    const LaunchResult result = upsample({input, "--ratio", "2.5", "--model", path, "-o", folder / "b.npz", "--picture",
                                          folder / "b.png", "--normals", "--json"});
    expect_success(result);
    const PointCloud out = load(folder / "b.npz");
    EXPECT_EQ(out.size(), 1000);
    EXPECT_EQ(out.origin, mesh.vertices.origin);
    EXPECT_NE(find(out.attributes, "intensity"), nullptr);
    EXPECT_NE(find(out.attributes, "normal"), nullptr);
    const Json json = json_of(result);
    EXPECT_EQ(json["files"][0]["points"], 400);
    EXPECT_EQ(json["files"][0]["upsampled"], 1000);
    EXPECT_LT(json["files"][0]["spacing_after"], json["files"][0]["spacing"]);
    EXPECT_EQ(json_of(stipple({"info", folder / "b.png", "--json"}))["files"][0]["format"], "PNG");
    // The same seed, the same points; input points stay on request.
    expect_success(upsample({input, "--ratio", "2.5", "--model", path, "-o", folder / "c.npz"}));
    EXPECT_EQ(0, std::memcmp(load(folder / "c.npz").positions.data(), out.positions.data(), 12000));
    expect_success(upsample({input, "--count", "600", "--keep-input", "--model", path, "-o", folder / "d.npz"}));
    const PointCloud kept = load(folder / "d.npz");
    ASSERT_EQ(kept.size(), 600);
    EXPECT_EQ(0, std::memcmp(kept.positions.data(), mesh.vertices.positions.data(), 4800));
    const double spacing = json["files"][0]["spacing"].get<double>() / 2;
    expect_success(upsample(
        {input, "--spacing", fmt::format("{}", spacing), "--model", path, "-o", folder / "e.npz", "--tile", "100"}));
    EXPECT_NEAR(static_cast<double>(load(folder / "e.npz").size()), 1600, 20);
}

TEST_F(CliUpsample, WithoutANetwork) {
    const std::string input = cloud("a.ply", 300);
    const Json json =
        json_of(upsample({input, "--ratio", "4", "--model", "midpoints", "-o", folder / "b.ply", "--json"}));
    EXPECT_EQ(json["model"], "midpoints");
    EXPECT_EQ(load(folder / "b.ply").size(), 1200);
    // With the network that ships.
    EXPECT_EQ(json_of(upsample({input, "--ratio", "4", "-o", folder / "c.ply", "--json"}))["model"], "flow-upsampler");
}

// Weights of every family run without torch; neighbours are free after training.
TEST_F(CliUpsample, EveryFamilyOfPuFlow) {
    const std::string input = cloud("a.ply", 300);
    for (const char* family : {"coupling", "residual", "continuous", "augmented", "mlp"}) {
        const std::string path = folder / (std::string(family) + ".safetensors");
        expect_success(stipple({"engine", "new", "puflow", "--set", std::string("family=") + family, "-o", path}));
        const std::string out = folder / (std::string(family) + ".ply");
        expect_success(upsample({input, "--ratio", "3", "--model", path, "-o", out}));
        EXPECT_EQ(load(out).size(), 900) << family;
    }
    const std::string path = folder / "residual.safetensors";
    expect_success(upsample({input, "--ratio", "3", "--model", path, "--set", "interpolation_neighbours=12", "--set",
                             "neighbourhood=latent", "-o", folder / "k.ply"}));
    EXPECT_EQ(load(folder / "k.ply").size(), 900);
}

TEST_F(CliUpsample, TemperatureMakesSeveralCloudsOfOne) {
    const std::string input = cloud("a.ply", 300), path = folder / "p.safetensors";
    expect_success(stipple({"engine", "new", "puflow", "-o", path}));
    const auto made = [&](const char* name, const char* temperature, const char* seed) {
        expect_success(upsample({input, "--ratio", "2", "--model", path, "--temperature", temperature, "--seed", seed,
                                 "-o", folder / name}));
        const PointCloud cloud = load(folder / name);
        return std::vector<float>(cloud.positions.data(), cloud.positions.data() + cloud.positions.elements());
    };
    const std::vector<float> cold = made("a1.ply", "0", "1"), warm = made("a2.ply", "0.1", "1");
    EXPECT_EQ(cold, made("a3.ply", "0", "2"));
    EXPECT_NE(cold, warm);
    EXPECT_EQ(warm, made("a4.ply", "0.1", "1"));
    EXPECT_NE(warm, made("a5.ply", "0.1", "2"));
    expect_error(upsample({input, "--ratio", "2", "--temperature", "-1", "--model", path, "-o", folder / "b.ply"}), 2,
                 "--temperature must be from 0, got -1");
    // The network that ships moves queries: there is nothing to draw.
    expect_error(upsample({input, "--ratio", "2", "--temperature", "1", "-o", folder / "b.ply"}), 2,
                 "takes no noise; models of PU-Flow do");
    expect_error(upsample({input, "--ratio", "2", "--model", "midpoints", "--set", "ratio=4", "-o", folder / "b.ply"}),
                 2, "midpoints have no options");
}

TEST_F(CliUpsample, FoldersAndFilesThatFail) {
    const std::string path = model();
    std::filesystem::create_directory(folder / "in");
    save_as("in/a.ply", random_cloud(100));
    save_as("in/b.ply", random_cloud(5));
    std::filesystem::create_directory(folder / "out");
    const LaunchResult result = upsample({folder / "in", "--ratio", "2", "--model", path, "-o", folder / "out"});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_TRUE(contains(result.err, "5 distinct points")) << result.err;
    EXPECT_EQ(load(folder / "out/a.ply").size(), 200);
    EXPECT_FALSE(std::filesystem::exists(folder / "out/b.ply"));
}

TEST_F(CliUpsample, WrongUse) {
    const std::string input = cloud("a.ply", 100), path = model(), out = folder / "b.ply";
    expect_error(upsample({input, "--model", path, "-o", out}), 2, "Give --ratio R, --count N or --spacing D");
    expect_error(upsample({input, "--ratio", "2", "--count", "300", "--model", path, "-o", out}), 2, "Give --ratio R");
    expect_error(upsample({input, "--ratio", "0.5", "--model", path, "-o", out}), 2, "1 or more, got 0.5");
    expect_error(upsample({input, "--ratio", "nan", "--model", path, "-o", out}), 2, "ratio");
    expect_error(upsample({input, "--count", "99", "--model", path, "-o", out}), 2, "fewer than the cloud has, 100");
    expect_error(upsample({input, "--ratio", "2", "--model", path, "-o", out, "--tile", "5"}), 2,
                 "--tile must be from 32, got 5");
    expect_error(upsample({input, "--ratio", "2", "--model", folder / "no.safetensors", "-o", out}), 3,
                 "no.safetensors");
    expect_success(stipple(
        {"engine", "new", "pointnet-classifier", "--set", "feature_transform=false", "-o", folder / "c.safetensors"}));
    expect_error(upsample({input, "--ratio", "2", "--model", folder / "c.safetensors", "-o", out}), 2,
                 "does not upsample clouds");
    EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace stipple::test
