// The real program: killed, stopped, started twice, given nonsense. STIPPLE_KILLS=100 for the long version.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>
#include <signal.h>
#include <thread>

#include "stipple/geometry/primitives.h"
#include "stipple/io/format.h"
#include "stipple/models/registry.h"
#include "tests/support/clouds.h"
#include "tests/support/process.h"
#include "tests/support/reference_classifier.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trace.h"

namespace stipple {
namespace {

using test::Child;
using test::Launch;
using test::LaunchResult;
using test::read_file;
using test::TemporaryFolder;

/// Folders of text clouds, one for each of ten shapes.
std::string make_shape_folders(const TemporaryFolder& folder) {
    const std::string data = folder / "shapes";
    const test::ShapeClouds clouds = test::shape_clouds(60, 24, 3);
    for (size_t i = 0; i < clouds.labels.size(); ++i) {
        const std::string of_class = data + "/shape" + std::to_string(clouds.labels[i]);
        std::filesystem::create_directories(of_class);
        std::string text;
        for (size_t p = 0; p < 24; ++p) {
            const float* point = clouds.points.data() + 3 * (24 * i + p);
            text += std::to_string(point[0]) + " " + std::to_string(point[1]) + " " + std::to_string(point[2]) + "\n";
        }
        test::write_file(of_class + "/" + std::to_string(i) + ".xyz", text);
    }
    return data;
}

Launch train_launch(const std::vector<std::string>& arguments) {
    Launch launch;
    launch.arguments = {STIPPLE_PROGRAM, "train", "--device", "cpu"};  // where runs end in the same bits by default
    launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
    launch.environment = {{"STIPPLE_PROGRESS", "never"}};
    return launch;
}

/// Two seconds of training.
std::vector<std::string> small_run(const std::string& data, const std::string& run) {
    return {"pointnet-cls",
            "--data",
            data,
            "-o",
            run,
            "--set",
            "data.points=16",
            "--set",
            "view.weight=0",
            "--batch",
            "12",
            "--epochs",
            "8",
            "--set",
            "run.log_every=1",
            "--set",
            "run.storage=f32",
            "--set",
            "run.loader_threads=1",
            "--threads",
            "1"};
}

TEST(TrainProgram, KilledAtAnyMomentItEndsInTheSameBits) {
    const char* wanted = std::getenv("STIPPLE_KILLS");
    const int kills = wanted ? std::atoi(wanted) : 4;
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    const auto started = std::chrono::steady_clock::now();
    const LaunchResult whole = run_launch(train_launch(small_run(data, folder / "whole")));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const std::string weights = read_file(folder / "whole/weights.safetensors");
    ASSERT_FALSE(weights.empty());

    std::mt19937 random(11);
    int killed = 0;
    for (int run = 0; killed < kills; ++run) {
        const std::string path = folder / ("run" + std::to_string(run));
        std::vector<std::string> arguments = small_run(data, path);
        bool is_done = false;
        for (int attempt = 0; attempt < 4; ++attempt) {  // killed up to three times, then left alone
            Child child(train_launch(arguments));
            if (attempt < 3 && killed < kills) {
                const double wait = std::uniform_real_distribution<double>(0, seconds)(random);
                std::this_thread::sleep_for(std::chrono::duration<double>(wait));
                child.send(SIGKILL);
            }
            const LaunchResult result = child.wait();
            killed += result.signal == SIGKILL;
            if (result.exit_code == 0) {
                is_done = true;
                break;
            }
            ASSERT_EQ(result.signal, SIGKILL) << result.err;
            // Killed before the run folder was there, it begins anew.
            if (std::filesystem::exists(path + "/config.toml"))
                arguments = {"--resume", path, "--threads", "1"};
            else
                std::filesystem::remove_all(path);
        }
        ASSERT_TRUE(is_done);
        ASSERT_TRUE(read_file(path + "/weights.safetensors") == weights) << run;  // not printed: megabytes
    }
}

TEST(TrainProgram, SignalsSaveAndEnd) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143), std::pair(SIGUSR1, 143)}) {
        const std::string path = folder / ("run" + std::to_string(signal));
        std::vector<std::string> arguments = small_run(data, path);
        arguments.insert(arguments.end(), {"--set", "run.epochs=1000"});
        Child child(train_launch(arguments));
        for (int i = 0; i < 600 && read_file(path + "/metrics.jsonl").empty(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        child.send(signal);
        const LaunchResult result = child.wait();
        EXPECT_EQ(result.exit_code, code) << result.err;
        EXPECT_NE(result.err.find("saved"), std::string::npos) << result.err;
        EXPECT_NE(result.err.find("--resume " + path), std::string::npos) << result.err;
    }
}

TEST(TrainProgram, OneRunFolderHasOneProcess) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    std::vector<std::string> arguments = small_run(data, folder / "run");
    Child child(train_launch(arguments));
    for (int i = 0; i < 600 && read_file(folder / "run/metrics.jsonl").empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const LaunchResult second = run_launch(train_launch({"--resume", folder / "run"}));
    EXPECT_EQ(second.exit_code, 4) << second.err;
    EXPECT_NE(second.err.find(std::to_string(child.pid())), std::string::npos) << second.err;
    EXPECT_EQ(child.wait().exit_code, 0);
    const LaunchResult third = run_launch(train_launch(arguments));
    EXPECT_EQ(third.exit_code, 4) << third.err;  // the folder is not empty
}

TEST(TrainProgram, AFullDiskLeavesTheLastCheckpoint) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder), disk = folder / "disk";
    std::filesystem::create_directory(disk);
    const test::SmallDisk small(disk, 128 << 20);
    if (!small.ok()) GTEST_SKIP() << "no right to mount a small disk";
    ASSERT_EQ(run_launch(train_launch(small_run(data, folder / "whole"))).exit_code, 0);
    Child child(train_launch(small_run(data, disk + "/run")));
    for (int i = 0; i < 600 && read_file(disk + "/run/metrics.jsonl").empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    {
        std::ofstream filler(disk + "/filler", std::ios::binary);
        const std::string block(1 << 20, 'x');
        while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) continue;
    }
    const LaunchResult full = child.wait();
    EXPECT_EQ(full.exit_code, 4) << full.err;
    EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
    std::filesystem::remove(disk + "/filler");
    const LaunchResult resumed = run_launch(train_launch({"--resume", disk + "/run", "--threads", "1"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(read_file(disk + "/run/weights.safetensors") == read_file(folder / "whole/weights.safetensors"));
}

TEST(TrainProgram, MistakesAreOneLine) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    const auto expect = [&](const std::vector<std::string>& arguments, int code, const char* text) {
        const LaunchResult result = run_launch(train_launch(arguments));
        EXPECT_EQ(result.exit_code, code) << result.err;
        EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    };
    expect({}, 2, "a recipe or --resume is needed; recipes: ");
    expect({"pointnet-clss", "--data", data}, 2, "no recipe pointnet-clss");
    expect({"pointnet-cls"}, 2, "no data to train on");
    expect({"pointnet-cls", "--data", folder / "nothing", "-o", folder / "x"}, 3, "nothing");
    expect({"pointnet-cls", "--data", data, "--set", "run.batc=3"}, 2, "did you mean run.batch?");
    expect({"pointnet-cls", "--data", data, "--set", "model.variant=nothing"}, 2, "variant");
    expect({"samplenet", "--data", data}, 2, "train samplenet needs --task cls, seg, reg or rec");
    expect({"pointnet-cls", "--task", "cls", "--data", data}, 2,
           "--task is for the recipes samplenet, snet and gumbel-subset");
    expect({"pointnet-cls", "-n", "32", "--data", data}, 2, "are for samplers, not pointnet-cls");
    expect({"samplenet", "--task", "reg", "--network", "nothing", "--data", data}, 3, "nothing");
    expect({"samplenet", "--task", "cls", "--data", data}, 2, "it tells 40 classes, the data have");
    expect({"--resume", folder / "nothing"}, 3, "nothing");
    test::write_file(folder / "shapes/shape1/nan.xyz", "0 0 1\nnan 0 1\n");
    expect({"pointnet-cls", "--data", data, "-o", folder / "y"}, 3, "nan.xyz");
    EXPECT_FALSE(std::filesystem::exists(folder / "y"));
}

TEST(TrainProgram, AProfileIsATableAndATrace) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    std::vector<std::string> arguments = small_run(data, folder / "run");
    arguments.insert(arguments.end(), {"--profile", "4"});
    const LaunchResult result = run_launch(train_launch(arguments));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("go on with: stipple train --resume"), std::string::npos) << result.out;
    const std::string trace = read_file(folder / "run/profile.json");
    std::map<std::string, int> calls;  // by path
    for (const test::TraceEvent& span : test::spans_of(trace)) {
        EXPECT_GE(span.begin, 0);
        EXPECT_GE(span.duration, 0);
        ++calls[span.path];
    }
    for (const char* stage : {"step", "step/wait for data", "step/copy to device", "step/forward", "step/loss",
                              "step/backward", "step/clip", "step/optimizer"})
        EXPECT_EQ(calls[stage], 4) << stage;
    for (const char* layer : {"input_transform.conv1", "conv1", "conv2", "head.fc1", "head.fc3"}) {
        EXPECT_NE(result.out.find("    " + std::string(layer) + " "), std::string::npos) << layer << result.out;
        EXPECT_EQ(calls["step/forward/" + std::string(layer)], 4) << layer;
        EXPECT_GE(calls["step/backward/" + std::string(layer)], 4) << layer;
    }
    EXPECT_GE(calls["step/backward/loss"], 4);

    // The rest of the run can be profiled as well, for programs.
    const LaunchResult rest =
        run_launch(train_launch({"--resume", folder / "run", "--threads", "1", "--profile", "2", "--table", "csv"}));
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(rest.out.rfind("stage,name,calls,CPU total (ms),", 0), 0u) << rest.out;
    EXPECT_NE(rest.out.find("\nstep/forward,head.fc3,2,"), std::string::npos) << rest.out;
    EXPECT_NE(read_file(folder / "run/profile.json"), trace);

    for (const char* wrong : {"0", "-3", "x", "1.5", "10001"}) {
        const LaunchResult refused = run_launch(train_launch({"pointnet-cls", "--data", data, "--profile", wrong}));
        EXPECT_EQ(refused.exit_code, 2) << wrong << refused.err;
        EXPECT_NE(refused.err.find("--profile"), std::string::npos) << refused.err;
    }
    const LaunchResult help = run_launch(train_launch({"--help"}));
    EXPECT_NE(help.out.find("--profile N"), std::string::npos) << help.out;
    EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 40) << help.out;
}

