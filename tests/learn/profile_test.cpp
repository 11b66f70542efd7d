// Profiles of training: every layer forward and backward by its name, stages that add up, memory that is bounded.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/learn/train.h"
#include "stipple/network/builder.h"
#include "tests/learn/learn.h"
#include "tests/learn/toy_objective.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trace.h"

namespace stipple::learn {
namespace {

using test::TemporaryFolder;
using test::toy_recipe;
using test::ToyObjective;
using test::Where;

/// Rows by "step/forward/conv1".
std::map<std::string, ProfileRow> rows_by_path(const Profile& profile) {
    std::map<std::string, ProfileRow> by_path;
    std::vector<std::string> paths;
    for (const ProfileRow& row : profile.rows()) {
        paths.push_back(row.parent < 0 ? row.name : paths[static_cast<size_t>(row.parent)] + "/" + row.name);
        by_path.emplace(paths.back(), row);
    }
    return by_path;
}

/// The row of a stage that covers a layer: its own, or one of several that run as one, "conv2 + pool".
const ProfileRow* row_of_layer(const std::map<std::string, ProfileRow>& rows, const std::string& stage,
                               const std::string& layer) {
    for (const auto& [path, row] : rows)
        if (path == stage + "/" + row.name &&
            (" + " + row.name + " + ").find(" + " + layer + " + ") != std::string::npos)
            return &row;
    return nullptr;
}

/// Children take no longer than their parent, and allocate no more.
void expect_nested(const Profile& profile) {
    const std::vector<ProfileRow> rows = profile.rows();
    std::vector<double> below(rows.size());
    std::vector<int64_t> bytes(rows.size());
    for (const ProfileRow& row : rows) {
        EXPECT_GE(row.cpu_self, 0) << row.name;
        if (row.parent < 0) continue;
        below[static_cast<size_t>(row.parent)] += row.cpu_total;
        bytes[static_cast<size_t>(row.parent)] += row.bytes;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_LE(below[i], rows[i].cpu_total * (1 + 1e-12)) << rows[i].name;
        EXPECT_LE(bytes[i], rows[i].bytes) << rows[i].name;
        EXPECT_NEAR(rows[i].cpu_self, rows[i].cpu_total - below[i], 1e-12) << rows[i].name;
    }
}

/// Every layer but the inputs.
std::vector<std::string> layers_of(const network::Network& network) {
    std::vector<std::string> names;
    for (const network::Layer& layer : network.layers)
        if (layer.kind != network::Kind::input) names.push_back(layer.name);
    return names;
}

TrainReport profile_toy(const std::string& folder, Profile& profile, int64_t steps, int64_t max_steps = 0,
                        int64_t epochs = 4) {
    ToyObjective objective;
    TrainOptions options;
    options.progress = ProgressMode::never;
    options.profile = &profile;
    options.profile_steps = steps;
    options.max_steps = max_steps;
    Recipe recipe = toy_recipe();
    recipe.run.epochs = epochs;
    RunFolder run = RunFolder::create(folder, to_toml(recipe));
    return train(recipe, objective, run, options);
}

TEST(LearnProfile, EveryLayerForwardAndBackward) {
    const TemporaryFolder folder(Where::memory);
    Profile profile;
    const TrainReport report = profile_toy(folder / "run", profile, 8);
    EXPECT_EQ(report.profiled, 8);
    EXPECT_EQ(report.steps, 13);  // after five that warm up
    EXPECT_FALSE(report.is_complete);
    const std::map<std::string, ProfileRow> rows = rows_by_path(profile);
    for (const char* stage : {"step", "step/wait for data", "step/forward", "step/backward", "step/clip",
                              "step/optimizer", "step/average"}) {
        ASSERT_TRUE(rows.contains(stage)) << stage;
        EXPECT_EQ(rows.at(stage).calls, 8) << stage;
        EXPECT_GT(rows.at(stage).cpu_total, 0) << stage;
    }
    for (const std::string& layer : layers_of(ToyObjective().network())) {
        const ProfileRow* const forward = row_of_layer(rows, "step/forward", layer);
        ASSERT_TRUE(forward) << layer;
        EXPECT_EQ(forward->calls, 8) << layer;
        EXPECT_GT(forward->bytes, 0) << layer;
        const ProfileRow* const backward = row_of_layer(rows, "step/backward", layer);
        ASSERT_TRUE(backward) << layer;
        EXPECT_GE(backward->calls, 8) << layer;  // autograd's nodes: one or more
        EXPECT_EQ(backward->calls % 8, 0) << layer;
    }
    EXPECT_GE(rows.at("step/backward/accumulate").calls, 8);
    EXPECT_TRUE(rows.contains("step/backward/other"));  // the loss, which the toy does not mark
    EXPECT_EQ(rows.at("evaluation").calls, 1);          // an epoch has ten steps
    EXPECT_EQ(rows.at("checkpoint").calls, 2);
    EXPECT_FALSE(rows.contains("evaluation/forward"));  // its own layers are not those of a step
    EXPECT_GT(rows.at("step/forward").peak_bytes, 0);
    expect_nested(profile);
}

TEST(LearnProfile, LayersOfEveryKind) {
    const std::vector<ops::Batch> batches = {ops::Batch::ragged({0, 9, 20}), ops::Batch::ragged({0, 7, 15})};
    for (const network::Network& network : test::networks_of_every_kind()) {
        SCOPED_TRACE(network.name);
        Module module(network, network::initial_weights(network, 3), torch::kCPU, torch::kFloat64);
        Profile profile;
        Profiler profiler(profile, torch::kCPU);
        profiler.set_kept(true);
        std::set<std::string> with_gradient;  // layers whose output is a node of the graph that no other made
        std::set<const void*> nodes;
        RunOptions options;
        options.is_training = true;
        options.profiler = &profiler;
        options.watch = [&](const network::Layer& layer, const torch::Tensor& output) {
            if (layer.kind != network::Kind::input && output.grad_fn() && nodes.insert(output.grad_fn().get()).second)
                with_gradient.insert(layer.name);
        };
        std::map<std::string, torch::Tensor> inputs = test::random_inputs(network, batches);
        for (auto& [name, tensor] : inputs) tensor.set_requires_grad(true);
        ProfileMark step(&profiler, "step");
        torch::Tensor sum;
        for (const auto& [name, tensor] : module.run(batches, inputs, options))
            if (tensor.requires_grad()) sum = sum.defined() ? sum + tensor.sum() : tensor.sum();
        {
            const ProfileMark mark(&profiler, "backward");
            sum.backward();
        }
        step.end();
        const std::map<std::string, ProfileRow> rows = rows_by_path(profile);
        for (const std::string& layer : layers_of(network)) {
            const ProfileRow* const forward = row_of_layer(rows, "step/forward", layer);
            ASSERT_TRUE(forward) << layer;
            EXPECT_EQ(forward->calls, 1) << layer;
        }
        EXPECT_GT(with_gradient.size(), 0u);
        for (const std::string& layer : with_gradient) EXPECT_TRUE(row_of_layer(rows, "step/backward", layer)) << layer;
        expect_nested(profile);
    }
}

TEST(LearnProfile, TimesAndMemoryGoToTheLayerThatTookThem) {
    network::Builder build("two");
    network::Tensor x = build.input("points", network::points_of(3));
    x = build.linear("small", x, 2, {});
    build.output("y", build.linear("large", x, 2048, {.activation = network::relu()}));
    const network::Network network = build.finish();
    Module module(network, network::initial_weights(network, 1));
    const ops::Batch batch = ops::Batch::dense(2, 4096);
    Profile profile;
    {
        Profiler profiler(profile, torch::kCPU);
        profiler.set_kept(true);
        for (int i = 0; i < 2; ++i) {
            const ProfileMark step(&profiler, "step");
            RunOptions options;
            options.is_training = true;
            options.profiler = &profiler;
            const torch::Tensor y = module.run(batch, {{"points", torch::ones({batch.rows(), 3})}}, options).at("y");
            torch::Tensor loss;
            {
                const ProfileMark mark(&profiler, "loss");
                loss = y.square().mean();
            }
            const ProfileMark mark(&profiler, "backward");
            loss.backward();
        }
    }
    const std::map<std::string, ProfileRow> rows = rows_by_path(profile);
    const int64_t large = 2 * batch.rows() * 2048 * 4;  // bytes of its output, in two steps
    EXPECT_GE(rows.at("step/forward/large").bytes, large);
    EXPECT_LT(rows.at("step/forward/small").bytes, large / 100);
    EXPECT_GE(rows.at("step/forward/large").peak_bytes, large / 2);
    EXPECT_LT(rows.at("step/forward/small").peak_bytes, large / 2);  // before there was any
    EXPECT_GE(rows.at("step/backward/large").bytes, large / 2);
    EXPECT_TRUE(rows.contains("step/backward/loss"));
    EXPECT_TRUE(rows.contains("step/backward/small"));
    expect_nested(profile);
    // Nothing is told once the profiler has gone.
    const int64_t bytes = profile.memory_bytes();
    module.run(batch, {{"points", torch::ones({batch.rows(), 3})}}).at("y").sum().backward();
    EXPECT_EQ(profile.memory_bytes(), bytes);
    EXPECT_EQ(rows_by_path(profile).at("step").calls, 2);
}

TEST(LearnProfile, MemoryDoesNotGrowWithTheSteps) {
    const TemporaryFolder folder(Where::memory);
    Profile few(500), many(500);
    profile_toy(folder / "few", few, 12);
    const char* wanted = std::getenv("STIPPLE_ITERATIONS");  // 10000 for the long version
    const int64_t steps = wanted ? std::atoi(wanted) : 35;
    profile_toy(folder / "many", many, steps, 0, steps / 10 + 1);
    EXPECT_EQ(few.spans().size(), 500u);
    EXPECT_EQ(many.spans().size(), 500u);
    EXPECT_GT(many.left_out(), few.left_out());
    EXPECT_EQ(rows_by_path(many).at("step").calls, steps);
    EXPECT_EQ(many.memory_bytes(), few.memory_bytes());
}

TEST(LearnProfile, ARunEndsInTheSameBitsAfterIt) {
    const TemporaryFolder folder(Where::memory);
    Profile profile, rest;
    const TrainReport first = profile_toy(folder / "profiled", profile, 6);
    EXPECT_FALSE(first.is_complete);
    ToyObjective objective, other;
    TrainOptions options;
    options.progress = ProgressMode::never;
    options.is_resumed = true;
    const Recipe recipe = toy_recipe();
    {
        RunFolder run = RunFolder::resume(folder / "profiled");
        EXPECT_TRUE(train(recipe, objective, run, options).is_complete);
    }
    options.is_resumed = false;
    RunFolder plain = RunFolder::create(folder / "plain", to_toml(recipe));
    train(recipe, other, plain, options);
    EXPECT_TRUE(test::read_file(folder / "profiled/weights.safetensors") ==
                test::read_file(folder / "plain/weights.safetensors"));
}

TEST(LearnProfile, FewerStepsThanAskedFor) {
    const TemporaryFolder folder(Where::memory);
    Profile all, some, none;
    TrainReport report = profile_toy(folder / "all", all, 1000);  // the run has 40
    EXPECT_TRUE(report.is_complete);
    EXPECT_EQ(report.profiled, 40);
    EXPECT_EQ(rows_by_path(all).at("evaluation").calls, 4);
    report = profile_toy(folder / "some", some, 10, 7);
    EXPECT_EQ(report.profiled, 2);
    EXPECT_EQ(rows_by_path(some).at("step").calls, 2);
    report = profile_toy(folder / "none", none, 10, 3);
    EXPECT_EQ(report.profiled, 0);
    EXPECT_TRUE(none.rows().empty());
}

TEST(LearnProfile, AMarkWithoutAProfilerDoesNothing) {
    const ProfileMark mark(nullptr, "nothing");
    Profile profile;
    Profiler profiler(profile, torch::kCPU);
    {
        const ProfileMark warm_up(&profiler, "step");  // not kept
        torch::ones({100}).set_requires_grad(true).sum().backward();
    }
    EXPECT_TRUE(profile.rows().empty());
}

TEST(LearnProfile, AnErrorLeavesNoMarkOpen) {
    Profile profile;
    Profiler profiler(profile, torch::kCPU);
    profiler.set_kept(true);
    try {
        const ProfileMark step(&profiler, "step");
        const ProfileMark forward(&profiler, "forward");
        throw std::runtime_error("broken");
    } catch (const std::runtime_error&) {
    }
    { const ProfileMark step(&profiler, "step"); }
    const std::map<std::string, ProfileRow> rows = rows_by_path(profile);
    EXPECT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows.at("step").calls, 2);
}

}  // namespace
}  // namespace stipple::learn
