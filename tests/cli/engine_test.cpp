#include <sys/stat.h>

#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliEngine : public CliTest {
protected:
    /// A small model with random weights; its path.
    std::string model(const std::string& name = "m.safetensors",
                      const std::string& architecture = "pointnet-classifier",
                      const std::vector<std::string>& settings = {"classes=5"}) const {
        std::vector<std::string> call = {"engine", "new", architecture, "-o", folder / name, "--seed", "1", "-q"};
        for (const std::string& setting : settings) call.insert(call.end(), {"--set", setting});
        expect_success(stipple(call));
        return folder / name;
    }
    std::string engine(const std::string& from, const std::string& name, std::vector<std::string> more = {}) const {
        more.insert(more.begin(),
                    {"engine", "build", from, "-o", folder / name, "--device", "cpu", "--max-points", "64"});
        expect_success(stipple(more));
        return folder / name;
    }
};

TEST_F(CliEngine, NewMakesAModel) {
    const LaunchResult result = stipple(
        {"engine", "new", "pointnet-classifier", "--set", "classes=7", "--seed", "3", "-o", folder / "a.safetensors"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "random (seed 3)")) << result.out;
    const Json json = json_of(stipple({"engine", "new", "pointnet-classifier", "--set", "classes=7", "--seed", "3",
                                       "-o", folder / "b.safetensors", "--json"}));
    EXPECT_EQ(json["command"], "engine new");
    EXPECT_EQ(json["config"]["classes"], "7");
    EXPECT_EQ(json["trained"], false);
    EXPECT_GT(json["parameters"], 3'000'000);
    EXPECT_EQ(read_file(folder / "a.safetensors"), read_file(folder / "b.safetensors"));
    model("c.safetensors");
    EXPECT_NE(read_file(folder / "a.safetensors"), read_file(folder / "c.safetensors"));
    expect_success(stipple({"engine", "new", "puflow", "--storage", "f16", "-o", folder / "d.safetensors"}));
    // Whoever asks `info` gets an answer.
    expect_success(stipple({"info", folder / "d.safetensors"}));
}

TEST_F(CliEngine, NewRefuses) {
    const auto fails = [&](std::vector<std::string> arguments, const std::string& text, int exit_code = 2) {
        arguments.insert(arguments.begin(), {"engine", "new"});
        const LaunchResult result = stipple(arguments);
        expect_error(result, exit_code, text);
        return result.err;
    };
    const std::string out = folder / "a.safetensors";
    EXPECT_TRUE(contains(fails({"pointnet-clasifier", "-o", out}, "pointnet-clasifier"), "pointnet-classifier"));
    fails({"pointnet-classifier", "-o", out, "--set", "classes"}, "write KEY=VALUE");
    fails({"pointnet-classifier", "-o", out, "--set", "classes=x"}, "classes");
    fails({"pointnet-classifier", "-o", out, "--set", "clases=4"}, "clases");
    fails({"pointnet-classifier", "-o", out, "--set", "classes=4", "--set", "classes=5"}, "set twice");
    fails({"pointnet-classifier"}, "--output is missing");
    fails({"-o", out}, "NAME");
    fails({"pointnet-classifier", "-o", out, "--storage", "f8"}, "--storage");
    expect_entries({});
    file("a.safetensors", "x");
    fails({"pointnet-classifier", "-o", out}, "exists already", 4);
}

