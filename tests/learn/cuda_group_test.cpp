// A group of one rank on a GPU: NCCL is there, and a run with it ends in the same weights.

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "stipple/learn/distributed/c10d_group.h"
#include "stipple/learn/train.h"
#include "tests/learn/toy_objective.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

TEST(CudaGroup, OneRankTrainsAsOneProcess) {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
    const test::TemporaryFolder folder(test::Where::memory);
    Launch launch;
    launch.address = "127.0.0.1";
    launch.port = 23457;
    std::vector<double> losses[2];
    for (const bool has_group : {false, true}) {
        std::unique_ptr<C10dGroup> group;
        if (has_group) {
            group = std::make_unique<C10dGroup>(launch, GroupOptions{.device = torch::Device(torch::kCUDA, 0)});
            EXPECT_EQ(group->backend(), "NCCL");
            EXPECT_EQ(broadcast_text(*group, "text"), "text");
            EXPECT_EQ(gather_texts(*group, "text"), std::vector<std::string>{"text"});
        }
        Recipe recipe = test::toy_recipe();
        recipe.run.epochs = 2;
        test::ToyObjective objective;
        TrainOptions options;
        options.device = torch::Device(torch::kCUDA, 0);
        options.progress = ProgressMode::never;
        options.group = group.get();
        RunFolder run = RunFolder::create(folder / (has_group ? "group" : "alone"), to_toml(recipe));
        EXPECT_TRUE(train(recipe, objective, run, options).is_complete);
        losses[has_group] = objective.losses;
        if (group) group->finish();
    }
    ASSERT_EQ(losses[0].size(), 20u);
    ASSERT_EQ(losses[1].size(), 20u);
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-3) << i;
}

}  // namespace
}  // namespace stipple::learn
