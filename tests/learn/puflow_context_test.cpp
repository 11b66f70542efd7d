// Every context of PU-Flow against its formula, written with torch's operations on one cloud at a time; what it is at
// the start; and what permutations and gradients do to it.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/learn/module.h"
#include "stipple/models/puflow/context.h"
#include "stipple/models/puflow/features.h"
#include "tests/learn/gradients.h"
#include "tests/learn/learn.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using models::Context;
using network::Normalise;
using torch::Tensor;

constexpr int64_t kContextChannels = 16;

std::string name_of_context(Context context) {
    return models::kContextWords[static_cast<size_t>(context)];
}

/// One module: f [B, N, 16] -> y; skip-attention takes a condition g, too, level-attention three levels of f.
network::Network context_network(Context context, Normalise normalise = Normalise::row) {
    network::Builder build("context-" + name_of_context(context));
    const network::Tensor f = build.input("f", network::points_of(kContextChannels));
    const network::Tensor g = build.input("g", network::points_of(kContextChannels));
    if (context == Context::skip_attention) {
        build.output("y", models::puflow_parts::skip_attention(build, 0, g, f));
    } else if (context == Context::level_attention) {
        const network::Tensor narrow = build.slice("narrow", g, 0, 8);
        build.output("y", models::puflow_parts::level_attention(build, {f, narrow, g}));
    } else {
        build.output("y", models::puflow_parts::context_features(build, context, normalise, f));
    }
    return build.finish();
}

struct ContextRun {
    network::Network network;
    Module module;
    ops::Batch batch = ops::Batch::ragged({0, 7, 19});
    Tensor f = test::normal_tensor({19, kContextChannels}, 1).to(torch::kFloat64);
    Tensor g = test::normal_tensor({19, kContextChannels}, 2).to(torch::kFloat64);

    ContextRun(network::Network of, const network::Weights& weights)
        : network(std::move(of)), module(network, weights, torch::kCPU, torch::kFloat64) {}

    Tensor run() { return module.run(batch, {{"f", f}, {"g", g}}, {}).at("y"); }
    Tensor parameter(const std::string& name) { return module.parameters().at("context." + name).detach(); }
    Tensor linear(const std::string& name, const Tensor& x) {
        Tensor y = x.matmul(parameter(name + ".weight").t());
        if (module.parameters().contains("context." + name + ".bias")) y = y + parameter(name + ".bias");
        return y;
    }
};

/// Random weights, those that start at zero included.
network::Weights spread_weights(const network::Network& network) {
    network::Weights weights = test::random_weights(network, 6);
    uint64_t seed = 40;
    for (auto& [name, tensor] : weights.tensors) {
        const Tensor numbers = test::normal_tensor({static_cast<int64_t>(tensor.values.size())}, seed++);
        const bool is_start = name == "context.mu.value" || name == "context.scores.weight" ||
                              name == "context.out.weight" || name == "context.gate.bias" ||
                              name.starts_with("context.norm");
        for (size_t i = 0; i < tensor.values.size() && is_start; ++i)
            tensor.values[i] = 0.4f * numbers.data_ptr<float>()[i] + (name.starts_with("context.norm") ? 1.0f : 0.0f);
    }
    return weights;
}

/// exp of all numbers over their sum, row by row or all together; nothing of a library's softmax.
Tensor shares(const Tensor& logits, bool is_joint) {
    const Tensor e = torch::exp(logits);
    return is_joint ? e / e.sum() : e / e.sum(1, true);
}

