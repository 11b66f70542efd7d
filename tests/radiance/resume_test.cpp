// A training that is stopped, killed or loses a checkpoint, and goes on: the field has the same bytes as one that was
// left alone.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstring>

#include "stipple/core/checkpoint.h"
#include "stipple/core/failpoint.h"
#include "stipple/core/parallel.h"
#include "stipple/io/image_file.h"
#include "stipple/radiance/train.h"
#include "stipple/radiance/train_keys.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/expect_error.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::radiance {
namespace {

/// A few steps of each stage with two growths and looks at which nodes are opaque. The fine grid grows before its steps
/// 4 and 9.
TrainOptions resumed_options() {
    TrainOptions options = small_options();
    options.coarse.N_iters = 12;
    options.coarse.N_rand = options.fine.N_rand = 16;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 16 * 16 * 16;
    options.coarse.alpha_init = 1e-3f;
    options.coarse.lrate_density = 0.5f;
    options.coarse.refresh = options.fine.refresh = 5;
    options.fine.N_iters = 14;
    options.fine.num_voxels = options.fine.num_voxels_base = 24 * 24 * 24;
    options.fine.pg_scale = {4, 9};
    options.bbox_thres = 1e-7f;
    options.deterministic = true;
    return options;
}

constexpr int64_t kCoarse = 12, kAll = 26;

class RadianceResume : public ::testing::Test {
protected:
    /// So few rays are not worth threads, and threads change no bit.
    void SetUp() override { set_threads(1); }
    void TearDown() override {
        set_failpoints("");
        set_threads(threads_before);
    }

    std::string bytes_of(const Field& field) const {
        save_field(folder / "bytes.field", field, Overwrite::allow);
        return test::read_file(folder / "bytes.field");
    }
    std::string uninterrupted(Device device = {}) const { return bytes_of(train(scene, options, device).field); }

    /// A new run in the folder `name`, to the step.
    TrainResult begin(const std::string& name, int64_t max_steps, TrainRun run = {}, Device device = {}) const {
        RunFolder run_folder = RunFolder::create(folder / name, "");
        run.folder = &run_folder;
        run.max_steps = max_steps;
        return train(scene, options, device, {}, run);
    }
    TrainResult resume(const std::string& name, TrainRun run = {}, Device device = {},
                       const std::function<void(const TrainStep&)>& report = {}) const {
        RunFolder run_folder = RunFolder::resume(folder / name);
        run.folder = &run_folder;
        run.is_resumed = true;
        return train(scene, options, device, report, run);
    }
    std::string checkpoint(const std::string& run, int64_t step) const {
        return folder / fmt::format("{}/ckpt/step-{:08}", run, step);
    }
    void flip_a_byte(const std::string& path) const {
        std::string bytes = test::read_file(path);
        ASSERT_FALSE(bytes.empty());
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        test::write_file(path, bytes);
    }
    std::vector<nlohmann::json> metrics(const std::string& run) const {
        std::vector<nlohmann::json> lines;
        std::istringstream in(test::read_file(folder / (run + "/metrics.jsonl")));
        for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
        return lines;
    }

