// Every interpolation of PU-Flow against its formula, in loops over points, neighbours and children; permutations and
// gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "stipple/learn/module.h"
#include "stipple/models/puflow/interpolation.h"
#include "tests/learn/gradients.h"
#include "tests/learn/learn.h"
#include "tests/support/reference_weights.h"

namespace stipple::learn {
namespace {

using models::Interpolation;
using torch::Tensor;

constexpr int64_t kPoints = 14, kNear = 6, kChildren = 3;

std::string name_of_interpolation(Interpolation interpolation) {
    return models::kInterpolationWords[static_cast<size_t>(interpolation)];
}

network::Network interpolation_network(Interpolation interpolation, int64_t channels = 3,
                                       int64_t children = kChildren) {
    network::Builder build("interpolation");
    const network::Tensor points = build.input("points", network::points_of(3));
    const network::Tensor z = build.input("z", network::points_of(channels));
    const network::Tensor near = build.knn("near", points, kNear);
    models::PuFlowOptions options;
    options.ratio = children;
    options.interpolation = interpolation;
    const models::puflow_parts::Children made =
        models::puflow_parts::interpolate_latents(build, options, points, z, near);
    build.output("latents", made.latents);
    build.output("weights", made.weights);
    if (made.logits >= 0) build.output("logits", made.logits);
    return build.finish();
}

struct InterpolationRun {
    int64_t channels;
    network::Network network;
    Module module;
    Tensor points = test::normal_tensor({kPoints, 3}, 1).to(torch::kFloat64);
    Tensor z;

    InterpolationRun(Interpolation interpolation, int64_t of_channels = 3, int64_t children = kChildren)
        : channels(of_channels),
          network(interpolation_network(interpolation, of_channels, children)),
          module(network, test::random_weights(network, 6), torch::kCPU, torch::kFloat64),
          z(test::normal_tensor({kPoints, of_channels}, 2).to(torch::kFloat64)) {}

    std::map<std::string, Tensor> run() {
        return module.run(ops::Batch::single(kPoints), {{"points", points}, {"z", z}}, {});
    }
    double parameter(const std::string& name, int64_t i, int64_t j) {
        return module.parameters().at(name)[i][j].item<double>();
    }