TEST_F(CliEngine, InspectShowsEverything) {
    const std::string path = model();
    const LaunchResult result = stipple({"engine", "inspect", path, "--diagram", folder / "m.svg", "--device", "cpu"});
    expect_success(result);
    for (const char* part : {"conv1", "max_points", "parameters", "multiply-adds", "weights", "a context", "fp32"})
        EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
    EXPECT_TRUE(contains(read_file(folder / "m.svg"), "<svg"));
    const Json json = json_of(stipple({"engine", "inspect", path, "--device", "cpu", "--precision", "bf16", "--json"}));
    EXPECT_EQ(json["model"], "pointnet-classifier");
    EXPECT_EQ(json["precision"], "bf16");
    EXPECT_GT(json["layers"].size(), 20u);
    EXPECT_GT(json["steps"].size(), 5u);
    EXPECT_LE(json["compiled_multiply_adds"], json["multiply_adds"]);
    EXPECT_GT(json["weight_bytes"], 0);
    EXPECT_GT(json["context_bytes"], 0);
    EXPECT_EQ(json["calibrated"], false);
    const Json built = json_of(stipple({"engine", "inspect", engine(path, "m.engine"), "--json"}));
    EXPECT_EQ(built["steps"].size(), json["steps"].size());
    EXPECT_EQ(built["max_points"], 64);
    expect_error(stipple({"engine", "inspect", folder / "m.engine", "--diagram", folder / "n.svg"}), 2,
                 "give the model");
    expect_error(stipple({"engine", "inspect", path, "--diagram", folder / "n.png"}), 2, "name it .svg");
    expect_error(stipple({"engine", "inspect", folder / "m.engine", "--precision", "bf16", "--device", "cpu"}), 2,
                 "was built in fp32, not bf16");
    expect_error(stipple({"engine", "inspect", folder / "no.engine"}), 3, "No such file");
    expect_error(stipple({"engine", "inspect", file("x.engine", "nonsense")}), 3, "x.engine");
}

TEST_F(CliEngine, BuildAndRun) {
    const std::string path = model(), cloud_path = cloud("a.ply", 100);
    cloud("b.ply", 30);
    const LaunchResult built = stipple({"engine", "build", path, "-o", folder / "m.engine", "--device", "cpu",
                                        "--max-batch", "2", "--max-points", "64", "--precision", "bf16"});
    expect_success(built);
    EXPECT_TRUE(contains(built.out, "steps")) << built.out;
    EXPECT_TRUE(contains(built.out, "wrote " + (folder / "m.engine"))) << built.out;
    const LaunchResult result = stipple({"engine", "run", folder / "m.engine", cloud_path, folder / "b.ply", cloud_path,
                                         "--points", "50", "-o", folder / "out.npz"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "a.ply: class ")) << result.out;
    EXPECT_TRUE(contains(result.out, "loaded in")) << result.out;
    EXPECT_TRUE(contains(result.out, "3 clouds in 2 batches")) << result.out;
    const Json json = json_of(stipple({"engine", "run", folder / "m.engine", cloud_path, "--points", "50", "--json"}));
    EXPECT_EQ(json["results"][0]["type"], "[B, 5]");
    EXPECT_LT(json["load_ms"], 2000);
    const std::string npz = read_file(folder / "out.npz");
    EXPECT_TRUE(contains(npz, "logits.npy") && contains(npz, "offsets.npy"));
    // The same answers as by classifying with the model itself, in the same precision.
    const Json by_engine = json_of(stipple({"classify", "--model", folder / "m.engine", cloud_path, "--points", "50",
                                            "--device", "cpu", "--json"})),
               by_model = json_of(stipple({"classify", "--model", path, cloud_path, "--points", "50", "--precision",
                                           "bf16", "--device", "cpu", "--json"}));
    EXPECT_EQ(by_engine["files"], by_model["files"]);
    EXPECT_EQ(by_engine["precision"], "bf16");
    expect_error(stipple({"engine", "run", folder / "m.engine", cloud("big.ply", 500), "--points", "0"}), 2,
                 "the engine was built for 128");
    expect_error(stipple({"engine", "run", path, cloud_path}), 3, "is no engine file");
    expect_error(stipple({"engine", "run", folder / "m.engine", cloud_path, "-o", folder / "out.txt"}), 2, ".npz");
}