    const int threads_before = threads();
    test::TemporaryFolder folder{test::Where::memory};
    Scene scene = test::analytic_scene(20, 8, 2, 0);
    TrainOptions options = resumed_options();
};

TEST_F(RadianceResume, AfterEveryStep) {
    const std::string expected = uninterrupted();
    // In the coarse stage, at its end, before and after each growth, in the fine stage, after the last step.
    for (int64_t step = 1; step <= kAll; ++step) {
        const std::string name = fmt::format("run-{}", step);
        const TrainResult first = begin(name, step);
        EXPECT_EQ(first.is_complete, step == kAll);
        EXPECT_EQ(bytes_of(resume(name).field) == expected, true) << "after step " << step;
    }
}

TEST_F(RadianceResume, AgainAndAgainWithOtherThreads) {
    const std::string expected = uninterrupted();
    begin("run", 2);
    for (const int64_t step : {5, 12, 13, 15, 16, 17, 20, 21, 25}) {
        set_threads(1 + static_cast<int>(step % 3));
        TrainRun run;
        run.max_steps = step;
        EXPECT_FALSE(resume("run", run).is_complete);
    }
    const Field last = resume("run").field;
    EXPECT_TRUE(bytes_of(last) == expected);
}

TEST_F(RadianceResume, PhotographsWithUnknownPixels) {
    scene.alpha_is_unknown = true;
    options.background = Background::black;
    const std::string expected = uninterrupted();
    for (const int64_t step : {5, 14, 20}) {
        const std::string name = fmt::format("run-{}", step);
        begin(name, step);
        EXPECT_TRUE(bytes_of(resume(name).field) == expected) << "after step " << step;
    }
}

TEST_F(RadianceResume, LearnedBackgroundAndNodesThatComeBack) {
    scene.alpha_is_unknown = true;
    options.background = Background::learned;
    options.environment_side = 20;
    options.occupancy_returns = true;
    const std::string expected = uninterrupted();
    for (const int64_t step : {5, 14, 20}) {
        const std::string name = fmt::format("run-{}", step);
        begin(name, step);
        EXPECT_TRUE(bytes_of(resume(name).field) == expected) << "after step " << step;
    }
}

TEST_F(RadianceResume, KilledWhileSaving) {
    const std::string expected = uninterrupted();
    // Each place of saving, in the first, a middle and the last checkpoint.
    for (const char* place : checkpoint_failpoints()) {
        for (const int pass : {1, 4}) {
            const std::string name = fmt::format("{}-{}", place, pass);
            const test::ProcessResult killed = test::run_in_child([&] {
                set_failpoints(fmt::format("{}:kill:{}", place, pass));
                TrainRun run;
                run.checkpoint_every = 6;
                begin(name, 0, run);
                return 0;
            });
            EXPECT_EQ(killed.signal, SIGKILL) << name << killed.output;
            EXPECT_TRUE(bytes_of(resume(name).field) == expected) << name;
        }
    }
}

TEST_F(RadianceResume, ADamagedCheckpointFallsBackToTheOneBefore) {
    const std::string expected = uninterrupted();
    for (const char* file : {"state.safetensors", "options.toml", "manifest.json"}) {
        const std::string name = std::string("run-") + file;
        TrainRun run;
        run.checkpoint_every = 5;
        begin(name, 20, run);
        flip_a_byte(checkpoint(name, 20) + "/" + file);
        TrainRun strict;
        strict.refuses_damaged = true;
        EXPECT_ERROR(resume(name, strict), bad_file, file);
        const TrainResult resumed = resume(name);
        ASSERT_EQ(resumed.warnings.size(), 1u);
        EXPECT_NE(resumed.warnings[0].find("damaged checkpoint skipped"), std::string::npos) << resumed.warnings[0];
        EXPECT_TRUE(bytes_of(resumed.field) == expected) << file;
    }
    // All of them: it begins anew.
    begin("run", 20);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run/ckpt"))
        if (!entry.is_symlink()) flip_a_byte(entry.path() / "state.safetensors");
    const TrainResult anew = resume("run");
    EXPECT_NE(anew.warnings.back().find("no checkpoint, begins anew"), std::string::npos);
    EXPECT_TRUE(bytes_of(anew.field) == expected);
}

TEST_F(RadianceResume, AFullDisk) {
    const std::string expected = uninterrupted();
    TrainRun run;
    run.checkpoint_every = 5;
    set_failpoints("ckpt.begin:enospc");
    EXPECT_ERROR(begin("none", 0, run), cannot_write, "");
    set_failpoints("ckpt.mid_write:enospc:5,ckpt.mid_write:enospc:6,ckpt.mid_write:enospc:7");
    EXPECT_ERROR(begin("run", 0, run), cannot_write, "");
    set_failpoints("");
    EXPECT_TRUE(bytes_of(resume("run").field) == expected);
    // One attempt more helps, or none does and the run goes on.
    set_failpoints("ckpt.before_manifest:enospc:2");
    EXPECT_TRUE(bytes_of(begin("twice", 0, run).field) == expected);
    set_failpoints("ckpt.begin:enospc");
    run.survives_save_errors = true;
    EXPECT_TRUE(bytes_of(begin("without", 0, run).field) == expected);
    EXPECT_FALSE(std::filesystem::exists(checkpoint("without", kAll)));
    // Pictures count as little: here a file is where their folder was.
    set_failpoints("");
    run.render_every = 10;
    RunFolder run_folder = RunFolder::create(folder / "pictures", "");
    run.folder = &run_folder;
    const auto block = [&](const TrainStep&) {
        std::filesystem::remove_all(folder / "pictures/renders");
        test::write_file(folder / "pictures/renders", "");
    };
    EXPECT_TRUE(bytes_of(train(scene, options, {}, block, run).field) == expected);
    EXPECT_FALSE(std::filesystem::is_directory(folder / "pictures/renders"));
}

TEST_F(RadianceResume, AnythingElseIsRefused) {
    begin("run", 15);
    const TrainOptions own = options;
    options.fine.N_iters = 20;
    options.fine.weight_rgbper = 0.5f;
    EXPECT_ERROR(resume("run"), bad_config, "the checkpoint is of other options: fine.N_iters: 14, 20 and 1 more");
    options = own;
    options.seed = 3;
    EXPECT_ERROR(resume("run"), bad_config, "the checkpoint is of other options: seed: 0, 3");
    options = own;
    scene.train[3].pixels.at(2, 5)[1] ^= 1;
    EXPECT_ERROR(resume("run"), bad_config, "the photographs or their cameras have changed");
    scene.train[3].pixels.at(2, 5)[1] ^= 1;
    scene.train[7].camera.to_world[3] += 1e-3f;
    EXPECT_ERROR(resume("run"), bad_config, "the photographs or their cameras have changed");
    scene = test::analytic_scene(20, 7, 2, 0);
    EXPECT_ERROR(resume("run"), bad_config, "8 photographs with 3200 pixels, not 7 with 2800");
    scene = test::analytic_scene(20, 8, 0, 0);  // test views are no part of it
    EXPECT_TRUE(resume("run").is_complete);
    EXPECT_ERROR(begin("run", 0), cannot_write, "not empty");
}

TEST_F(RadianceResume, ReportsGoOnWhereTheyWere) {
    options.coarse.N_iters = 60;
    options.fine.N_iters = 40;
    const auto reports = [&](const std::string& name, int64_t stop) {
        std::vector<TrainStep> steps;
        if (stop > 0) begin(name, stop);
        const auto keep = [&](const TrainStep& step) { steps.push_back(step); };
        if (stop > 0) {
            resume(name, {}, {}, keep);
        } else {
            train(scene, options, {}, keep);
        }
        return steps;
    };
    const std::vector<TrainStep> whole = reports("", 0), resumed = reports("run", 33), last = reports("end", 100);
    ASSERT_EQ(whole.size(), 5u);  // 25, 50, 60, 85, 100
    EXPECT_EQ(whole[3].step, 85);
    EXPECT_GT(whole[3].steps_per_second, 0);
    EXPECT_NEAR(whole[3].seconds_left, 15 / whole[3].steps_per_second, 1e-9);
    ASSERT_EQ(resumed.size(), 5u);
    EXPECT_EQ(resumed[0].step, 33);  // where it goes on
    EXPECT_EQ(resumed[0].psnr, whole[0].psnr);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(resumed[i].psnr, whole[i].psnr) << resumed[i].step;
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(last[0].psnr, whole.back().psnr);
    // Every line once, in order.
    int64_t before = 0;
    for (const auto& line : metrics("run")) {
        EXPECT_GT(line["step"].get<int64_t>(), before);
        before = line["step"];
    }
    EXPECT_EQ(before, 100);
}

TEST_F(RadianceResume, TestViewsChangeNothing) {
    const std::string expected = uninterrupted();
    TrainRun run;
    run.render_every = 7;
    run.render_views = 5;  // there are two
    std::vector<TrainStep> steps;
    const TrainResult result = begin("run", 0, run);
    EXPECT_TRUE(bytes_of(result.field) == expected);
    EXPECT_GT(result.times.test_views, 0);
    EXPECT_GT(result.times.checkpoints, 0);
    for (const char* name : {"step-00000007-0000.png", "step-00000014-0001.png", "step-00000021-0000.png"}) {
        const Image image = io::load_image(folder / ("run/renders/" + std::string(name)));
        EXPECT_EQ(image.width(), 40);
        EXPECT_EQ(image.height(), 20);
        // The right half is the photograph, whose corners show the background.
        EXPECT_EQ(image.at(20, 0)[0], 255);
    }
    int tests = 0;
    for (const auto& line : metrics("run")) {
        if (line["kind"] != "test") continue;
        ++tests;
        EXPECT_EQ(line["views"].size(), 2u);
        EXPECT_NEAR(line["psnr"].get<double>(),
                    (line["views"][0]["psnr"].get<double>() + line["views"][1]["psnr"].get<double>()) / 2, 1e-9);
    }
    EXPECT_EQ(tests, 3);
    // The last PSNR is known to a run that goes on.
    begin("stopped", 15, run);
    std::vector<double> known;
    resume("stopped", {}, {}, [&](const TrainStep& step) { known.push_back(step.test_psnr.value_or(-1)); });
    ASSERT_FALSE(known.empty());
    EXPECT_GT(known[0], 0);
    scene.test.clear();
    EXPECT_ERROR(begin("blind", 0, run), bad_argument, "no test views");
}

TEST_F(RadianceResume, WhatIsNotFiniteIsNotSaved) {
    options.fine.lrate_network = 1e38f;
    options.fine.lrate_features = 1e38f;
    TrainRun run;
    run.checkpoint_every = 5;
    EXPECT_ERROR(begin("run", 0, run), not_finite, "is not finite, and not saved");
}

TEST(RadianceTrainKeys, OptionsReadBackAsTheSame) {
    TrainOptions options = quality_options();
    options.seed = UINT64_MAX;
    options.background = Background::random;
    options.coarse.alpha_init = std::nextafter(1e-6f, 1.0f);
    options.fine.pg_scale = {};
    options.jitter = true;
    for (const TrainOptions& o : {options, small_options(), fast_options(), parity_options(160)}) {
        const std::string text = to_toml(o);
        EXPECT_EQ(to_toml(train_options_from_toml("[run]\nfolder = \"x\"\n" + text)), text);
    }
    EXPECT_EQ(train_options_from_toml(to_toml(options)).coarse.alpha_init, options.coarse.alpha_init);
    EXPECT_EQ(train_options_from_toml(to_toml(options)).seed, UINT64_MAX);
    EXPECT_ERROR(train_options_from_toml("[train]\nseed = 1\n"), bad_config, "there is no ");
    EXPECT_ERROR(train_options_from_toml("[fine]\nN_iter = 1\n"), bad_config, "there is no key");
    EXPECT_ERROR(train_options_from_toml("[train]\nbackground = \"blue\"\n"), bad_config,
                 "one of white, black, random, learned");
}

TEST_F(RadianceResume, OnCuda) {
    std::optional<Device> device;
    for (const DeviceInfo& info : list_devices())
        if (info.device.type == DeviceType::cuda && !device) device = info.device;
    if (!device) GTEST_SKIP() << "no GPU";
    for (const bool half : {false, true}) {
        options.half_network = half;
        for (const bool unknown : {false, true}) {
            scene.alpha_is_unknown = unknown;
            const std::string expected = uninterrupted(*device);
            for (int64_t step = 1; step <= kAll; ++step) {
                const std::string name = fmt::format("run-{}-{}-{}", half, unknown, step);
                begin(name, step, {}, *device);
                EXPECT_TRUE(bytes_of(resume(name, {}, *device).field) == expected) << name;
            }
        }
    }
    TrainRun run;
    run.render_every = 7;
    scene.alpha_is_unknown = false;
    EXPECT_TRUE(bytes_of(begin("views", 0, run, *device).field) == uninterrupted(*device));
    EXPECT_TRUE(std::filesystem::exists(folder / "views/renders/step-00000007-0000.png"));
    begin("other", 15, {}, *device);
    EXPECT_ERROR(resume("other"), bad_config, "the run was on cuda, not on cpu");
}

}  // namespace
}  // namespace stipple::radiance
