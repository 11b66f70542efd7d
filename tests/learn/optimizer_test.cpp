// Optimisers against torch's own, schedules against their formulas.

#include "stipple/learn/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <torch/torch.h>

#include "stipple/learn/loop/run_state.h"
#include "stipple/learn/precision.h"
#include "stipple/learn/schedule.h"
#include "tests/support/expect_error.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// A loss with gradients of all sizes.
Tensor bowl(const std::map<std::string, Tensor>& p) {
    return (p.at("a") * p.at("a") * 3).sum() + torch::sin(p.at("b")).sum() * 0.1 + (p.at("a").sum() * p.at("b").mean());
}

std::map<std::string, Tensor> two_parameters() {
    return {{"a", torch::linspace(-1, 2, 12).reshape({3, 4}).set_requires_grad(true)},
            {"b", torch::linspace(0.5, -3, 5).set_requires_grad(true)}};
}

template <class Peer, class PeerOptions>
void expect_as_torch(const OptimizerOptions& options, const PeerOptions& of_peer) {
    std::map<std::string, Tensor> own = two_parameters(), others = two_parameters();
    Optimizer optimizer(options, own);
    Peer peer({others.at("a"), others.at("b")}, of_peer);
    for (int i = 0; i < 30; ++i) {
        optimizer.zero_gradients();
        bowl(own).backward();
        optimizer.step(0.01);
        peer.zero_grad();
        bowl(others).backward();
        peer.step();
    }
    for (const auto& [name, tensor] : own)
        EXPECT_LT((tensor - others.at(name)).abs().max().template item<double>(), 2e-6) << name;
}

TEST(LearnOptimizer, StepsAreThoseOfTorch) {
    OptimizerOptions options;
    options.weight_decay = 0.05;
    options.kind = OptimizerKind::adamw;
    expect_as_torch<torch::optim::AdamW>(options, torch::optim::AdamWOptions(0.01).weight_decay(0.05));
    options.kind = OptimizerKind::adam;
    expect_as_torch<torch::optim::Adam>(options, torch::optim::AdamOptions(0.01).weight_decay(0.05));
    options.kind = OptimizerKind::sgd;
    expect_as_torch<torch::optim::SGD>(options, torch::optim::SGDOptions(0.01).weight_decay(0.05).momentum(0.9));
}

TEST(LearnOptimizer, GoesOnFromItsState) {
    for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
        OptimizerOptions options;
        options.kind = kind;
        std::map<std::string, Tensor> parameters = two_parameters();
        Optimizer optimizer(options, parameters);
        const auto steps = [&](Optimizer& of, std::map<std::string, Tensor>& with, int n) {
            for (int i = 0; i < n; ++i) {
                of.zero_gradients();
                bowl(with).backward();
                of.step(0.01);
            }
        };
        steps(optimizer, parameters, 5);
        std::map<std::string, Tensor> copies, state;
        for (const auto& [name, tensor] : parameters)
            copies.emplace(name, tensor.detach().clone().set_requires_grad(true));
        for (const auto& [name, tensor] : optimizer.state()) state.emplace(name, tensor.clone());
        Optimizer second(options, copies);
        copy_tensors(state, "", second.state());
        second.set_steps(optimizer.steps());
        steps(optimizer, parameters, 5);
        steps(second, copies, 5);
        for (const auto& [name, tensor] : parameters) EXPECT_TRUE(torch::equal(tensor, copies.at(name))) << name;
        state.erase(state.begin());
        EXPECT_ERROR(copy_tensors(state, "", second.state()), bad_file, "missing");
    }
}

TEST(LearnOptimizer, GradientNormIsThatOfAll) {
    std::map<std::string, Tensor> parameters = two_parameters();
    const std::vector<Tensor> list = {parameters.at("a"), parameters.at("b")};
    bowl(parameters).backward();
    const double expected =
        std::sqrt(list[0].grad().pow(2).sum().item<double>() + list[1].grad().pow(2).sum().item<double>());
    EXPECT_NEAR(gradient_norm(list).item<double>(), expected, 1e-5 * expected);
    list[1].mutable_grad()[2] = NAN;
    EXPECT_FALSE(std::isfinite(gradient_norm(list).item<double>()));
}

TEST(LearnOptimizer, AStepTakesGradientsTimesANumber) {
    OptimizerOptions options;
    options.kind = OptimizerKind::sgd;
    std::map<std::string, Tensor> whole = two_parameters(), halved = two_parameters();
    Optimizer of_whole(options, whole), of_halved(options, halved);
    bowl(whole).backward();
    (2 * bowl(halved)).backward();
    of_whole.step(0.1);
    of_halved.step(0.1, 0.5);
    for (const char* name : {"a", "b"}) EXPECT_TRUE(torch::allclose(whole.at(name), halved.at(name), 1e-6)) << name;
}