TEST(TrainProgram, OwnClassesStartFromWeights) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    const LaunchResult first = run_launch(train_launch(small_run(data, folder / "first")));
    ASSERT_EQ(first.exit_code, 0) << first.err;
    std::filesystem::remove_all(data + "/shape9");
    std::vector<std::string> arguments = small_run(data, folder / "second");
    arguments.insert(arguments.end(), {"--init", folder / "first/weights.safetensors"});
    const LaunchResult second = run_launch(train_launch(arguments));
    EXPECT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.err.find("new are head.fc3.bias, head.fc3.weight"), std::string::npos) << second.err;

    // Killed before its first checkpoint is complete, it starts from the same weights again.
    arguments = small_run(data, folder / "killed");
    arguments.insert(arguments.end(), {"--init", folder / "first/weights.safetensors"});
    Launch killed = train_launch(arguments);
    killed.environment.emplace_back("STIPPLE_FAILPOINT", "ckpt.mid_write:kill");
    EXPECT_EQ(run_launch(killed).signal, SIGKILL);
    const LaunchResult resumed = run_launch(train_launch({"--resume", folder / "killed", "--threads", "1"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(read_file(folder / "killed/weights.safetensors") == read_file(folder / "second/weights.safetensors"));
}

TEST(TrainProgram, UpsamplersHaveASecondStage) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "meshes");
    io::Warnings warnings;
    for (const char* name : {"meshes/a.ply", "meshes/b.ply"})
        io::save(folder / name, geometry::sphere_mesh(2, 2), Overwrite::refuse, {}, warnings);
    const std::pair<std::string, std::map<std::string, std::string>> started[] = {
        {"flow-upsampler", {{"layers", "1"}, {"width", "8"}, {"hidden", "8"}, {"blocks", "1"}, {"steps", "1"}}},
        {"puflow", {{"ratio", "2"}, {"neighbours", "8"}}}};
    for (const auto& [model, options] : started) {
        const network::Network network = models::build_model(model, options);
        const std::string weights = folder / (model + ".safetensors"), run = folder / model;
        network::save_weights(weights, network::initial_weights(network, 1), network::WeightStorage::f32,
                              Overwrite::refuse);
        std::vector<std::string> arguments = {model,      "--init", weights,     "--data", folder / "meshes", "-o", run,
                                              "--epochs", "1",      "--threads", "1"};
        for (const char* setting :
             {"loss.chamfer_weight=1", "schedule.rate=2e-5", "run.batch=2", "run.loader_threads=1", "data.items=4",
              "data.points=32", "data.held_out=0.5", "data.validation_items=3", "patch.queries=32", "patch.truth=64",
              "patch.samples=1024", "patch.cloud_min=64", "patch.cloud_max=128", "run.precision=fp32"})
            arguments.insert(arguments.end(), {"--set", setting});
        const LaunchResult result = run_launch(train_launch(arguments));
        ASSERT_EQ(result.exit_code, 0) << result.err;
        EXPECT_NE(result.err.find("all tensors are taken"), std::string::npos) << result.err;
        EXPECT_NE(read_file(run + "/metrics.jsonl").find("\"chamfer\":"), std::string::npos);
        EXPECT_NE(read_file(run + "/config.toml").find("chamfer_weight = 1"), std::string::npos);
        EXPECT_EQ(models::load_model(run + "/weights.safetensors").network.config, network.config);
    }
}

