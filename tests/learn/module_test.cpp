// A network under autograd: the numbers of the reference, the slopes of finite differences, and what only training
// does.

#include "stipple/learn/module.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"
#include "stipple/network/builder.h"
#include "tests/learn/learn.h"
#include "tests/support/margin.h"
#include "tests/support/reference_classifier.h"
#include "tests/support/reference_random.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using network::Network;
using network::Weights;

/// One for each point set of the caller: dense, ragged, and ragged with sets of different sizes.
std::vector<std::vector<ops::Batch>> batches_to_try() {
    return {{ops::Batch::dense(3, 8), ops::Batch::dense(3, 5)},
            {ops::Batch::ragged({0, 5, 14}), ops::Batch::ragged({0, 6, 9})},
            {ops::Batch::dense(1, 11), ops::Batch::dense(1, 4)}};
}

TEST(LearnModule, EveryKindHasTheNumbersOfTheReference) {
    std::set<network::Kind> seen;
    for (const Network& network : test::networks_of_every_kind()) {
        for (const network::Layer& layer : network.layers) seen.insert(layer.kind);
        for (const std::vector<ops::Batch>& batches : batches_to_try())
            EXPECT_LE(
                test::difference_from_reference(network, test::random_weights(network, 3), batches, torch::kFloat64),
                1e-12)
                << network.name;
    }
    for (int kind = 0; kind <= static_cast<int>(network::Kind::gaussian_log_density); ++kind)
        EXPECT_TRUE(seen.contains(static_cast<network::Kind>(kind))) << name_of(static_cast<network::Kind>(kind));
}

TEST(LearnModule, EveryModelHasTheNumbersOfTheReference) {
    for (const models::ModelEntry& entry : models::model_table()) {
        const Network network = models::build_model(entry.name, {});
        const std::vector<ops::Batch> batch = {ops::Batch::ragged({0, 40, 104}), ops::Batch::ragged({0, 70, 103})};
        const bool is_flow = entry.name == "puflow" || entry.name == "flow-upsampler";
        const Weights random = test::random_weights(network, 4);
        EXPECT_LE(test::difference_from_reference(network, random, batch, torch::kFloat64), 1e-10) << entry.name;
        EXPECT_LE(
            test::difference_from_reference(network, test::trained_like_weights(network, 5), batch, torch::kFloat32),
            is_flow ? 1e-4 : 1e-5)
            << entry.name;
    }
}

TEST(LearnModule, RandomNetworksHaveTheNumbersOfTheReference) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
        const Network network = test::random_network(seed, 30);
        EXPECT_LE(test::difference_from_reference(network, test::random_weights(network, seed),
                                                  {ops::Batch::ragged({0, 9, 20})}, torch::kFloat64),
                  1e-9)
            << seed;
    }
}

/// The sum of all outputs, each number with a weight of its own.
torch::Tensor weighted_sum(Module& module, const std::vector<ops::Batch>& batches,
                           const std::map<std::string, torch::Tensor>& inputs, const RunOptions& options) {
    torch::Tensor sum = torch::zeros({}, torch::kFloat64);
    for (const auto& [name, output] : module.run(batches, inputs, options)) {
        const torch::Tensor weights = torch::sin(torch::arange(output.numel(), torch::kFloat64) * 1.7 + 0.3);
        sum = sum + (output.reshape({-1}) * weights).sum();
    }
    return sum;
}

/// Central differences of f by single numbers of `tensor` against its gradient: the largest error over the largest
/// slope.
double gradient_error(const torch::Tensor& tensor, const torch::Tensor& gradient, const std::function<double()>& f) {
    constexpr double kStep = 1e-5;
    double worst = 0, largest = 1e-3;
    double* values = tensor.data_ptr<double>();
    const torch::Tensor flat = gradient.contiguous();
    for (int64_t i = 0; i < tensor.numel(); i += std::max<int64_t>(1, tensor.numel() / 40)) {
        const double kept = values[i];
        values[i] = kept + kStep;
        const double above = f();
        values[i] = kept - kStep;
        const double below = f();
        values[i] = kept;
        const double slope = (above - below) / (2 * kStep);
        largest = std::max(largest, std::abs(slope));
        worst = std::max(worst, std::abs(slope - flat.data_ptr<double>()[i]));
    }
    return worst / largest;
}