TEST(LearnOptimizer, MastersKeepWhatShortNumbersLose) {
    OptimizerOptions options;
    options.kind = OptimizerKind::sgd;
    options.momentum = 0;
    for (const bool keeps_masters : {false, true}) {
        std::map<std::string, Tensor> parameters = {{"a", torch::ones({1}, torch::kBFloat16).requires_grad_()}};
        Optimizer optimizer(options, parameters, keeps_masters);
        for (int i = 0; i < 20; ++i) {  // each step is below half a unit of the last place, 2^-8
            parameters.at("a").mutable_grad() = torch::ones({1}, torch::kBFloat16);
            optimizer.step(1e-3);
        }
        EXPECT_EQ(parameters.at("a").item<float>() < 1, keeps_masters);
        EXPECT_EQ(optimizer.state().contains("master.a"), keeps_masters);
        if (keeps_masters) {
            EXPECT_NEAR(optimizer.masters().at("a").item<float>(), 0.98, 1e-5);
        }
    }
}

TEST(LearnOptimizer, AveragesOfShortNumbersAreLong) {
    const std::map<std::string, Tensor> values = {{"a", torch::zeros({1}, torch::kBFloat16)}};
    Average average(0.999, values);
    average.set_updates(1000000);
    torch::Tensor(values.at("a")).fill_(1);
    for (int i = 0; i < 3; ++i) average.update();
    EXPECT_NEAR(average.values().at("a").item<float>(), 1 - std::pow(0.999, 3), 1e-6);
}

TEST(LearnPrecision, TheLossScaleFallsAndRises) {
    LossScale scale;
    EXPECT_TRUE(scale.observe(false));
    EXPECT_EQ(scale.scale, LossScale::kFirst / 2);
    for (int64_t i = 0; i < LossScale::kGoodSteps; ++i) EXPECT_TRUE(scale.observe(true));
    EXPECT_EQ(scale.scale, LossScale::kFirst);
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(scale.observe(false));
    EXPECT_EQ(scale.scale, LossScale::kLeast);
    EXPECT_FALSE(scale.observe(false)) << "there is nothing left to blame";
    EXPECT_EQ(scale.scale, LossScale::kLeast);
}

TEST(LearnOptimizer, AverageFollowsItsFormula) {
    const Tensor x = torch::zeros({2}, torch::kFloat64);
    Average average(0.9, {{"x", x}});
    double expected = 0;
    for (int n = 0; n < 40; ++n) {
        x.fill_(n + 1);
        average.update();
        const double decay = std::min(0.9, (1.0 + n) / (10.0 + n));
        expected = decay * expected + (1 - decay) * (n + 1);
        ASSERT_NEAR(average.values().at("x")[1].item<double>(), expected, 1e-12) << n;
    }
}

TEST(LearnSchedule, RatesAreTheirFormulas) {
    ScheduleOptions cosine{.kind = ScheduleKind::cosine, .rate = 2, .warmup = 0.5, .floor = 0.1};
    EXPECT_NEAR(rate_at(cosine, 500, 100, 10), 2 * (0.1 + 0.9 * 0.5), 1e-12);
    EXPECT_NEAR(rate_at(cosine, 999, 100, 10), 2 * (0.1 + 0.45 * (1 + std::cos(std::numbers::pi * 0.999))), 1e-12);
    EXPECT_NEAR(rate_at(cosine, 0, 100, 10), 2.0 / 50, 1e-12);
    EXPECT_LT(rate_at(cosine, 48, 100, 10), rate_at(cosine, 49, 100, 10));
    ScheduleOptions step{.kind = ScheduleKind::step, .rate = 1, .floor = 0.2, .factor = 0.5, .every = 3};
    EXPECT_EQ(rate_at(step, 29, 10, 100), 1);
    EXPECT_EQ(rate_at(step, 30, 10, 100), 0.5);
    EXPECT_EQ(rate_at(step, 60, 10, 100), 0.25);
    EXPECT_EQ(rate_at(step, 900, 10, 100), 0.2);
    ScheduleOptions plateau{.kind = ScheduleKind::plateau, .rate = 1, .factor = 0.5, .every = 2};
    PlateauState state;
    for (const double score : {0.5, 0.6, 0.6, 0.55, 0.61, 0.1, 0.1, 0.1, 0.1}) observe(plateau, state, score);
    EXPECT_EQ(state.reductions, 3);  // once after 0.55, twice after 0.61
    EXPECT_EQ(rate_at(plateau, 0, 10, 10, state), 0.125);
}

TEST(LearnSchedule, NormMomentumFalls) {
    ScheduleOptions options{.every = 20};
    EXPECT_LT(norm_momentum_at(options, 0), 0);
    options.norm_momentum = 0.1;
    options.norm_momentum_factor = 0.5;
    EXPECT_DOUBLE_EQ(norm_momentum_at(options, 19), 0.1);
    EXPECT_DOUBLE_EQ(norm_momentum_at(options, 20), 0.05);
    EXPECT_DOUBLE_EQ(norm_momentum_at(options, 400), 0.01);
    ScheduleOptions negative;
    negative.rate = -1;
    EXPECT_ERROR(check_fields(schedule_fields(), &negative), bad_argument, "rate must be above 0, got -1");
}

}  // namespace
}  // namespace stipple::learn