/// The formula for one cloud: f and g [n, 16].
Tensor formula(ContextRun& of, Context context, Normalise normalise, const Tensor& f, const Tensor& g) {
    const int64_t n = f.size(0), c = f.size(1);
    const auto linear = [&](const char* name, const Tensor& x) { return of.linear(name, x); };
    const auto sigmoid = [](const Tensor& x) { return 1 / (1 + torch::exp(-x)); };
    switch (context) {
        case Context::global_max: {
            const Tensor most = std::get<0>(f.max(0)).unsqueeze(0).expand_as(f);
            return linear("2", torch::clamp_min(linear("0", torch::cat({f, most}, 1)), 0));
        }
        case Context::self_attention: {
            // W_ji = exp(y_j . x_i) over a sum; F' = mu W^T Z + F.
            Tensor w = linear("y", f).matmul(linear("x", f).t());
            w = normalise == Normalise::joint ? shares(w, true) : shares(w.t(), false).t();
            return of.parameter("mu.value") * w.t().matmul(linear("z", f)) + f;
        }
        case Context::shape_context: {
            const auto mlp = [&](const char* name) { return torch::clamp_min(linear(name, f), 0); };
            const Tensor a = shares(mlp("q").matmul(mlp("k").t()) / std::sqrt(c / 4.0), false).matmul(mlp("v"));
            const Tensor h = torch::clamp_min(linear("mlp", a), 0);
            return sigmoid(linear("gate", h)) * h;
        }
        case Context::cosine_gate: {
            std::vector<Tensor> sums;
            for (int64_t i = 0; i < n; ++i) {
                Tensor sum = torch::zeros({c}, torch::kFloat64);
                for (int64_t j = 0; j < n; ++j)
                    if (j != i) sum += torch::dot(f[i], f[j]) / (f[i].norm() * f[j].norm()) * f[j];
                sums.push_back(sum / static_cast<double>(n));
            }
            const Tensor mixed = torch::stack(sums), b = sigmoid(linear("gate", mixed) - 4);
            return b * mixed + (1 - b) * f;
        }
        case Context::intra_attention: {
            const Tensor a = shares(linear("m", f).matmul(linear("s", f).t()), false);
            return 0.1 * of.parameter("mu.weight") * a.matmul(linear("h", f)) + f;
        }
        case Context::group_shuffle: {
            std::vector<Tensor> groups;
            for (int64_t i = 0; i < 4; ++i) {
                const Tensor x = of.linear(fmt::format("groups.{}.x", i), f.narrow(1, 4 * i, 4));
                const Tensor elu = torch::where(x > 0, x, torch::exp(x) - 1);
                groups.push_back(shares(x.matmul(x.t()) / 2, false).matmul(elu));
            }
            // [n, groups, size] with the last two turned.
            const Tensor sum = f + torch::stack(groups, 1).transpose(1, 2).reshape({n, c});
            std::vector<Tensor> normal;
            for (int64_t i = 0; i < 4; ++i) {
                const Tensor part = sum.narrow(1, 4 * i, 4), mean = part.mean(1, true);
                const Tensor variance = torch::pow(part - mean, 2).mean(1, true);
                normal.push_back((part - mean) / torch::sqrt(variance + 1e-5) *
                                     of.parameter(fmt::format("norm.{}.weight", i)) +
                                 of.parameter(fmt::format("norm.{}.bias", i)));
            }
            return torch::cat(normal, 1);
        }
        case Context::channel_graph: {
            const Tensor s = linear("s", f), q = linear("phi", f).t().matmul(s) / static_cast<double>(n);
            const Tensor reasoned =
                torch::clamp_min(shares(q.matmul(q.t()), false).matmul(q).matmul(of.parameter("w.weight").t()), 0);
            return f + linear("out", s.matmul(reasoned.t()));
        }
        case Context::skip_attention: {
            const Tensor a = shares(of.linear("0.q", g).matmul(of.linear("0.k", f).t()), false);
            return torch::cat({g, a.matmul(f)}, 1);
        }
        case Context::level_attention: {
            const Tensor levels[] = {of.linear("levels.0", f), of.linear("levels.1", g.narrow(1, 0, 8)),
                                     of.linear("levels.2", g)};
            const Tensor w = shares(linear("scores", torch::cat({levels[0], levels[1], levels[2]}, 1)), false);
            return w.narrow(1, 0, 1) * levels[0] + w.narrow(1, 1, 1) * levels[1] + w.narrow(1, 2, 1) * levels[2];
        }
        case Context::none: break;
    }
    return f;
}

