// What ranks compute together is what one process computes with all of the batch.

#include "stipple/learn/distributed/sync_norm.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "stipple/learn/distributed/exchange.h"
#include "stipple/learn/functions/linear_norm_max.h"
#include "stipple/learn/module.h"
#include "stipple/models/pointnet.h"
#include "stipple/network/builder.h"
#include "tests/learn/learn.h"
#include "tests/learn/thread_group.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using test::run_ranks;
using torch::Tensor;

double difference_of(const Tensor& a, const Tensor& b) {
    return (a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max().item<double>() /
           std::max(1.0, b.abs().max().item<double>());
}

/// Copies that require gradients.
std::vector<Tensor> leaves(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> copies;
    for (const Tensor& tensor : tensors) copies.push_back(tensor.detach().clone().requires_grad_());
    return copies;
}

TEST(SyncNorm, RanksTogetherAreOneProcess) {
    torch::manual_seed(1);
    for (const auto& [type, tolerance] :
         {std::pair(torch::kFloat64, 1e-10), std::pair(torch::kFloat32, 2e-6), std::pair(torch::kBFloat16, 2e-2)}) {
        for (const double offset : {0.0, 100.0}) {
            const std::vector<int64_t> begins = {0, 7, 8, 31};  // one rank has a single row
            const torch::Dtype of_norm = type == torch::kBFloat16 ? torch::kFloat32 : type;
            const Tensor rows = (torch::randn({31, 6}, torch::kFloat64) + offset).to(type);
            const Tensor gamma = torch::randn({6}, of_norm), beta = torch::randn({6}, of_norm);
            const Tensor dL_dy = torch::randn({31, 6}, torch::kFloat64);
            const auto statistics = [&] {
                return std::vector<Tensor>{torch::full({6}, 0.5, of_norm), torch::full({6}, 2.0, of_norm)};
            };
            // In float64 of the same numbers.
            std::vector<Tensor> one =
                leaves({rows.to(torch::kFloat64), gamma.to(torch::kFloat64), beta.to(torch::kFloat64)});
            std::vector<Tensor> of_one = {torch::full({6}, 0.5, torch::kFloat64),
                                          torch::full({6}, 2.0, torch::kFloat64)};
            const Tensor expected =
                torch::batch_norm(one[0], one[1], one[2], of_one[0], of_one[1], true, 0.3, 1e-3, false);
            (expected * dL_dy).sum().backward();

            std::vector<Tensor> y(3), dL_drows(3);
            Tensor dL_dgamma = torch::zeros({6}, torch::kFloat64), dL_dbeta = dL_dgamma.clone();
            std::vector<std::vector<Tensor>> running(3);
            std::vector<std::vector<Tensor>> inputs(3);
            run_ranks(3, [&](ProcessGroup& group) {
                const auto rank = static_cast<size_t>(group.rank());
                inputs[rank] = leaves({rows.slice(0, begins[rank], begins[rank + 1]), gamma, beta});
                running[rank] = statistics();
                y[rank] = sync_batch_norm(
                    inputs[rank][0], {inputs[rank][1], inputs[rank][2], running[rank][0], running[rank][1], 1e-3, 0.3},
                    group);
                (y[rank].to(torch::kFloat64) * dL_dy.slice(0, begins[rank], begins[rank + 1])).sum().backward();
            });
            for (size_t rank = 0; rank < 3; ++rank) {
                dL_drows[rank] = inputs[rank][0].grad();
                dL_dgamma += inputs[rank][1].grad();
                dL_dbeta += inputs[rank][2].grad();
                EXPECT_LE(difference_of(running[rank][0], of_one[0]), tolerance);
                EXPECT_LE(difference_of(running[rank][1], of_one[1]), tolerance);
                EXPECT_EQ(y[rank].scalar_type(), type);
                EXPECT_EQ(dL_drows[rank].scalar_type(), type);
            }
            // float32 has three digits less of a number near 100.
            const double wider = offset > 0 && type == torch::kFloat32 ? 100 * tolerance : tolerance;
            EXPECT_LE(difference_of(torch::cat(y), expected), wider) << type << offset;
            EXPECT_LE(difference_of(torch::cat(dL_drows), one[0].grad()), wider) << type << offset;
            EXPECT_LE(difference_of(dL_dgamma, one[1].grad()), wider) << type << offset;
            EXPECT_LE(difference_of(dL_dbeta, one[2].grad()), wider) << type << offset;
        }
    }
}

TEST(SyncNorm, TheFusedLayerToo) {
    torch::manual_seed(2);
    const std::vector<int64_t> clouds = {0, 5, 6, 40, 52};  // offsets; ranks have two clouds each
    const ops::Batch all = ops::Batch::ragged(std::vector<int64_t>(clouds));
    const auto numbers = [](std::vector<int64_t> shape) { return torch::randn(shape, torch::kFloat64); };
    const Tensor rows = numbers({52, 7}) + 0.7, weight = numbers({33, 7}), bias = numbers({33}),
                 gamma = numbers({33}) + 0.4, beta = numbers({33}), dL_dy = numbers({4, 33});
    for (const bool has_relu : {false, true}) {
        const auto layer_of = [&](const std::vector<Tensor>& inputs, ProcessGroup* group) {
            LinearNorm layer;
            layer.weight = inputs[1], layer.gamma = inputs[2], layer.beta = inputs[3], layer.bias = inputs[4];
            layer.running_mean = torch::zeros({33}, torch::kFloat64);
            layer.running_var = torch::ones({33}, torch::kFloat64);
            layer.uses_batch_statistics = true;
            layer.has_relu = has_relu;
            layer.group = group;
            return layer;
        };
        std::vector<Tensor> one = leaves({rows, weight, gamma, beta, bias});
        const LinearNorm of_one = layer_of(one, nullptr);
        const Tensor expected = linear_norm_max({one[0], all}, of_one);
        (expected * dL_dy).sum().backward();

        std::vector<std::vector<Tensor>> inputs(2);
        std::vector<Tensor> y(2);
        std::vector<LinearNorm> layers(2);
        run_ranks(2, [&](ProcessGroup& group) {
            const auto rank = static_cast<size_t>(group.rank());
            const int64_t begin = clouds[2 * rank], end = clouds[2 * rank + 2];
            const ops::Batch own = ops::Batch::ragged({0, clouds[2 * rank + 1] - begin, end - begin});
            inputs[rank] = leaves({rows.slice(0, begin, end), weight, gamma, beta, bias});
            layers[rank] = layer_of(inputs[rank], &group);
            y[rank] = linear_norm_max({inputs[rank][0], own}, layers[rank]);
            (y[rank] * dL_dy.slice(0, 2 * group.rank(), 2 * group.rank() + 2)).sum().backward();
        });
        EXPECT_LE(difference_of(torch::cat(y), expected), 1e-10);
        EXPECT_LE(difference_of(torch::cat({inputs[0][0].grad(), inputs[1][0].grad()}), one[0].grad()), 1e-10);
        for (size_t i = 1; i < 5; ++i)
            EXPECT_LE(difference_of(inputs[0][i].grad() + inputs[1][i].grad(), one[i].grad()), 1e-10) << i;
        for (const LinearNorm& layer : layers) {
            EXPECT_LE(difference_of(layer.running_mean, of_one.running_mean), 1e-10);
            EXPECT_LE(difference_of(layer.running_var, of_one.running_var), 1e-10);
        }
    }
}

/// The rows of a rank: of each view's clouds its share.
Tensor share_of(const Tensor& rows, int64_t views, int64_t rank, int64_t ranks) {
    std::vector<Tensor> parts;
    const int64_t of_view = rows.size(0) / views, own = of_view / ranks;
    for (int64_t view = 0; view < views; ++view) parts.push_back(rows.narrow(0, view * of_view + rank * own, own));
    return torch::cat(parts);
}

void expect_ranks_are_one(const network::Network& network, int64_t views, bool fuses) {
    constexpr int64_t kClouds = 8, kNormPoints = 20, kRanks = 2;
    const network::Weights weights = test::random_weights(network, 5);
    const ops::Batch all = ops::Batch::dense(kClouds, kNormPoints),
                     own = ops::Batch::dense(kClouds / kRanks, kNormPoints);
    const std::map<std::string, Tensor> inputs = test::random_inputs(network, {all});
    RunOptions how;
    how.is_training = true;
    how.seed = 9, how.step = 4;
    how.fuses = fuses;
    how.views = views;
    const auto loss_of = [&](const std::map<std::string, Tensor>& outputs, ProcessGroup* group) {
        Tensor sum = torch::zeros({}, torch::kFloat64);
        for (const auto& [name, output] : outputs) {
            const int64_t rows = output.size(0) * (group ? kRanks : 1);
            Tensor factors = torch::sin(torch::arange(rows * output.size(1), torch::kFloat64)).view({rows, -1});
            if (group) factors = share_of(factors, views, group->rank(), kRanks);
            sum = sum + (output * factors).sum();
        }
        return sum;
    };
    Module one(network, weights, torch::kCPU, torch::kFloat64);
    const Tensor expected = loss_of(one.run(all, inputs, how), nullptr);
    expected.backward();

    std::vector<double> losses(kRanks);
    std::vector<std::unique_ptr<Module>> modules(kRanks);
    run_ranks(kRanks, [&](ProcessGroup& group) {
        const auto rank = static_cast<size_t>(group.rank());
        modules[rank] = std::make_unique<Module>(network, weights, torch::kCPU, torch::kFloat64);
        std::map<std::string, Tensor> shares;
        for (const auto& [name, tensor] : inputs) shares[name] = share_of(tensor, views, group.rank(), kRanks);
        RunOptions with_group = how;
        with_group.group = &group;
        const Tensor loss = loss_of(modules[rank]->run(own, shares, with_group), &group);
        losses[rank] = loss.item<double>();
        loss.backward();
        sum_gradients(group, modules[rank]->trained());
    });
    EXPECT_NEAR(losses[0] + losses[1], expected.item<double>(), 1e-9);
    for (const auto& [name, tensor] : one.parameters())
        for (const auto& module : modules) {
            const Tensor& found = module->parameters().at(name);
            if (tensor.grad().defined())
                EXPECT_LE(difference_of(found.grad(), tensor.grad()), 1e-9) << name;
            else
                EXPECT_LE(difference_of(found.detach(), tensor.detach()), 1e-10) << name;
        }
}

TEST(SyncNorm, ANetworkWithDropoutAndFusedLayers) {
    const network::Network classifier = models::pointnet_classifier({.classes = 5});
    for (const int64_t views : {1, 2})
        for (const bool fuses : {false, true}) expect_ranks_are_one(classifier, views, fuses);
    network::Builder build("points-with-dropout");  // dropout of points, too
    network::Tensor x = build.input("points", network::points_of(3));
    x = build.linear("conv1", x, 16, {.norm = true, .activation = network::relu()});
    x = build.dropout("dropout", x, 0.4f);
    x = build.linear("conv2", x, 40, {.norm = true, .activation = network::relu()});
    build.output("logits", build.linear("fc", build.max_points("pool", x), 4));
    expect_ranks_are_one(build.finish(), 2, true);
}

}  // namespace
}  // namespace stipple::learn
