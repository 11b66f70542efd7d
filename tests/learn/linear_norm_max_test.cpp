// A linear layer, batch norm and the maximum over points as one function, against the three one by one.

#include "stipple/learn/functions/linear_norm_max.h"

#include <gtest/gtest.h>

#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/evaluate/fused.h"
#include "stipple/models/pointnet.h"
#include "tests/learn/learn.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

struct FusedCase {
    ops::Batch batch;
    int64_t k, channels;
    bool uses_batch_statistics, has_relu, has_bias;
};

/// Inputs that require gradients, about a third of the gammas negative.
LinearNorm random_layer(const FusedCase& of) {
    const auto numbers = [](std::vector<int64_t> shape) { return torch::randn(shape, torch::kFloat64); };
    LinearNorm layer;
    layer.weight = numbers({of.channels, of.k}).requires_grad_();
    if (of.has_bias) layer.bias = numbers({of.channels}).requires_grad_();
    layer.gamma = (numbers({of.channels}) + 0.4).requires_grad_();
    layer.beta = numbers({of.channels}).requires_grad_();
    layer.running_mean = numbers({of.channels});
    layer.running_var = numbers({of.channels}).square() + 0.1;
    layer.eps = 1e-3;
    layer.momentum = 0.3;
    layer.uses_batch_statistics = of.uses_batch_statistics;
    layer.has_relu = of.has_relu;
    return layer;
}

Tensor one_by_one(const Tensor& rows, const ops::Batch& batch, const LinearNorm& layer) {
    Tensor y =
        torch::batch_norm(torch::linear(rows, layer.weight, layer.bias), layer.gamma, layer.beta, layer.running_mean,
                          layer.running_var, layer.uses_batch_statistics, layer.momentum, layer.eps, false);
    if (layer.has_relu) y = torch::relu(y);
    std::vector<Tensor> largest;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        largest.push_back(std::get<0>(y.slice(0, batch.begin(cloud), batch.end(cloud)).max(0)));
    return torch::stack(largest);
}

double largest_difference(const Tensor& a, const Tensor& b) {
    return (a - b).abs().max().item<double>() / std::max(1.0, b.abs().max().item<double>());
}

TEST(LinearNormMax, IsTheThreeLayersAndTheirGradients) {
    const FusedCase cases[] = {{ops::Batch::dense(3, 20), 4, 9, true, false, true},
                               {ops::Batch::dense(3, 20), 4, 9, true, true, true},
                               {ops::Batch::ragged({0, 5, 6, 40}), 7, 300, true, true, false},
                               {ops::Batch::ragged({0, 5, 6, 40}), 7, 300, false, true, true},
                               {ops::Batch::dense(2, 11), 16, 33, false, false, false},
                               {ops::Batch::dense(1, 2), 1, 2, true, false, true}};
    torch::manual_seed(3);
    for (const FusedCase& of : cases) {
        Tensor rows = (torch::randn({of.batch.rows(), of.k}, torch::kFloat64) + 0.7).requires_grad_();
        LinearNorm fused = random_layer(of), plain = fused;
        plain.running_mean = fused.running_mean.clone(), plain.running_var = fused.running_var.clone();
        const Tensor weights = torch::randn({of.batch.clouds(), of.channels}, torch::kFloat64);
        std::vector<Tensor> inputs = {rows, fused.weight, fused.gamma, fused.beta};
        if (of.has_bias) inputs.push_back(fused.bias);
        const Tensor y = linear_norm_max({rows, of.batch}, fused), expected = one_by_one(rows, of.batch, plain);
        EXPECT_LE(largest_difference(y, expected), 1e-12);
        EXPECT_LE(largest_difference(fused.running_mean, plain.running_mean), 1e-12);
        EXPECT_LE(largest_difference(fused.running_var, plain.running_var), 1e-12);
        const std::vector<Tensor> found = torch::autograd::grad({(y * weights).sum()}, inputs),
                                  want = torch::autograd::grad({(expected * weights).sum()}, inputs);
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (of.batch.rows() == 2 && i < 2) continue;  // of two rows batch norm makes -1 and 1: all slopes vanish
            EXPECT_LE(largest_difference(found[i], want[i]), 1e-10) << "argument " << i << " of " << of.channels;
        }
    }
}

TEST(LinearNormMax, InFloatTooAndOfShortNumbers) {
    torch::manual_seed(6);
    const FusedCase of = {ops::Batch::ragged({0, 90, 150, 400}), 24, 96, true, true, true};
    const Tensor rows = torch::randn({of.batch.rows(), of.k}, torch::kFloat64);
    const LinearNorm exact = random_layer(of);
    for (const auto& [type, tolerance] : {std::pair(torch::kFloat32, 2e-5), std::pair(torch::kBFloat16, 5e-2)}) {
        LinearNorm layer = exact;
        for (Tensor* tensor :
             {&layer.weight, &layer.bias, &layer.gamma, &layer.beta, &layer.running_mean, &layer.running_var})
            *tensor = tensor->detach().to(torch::kFloat32);
        layer.weight = layer.weight.to(type).requires_grad_();
        Tensor input = rows.to(type).requires_grad_();
        // The numbers that they are rounded to, exactly.
        LinearNorm rounded = exact;
        rounded.weight = layer.weight.detach().to(torch::kFloat64).requires_grad_();
        Tensor long_input = input.detach().to(torch::kFloat64).requires_grad_();
        const Tensor y = linear_norm_max({input, of.batch}, layer),
                     expected = one_by_one(long_input, of.batch, rounded);
        EXPECT_EQ(y.scalar_type(), torch::kFloat32);
        EXPECT_LE(largest_difference(y, expected), 2e-5);
        const std::vector<Tensor> found = torch::autograd::grad({y.square().sum()}, {input, layer.weight}),
                                  want = torch::autograd::grad({expected.square().sum()}, {long_input, rounded.weight});
        for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(found[i].scalar_type(), type);
            EXPECT_LE(largest_difference(found[i], want[i]), tolerance) << i;
        }
    }
}