TEST_F(CliEngine, Int8IsCalibratedAndReported) {
    const std::string path = model();
    ::mkdir((folder / "clouds").c_str(), 0777);
    for (int i = 0; i < 6; ++i) cloud("clouds/" + std::to_string(i) + ".ply", 200);
    expect_error(
        stipple({"engine", "build", path, "-o", folder / "m.engine", "--precision", "int8", "--device", "cpu"}), 2,
        "int8 needs a calibration");
    for (const std::string method : {"max", "percentile", "entropy"}) {
        const LaunchResult result = stipple({"engine", "build", path, "-o", folder / "m.engine", "--precision", "int8",
                                             "--device", "cpu", "--overwrite", "--calibrate", folder / "clouds",
                                             "--calibrate-clouds", "4", "--method", method, "--points", "64"});
        expect_success(result);
        EXPECT_TRUE(contains(result.out, "ranges by " + method + " from 4 clouds")) << result.out;
        EXPECT_TRUE(contains(result.out, "conv3")) << result.out;
    }
    const Json json = json_of(stipple({"engine", "build", path, "-o", folder / "n.engine", "--precision", "int8",
                                       "--device", "cpu", "--calibrate", folder / "clouds", "--max-error", "0",
                                       "--json", "--save-model", folder / "calibrated.safetensors", "--points", "64"}));
    EXPECT_EQ(json["calibration"]["clouds"], 6);
    ASSERT_GT(json["calibration"]["layers"].size(), 3u);
    // New T-nets give the identity whatever they see: their layers have no error.
    int kept = 0;
    for (const Json& layer : json["calibration"]["layers"]) {
        EXPECT_EQ(layer["kept_back"], layer["error"] > 0) << layer;
        kept += layer["kept_back"] == true;
    }
    EXPECT_EQ(kept, 2);
    // The model that keeps the calibration needs no clouds any more.
    expect_success(stipple({"engine", "build", folder / "calibrated.safetensors", "-o", folder / "o.engine",
                            "--precision", "int8", "--device", "cpu"}));
    EXPECT_EQ(json_of(stipple({"engine", "inspect", folder / "calibrated.safetensors", "--json"}))["calibrated"], true);
    // Those that were not kept back: all of the T-nets'.
    const Json exported = json_of(
        stipple({"engine", "export", folder / "calibrated.safetensors", "-o", folder / "m.onnx", "--int8", "--json"}));
    EXPECT_EQ(exported["quantised_layers"], 5) << exported;
    const auto fails = [&](std::vector<std::string> more, const std::string& text, int exit_code = 2) {
        more.insert(more.begin(), {"engine", "build", path, "-o", folder / "x.engine", "--device", "cpu"});
        expect_error(stipple(more), exit_code, text);
    };
    fails({"--calibrate", folder / "clouds"}, "--calibrate is for --precision int8 and fp8");
    fails({"--precision", "int8", "--calibrate", folder / "clouds", "--method", "best"},
          "--method must be one of max, percentile, entropy");
    fails({"--precision", "int8", "--calibrate", folder / "none"}, "No such file", 3);
    fails({"--precision", "fp9"}, "fp9");
    fails({"--precision", "fp16"}, "fp16");
    fails({"--max-batch", "0"}, "--max-batch");
    fails({"--save-model", folder / "y.safetensors"}, "needs --calibrate");
}

TEST_F(CliEngine, BrokenFilesAreRefused) {
    const std::string path = engine(model(), "m.engine"), cloud_path = cloud("a.ply", 64), bytes = read_file(path);
    for (const size_t length : {size_t{0}, size_t{7}, size_t{100}, size_t{5000}, bytes.size() / 2, bytes.size() - 1})
        expect_error(stipple({"engine", "run", file("cut.engine", bytes.substr(0, length)), cloud_path}), 3,
                     "cut.engine");
    std::string changed = bytes;
    changed[bytes.size() - 5000] ^= 4;
    expect_error(stipple({"engine", "run", file("changed.engine", changed), cloud_path}), 3,
                 "the checksum does not match");
    changed = bytes;
    const std::string key = "\"stipple.engine.architecture\":\"1\"";
    ASSERT_NE(changed.find(key), std::string::npos);
    changed.replace(changed.find(key) + key.size() - 2, 1, "9");
    expect_error(stipple({"engine", "run", file("newer.engine", changed), cloud_path}), 3,
                 "newer.engine: engine architecture version 9, this program reads version 1");
}

