// The loop: it learns, and nothing that happens to it changes what it ends in.

#include "stipple/learn/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <malloc.h>
#include <torch/torch.h>

#include "stipple/core/checkpoint.h"
#include "stipple/core/failpoint.h"
#include "stipple/io/event_file.h"
#include "stipple/io/image_file.h"
#include "stipple/learn/loop/memory.h"
#include "stipple/learn/loop/run_state.h"
#include "tests/learn/toy_objective.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::toy_recipe;
using test::ToyObjective;
using test::Where;

struct ToyRun {
    TrainReport report;
    std::string weights;  // the file's bytes
    std::vector<double> losses;
};

ToyRun run_toy(const std::string& folder, const Recipe& recipe, TrainOptions options = {},
               const std::function<void(ToyObjective&)>& prepare = {}) {
    ToyObjective objective;
    if (prepare) prepare(objective);
    options.progress = ProgressMode::never;
    RunFolder run = options.is_resumed ? RunFolder::resume(folder) : RunFolder::create(folder, to_toml(recipe));
    ToyRun result;
    result.report = train(recipe, objective, run, options);
    result.losses = objective.losses;
    if (result.report.is_complete) result.weights = read_file(result.report.weights);
    return result;
}

TEST(Train, LearnsAndLeavesARunFolder) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    recipe.run.epochs = 24;
    const ToyRun run = run_toy(folder / "run", recipe);
    EXPECT_TRUE(run.report.is_complete);
    EXPECT_EQ(run.report.steps, 240);
    EXPECT_EQ(run.report.scores.back().first, "validation_accuracy");
    EXPECT_ABOVE(run.report.scores.back().second, 0.8);  // of ten classes
    EXPECT_BELOW(run.losses.back(), run.losses.front() / 2);

    for (const char* name : {"config.toml", "metrics.jsonl", "weights.safetensors", "best.safetensors"})
        EXPECT_FALSE(read_file(folder / (std::string("run/") + name)).empty()) << name;
    EXPECT_GT(io::load_image(folder / "run/curves.png").width(), 100);
    const io::EventFile events = io::load_events(*io::find_event_file(folder / "run/events"));
    EXPECT_EQ(events.damage, "");
    EXPECT_EQ(events.events.size(), 1u + 240 + 24);  // version, steps, epochs
    const std::string metrics = read_file(folder / "run/metrics.jsonl");
    EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 264);
    EXPECT_NE(metrics.find("\"host_bytes\":"), std::string::npos);
}

TEST(Train, BfloatLearnsAsWellAndResumes) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    recipe.run.epochs = 24;
    recipe.run.precision = Precision::bf16;
    const ToyRun whole = run_toy(folder / "whole", recipe);
    EXPECT_ABOVE(whole.report.scores.back().second, 0.8);
    TrainOptions first;
    first.max_steps = 33;
    run_toy(folder / "run", recipe, first);
    TrainOptions second;
    second.is_resumed = true;
    EXPECT_TRUE(run_toy(folder / "run", recipe, second).weights == whole.weights);
}

TEST(Train, Float16WantsAGpu) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    recipe.run.precision = Precision::fp16;
    EXPECT_ERROR(run_toy(folder / "run", recipe), bad_config, "float16 is for a GPU");
}

TEST(Train, TwoRunsEndInTheSameBits) {
    const TemporaryFolder folder(Where::memory);
    const ToyRun a = run_toy(folder / "a", toy_recipe());
    Recipe threads = toy_recipe();
    const ToyRun b = run_toy(folder / "b", threads);
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_TRUE(a.weights == b.weights);
    Recipe other = toy_recipe();
    other.run.seed += 1;
    EXPECT_FALSE(run_toy(folder / "c", other).weights == a.weights);
}