TEST(LinearNormMax, ManyCloudsAreDoneInPieces) {
    torch::manual_seed(4);
    const FusedCase of = {ops::Batch::dense(40, 300), 8, 400, true, true, true};
    Tensor rows = torch::randn({of.batch.rows(), of.k}, torch::kFloat64).requires_grad_();
    const LinearNorm layer = random_layer(of);
    const Tensor y = linear_norm_max({rows, of.batch}, layer), expected = one_by_one(rows, of.batch, layer);
    EXPECT_LE(largest_difference(y, expected), 1e-12);
    const std::vector<Tensor> inputs = {rows, layer.weight};
    const std::vector<Tensor> found = torch::autograd::grad({y.square().sum()}, inputs),
                              want = torch::autograd::grad({expected.square().sum()}, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_LE(largest_difference(found[i], want[i]), 1e-10) << i;
}

TEST(LinearNormMax, OnlyTheInputMayWantAGradient) {  // a network that another one is trained through
    torch::manual_seed(5);
    const FusedCase of = {ops::Batch::dense(2, 12), 5, 20, false, true, true};
    LinearNorm layer = random_layer(of);
    for (Tensor* tensor : {&layer.weight, &layer.bias, &layer.gamma, &layer.beta}) *tensor = tensor->detach();
    Tensor rows = torch::randn({24, 5}, torch::kFloat64).requires_grad_();
    linear_norm_max({rows, of.batch}, layer).sum().backward();
    const Tensor found = rows.grad().clone();
    rows.mutable_grad().reset();
    one_by_one(rows, of.batch, layer).sum().backward();
    EXPECT_LE(largest_difference(found, rows.grad()), 1e-12);
    EXPECT_FALSE(layer.weight.grad().defined());
}

TEST(LinearNormMax, OfEqualRowsTheFirstHasTheGradient) {
    LinearNorm layer = random_layer({ops::Batch::dense(1, 3), 2, 4, false, false, false});
    Tensor rows = torch::ones({3, 2}, torch::kFloat64).requires_grad_();
    linear_norm_max({rows, ops::Batch::dense(1, 3)}, layer).sum().backward();
    EXPECT_NE(rows.grad()[0].abs().sum().item<double>(), 0);
    EXPECT_EQ(rows.grad().slice(0, 1).abs().sum().item<double>(), 0);
}

TEST(LinearNormMax, NanIsSeen) {
    for (const bool is_training : {false, true}) {
        const LinearNorm layer = random_layer({ops::Batch::dense(2, 4), 2, 6, is_training, true, true});
        Tensor rows = torch::randn({8, 2}, torch::kFloat64);
        rows[5][1] = NAN;
        const Tensor y = linear_norm_max({rows, ops::Batch::dense(2, 4)}, layer);
        EXPECT_TRUE(y[1].isnan().all().item<bool>());
        EXPECT_EQ(y[0].isnan().any().item<bool>(), is_training);
    }
}

TEST(FusedLayers, AreTheWidestOnesOfPointNet) {
    const network::Network both = models::pointnet_classifier({});
    std::vector<std::string> names;
    const std::vector<int64_t> fused = fused_layers(both);
    for (size_t i = 0; i < fused.size(); ++i)
        if (fused[i] >= 0) names.push_back(both.layers[static_cast<size_t>(fused[i])].name);
    EXPECT_EQ(names, (std::vector<std::string>{"input_transform.conv3", "feature_transform.conv3", "conv3"}));
}

TEST(FusedLayers, AModuleGivesTheSameWithAndWithout) {
    for (const models::PointNetVariant variant : {models::PointNetVariant::torch, models::PointNetVariant::tf}) {
        const network::Network network = models::pointnet_classifier({.variant = variant, .classes = 7});
        const network::Weights weights = test::random_weights(network, 3);
        const ops::Batch batch = ops::Batch::ragged({0, 40, 72, 110});
        for (const bool is_training : {true, false}) {
            std::map<std::string, Tensor> results[2];
            for (const bool fuses : {false, true}) {
                Module module(network, weights, torch::kCPU, torch::kFloat64);
                const std::map<std::string, Tensor> outputs = module.run(batch, test::random_inputs(network, {batch}),
                                                                         {.is_training = is_training, .fuses = fuses});
                Tensor sum = torch::zeros({}, torch::kFloat64);
                for (const auto& [name, output] : outputs) {
                    results[fuses]["output " + name] = output.detach();
                    sum = sum +
                          (output * torch::sin(torch::arange(output.numel(), torch::kFloat64)).view_as(output)).sum();
                }
                sum.backward();
                for (const auto& [name, tensor] : module.parameters())
                    results[fuses][name] = tensor.grad().defined() ? tensor.grad() : tensor.detach();
            }
            ASSERT_EQ(results[0].size(), results[1].size());
            for (const auto& [name, tensor] : results[0])
                EXPECT_LE(largest_difference(results[1].at(name), tensor), 1e-9) << name << is_training;
        }
    }
}

}  // namespace
}  // namespace stipple::learn