TEST(StudyProgram, PrecisionsSideBySide) {
    const TemporaryFolder folder;
    const std::string data = make_shape_folders(folder);
    std::vector<std::string> arguments = {
        STIPPLE_PROGRAM, "study",    "precision",      "pointnet-cls", "--data", data,       "-o",
        folder / "runs", "--levels", "fp32,bf16,fp16", "--seeds",      "1",      "--epochs", "3",
        "--device",      "cpu",      "--json"};
    for (const char* setting : {"data.points=16", "view.weight=0", "run.batch=12", "data.held_out=0.2"})
        arguments.insert(arguments.end(), {"--set", setting});
    Launch launch;
    launch.arguments = arguments;
    launch.environment = {{"STIPPLE_PROGRESS", "never"}};
    const LaunchResult first = run_launch(launch);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const auto json = nlohmann::json::parse(first.out);
    ASSERT_EQ(json["levels"].size(), 3u);
    EXPECT_EQ(json["score"], "validation_accuracy");
    for (int i : {0, 1}) {
        EXPECT_GT(json["levels"][i]["epoch_seconds"], 0);
        EXPECT_EQ(json["levels"][i]["scores"].size(), 1u);
        EXPECT_GT(json["levels"][i]["peak_bytes"], 0);
    }
    EXPECT_EQ(json["levels"][2]["scores"].size(), 0u);  // float16 is for a GPU: the others are told all the same
    EXPECT_NE(std::string(json["levels"][2]["remark"]).find("seed 0 ended with status"), std::string::npos);
    EXPECT_FALSE(read_file(folder / "runs/precision.png").empty());
    // What is complete is not trained again.
    const auto written = std::filesystem::last_write_time(folder / "runs/fp32-0/weights.safetensors");
    EXPECT_EQ(run_launch(launch).exit_code, 0);
    EXPECT_TRUE(written == std::filesystem::last_write_time(folder / "runs/fp32-0/weights.safetensors"));

    launch.arguments = {STIPPLE_PROGRAM, "study", "precision", "pointnet-cls", "--data", data, "--levels", "fp17"};
    const LaunchResult wrong = run_launch(launch);
    EXPECT_NE(wrong.exit_code, 0);
    EXPECT_NE(wrong.err.find("fp17"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace stipple