TEST(Train, ResumedAfterAnyStepEndsInTheSameBits) {
    const TemporaryFolder folder(Where::memory);
    const Recipe recipe = toy_recipe();
    const ToyRun whole = run_toy(folder / "whole", recipe);
    const std::string metrics = read_file(folder / "whole/metrics.jsonl");
    const auto losses_of = [](const std::string& text) {  // without times and memory
        std::vector<std::string> losses;
        for (size_t at = 0; (at = text.find("\"loss\":", at)) != std::string::npos; ++at)
            losses.push_back(text.substr(at, text.find(',', at) - at));
        return losses;
    };
    for (int64_t k = 1; k <= 20; ++k) {
        const std::string path = folder / ("run" + std::to_string(k));
        TrainOptions first;
        first.max_steps = k;
        EXPECT_FALSE(run_toy(path, recipe, first).report.is_complete);
        TrainOptions second;
        second.is_resumed = true;
        const ToyRun rest = run_toy(path, recipe, second);
        EXPECT_TRUE(rest.weights == whole.weights) << k;
        EXPECT_EQ(losses_of(read_file(path + "/metrics.jsonl")), losses_of(metrics)) << k;
        EXPECT_TRUE(rest.report.warnings.empty()) << k;
    }
}

TEST(Train, ARunThatIsCompleteWritesItsWeightsAgain) {
    const TemporaryFolder folder(Where::memory);
    const ToyRun whole = run_toy(folder / "run", toy_recipe());
    std::filesystem::remove(folder / "run/weights.safetensors");
    TrainOptions again;
    again.is_resumed = true;
    const ToyRun resumed = run_toy(folder / "run", toy_recipe(), again);
    EXPECT_TRUE(resumed.weights == whole.weights);
    EXPECT_TRUE(resumed.losses.empty());
    EXPECT_EQ(resumed.report.scores, whole.report.scores);
}

TEST(Train, StepsThatAreNotFiniteAreSkippedAndNamed) {
    const TemporaryFolder folder(Where::memory);
    const ToyRun run = run_toy(folder / "run", toy_recipe(), {}, [](ToyObjective& objective) {
        objective.before_step = [](int64_t step, torch::Tensor& points) {
            if (step == 5 || step == 17) points[3][1] = std::numeric_limits<float>::quiet_NaN();
        };
    });
    EXPECT_TRUE(run.report.is_complete);
    EXPECT_EQ(run.report.skipped, 2);
    const std::string metrics = read_file(folder / "run/metrics.jsonl");
    EXPECT_NE(metrics.find("\"kind\":\"skipped\",\"step\":6,"), std::string::npos) << metrics;
    EXPECT_NE(metrics.find("the loss is not finite: input points"), std::string::npos) << metrics;
    // Weights are finite: save_weights would have refused others; statistics are those of sound batches.
    EXPECT_ABOVE(run.report.scores.back().second, 0.3);
}

TEST(Train, TheLayerIsNamed) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    recipe.schedule.rate = 1e30;
    recipe.schedule.warmup = 0;
    recipe.run.clip = 0;
    const auto run = [&] { run_toy(folder / "run", recipe); };
    EXPECT_ERROR(run(), not_finite, "layer ");
    std::vector<std::string> warnings;
    const std::optional<Checkpoint> checkpoint = find_checkpoint(folder / "run", Damaged::refuse, warnings);
    ASSERT_TRUE(checkpoint);
    for (const auto& [name, tensor] : load_tensors(checkpoint->file("state.safetensors")))
        EXPECT_TRUE(torch::isfinite(tensor).all().item<bool>()) << name;
}

TEST(Train, TenInARowEndTheRun) {
    const TemporaryFolder folder(Where::memory);
    const auto run = [&] {
        run_toy(folder / "run", toy_recipe(), {}, [](ToyObjective& objective) {
            objective.before_step = [](int64_t step, torch::Tensor& points) {
                if (step >= 12) points[0][0] = INFINITY;
            };
        });
    };
    EXPECT_ERROR(run(), not_finite, "10 of 22 steps were skipped");
    std::vector<std::string> warnings;
    EXPECT_EQ(find_checkpoint(folder / "run", Damaged::refuse, warnings)->info.step, 20);
}