TEST(LearnModule, GradientsOfEveryKindAreFiniteDifferences) {
    for (const Network& network : test::networks_of_every_kind())
        for (const std::vector<ops::Batch>& batches : batches_to_try())
            for (const bool is_training : {false, true}) {
                SCOPED_TRACE(fmt::format("{}, training {}", network.name, is_training));
                const RunOptions options{.is_training = is_training, .norm_momentum = 0, .seed = 7, .step = 3};
                Module module(network, test::random_weights(network, 3), torch::kCPU, torch::kFloat64);
                std::map<std::string, torch::Tensor> inputs = test::random_inputs(network, batches);
                for (auto& [name, tensor] : inputs) tensor.set_requires_grad(true);
                weighted_sum(module, batches, inputs, options).backward();
                const std::function<double()> f = [&] {
                    const torch::NoGradGuard no_gradients;
                    return weighted_sum(module, batches, inputs, options).item<double>();
                };
                const torch::NoGradGuard no_gradients;
                int checked = 0;
                for (const auto& [name, tensor] : inputs) {
                    if (!tensor.grad().defined()) continue;  // nothing depends on it
                    ++checked;
                    EXPECT_LE(gradient_error(tensor, tensor.grad(), f), 1e-5) << name;
                }
                EXPECT_EQ(checked, static_cast<int>(inputs.size()));
                for (const auto& [name, tensor] : module.parameters()) {
                    EXPECT_EQ(tensor.grad().defined(), tensor.requires_grad()) << name;
                    if (tensor.requires_grad()) {
                        EXPECT_LE(gradient_error(tensor, tensor.grad(), f), 1e-5) << name;
                    }
                }
            }
}

Network one_layer(const network::LinearOptions& options) {
    network::Builder build("one-layer");
    const network::Tensor x = build.input("points", network::points_of(3));
    build.output("y", build.linear("dense", x, 2, options));
    return build.finish();
}

TEST(LearnModule, ShortProductsAreNearLongOnes) {
    for (const models::ModelEntry& entry : models::model_table()) {
        const Network network = models::build_model(entry.name, {});
        if (!std::any_of(network.outputs.begin(), network.outputs.end(),
                         [](const network::Output& output) { return output.name == "logits"; }))
            continue;  // a flow magnifies what its layers lose
        const Weights weights = test::trained_like_weights(network, 5);
        const std::vector<ops::Batch> batch = {ops::Batch::dense(64, 24)};
        std::map<std::string, torch::Tensor> inputs;
        for (const auto& [name, tensor] : test::random_inputs(network, batch))
            inputs[name] = tensor.to(torch::kFloat32);
        for (const bool is_training : {false, true}) {
            std::map<std::string, torch::Tensor> outputs[2];
            std::map<std::string, torch::Tensor> gradients[2];
            for (const bool is_short : {false, true}) {
                Module module(network, weights);
                RunOptions how = {.is_training = is_training, .seed = 3};
                if (is_short) how.products = torch::kBFloat16;
                outputs[is_short] = module.run(batch, inputs, how);
                outputs[is_short].at("logits").square().mean().backward();
                for (const auto& [name, tensor] : module.parameters()) gradients[is_short][name] = tensor.grad();
            }
            for (const auto& [name, tensor] : outputs[1]) {
                EXPECT_EQ(tensor.scalar_type(), torch::kFloat32) << name;
                const torch::Tensor want = outputs[0].at(name);
                EXPECT_LE((tensor - want).norm().item<double>(), 0.1 * want.norm().item<double>())
                    << entry.name << " " << name << (is_training ? ", training" : "");
                EXPECT_GT((tensor - want).abs().max().item<double>(), 0) << "it is bfloat16 that multiplies";
            }
            for (const auto& [name, gradient] : gradients[1])
                EXPECT_TRUE(!gradient.defined() || gradient.scalar_type() == torch::kFloat32) << name;
        }
    }
}

