// stipple study sampling through the program, on a toy set and networks that nobody has trained.

#include "stipple/core/rng.h"
#include "stipple/data/packed.h"
#include "tests/cli/cli.h"

namespace stipple::test {
namespace {

class CliSamplingStudy : public CliTest {
protected:
    CliSamplingStudy() {
        data::DataSet set;
        set.split = "test";
        set.classes = {"airplane", "car", "chair", "table"};
        const Rng rng(2);
        for (int64_t i = 0; i < 8; ++i) {
            set.labels.push_back(static_cast<int32_t>(i % 4));
            for (int64_t p = 0; p < 3 * 64; ++p)
                set.clouds.points.push_back(2 * rng.uniform(static_cast<uint64_t>(i * 3 * 64 + p)) - 1);
            set.clouds.offsets.push_back((i + 1) * 64);
        }
        data::save_packed(folder / "toy.stpk", std::vector<data::DataSet>{std::move(set)}, {}, Overwrite::refuse);
        std::filesystem::create_directories(folder / "w");
        make("pointnet-classifier", "pointnet-plain", {"classes=4", "feature_transform=false"});
        make("pointnet-classifier", "mine", {"classes=4", "feature_transform=false"});
        make("pcrnet", "pcrnet", {"features=32", "hidden=16"});
        make("autoencoder", "autoencoder", {"count=32", "latent=8", "hidden=8"});
        make("samplenet", "samplenet-cls-8", {"count=8"});
        make("samplenet", "snet-rec-8", {"shape=reconstruction", "neighbours=0", "count=8"});
        make("samplenet", "samplenet-reg-progressive", {"shape=registration", "count=16", "progressive=true"});
    }
    void make(const std::string& model, const std::string& name, std::vector<std::string> settings) const {
        settings.insert(settings.begin(),
                        {"engine", "new", model, "-o", folder / ("w/" + name + ".safetensors"), "--set"});
        expect_success(stipple(settings));
    }
    LaunchResult study(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments = {"study",      "sampling",
                                              "--device",   "cpu",
                                              "--data",     folder / "toy.stpk",
                                              "--samplers", folder / "w",
                                              "--robust",   folder / "w/mine.safetensors",
                                              "-o",         folder / "out",
                                              "--sizes",    "8,16"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        Launch launch;
        launch.seconds = 200;  // beside other work
        return stipple(arguments, std::move(launch));
    }
};

TEST_F(CliSamplingStudy, WritesTablesFiguresAndPageAndGoesOn) {
    const LaunchResult first = study({"--turns", "2"});
    expect_success(first);
    const std::string out = folder / "out";
    for (const char* text : {"method", "plain, sampled (%)", "robust, soft (%)", "mean (deg)", "consistency (1e-3)",
                             "NRE, sampled", "SampleNet progressive", "left out, classification with the network plain",
                             "clouds of 64 points, where the protocol has 1024"})
        EXPECT_TRUE(contains(first.out, text)) << text << "\n" << first.out;
    for (const char* name : {"results.csv", "table.csv", "summary.md", "classification.csv", "classification.tex",
                             "registration.csv", "reconstruction.tex", "neighbours.csv", "temperature.tex"})
        EXPECT_TRUE(std::filesystem::exists(out + "/" + name)) << name;
    const std::string page = read_file(out + "/index.html");
    for (const char* name : {"classification", "registration", "reconstruction", "neighbours", "temperature",
                             "classification-samples", "registration-samples", "reconstruction-samples"}) {
        EXPECT_TRUE(contains(page, fmt::format("<img src=\"{}.png\"", name))) << name;
        EXPECT_EQ(json_of(stipple({"info", fmt::format("{}/{}.png", out, name), "--json"}))["files"][0]["format"],
                  "PNG");
    }
    EXPECT_TRUE(contains(page, "stipple study sampling"));
    EXPECT_TRUE(contains(page, "no weights snet-rec-16"));

    // Again: nothing is computed anew, and programs get every number.
    const std::string stored = read_file(out + "/results.csv");
    const LaunchResult second = study({"--turns", "2", "--json", "--reconstruction-data", folder / "toy.stpk"});
    expect_success(second);
    EXPECT_EQ(read_file(out + "/results.csv"), stored);
    const Json rows = json_of(second)["rows"];
    EXPECT_EQ(rows.size() + 1, lines_of(stored).size());
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [](const Json& r) { return r["task"] == "rec" && r["method"] == "snet"; });
    ASSERT_NE(row, rows.end());
    EXPECT_EQ((*row)["points"], 8);
    EXPECT_TRUE((*row)["soft_nre"].is_number() && (*row)["hard_nre"].is_number());
    EXPECT_TRUE((*row)["hard_accuracy"].is_null());
    // The same tables from the rows alone.
    const std::string again = folder / "again";
    expect_success(stipple({"study", "sampling", "--rows", out + "/results.csv", "-o", again}));
    for (const char* name : {"table.csv", "classification.tex", "summary.md", "registration.png"})
        EXPECT_EQ(read_file(again + "/" + name), read_file(out + "/" + name)) << name;
    EXPECT_FALSE(std::filesystem::exists(again + "/classification-samples.png"));
    expect_error(stipple({"study", "sampling", "--rows", out + "/table.csv", "-o", again}), 3, "table.csv");
    const LaunchResult table = study({"--turns", "2", "--table", "csv"});
    expect_success(table);
    EXPECT_EQ(lines_of(table.out).size(), lines_of(stored).size());
    EXPECT_TRUE(table.out.starts_with("sweep,task,network,method,points")) << table.out;
}

TEST_F(CliSamplingStudy, MistakesAreToldBeforeAnythingIsMeasured) {
    const auto refused = [&](const std::vector<std::string>& more, int code, const char* text) {
        const LaunchResult result = study(more);
        EXPECT_EQ(result.exit_code, code) << result.err;
        EXPECT_TRUE(contains(result.err, text)) << text << "\n" << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder / "out/results.csv"));
    };
    refused({"--tasks", "cls,seg"}, 2, "there is no task \"seg\"; there are cls, reg, rec");
    refused({"--methods", "fps,fsp"}, 2, "there is no method \"fsp\"");
    refused({"--methods", "fps,fps"}, 2, "--methods names fps twice");
    refused({"--sizes", "0"}, 2, "--sizes must be 1 to 1024");
    refused({"--epochs", "3"}, 2, "--epochs and --set are for --train");
    refused({"--plain", folder / "nothing"}, 3, "--plain: there is no such file");
    refused({"--pcrnet", folder / "w/mine.safetensors", "--tasks", "reg"}, 2, "registration needs a pcrnet");
    expect_error(stipple({"study", "sampling", "--data", folder / "toy.stpk", "--samplers", folder / "nowhere", "-o",
                          folder / "out"}),
                 2, "there is no such folder");
    expect_error(stipple({"study", "sampling"}), 2, "--data");
    expect_error(stipple({"study", "sampling", "--data", folder / "none.stpk", "-o", folder / "out"}), 3, "none.stpk");
    write_file(folder / "w/samplenet-cls-16.safetensors", "no weights");
    const LaunchResult broken = study({"--tasks", "cls", "--methods", "samplenet"});
    EXPECT_EQ(broken.exit_code, 3) << broken.err;
    EXPECT_TRUE(contains(broken.err, "samplenet-cls-16.safetensors")) << broken.err;
    // A sampler that is not what its name says.
    std::filesystem::copy_file(folder / "w/samplenet-cls-8.safetensors", folder / "w/samplenet-cls-16.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    const LaunchResult wrong = study({"--tasks", "cls", "--methods", "samplenet"});
    EXPECT_EQ(wrong.exit_code, 3) << wrong.err;
    EXPECT_TRUE(contains(wrong.err, "chooses 8 points, not 16")) << wrong.err;
}

TEST_F(CliSamplingStudy, DryRunsTellWhatWouldBeTrained) {
    const LaunchResult result =
        study({"--dry-run", "--train", "--tasks", "cls", "--methods", "samplenet,progressive,fps"});
    expect_success(result);
    EXPECT_TRUE(contains(result.out,
                         "would train samplenet-cls-plain-8, samplenet-cls-plain-16, "
                         "samplenet-cls-plain-progressive, samplenet-cls-16, samplenet-cls-progressive"))
        << result.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    const LaunchResult help = stipple({"study", "sampling", "--help"});
    EXPECT_TRUE(contains(help.out, "METHOD-TASK[-plain]-SIZE.safetensors")) << help.out;
}

// Another program stands in for the one that trains: what it is called with, and what becomes of its weights.
TEST_F(CliSamplingStudy, TrainsWhatIsMissingOnce) {
    namespace fs = std::filesystem;
    fs::create_directories(folder / "bin");
    fs::copy_file(STIPPLE_PROGRAM, folder / "bin/stipple");
    write_file(folder / "bin/stipple-learn", "#!/bin/sh\necho \"$@\" >> " + (folder / "calls") +
                                                 "\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                                                 "case $out in *-16) exit 3;; esac\n"
                                                 "mkdir -p \"$out\" && cp " +
                                                 (folder / "w/samplenet-cls-8.safetensors") +
                                                 " \"$out/weights.safetensors\"\n");
    fs::permissions(folder / "bin/stipple-learn", fs::perms::owner_all);
    Launch launch;
    launch.arguments = {folder / "bin/stipple",
                        "study",
                        "sampling",
                        "--device",
                        "cpu",
                        "--data",
                        folder / "toy.stpk",
                        "--samplers",
                        folder / "w",
                        "--robust",
                        folder / "w/mine.safetensors",
                        "-o",
                        folder / "out",
                        "--tasks",
                        "cls",
                        "--methods",
                        "samplenet",
                        "--sizes",
                        "8,16",
                        "--train",
                        "--epochs",
                        "3",
                        "--seed",
                        "5",
                        "--set",
                        "run.batch=4"};
    launch.environment = {{"STIPPLE_PROGRESS", "never"}};
    launch.seconds = 200;
    const LaunchResult first = run_launch(launch);
    EXPECT_EQ(first.exit_code, 0) << report(first);
    std::vector<std::string> calls = lines_of(read_file(folder / "calls"));
    ASSERT_EQ(calls.size(), 3u);  // plain of 8 and 16, robust of 16
    EXPECT_TRUE(contains(calls[0], "train samplenet --task cls --network " + (folder / "w/pointnet-plain.safetensors") +
                                       " --count 8 --data " + (folder / "toy.stpk") +
                                       " --seed 5 --epochs 3 --set run.batch=4 -o " +
                                       (folder / "out/trained/samplenet-cls-plain-8")))
        << calls[0];
    EXPECT_TRUE(contains(calls[2], "--network " + (folder / "w/mine.safetensors") + " --count 16")) << calls[2];
    EXPECT_TRUE(contains(first.err, "samplenet-cls-16: its training ended with status 3")) << first.err;
    EXPECT_TRUE(contains(first.out, "no weights samplenet-cls-16")) << first.out;
    const std::string stored = read_file(folder / "out/results.csv");
    EXPECT_TRUE(contains(stored, "size,cls,plain,samplenet,8")) << stored;
    // Again: what was trained is there.
    EXPECT_EQ(run_launch(launch).exit_code, 0);
    calls = lines_of(read_file(folder / "calls"));
    ASSERT_EQ(calls.size(), 5u);
    for (size_t i = 3; i < 5; ++i) EXPECT_TRUE(contains(calls[i], "--count 16")) << calls[i];
    EXPECT_EQ(read_file(folder / "out/results.csv"), stored);
}

}  // namespace
}  // namespace stipple::test