TEST(Train, ACheckpointWithAFlippedBitIsSkipped) {
    const TemporaryFolder folder(Where::memory);
    const Recipe recipe = toy_recipe();
    const ToyRun whole = run_toy(folder / "whole", recipe);
    TrainOptions first;
    first.max_steps = 25;
    run_toy(folder / "run", recipe, first);
    const std::string state = folder / "run/ckpt/step-00000025/state.safetensors";
    const std::string bytes = read_file(state);
    for (size_t i = 0; i < 200; ++i) {
        std::string flipped = bytes;
        flipped[i * (bytes.size() - 1) / 199] ^= static_cast<char>(1 << (i % 8));
        test::write_file(state, flipped);
        std::vector<std::string> warnings;
        const std::optional<Checkpoint> found = find_checkpoint(folder / "run", Damaged::skip, warnings);
        ASSERT_TRUE(found);
        ASSERT_EQ(found->info.step, 20) << i;
        ASSERT_EQ(warnings.size(), 1u);
    }
    TrainOptions strict;
    strict.is_resumed = strict.refuses_damaged = true;
    EXPECT_ERROR(run_toy(folder / "run", recipe, strict), bad_file, "state.safetensors");
    TrainOptions second;
    second.is_resumed = true;
    const ToyRun rest = run_toy(folder / "run", recipe, second);
    ASSERT_EQ(rest.report.warnings.size(), 1u);
    EXPECT_NE(rest.report.warnings[0].find("step-00000025"), std::string::npos);
    EXPECT_TRUE(rest.weights == whole.weights);
}

TEST(Train, AFullDiskEndsItWithTheLastCheckpointIntact) {
    const TemporaryFolder folder(Where::memory);
    const Recipe recipe = toy_recipe();
    const ToyRun whole = run_toy(folder / "whole", recipe);
    set_failpoints(
        "ckpt.mid_write:enospc:7,ckpt.mid_write:enospc:8");  // two files each: the fourth save, both attempts
    EXPECT_ERROR(run_toy(folder / "run", recipe), cannot_write, "");
    set_failpoints("");
    TrainOptions second;
    second.is_resumed = true;
    EXPECT_TRUE(run_toy(folder / "run", recipe, second).weights == whole.weights);

    set_failpoints("ckpt.mid_write:enospc:7,ckpt.mid_write:enospc:8");
    TrainOptions warn;
    warn.survives_save_errors = true;
    EXPECT_TRUE(run_toy(folder / "warned", recipe, warn).weights == whole.weights);
    set_failpoints("");
}

TEST(Train, ACheckpointOfAnotherRecipeIsRefused) {
    const TemporaryFolder folder(Where::memory);
    TrainOptions first;
    first.max_steps = 3;
    run_toy(folder / "run", toy_recipe(), first);
    Recipe other = toy_recipe();
    other.run.batch = 8;
    TrainOptions second;
    second.is_resumed = true;
    EXPECT_ERROR(run_toy(folder / "run", other, second), bad_config, "run.batch: 16, 8");
}

TEST(Train, PatienceEndsARun) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    recipe.run.epochs = 50;
    recipe.run.patience = 3;
    recipe.schedule.rate = 1e-12;  // learns nothing
    recipe.run.average_decay = 0;
    recipe.schedule.norm_momentum = 0;
    const ToyRun run = run_toy(folder / "run", recipe);
    EXPECT_TRUE(run.report.stopped_early);
    EXPECT_EQ(run.report.epochs, 4);
    EXPECT_TRUE(run.report.is_complete);
}

/// Bytes that malloc has handed out, of all threads; 0 where that is not known.
int64_t allocated_bytes() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
#else
    return 0;
#endif
}

TEST(Train, MemoryDoesNotGrow) {
    const TemporaryFolder folder(Where::memory);
    Recipe recipe = toy_recipe();
    const char* wanted = std::getenv("STIPPLE_ITERATIONS");       // 2000 for the long version
    recipe.run.epochs = (wanted ? std::atoi(wanted) : 240) / 10;  // of 10 steps, with an evaluation and a checkpoint
    std::vector<int64_t> resident, allocated;
    run_toy(folder / "run", recipe, {}, [&](ToyObjective& objective) {
        objective.before_step = [&](int64_t, torch::Tensor&) {
            resident.push_back(memory_use(torch::kCPU).host_bytes);
            allocated.push_back(allocated_bytes());
        };
    });
    const int64_t steps = 10 * recipe.run.epochs;
    ASSERT_EQ(static_cast<int64_t>(resident.size()), steps);
    EXPECT_LE(resident.back() - resident[40], 2 << 20);  // one leaked batch of activations a step would be 60 MB
    // Sharper, since pages come and go: what grows is the history of the scores, which the chart shows, and that here.
    EXPECT_LE(allocated.back() - allocated[40], 256 * (steps - 40));
}

}  // namespace
}  // namespace stipple::learn