TEST_F(CliEngine, BenchPrintsTheSummary) {
    const std::string path = model();
    const LaunchResult one = stipple({"engine", "bench", path, "--device", "cpu", "--batch", "2", "--points", "32",
                                      "--seconds", "0.02", "--warm-up", "0", "--repeat", "3", "-q"});
    expect_success(one);
    for (const char* part : {"throughput", "clouds/s (batch 2, 32 points, fp32)", "latency", "p99", "total wall time",
                             "peak memory", "GFLOP/s", "% of the"})
        EXPECT_TRUE(contains(one.out, part)) << part << "\n" << one.out;
    const std::vector<std::string> call = {
        "engine",      "bench",          path,        "--device", "cpu",       "--batch", "1,4", "--points", "32",
        "--precision", "fp32,bf16,int8", "--seconds", "0.02",     "--warm-up", "0",       "-q"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = call;
        all.insert(all.end(), more.begin(), more.end());
        return stipple(all);
    };
    EXPECT_EQ(lines_of(with({"--table", "csv"}).out).size(), 7u);
    const Json json = json_of(with({"--json"}));
    ASSERT_EQ(json["rows"].size(), 6u);
    for (const Json& row : json["rows"]) {
        EXPECT_GT(row["clouds_per_s"], 0);
        EXPECT_GE(row["runs"], 10);
        EXPECT_LE(row["latency_ms"]["min"], row["latency_ms"]["median"]);
        EXPECT_LE(row["latency_ms"]["median"], row["latency_ms"]["p99"]);
        EXPECT_LE(row["latency_ms"]["p99"], row["latency_ms"]["max"]);
        EXPECT_GT(row["of_limit"], 0);
        EXPECT_EQ(row["error"].is_null(), row["precision"] == "fp32") << row;
        if (row["precision"] == "bf16") {
            EXPECT_LT(row["error"], 0.2) << row;
        }
    }
    EXPECT_TRUE(contains(json["warnings"].dump(), "not calibrated for int8")) << json["warnings"];
    EXPECT_EQ(json["compared_on"], "synthetic");
}

TEST_F(CliEngine, BenchOfAnEngineAndOfData) {
    const std::string path = model();
    ::mkdir((folder / "clouds").c_str(), 0777);
    for (int i = 0; i < 3; ++i) cloud("clouds/" + std::to_string(i) + ".ply", 100);
    const std::string built = engine(path, "m.engine", {"--precision", "bf16", "--max-batch", "2"});
    const Json json = json_of(stipple({"engine", "bench", built, "--seconds", "0.02", "--warm-up", "0", "--data",
                                       folder / "clouds", "--json", "-q"}));
    ASSERT_EQ(json["rows"].size(), 1u) << json;
    EXPECT_EQ(json["rows"][0]["precision"], "bf16");
    EXPECT_EQ(json["rows"][0]["batch"], 2);
    EXPECT_EQ(json["rows"][0]["points"], 64);
    EXPECT_GE(json["rows"][0]["winner_agreement"], 0);
    EXPECT_EQ(json["compared_on"], "data");
    expect_error(stipple({"engine", "bench", built, "--precision", "fp32"}), 2, "was built in bf16");
    expect_error(stipple({"engine", "bench", path, "--batch", "0", "--device", "cpu"}), 2, "--batch must be 1 to");
    expect_error(stipple({"engine", "bench", path, "--precision", "bf16,bf16", "--device", "cpu"}), 2, "twice");
    expect_error(stipple({"engine", "bench", path, "--precision", "fp8", "--device", "cpu"}), 2, "cannot do fp8");
    expect_error(stipple({"engine", "bench", path, "--precision", "half"}), 2, "half");
    expect_error(stipple({"engine", "bench", folder / "no.safetensors"}), 3, "No such file");
}