TEST(LearnModule, BatchNormUsesAndKeepsStatistics) {
    const Network network = one_layer({.norm = true});
    Module module(network, network::initial_weights(network, 1), torch::kCPU, torch::kFloat64);
    const ops::Batch batch = ops::Batch::dense(2, 10);
    const std::map<std::string, torch::Tensor> inputs = test::random_inputs(network, {batch});
    const torch::Tensor product = torch::linear(inputs.at("points"), module.parameters().at("dense.weight"),
                                                module.parameters().at("dense.bias"));
    const torch::Tensor y = module.run(batch, inputs, {.is_training = true, .norm_momentum = 0.25}).at("y");
    EXPECT_LE(y.mean(0).abs().max().item<double>(), 1e-12);
    EXPECT_NEAR(y.var(0, false).mean().item<double>(), 1, 1e-3);
    const torch::Tensor mean = 0.25 * product.mean(0), variance = 0.75 + 0.25 * product.var(0, true);
    EXPECT_TRUE(torch::allclose(module.parameters().at("dense.norm.running_mean"), mean));
    EXPECT_TRUE(torch::allclose(module.parameters().at("dense.norm.running_var"), variance));
    EXPECT_FALSE(module.parameters().at("dense.norm.running_mean").requires_grad());
    EXPECT_EQ(module.trained().size(), 4u);  // weight, bias, norm.weight, norm.bias
    EXPECT_THROW(
        module.run(ops::Batch::single(1), {{"points", torch::zeros({1, 3}, torch::kFloat64)}}, {.is_training = true}),
        Error);
}

TEST(LearnModule, DropoutIsAFunctionOfSeedStepAndLayer) {
    network::Builder build("dropouts");
    const network::Tensor x = build.input("points", network::points_of(3));
    build.output("a", build.dropout("a", x, 0.25f));
    build.output("b", build.dropout("b", x, 0.25f));
    const Network network = build.finish();
    Module module(network, network::initial_weights(network, 1));
    const ops::Batch batch = ops::Batch::dense(4, 1000);
    const std::map<std::string, torch::Tensor> inputs = {{"points", torch::ones({4000, 3})}};
    const auto run = [&](uint64_t seed, int64_t step, const char* name) {
        return module.run(batch, inputs, {.is_training = true, .seed = seed, .step = step}).at(name);
    };
    EXPECT_TRUE(torch::equal(run(1, 5, "a"), run(1, 5, "a")));
    EXPECT_FALSE(torch::equal(run(1, 5, "a"), run(1, 6, "a")));
    EXPECT_FALSE(torch::equal(run(1, 5, "a"), run(2, 5, "a")));
    EXPECT_FALSE(torch::equal(run(1, 5, "a"), run(1, 5, "b")));
    const torch::Tensor found = run(1, 5, "a");
    EXPECT_NEAR((found == 0).to(torch::kFloat64).mean().item<double>(), 0.25, 0.02);  // 5 deviations
    EXPECT_NEAR(found.max().item<double>(), 1 / 0.75, 1e-6);
    EXPECT_TRUE(torch::equal(module.run(batch, inputs).at("a"), inputs.at("points")));
}

TEST(LearnModule, ActnormStartsFromItsFirstBatch) {
    network::Builder build("actnorm");
    const network::Tensor x = build.input("points", network::points_of(3));
    build.output("y", build.actnorm("norm", x));
    const Network network = build.finish();
    Module module(network, network::initial_weights(network, 1), torch::kCPU, torch::kFloat64);
    const ops::Batch batch = ops::Batch::dense(2, 50);
    std::map<std::string, torch::Tensor> inputs = test::random_inputs(network, {batch});
    inputs.at("points") = inputs.at("points") * 3 + 5;
    const torch::Tensor y = module.run(batch, inputs, {.is_training = true, .starts_actnorm = true}).at("y");
    EXPECT_LE(y.mean(0).abs().max().item<double>(), 1e-5);
    EXPECT_NEAR(y.var(0, false).max().item<double>(), 1, 1e-5);
    EXPECT_TRUE(torch::equal(module.run(batch, inputs).at("y"), y));  // kept
}

TEST(LearnModule, NanPropagatesThroughEveryMaximum) {
    for (const ops::Batch& batch : {ops::Batch::dense(2, 3), ops::Batch::ragged({0, 4, 6})}) {
        network::Builder build("max");
        const network::Tensor x = build.input("points", network::points_of(1));
        build.output("cloud", build.max_points("max", x));
        const Network network = build.finish();
        Module module(network, network::initial_weights(network, 1));
        torch::Tensor points = torch::arange(6, torch::kFloat32).unsqueeze(1);
        points[1][0] = NAN;
        const torch::Tensor found = module.run(batch, {{"points", points}}).at("cloud");
        EXPECT_TRUE(std::isnan(found[0][0].item<float>()));
        EXPECT_EQ(found[1][0].item<float>(), 5);
    }
}