std::vector<Context> all_contexts() {
    std::vector<Context> all;
    for (size_t i = 0; i < std::size(models::kContextWords); ++i) all.push_back(static_cast<Context>(i));
    return all;
}

TEST(PuFlowContext, IsItsFormula) {
    const auto expect_formula = [](Context context, Normalise normalise) {
        const network::Network network = context_network(context, normalise);
        ContextRun of(network, spread_weights(network));
        const Tensor expected =
            torch::cat({formula(of, context, normalise, of.f.narrow(0, 0, 7), of.g.narrow(0, 0, 7)),
                        formula(of, context, normalise, of.f.narrow(0, 7, 12), of.g.narrow(0, 7, 12))});
        EXPECT_LE(test::relative_difference(of.run(), expected), 1e-6) << name_of_context(context);
        if (context == Context::none) return;
        EXPECT_GT(test::relative_difference(of.run().narrow(1, 0, kContextChannels), of.f), 1e-3)
            << name_of_context(context);
    };
    for (const Context context : all_contexts()) expect_formula(context, Normalise::row);
    expect_formula(Context::self_attention, Normalise::joint);
}

TEST(PuFlowContext, StartsAsPromised) {
    const auto start = [](Context context) {
        const network::Network network = context_network(context);
        ContextRun of(network, network::initial_weights(network, 3));
        return test::relative_difference(of.run(), of.f);
    };
    EXPECT_EQ(start(Context::self_attention), 0);
    EXPECT_EQ(start(Context::channel_graph), 0);
    EXPECT_LE(start(Context::cosine_gate), 0.05);      // sigmoid(-4) is 0.018
    EXPECT_LE(start(Context::intra_attention), 0.15);  // a tenth at most, of values no larger than f
    const network::Network network = context_network(Context::level_attention);
    ContextRun of(network, network::initial_weights(network, 3));
    const Tensor mean =
        (of.linear("levels.0", of.f) + of.linear("levels.1", of.g.narrow(1, 0, 8)) + of.linear("levels.2", of.g)) / 3;
    EXPECT_LE(test::relative_difference(of.run(), mean), 1e-9);
}

TEST(PuFlowContext, PermutationsOfPointsPermuteTheOutput) {
    for (const Context context : all_contexts()) {
        const network::Network network = context_network(context);
        ContextRun of(network, spread_weights(network));
        const Tensor order = torch::tensor({3, 0, 6, 1, 5, 2, 4, 18, 9, 7, 12, 8, 10, 16, 11, 17, 13, 15, 14});
        const Tensor before = of.run().index_select(0, order);
        of.f = of.f.index_select(0, order);
        of.g = of.g.index_select(0, order);
        EXPECT_LE(test::relative_difference(of.run(), before), 1e-9) << name_of_context(context);
    }
}

TEST(PuFlowContext, GradientsReachEveryParameter) {
    for (const Context context : all_contexts()) {
        const network::Network network = context_network(context);
        ContextRun of(network, spread_weights(network));
        const Tensor y = of.run();
        if (!y.requires_grad()) {
            EXPECT_EQ(context, Context::none);
            continue;
        }
        (y * torch::sin(torch::arange(y.numel(), torch::kFloat64)).reshape(y.sizes())).sum().backward();
        for (const auto& [name, parameter] : of.module.parameters()) {
            ASSERT_TRUE(parameter.grad().defined()) << name_of_context(context) << ": " << name;
            EXPECT_GT(parameter.grad().abs().max().item<double>(), 1e-12) << name_of_context(context) << ": " << name;
        }
    }
}

}  // namespace
}  // namespace stipple::learn
