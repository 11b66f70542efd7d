// `stipple study upsampling-ablation --retrain` by the real program: variants are trained, measured and stored once.

#include <gtest/gtest.h>

#include "stipple/geometry/primitives.h"
#include "stipple/io/format.h"
#include "stipple/tasks/upsampling_study/scores.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple {
namespace {

using test::Launch;
using test::LaunchResult;
using test::TemporaryFolder;

class RetrainProgram : public testing::Test {
protected:
    RetrainProgram() {
        io::Warnings warnings;
        for (const char* name : {"training", "shapes/meshes"}) {
            std::filesystem::create_directories(folder / name);
            io::save(folder / (std::string(name) + "/ball.off"), geometry::sphere_mesh(1, 4), Overwrite::refuse, {},
                     warnings);
        }
    }

    LaunchResult retrain(const std::vector<std::string>& more) const {
        Launch launch;
        launch.arguments = {STIPPLE_PROGRAM,
                            "study",
                            "upsampling-ablation",
                            "--retrain",
                            "--training",
                            folder / "training",
                            "--data",
                            folder / "shapes",
                            "--stored",
                            folder / "rows.csv",
                            "-o",
                            folder / "out",
                            "--device",
                            "cpu"};
        launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
        launch.environment = {{"STIPPLE_PROGRESS", "never"}};
        launch.seconds = 300;
        return run_launch(launch);
    }

    static std::vector<std::string> small(const std::string& only) {
        std::vector<std::string> arguments = {"--quick", "--epochs", "1", "--only", only};
        for (const char* setting :
             {"data.items=4", "data.held_out=0", "run.batch=2", "run.loader_threads=1", "patch.samples=2048",
              "patch.cloud_min=256", "patch.cloud_max=512", "model.neighbours=8"})
            arguments.insert(arguments.end(), {"--set", setting});
        return arguments;
    }

    TemporaryFolder folder;
};

TEST_F(RetrainProgram, TrainsMeasuresAndStoresEachVariantOnce) {
    const LaunchResult first = retrain(small("sampled-latent,no-likelihood"));
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const std::string path = folder / "rows.csv";
    std::vector<tasks::study::Mean> rows = tasks::study::load_stored(path);
    ASSERT_EQ(rows.size(), 2u);  // the shapes have no gt_8192: one input
    EXPECT_EQ(rows[0].method, "no-likelihood");
    EXPECT_EQ(rows[1].method, "sampled-latent");
    for (const tasks::study::Mean& row : rows) {
        EXPECT_EQ(row.input, "c");
        EXPECT_GT(row.mean[0], 0);
        EXPECT_EQ(row.shapes, 1);
        EXPECT_EQ(row.seeds, 1);
        EXPECT_NE(row.command.find("--retrain --only " + row.method + " --training DIR --data DIR --epochs 1"),
                  std::string::npos)
            << row.command;
        EXPECT_EQ(row.command.find(folder.path()), std::string::npos) << row.command;
    }
    EXPECT_NE(rows[0].mean[0], rows[1].mean[0]);
    // The sampled one took the weights of the base, which then needs no training.
    ASSERT_TRUE(std::filesystem::exists(folder / "out/trained/coupling/weights.safetensors"));
    const std::string config = test::read_file(folder / "out/trained/no-likelihood/config.toml");
    EXPECT_NE(config.find("nll_weight = 0\n"), std::string::npos);
    const std::string weights = test::read_file(folder / "out/trained/coupling/weights.safetensors");

    // Killed after the training of `coupling`, it only measures.
    const LaunchResult second = retrain(small("coupling,sampled-latent,no-likelihood"));
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.out.find("stored 1 rows"), std::string::npos) << second.out;
    rows = tasks::study::load_stored(path);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[2].method, "coupling");
    EXPECT_NE(rows[2].mean[0], rows[1].mean[0]);
    EXPECT_TRUE(test::read_file(folder / "out/trained/coupling/weights.safetensors") == weights);

    const LaunchResult third = retrain(small("coupling,sampled-latent"));
    ASSERT_EQ(third.exit_code, 0) << third.err;
    EXPECT_NE(third.out.find("stored 0 rows"), std::string::npos) << third.out;
    EXPECT_EQ(tasks::study::load_stored(path).size(), 3u);
}

TEST_F(RetrainProgram, MistakesAreToldBeforeTraining) {
    const LaunchResult other = retrain({"--only", "magic"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_NE(other.err.find("--only magic: there is no such variant; there are coupling, no-likelihood"),
              std::string::npos)
        << other.err;
    EXPECT_EQ(retrain({"--set", "run.bach=3"}).exit_code, 2);
    const LaunchResult planned = retrain({"--dry-run", "--only", "residual,continuous"});
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    EXPECT_NE(planned.out.find("would train and measure 2 variants: continuous, residual"), std::string::npos)
        << planned.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    Launch without;
    without.arguments = {STIPPLE_PROGRAM, "study", "upsampling-ablation", "--retrain", "--data", folder / "shapes"};
    const LaunchResult missing = run_launch(without);
    EXPECT_EQ(missing.exit_code, 2);
    EXPECT_NE(missing.err.find("--training is missing"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace stipple