TEST(LearnModule, TheSlopeOfADistanceAtZeroIsZero) {
    network::Builder build("distance");
    const network::Tensor x = build.input("points", network::points_of(3));
    build.output("d", build.edge_distance("d", x, build.knn("knn", x, 2)));
    const Network network = build.finish();
    Module module(network, network::initial_weights(network, 1));
    const torch::Tensor points = torch::ones({4, 3}).set_requires_grad(true);  // all equal
    module.run(ops::Batch::single(4), {{"points", points}}).at("d").select(1, 9).sum().backward();
    EXPECT_TRUE(torch::equal(points.grad(), torch::zeros({4, 3})));
}

/// A network that is in no registry: edges of neighbours, as examples/own_network has them.
Network edge_classifier(int64_t classes) {
    network::Builder build("edge-classifier");
    network::Tensor x = build.input("points", network::points_of(3));
    const network::Tensor neighbours = build.knn("neighbours", x, 8);
    x = build.edge("edge.features", x, neighbours);
    x = build.linear("edge.conv", x, 32, {.norm = true, .activation = network::leaky_relu(0.2f)});
    x = build.max_rows("edge.pool", x);
    x = build.linear("wide", x, 64, {.norm = true, .activation = network::relu()});
    x = build.max_points("pool", x);
    build.output("scores", build.linear("head", x, classes));
    return build.finish();
}

TEST(LearnModule, ANetworkOfNoRegistryLearnsShapes) {
    const Network network = edge_classifier(test::kShapes);
    Module module(network, network::initial_weights(network, 1 + test::trial()));
    const auto accuracy_of = [&](uint64_t seed) {
        const test::ShapeClouds clouds = test::shape_clouds(200, 48, seed);
        const torch::NoGradGuard no_gradients;
        const torch::Tensor points = torch::from_blob(const_cast<float*>(clouds.points.data()), {200 * 48, 3}).clone();
        const torch::Tensor labels = torch::tensor(std::vector<int64_t>(clouds.labels.begin(), clouds.labels.end()));
        return (module.run(clouds.batch, {{"points", points}}).at("scores").argmax(1) == labels)
            .to(torch::kFloat64)
            .mean()
            .item<double>();
    };
    const uint64_t first_shapes = 10000 * test::trial();
    const double before = accuracy_of(first_shapes + 1000);
    torch::optim::Adam adam(module.trained(), torch::optim::AdamOptions(2e-3));
    for (int64_t step = 0; step < 120; ++step) {
        const test::ShapeClouds clouds = test::shape_clouds(40, 48, first_shapes + static_cast<uint64_t>(step));
        const torch::Tensor points = torch::from_blob(const_cast<float*>(clouds.points.data()), {40 * 48, 3}).clone();
        const torch::Tensor labels = torch::tensor(std::vector<int64_t>(clouds.labels.begin(), clouds.labels.end()));
        adam.zero_grad();
        const torch::Tensor scores =
            module.run(clouds.batch, {{"points", points}}, {.is_training = true, .step = step}).at("scores");
        torch::nn::functional::cross_entropy(scores, labels).backward();
        adam.step();
    }
    EXPECT_BELOW(before, 0.3);
    EXPECT_ABOVE(accuracy_of(first_shapes + 1000), 0.6);  // of ten classes: 20 deviations above chance
}

TEST(LearnModule, WeightsGoInAndComeOut) {
    const Network network = models::pointnet_classifier({.classes = 7});
    const Weights weights = test::random_weights(network, 2);
    const Weights back = Module(network, weights).weights();
    EXPECT_EQ(network::checksum(back), network::checksum(weights));
    EXPECT_EQ(network::config_of(back), network.config);
}

TEST(LearnModule, WrongUseIsRefused) {
    const Network network = one_layer({});
    Module module(network, network::initial_weights(network, 1));
    const ops::Batch batch = ops::Batch::dense(2, 5);
    EXPECT_THROW(module.run(batch, {}), Error);
    EXPECT_THROW(module.run(batch, {{"points", torch::zeros({9, 3})}}), Error);
    EXPECT_THROW(module.run(std::vector<ops::Batch>{}, {{"points", torch::zeros({10, 3})}}), Error);
    Weights wrong = network::initial_weights(network, 1);
    wrong.tensors.erase("dense.bias");
    EXPECT_THROW(Module(network, wrong), Error);
}

}  // namespace
}  // namespace stipple::learn