TEST_F(CliEngine, Export) {
    const std::string path = model();
    const LaunchResult result = stipple({"engine", "export", path, "-o", folder / "m.onnx"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out, "wrote " + (folder / "m.onnx"))) << result.out;
    EXPECT_TRUE(contains(read_file(folder / "m.onnx"), "MatMul"));
    expect_error(stipple({"engine", "export", path, "-o", folder / "n.onnx", "--int8"}), 3, "no calibration");
    expect_error(stipple({"engine", "export", path, "-o", folder / "m.onnx"}), 4, "exists already");
    expect_error(stipple({"engine", "export", path}), 2, "--output is missing");
}

TEST_F(CliEngine, OptionsChangeAfterTraining) {
    const std::string path = folder / "flow.safetensors";
    expect_success(stipple({"engine", "new", "puflow", "--set", "ratio=4", "-o", path}));
    for (const std::string ratio : {"2", "4"}) {
        const std::string made = folder / ("x" + ratio + ".engine");
        expect_success(stipple({"engine", "build", path, "--set", "ratio=" + ratio, "-o", made, "--device", "cpu",
                                "--max-batch", "1", "--max-points", "64"}));
        const Json json = json_of(stipple({"engine", "run", made, cloud("a.ply", 64), "--points", "64", "--json"}));
        EXPECT_EQ(json["results"][0]["rows"], 64 * std::stoi(ratio)) << json;
        EXPECT_EQ(json["results"][2]["name"], "neighbours") << json;  // indices
        EXPECT_EQ(json["results"][2]["max"], 63) << json;
    }
    expect_success(stipple({"engine", "export", path, "--set", "ratio=2", "-o", folder / "x2.onnx"}));
    expect_error(stipple({"engine", "build", path, "--set", "ratoi=2", "-o", folder / "n.engine"}), 2, "ratoi");
    expect_error(stipple({"engine", "build", path, "--set", "ratio", "-o", folder / "n.engine"}), 2, "KEY=VALUE");
    expect_error(stipple({"engine", "build", model(), "--set", "classes=7", "-o", folder / "n.engine"}), 2,
                 "does not fit the weights");
}

TEST_F(CliEngine, WrongUse) {
    expect_error(stipple({"engine", "biuld"}), 2, "unknown engine command biuld");
    expect_error(stipple({"engine", "bench"}), 2, "MODEL is missing");
    expect_error(stipple({"engine", "build", "a.safetensors"}), 2, "--output is missing");
    expect_error(stipple({"engine", "run", "a.engine"}), 2, "INPUT is missing");
    expect_error(stipple({"engine", "bench", "m", "--percision", "fp32"}), 2, "--percision");
    for (const std::string command : {"build", "run", "bench", "inspect", "export", "new"}) {
        const LaunchResult help = stipple({"engine", command, "--help"});
        expect_success(help);
        EXPECT_LE(lines_of(help.out).size(), 45u) << command;
        for (const std::string& line : lines_of(help.out)) EXPECT_LE(line.size(), 110u) << line;
        EXPECT_TRUE(contains(help.out, "Example:\n  stipple engine " + command)) << help.out;
    }
}

/// Neither the program nor what it loads knows torch: the engine runs without it.
TEST(CliLinks, NoTorch) {
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"/usr/bin/readelf", "-d", STIPPLE_PROGRAM}, {"/usr/bin/ldd", STIPPLE_PROGRAM}}) {
        const ProcessResult result = run_program(call);
        ASSERT_EQ(result.exit_code, 0) << result.output;
        EXPECT_TRUE(contains(result.output, "libc.so")) << result.output;  // it is the list that it should be
        for (const char* library : {"torch", "libc10", "caffe2", "onnxruntime"})
            EXPECT_FALSE(contains(result.output, library)) << result.output;
    }
}

}  // namespace
}  // namespace stipple::test
