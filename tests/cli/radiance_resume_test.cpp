// stipple radiance train with a run folder, through the program: stopped, killed, gone on with, misused.

#include <unistd.h>

#include <signal.h>

#include "stipple/io/image_file.h"
#include "tests/cli/cli.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"

namespace stipple::test {
namespace {

class CliRadianceResume : public CliTest {
protected:
    void SetUp() override {
        std::filesystem::create_directory(folder / "scene");
        save_blender(folder / "scene", analytic_scene(20, 8, 2, 1));
    }
    /// Sixty steps, some for each stage.
    std::vector<std::string> train(const std::string& output, std::vector<std::string> more = {}) const {
        std::vector<std::string> words = {"radiance", "train", folder / "scene", "-o", folder / output};
        const char* few[] = {"--device", "cpu", "--mode", "small", "--voxels", "16"};
        words.insert(words.end(), std::begin(few), std::end(few));
        words.insert(words.end(), more.begin(), more.end());
        const char* settings[] = {"--set",
                                  "coarse.N_iters=40",
                                  "fine.N_iters=20",
                                  "coarse.N_rand=256",
                                  "fine.N_rand=128",
                                  "coarse.num_voxels=4096",
                                  "coarse.num_voxels_base=4096",
                                  "coarse.alpha_init=1e-3",
                                  "fine.pg_scale=10",
                                  "bbox_thres=1e-7"};
        words.insert(words.end(), std::begin(settings), std::end(settings));
        return words;
    }
    LaunchResult resume(std::vector<std::string> more = {}) const {
        std::vector<std::string> words = {"radiance", "train", "--resume", folder / "run"};
        words.insert(words.end(), more.begin(), more.end());
        return stipple(words, {.arguments = {}, .seconds = 200});
    }
    std::string whole() const {
        EXPECT_EQ(stipple(train("whole.field")).exit_code, 0);
        return read_file(folder / "whole.field");
    }
};

TEST_F(CliRadianceResume, AStoppedRunGoesOnToTheSameBytes) {
    const LaunchResult stopped = stipple(train("a.field", {"--checkpoints", folder / "run", "--render-every", "20",
                                                           "--render-views", "1", "--max-steps", "45"}));
    expect_success(stopped);
    EXPECT_TRUE(
        contains(stopped.out, "stopped after step 45 of 60, saved\n  go on with: stipple radiance train --resume"))
        << stopped.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "a.field"));
    const LaunchResult resumed = resume();
    expect_success(resumed);
    EXPECT_TRUE(contains(resumed.out, "checkpoints") && contains(resumed.out, "test views") &&
                contains(resumed.out, "wrote"))
        << resumed.out;
    EXPECT_TRUE(read_file(folder / "a.field") == whole());
    EXPECT_EQ(io::load_image(folder / "run/renders/step-00000020-0000.png").width(), 40);
    EXPECT_TRUE(std::filesystem::exists(folder / "run/renders/step-00000060-0000.png"));
    EXPECT_FALSE(std::filesystem::exists(folder / "run/renders/step-00000060-0001.png"));
    // Once more: all is done but the file, which may have another name.
    expect_error(resume(), 4, "exists already");
    const LaunchResult again = resume({"-o", folder / "b.field", "--json"});
    const Json json = json_of(again);
    EXPECT_EQ(json["complete"], true);
    EXPECT_GT(json["times"]["checkpoints"].get<double>(), 0);
    EXPECT_GT(json["test_psnr"].get<double>(), 0);
    EXPECT_TRUE(read_file(folder / "b.field") == read_file(folder / "a.field"));
}

TEST_F(CliRadianceResume, AKilledRunGoesOnToTheSameBytes) {
    // The power fails in the middle of the fourth checkpoint.
    const LaunchResult killed =
        stipple(train("a.field", {"--checkpoints", folder / "run", "--checkpoint-every", "15"}),
                {.arguments = {}, .environment = {{"STIPPLE_FAILPOINT", "ckpt.before_manifest:kill:4"}}});
    EXPECT_EQ(killed.signal, SIGKILL) << report(killed);
    expect_success(resume());
    EXPECT_TRUE(read_file(folder / "a.field") == whole());
}

