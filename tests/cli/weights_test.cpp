#include "stipple/io/safetensors.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliWeights : public CliTest {
protected:
    std::string model() const {
        const std::string path = folder / "m.safetensors";
        expect_success(stipple({"engine", "new", "pointnet-classifier", "--set", "classes=5", "--set",
                                "feature_transform=false", "-o", path, "-q"}));
        return path;
    }
};

TEST_F(CliWeights, InfoShowsModelCardAndTensors) {
    io::TensorFile file = io::load_safetensors(model());
    file.metadata["stipple.card"] = R"({"recipe":"pointnet-cls","seed":7,"metrics":{"accuracy":0.905}})";
    const std::string path = folder / "carded.safetensors";
    io::save_safetensors(path, file, Overwrite::refuse);
    const LaunchResult result = stipple({"weights", "info", path});
    expect_success(result);
    for (const char* part : {"pointnet-classifier", "classes=5", "storage", "f32", "pointnet-cls", "accuracy", "0.905",
                             "seed", "conv1.weight", "[64, 3]", "768"})
        EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
    const Json json = json_of(stipple({"weights", "info", path, "--json"}));
    EXPECT_EQ(json["model"], "pointnet-classifier");
    EXPECT_EQ(json["config"]["classes"], "5");
    EXPECT_EQ(json["card"]["seed"], 7);
    EXPECT_EQ(json["card"]["metrics"]["accuracy"], 0.905);
    EXPECT_EQ(json["tensors"].size(), file.tensors.size());
    const LaunchResult table = stipple({"weights", "info", path, "--table", "csv"});
    EXPECT_EQ(lines_of(table.out).size(), file.tensors.size() + 1);
    // Tensors of others, without a model.
    file.metadata.clear();
    io::save_safetensors(folder / "bare.safetensors", file, Overwrite::refuse);
    EXPECT_FALSE(contains(stipple({"weights", "info", folder / "bare.safetensors"}).out, "model"));
    file.metadata["stipple.card"] = "{\"recipe\":5}";
    io::save_safetensors(folder / "bad.safetensors", file, Overwrite::refuse);
    expect_error(stipple({"weights", "info", folder / "bad.safetensors"}), 3,
                 "bad.safetensors: the card: \"recipe\" must be text");
    expect_error(stipple({"weights", "info", folder / "none.safetensors"}), 3, "none.safetensors");
}

TEST_F(CliWeights, ConfidenceIsMeasuredOnTrainingClouds) {
    for (int i = 0; i < 20; ++i) {
        const std::string name = fmt::format("set/class{}", i % 5);
        std::filesystem::create_directories(folder / name);
        save_as(fmt::format("{}/{}.ply", name, i), random_cloud(80, static_cast<uint64_t>(i)));
    }
    const std::string in = model(), out = folder / "sure.safetensors";
    expect_success(stipple({"weights", "convert", in, "--storage", "f16", "-o", folder / "half.safetensors", "-q"}));
    expect_success(stipple({"weights", "confidence", folder / "half.safetensors", "--data", folder / "set", "--split",
                            "", "-o", out, "--device", "cpu", "-q"}));
    const io::TensorFile before = io::load_safetensors(folder / "half.safetensors"), after = io::load_safetensors(out);
    EXPECT_FALSE(before.metadata.contains("stipple.confidence"));
    EXPECT_TRUE(after.metadata.contains("stipple.confidence"));
    EXPECT_EQ(after.metadata.at("stipple.storage"), "f16");
    EXPECT_EQ(after.tensors.size(), before.tensors.size());
    expect_error(stipple({"weights", "confidence", in, "-o", out}), 2, "--data is missing");
    expect_error(stipple({"weights", "confidence", in, "--data", folder / "set", "--split", "", "-o", out}), 4,
                 "exists already");
}

TEST_F(CliWeights, ConvertStoresWithFewerBits) {
    const std::string in = model(), out = folder / "small.safetensors";
    const LaunchResult result = stipple({"weights", "convert", in, "--storage", "int8-rows", "-o", out});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "wrote")) << result.out;
    EXPECT_TRUE(contains(result.out, "largest error")) << result.out;
    const size_t before = read_file(in).size(), after = read_file(out).size();
    EXPECT_LT(after, before * 27 / 100);
    // The engine takes it as any other.
    expect_success(stipple({"engine", "inspect", out, "--device", "cpu"}));
    const Json json = json_of(
        stipple({"weights", "convert", out, "--storage", "int8-rows", "-o", folder / "again.safetensors", "--json"}));
    EXPECT_EQ(json["bytes"], after);
    for (const Json& tensor : json["tensors"]) EXPECT_EQ(tensor["largest_error"], 0.0) << tensor["name"];
    EXPECT_EQ(read_file(folder / "again.safetensors"), read_file(out));
    const Json half =
        json_of(stipple({"weights", "convert", in, "--storage", "f16", "-o", folder / "h", "--json", "--dry-run"}));
    EXPECT_EQ(half["outputs"][0]["written"], false);
    EXPECT_LT(half["tensors"][0]["relative_error"], 0.0005);
    EXPECT_GT(half["tensors"][0]["relative_error"], 0.0);
    expect_error(stipple({"weights", "convert", in, "--storage", "int8-rows", "-o", out}), 4, "small.safetensors");
    expect_error(stipple({"weights", "convert", in, "-o", folder / "x.safetensors"}), 2, "--storage");
    const std::string scored = folder / "scored.safetensors";
    expect_success(stipple({"weights", "convert", in, "--storage", "f16", "-o", scored, "-q", "--score",
                            "test_accuracy=0.5", "test_loss=1", "--data", "four shapes"}));
    const LaunchResult card = stipple({"weights", "info", scored});
    EXPECT_TRUE(contains(card.out, "four shapes"));
    EXPECT_TRUE(contains(card.out, "test_accuracy"));
    EXPECT_TRUE(contains(card.out, "test_loss"));
    expect_error(
        stipple({"weights", "convert", in, "--storage", "f16", "-o", folder / "x.safetensors", "--score", "a=b"}), 2,
        "--score a=b: not a number");
    expect_error(stipple({"weights", "convert", in, "--storage", "int4", "-o", folder / "x.safetensors"}), 2,
                 "--storage");
    EXPECT_FALSE(contains(read_file(out), "num_batches"));
}

}  // namespace
}  // namespace stipple::test