    /// [point][place]: nearest first, the point itself among them.
    std::vector<std::vector<int64_t>> neighbours() const {
        std::vector<std::vector<int64_t>> near;
        const auto p = points.accessor<double, 2>();
        for (int64_t i = 0; i < kPoints; ++i) {
            const auto distance = [&](int64_t j) {
                return std::pow(p[i][0] - p[j][0], 2) + std::pow(p[i][1] - p[j][1], 2) + std::pow(p[i][2] - p[j][2], 2);
            };
            std::vector<int64_t> order(kPoints);
            std::iota(order.begin(), order.end(), 0);
            std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
            order.resize(kNear);
            near.push_back(order);
        }
        return near;
    }
};

/// Weights of the neighbours of one point for one child and one channel, by the formula; not yet divided by their sum
/// where that is part of it.
std::vector<double> weights_of(InterpolationRun& of, Interpolation interpolation, int64_t i,
                               const std::vector<int64_t>& near, int64_t child, int64_t channel) {
    const auto p = of.points.accessor<double, 2>();
    const auto z = of.z.accessor<double, 2>();
    std::vector<double> weights(kNear);
    double radius = 0;
    const auto offset = [&](size_t place, int64_t axis) { return p[near[place]][axis] - p[i][axis]; };
    for (size_t place = 0; place < kNear; ++place)
        radius = std::max(radius, std::hypot(offset(place, 0), offset(place, 1), offset(place, 2)));
    radius += 1e-6;
    if (interpolation == Interpolation::midpoint) {
        weights[0] = weights[static_cast<size_t>(child + 1)] = 0.5;
        return weights;
    }
    if (interpolation == Interpolation::inverse_distance) {
        const double g = 1.2207440846057596;  // g^4 = g + 1
        for (size_t place = 0; place < kNear; ++place) {
            double square = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const double u = 0.5 + static_cast<double>(child + 1) / std::pow(g, axis + 1);
                square += std::pow(offset(place, axis) / radius - (u - std::floor(u) - 0.5), 2);
            }
            weights[place] = 1 / (square + 1e-4);
        }
    }
    if (interpolation == Interpolation::bilateral)
        for (size_t place = 0; place < kNear; ++place) {
            const int64_t row = child * of.channels + channel;
            double theta = 0, psi = 0;
            for (int64_t axis = 0; axis < 3 && place > 0; ++axis)
                theta -= of.parameter(fmt::format("interp.theta.{}.weight", place), row, axis) * offset(place, axis);
            for (int64_t l = 0; l < of.channels && place > 0; ++l)
                psi += of.parameter(fmt::format("interp.psi.{}.weight", place), row, l) * (z[i][l] - z[near[place]][l]);
            weights[place] = std::max(theta, 0.0) * std::max(psi, 0.0) + 1e-6;
        }
    if (interpolation == Interpolation::interp_conv) {
        for (int q = 0; q < 27; ++q) {
            const double at[3] = {0.5 * (q / 9 - 1), 0.5 * (q / 3 % 3 - 1), 0.5 * (q % 3 - 1)};
            std::vector<double> t;
            for (size_t place = 0; place < kNear; ++place) {
                double square = 0;
                for (int axis = 0; axis < 3; ++axis) square += std::pow(offset(place, axis) / radius - at[axis], 2);
                t.push_back(std::exp(-square / (2 * 0.25 * 0.25)));
            }
            const double density = std::accumulate(t.begin(), t.end(), 0.0);
            const double a = of.parameter("interp.convolution.weight", child, q);
            for (size_t place = 0; place < kNear; ++place) weights[place] += a * (t[place] / density - 1.0 / kNear);
        }
        for (double& weight : weights) weight += 1.0 / kNear;
    }
    return weights;
}

TEST(PuFlowInterpolation, IsItsFormula) {
    for (const Interpolation interpolation : {Interpolation::midpoint, Interpolation::inverse_distance,
                                              Interpolation::bilateral, Interpolation::interp_conv})
        for (const int64_t channels : {3, 5}) {
            InterpolationRun of(interpolation, channels);
            const auto outputs = of.run();
            const auto latents = outputs.at("latents").accessor<double, 2>();
            const auto weights = outputs.at("weights").accessor<double, 2>();
            const auto z = of.z.accessor<double, 2>();
            const auto near = of.neighbours();
            for (int64_t i = 0; i < kPoints; ++i)
                for (int64_t r = 0; r < kChildren; ++r) {
                    std::vector<double> mean(kNear);
                    const std::vector<int64_t>& of_point = near[static_cast<size_t>(i)];
                    for (int64_t c = 0; c < channels; ++c) {
                        std::vector<double> w = weights_of(of, interpolation, i, of_point, r, c);
                        const double sum = std::accumulate(w.begin(), w.end(), 0.0);
                        double expected = 0;
                        for (size_t j = 0; j < kNear; ++j) {
                            expected += w[j] / sum * z[of_point[j]][c];
                            mean[j] += w[j] / sum / static_cast<double>(channels);
                        }
                        ASSERT_NEAR(latents[i * kChildren + r][c], expected, 2e-6)
                            << name_of_interpolation(interpolation) << ", point " << i << ", child " << r;
                    }
                    for (size_t j = 0; j < kNear; ++j)
                        ASSERT_NEAR(weights[i * kNear + static_cast<int64_t>(j)][r], mean[j], 2e-6)
                            << name_of_interpolation(interpolation) << ", point " << i << ", child " << r;
                }
        }
}

// Child by child what one network says of the context and the code; fewer or more children leave a child as it was.
TEST(PuFlowInterpolation, CodedChildrenAreThoseOfTheirCodes) {
    InterpolationRun of(Interpolation::coded), many(Interpolation::coded, 3, 20);
    Tensor context;
    RunOptions options;
    options.watch = [&](const network::Layer& layer, const Tensor& x) {
        if (layer.name == "interp.coded.context") context = x;
    };
    const auto outputs = of.module.run(ops::Batch::single(kPoints), {{"points", of.points}, {"z", of.z}}, options);
    const auto all = many.run();
    const double g = 1.32471795724474602596;  // g^3 = g + 1
    const auto& parameters = of.module.parameters();
    for (int64_t r = 0; r < kChildren; ++r) {
        const double x = 0.5 + static_cast<double>(r) / g, y = 0.5 + static_cast<double>(r) / (g * g);
        const Tensor code = torch::tensor({x - std::floor(x), y - std::floor(y)}, torch::kFloat64);
        const Tensor input = torch::cat({context, code.unsqueeze(0).expand({context.size(0), 2})}, 1);
        Tensor hidden = input.matmul(parameters.at("interp.coded.0.weight").t()) + parameters.at("interp.coded.0.bias");
        hidden = torch::where(hidden > 0, hidden, 0.01 * hidden);
        const Tensor logits =
            hidden.matmul(parameters.at("interp.coded.2.weight").t()) + parameters.at("interp.coded.2.bias");
        EXPECT_LE(test::relative_difference(outputs.at("logits").narrow(1, r, 1), logits), 1e-6) << r;
    }
    EXPECT_LE(test::relative_difference(all.at("weights").narrow(1, 0, kChildren), outputs.at("weights")), 1e-12);
}

TEST(PuFlowInterpolation, PermutationsOfPointsPermuteTheChildren) {
    for (size_t i = 0; i < std::size(models::kInterpolationWords); ++i) {
        InterpolationRun of(static_cast<Interpolation>(i));
        const Tensor order = torch::tensor({3, 0, 6, 1, 5, 2, 4, 9, 7, 12, 8, 10, 13, 11});
        const Tensor before = of.run().at("latents").reshape({kPoints, -1}).index_select(0, order);
        of.points = of.points.index_select(0, order);
        of.z = of.z.index_select(0, order);
        EXPECT_LE(test::relative_difference(of.run().at("latents").reshape({kPoints, -1}), before), 1e-9)
            << models::kInterpolationWords[i];
    }
}

TEST(PuFlowInterpolation, GradientsReachEveryParameterAndTheLatents) {
    for (size_t i = 0; i < std::size(models::kInterpolationWords); ++i) {
        InterpolationRun of(static_cast<Interpolation>(i));
        of.z.requires_grad_(true);
        const Tensor y = of.run().at("latents");
        (y * torch::sin(torch::arange(y.numel(), torch::kFloat64)).reshape(y.sizes())).sum().backward();
        EXPECT_TRUE(torch::isfinite(of.z.grad()).all().item<bool>()) << models::kInterpolationWords[i];
        EXPECT_GT(of.z.grad().abs().min().item<double>(), 0) << models::kInterpolationWords[i];
        for (const network::Parameter& parameter : network::parameters_of(of.network)) {
            if (!parameter.is_trained) continue;
            const Tensor& gradient = of.module.parameters().at(parameter.name).grad();
            ASSERT_TRUE(gradient.defined()) << models::kInterpolationWords[i] << ": " << parameter.name;
            // A bias of the last layer is the same for all neighbours: no softmax sees it.
            if (parameter.name == "interp.coded.2.bias" || parameter.name == "interp.weight_unit.mlp.6.bias") continue;
            EXPECT_GT(gradient.abs().max().item<double>(), 0)
                << models::kInterpolationWords[i] << ": " << parameter.name;
        }
    }
}

}  // namespace
}  // namespace stipple::learn