TEST_F(CliRadianceResume, SignalsSaveAndStop) {
    std::vector<std::string> words = train("a.field", {"--checkpoints", folder / "run"});
    words.push_back("fine.N_iters=1e6");
    Child child(stipple_launch(words));
    for (int i = 0; i < 6000 && read_file(folder / "run/metrics.jsonl").empty(); ++i) ::usleep(10'000);
    child.send(SIGTERM);
    const LaunchResult stopped = child.wait();
    EXPECT_EQ(stopped.exit_code, 143) << report(stopped);
    EXPECT_TRUE(contains(stopped.err, "stipple: stopped after step ")) << stopped.err;
    EXPECT_TRUE(contains(stopped.err, "  hint: go on with: stipple radiance train --resume ")) << stopped.err;
    const size_t at = stopped.err.find("after step ");
    ASSERT_NE(at, std::string::npos);
    const int step = std::stoi(stopped.err.substr(at + 11));
    const LaunchResult on = resume({"--max-steps", std::to_string(step + 3)});
    expect_success(on);
    EXPECT_TRUE(contains(on.out, "of 1,000,040, saved")) << on.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "a.field"));
}

TEST_F(CliRadianceResume, WrongUse) {
    expect_error(resume(), 3, "config.toml");
    ASSERT_EQ(stipple(train("a.field", {"--checkpoints", folder / "run", "--max-steps", "10"})).exit_code, 0);
    expect_error(resume({"--mode", "small"}), 2, "--resume takes the options of training from the run");
    expect_error(resume({"--set", "fine.N_iters=3"}), 2, "--resume takes the options of training from the run");
    expect_error(resume({"--seed", "7"}), 2, "takes the seed from the run");
    expect_error(resume({"--checkpoints", folder / "other"}), 2, "--checkpoints is for new runs");
    expect_error(resume({folder / "nothing"}), 3, "nothing");
    const LaunchResult second = stipple(train("a.field", {"--checkpoints", folder / "run", "--quiet"}));
    EXPECT_EQ(second.exit_code, 4);
    EXPECT_TRUE(contains(second.err, "the run folder is not empty")) << second.err;
    expect_error(stipple(train("a.field", {"--render-every", "10"})), 2, "are for --checkpoints and --resume");
    expect_error(stipple({"radiance", "train", "-o", folder / "a.field"}), 2, "FOLDER is missing");
    expect_error(stipple({"radiance", "train", folder / "scene"}), 2, "--output is missing");
    // Other photographs of the same size, then another configuration.
    std::filesystem::create_directory(folder / "turned");
    save_blender(folder / "turned", analytic_scene(20, 8, 2, 5));
    LaunchResult other = resume({folder / "turned", "--quiet"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_TRUE(contains(other.err, "the photographs or their cameras have changed")) << other.err;
    std::string config = read_file(folder / "run/config.toml");
    const size_t at = config.find("N_iters = 20");
    ASSERT_NE(at, std::string::npos);
    config.replace(at, 12, "N_iters = 30");
    write_file(folder / "run/config.toml", config);
    other = resume({"--quiet"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_TRUE(contains(other.err, "the checkpoint is of other options: fine.N_iters: 20, 30")) << other.err;
    write_file(folder / "run/config.toml", config + "stepsize = many\n");
    EXPECT_EQ(resume().exit_code, 2);
    EXPECT_TRUE(contains(resume().err, "run/config.toml:")) << resume().err;
}

TEST_F(CliRadianceResume, ProgressTellsStageAndQuality) {
    std::vector<std::string> words =
        train("a.field", {"--checkpoints", folder / "run", "--render-every", "30", "--progress", "always"});
    const LaunchResult result = stipple(words);
    EXPECT_EQ(result.exit_code, 0) << report(result);
    EXPECT_TRUE(contains(result.err, "coarse, ") && contains(result.err, " dB") && contains(result.err, " left"))
        << result.err;
    EXPECT_TRUE(contains(result.err, "step 30: test views ")) << result.err;
}

}  // namespace
}  // namespace stipple::test
