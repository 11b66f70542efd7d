// Losses against their formulas in double, written out.

#include "stipple/learn/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/learn/module.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "tests/learn/gradients.h"
#include "tests/learn/learn.h"

namespace stipple::learn {
namespace {

using ops::Batch;
using test::normal_tensor;
using test::Tensors;

class LearnLosses : public testing::TestWithParam<Device> {
protected:
    torch::Device device() const { return test::torch_device(GetParam()); }

    /// Value and gradient of a loss of one float32 tensor, beside those of an oracle in double on the CPU.
    void expect_loss(const char* name, const torch::Tensor& input,
                     const std::function<torch::Tensor(const torch::Tensor&)>& loss,
                     const std::function<torch::Tensor(const torch::Tensor&)>& oracle, double tolerance = 1e-5) const {
        SCOPED_TRACE(name);
        const torch::Tensor x = input.to(device()).clone().set_requires_grad(true);
        const torch::Tensor exact = input.to(torch::kFloat64).set_requires_grad(true);
        const torch::Tensor found = loss(x), expected = oracle(exact);
        EXPECT_EQ(found.scalar_type(), torch::kFloat64);
        EXPECT_EQ(found.dim(), 0);
        EXPECT_LE(test::relative_difference(found, expected), tolerance);
        found.backward();
        expected.backward();
        EXPECT_EQ(x.grad().scalar_type(), torch::kFloat32);
        EXPECT_LE(test::relative_difference(x.grad(), exact.grad()), tolerance);
    }
};
STIPPLE_ON_EVERY_TORCH_DEVICE(LearnLosses);

/// By loops. Weights empty: 1. `allowed` undefined: all.
torch::Tensor slow_cross_entropy(const torch::Tensor& logits, const std::vector<int64_t>& labels, double smoothing,
                                 const std::vector<double>& weights, int64_t ignored, const torch::Tensor& allowed) {
    const int64_t classes = logits.size(1);
    torch::Tensor sum = torch::zeros({}, torch::kFloat64);
    double total = 0;
    for (int64_t row = 0; row < logits.size(0); ++row) {
        const int64_t label = labels[static_cast<size_t>(row)];
        if (label == ignored) continue;
        std::vector<int64_t> mine;
        for (int64_t c = 0; c < classes; ++c)
            if (!allowed.defined() || allowed[row][c].item<bool>()) mine.push_back(c);
        const torch::Tensor own = logits[row].index_select(0, torch::tensor(mine, torch::kInt64));
        const torch::Tensor normaliser = own.exp().sum().log();
        const auto weight = [&](int64_t c) { return weights.empty() ? 1.0 : weights[static_cast<size_t>(c)]; };
        for (const int64_t c : mine) {
            const double q = smoothing / static_cast<double>(mine.size()) + (c == label ? 1 - smoothing : 0);
            sum = sum - q * weight(c) * (logits[row][c] - normaliser);
        }
        total += weight(label);
    }
    return total > 0 ? sum / total : sum;
}

TEST_P(LearnLosses, CrossEntropyIsItsFormula) {
    const torch::Tensor logits = normal_tensor({6, 4}, 1);
    const std::vector<int64_t> labels = {2, 0, -1, 3, 3, 1};
    const torch::Tensor of_device = torch::tensor(labels, torch::kInt64).to(device());
    const std::vector<double> weights = {0.5, 2, 1, 0.25};
    torch::Tensor allowed = torch::ones({6, 4}, torch::kBool);
    for (const auto& [row, c] : {std::pair{0, 3}, {0, 0}, {1, 1}, {3, 0}, {5, 2}}) allowed[row][c] = false;
    for (const double smoothing : {0.0, 0.2})
        for (const bool is_weighted : {false, true})
            for (const bool is_masked : {false, true}) {
                CrossEntropyOptions options{.label_smoothing = smoothing};
                if (is_weighted) options.class_weights = torch::tensor(weights, torch::kFloat64).to(device());
                if (is_masked) options.allowed = allowed.to(device());
                expect_loss(
                    "cross entropy", logits,
                    [&](const torch::Tensor& x) { return cross_entropy(x, of_device, options); },
                    [&](const torch::Tensor& x) {
                        return slow_cross_entropy(x, labels, smoothing, is_weighted ? weights : std::vector<double>{},
                                                  -1, is_masked ? allowed : torch::Tensor());
                    });
            }
}

TEST_P(LearnLosses, CrossEntropyIsThatOfTorch) {
    const torch::Tensor logits = normal_tensor({40, 7}, 2).to(device());
    const torch::Tensor labels =
        (torch::arange(40, torch::TensorOptions(device()).dtype(torch::kInt64)) * 3).remainder(7);
    const torch::Tensor weights = normal_tensor({7}, 3).abs().to(device());
    const auto theirs =
        torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1).weight(weights).ignore_index(4);
    EXPECT_LE(test::relative_difference(
                  cross_entropy(logits, labels, {.label_smoothing = 0.1, .class_weights = weights, .ignore_label = 4}),
                  torch::nn::functional::cross_entropy(logits, labels, theirs)),
              1e-5);
}

TEST_P(LearnLosses, RowsThatCountForNothing) {
    const torch::Tensor labels = torch::tensor(std::vector<int64_t>{1, -1}, torch::kInt64).to(device());
    torch::Tensor logits = normal_tensor({2, 3}, 4).to(device());
    logits[1][0] = NAN;  // in the row that is ignored
    logits.set_requires_grad(true);
    const torch::Tensor loss = cross_entropy(logits, labels, {.label_smoothing = 0.1});
    EXPECT_TRUE(std::isfinite(loss.item<double>()));
    EXPECT_TRUE(std::isnan(cross_entropy(logits, labels + 1).item<double>()));  // in one that counts
    const torch::Tensor none = cross_entropy(logits, torch::full_like(labels, -1));
    EXPECT_EQ(none.item<double>(), 0);
}

TEST_P(LearnLosses, LabelsThatAreNoClasses) {
    const torch::Tensor logits = normal_tensor({3, 4}, 5).to(device());
    const auto labels = [&](std::vector<int64_t> values) { return torch::tensor(values, torch::kInt64).to(device()); };
    torch::Tensor allowed = torch::ones({3, 4}, torch::kBool);
    allowed[1][2] = false;
    const CrossEntropyOptions masked{.allowed = allowed.to(device())};
    if (GetParam().type == DeviceType::cuda) {
        EXPECT_TRUE(std::isnan(cross_entropy(logits, labels({0, 1, 4})).item<double>()));
        EXPECT_TRUE(std::isnan(cross_entropy(logits, labels({0, 2, 1}), masked).item<double>()));
        return;
    }
    EXPECT_EQ(test::bad_argument_of([&] {
                  cross_entropy(logits, labels({0, 1, 4}));
              }),
              "cross_entropy: label 4 in row 2, there are 4 classes");
    EXPECT_EQ(test::bad_argument_of([&] {
                  cross_entropy(logits, labels({0, -2, 1}));
              }),
              "cross_entropy: label -2 in row 1, there are 4 classes");
    EXPECT_EQ(test::bad_argument_of([&] {
                  cross_entropy(logits, labels({0, 2, 1}), masked);
              }),
              "cross_entropy: label 2 in row 1 is not allowed there");
    test::bad_argument_of([&] { cross_entropy(logits, labels({0, 1})); });
    test::bad_argument_of([&] { cross_entropy(logits, labels({0, 1, 2}).to(torch::kInt32)); });
    test::bad_argument_of([&] { cross_entropy(logits, labels({0, 1, 2}), {.label_smoothing = 1}); });
    test::bad_argument_of([&] { cross_entropy(logits, labels({0, 1, 2}), {.class_weights = torch::ones({3})}); });
}

TEST_P(LearnLosses, PartsOfTheCategoryOfACloud) {
    torch::Tensor parts = torch::zeros({2, 5}, torch::kBool);  // parts 0, 1 and parts 2, 3, 4
    for (const auto& [category, part] : {std::pair{0, 0}, {0, 1}, {1, 2}, {1, 3}, {1, 4}}) parts[category][part] = true;
    const torch::Tensor categories = torch::tensor(std::vector<int64_t>{1, 0}, torch::kInt64).to(device());
    for (const Batch& batch : {Batch::dense(2, 3), Batch::ragged({0, 2, 6})}) {
        const torch::Tensor found = allowed_parts(batch, categories, parts.to(device())).to(torch::kCPU);
        ASSERT_EQ(found.sizes(), (torch::IntArrayRef{6, 5}));
        for (int64_t point = 0; point < 6; ++point)
            EXPECT_TRUE(torch::equal(found[point], parts[point < batch.end(0) ? 1 : 0])) << point;
    }
    test::bad_argument_of([&] { allowed_parts(Batch::dense(3, 1), categories, parts.to(device())); });
}

TEST_P(LearnLosses, TransformRegulariserInBothConventions) {
    const torch::Tensor matrices = normal_tensor({3, 16}, 6);
    const auto norms_sq = [](const torch::Tensor& x) {
        Tensors found;
        for (int64_t cloud = 0; cloud < 3; ++cloud) {
            const torch::Tensor a = x[cloud].view({4, 4});
            found.push_back((torch::mm(a, a.t()) - torch::eye(4, torch::kFloat64)).square().sum());
        }
        return torch::stack(found);
    };
    expect_loss(
        "torch", matrices, [](const torch::Tensor& x) { return transform_regulariser(x, TransformConvention::torch); },
        [&](const torch::Tensor& x) { return norms_sq(x).sqrt().mean(); });
    expect_loss(
        "tf", matrices, [](const torch::Tensor& x) { return transform_regulariser(x, TransformConvention::tf); },
        [&](const torch::Tensor& x) { return norms_sq(x).sum() / 2; });
    const torch::Tensor identities =
        torch::eye(4, torch::TensorOptions(device())).repeat({3, 1, 1}).set_requires_grad(true);
    for (const TransformConvention convention : {TransformConvention::torch, TransformConvention::tf}) {
        const torch::Tensor loss = transform_regulariser(identities, convention);
        EXPECT_EQ(loss.item<double>(), 0);
        EXPECT_TRUE(torch::equal(torch::autograd::grad({loss}, {identities})[0], torch::zeros_like(identities)));
    }
    EXPECT_TRUE(
        std::isnan(transform_regulariser(matrices.to(device()) * NAN, TransformConvention::torch).item<double>()));
    test::bad_argument_of([&] { transform_regulariser(torch::zeros({2, 5}), TransformConvention::tf); });
}

TEST_P(LearnLosses, DistillationIsAScaledDivergence) {
    const torch::Tensor student = normal_tensor({5, 4}, 7), teacher = normal_tensor({5, 4}, 8);
    for (const double temperature : {1.0, 3.0})
        expect_loss(
            "distillation", student,
            [&](const torch::Tensor& x) { return distillation(x, teacher.to(device()), temperature); },
            [&](const torch::Tensor& x) {
                const torch::Tensor p = torch::softmax(teacher.to(torch::kFloat64) / temperature, 1),
                                    q = torch::softmax(x / temperature, 1);
                return (p * (p / q).log()).sum() / 5 * temperature * temperature;
            });
    torch::Tensor certain = teacher.to(device());
    certain.select(1, 0).fill_(-INFINITY);
    EXPECT_TRUE(std::isfinite(distillation(student.to(device()), certain, 2).item<double>()));
    const torch::Tensor of_teacher = teacher.to(device()).clone().set_requires_grad(true);
    EXPECT_FALSE(distillation(student.to(device()), of_teacher, 2).requires_grad());
    EXPECT_LE(std::abs(distillation(of_teacher, of_teacher, 2).item<double>()), 1e-6);
    test::bad_argument_of([&] { distillation(student, teacher, 0); });
    test::bad_argument_of([&] { distillation(student, teacher.narrow(0, 0, 4), 1); });
}

TEST_P(LearnLosses, DistancesByConvention) {
    const Batch batch = Batch::dense(2, 5);
    const torch::Tensor a = normal_tensor({10, 3}, 9).to(device()), b = normal_tensor({10, 3}, 10).to(device());
    const auto mean = [](const torch::Tensor& x) { return x.mean().item<double>(); };
    const ChamferMeans squared = chamfer({a, batch}, {b, batch}, ops::DistanceNorm::squared),
                       euclidean = chamfer({a, batch}, {b, batch}, ops::DistanceNorm::euclidean);
    EXPECT_NEAR(chamfer_loss({a, batch}, {b, batch}, ChamferConvention::squared_sum).item<double>(),
                mean(squared.a_to_b) + mean(squared.b_to_a), 1e-6);
    EXPECT_NEAR(chamfer_loss({a, batch}, {b, batch}, ChamferConvention::half_euclidean).item<double>(),
                (mean(euclidean.a_to_b) + mean(euclidean.b_to_a)) / 2, 1e-6);
    EXPECT_NEAR(emd_loss({a, batch}, {b, batch}).item<double>(), mean(emd({a, batch}, {b, batch}).cost), 1e-6);

    const ops::SinkhornOptions options{.epsilon = 0.2f, .tolerance = 1e-5f};
    const torch::Tensor plain = sinkhorn_loss({a, batch}, {b, batch}, options);
    EXPECT_NEAR(plain.item<double>(), mean(sinkhorn({a, batch}, {b, batch}, options).dual), 1e-6);
    EXPECT_NEAR(sinkhorn_loss({a, batch}, {a, batch}, options, true).item<double>(), 0, 1e-6);
    EXPECT_GT(std::abs(sinkhorn_loss({a, batch}, {a, batch}, options).item<double>()), 1e-2);  // the bias
    EXPECT_GT(sinkhorn_loss({a, batch}, {b, batch}, options, true).item<double>(), 0.1);
}

TEST_P(LearnLosses, CloudsComeTogetherUnderEachDistance) {
    const Batch batch = Batch::ragged({0, 12, 20});
    const torch::Tensor truth = normal_tensor({20, 3}, 11).to(device());
    using Loss = std::function<torch::Tensor(const Clouds&, const Clouds&)>;
    const Loss losses[] = {
        [](const Clouds& a, const Clouds& b) { return chamfer_loss(a, b, ChamferConvention::squared_sum); },
        [](const Clouds& a, const Clouds& b) { return emd_loss(a, b, {.norm = ops::DistanceNorm::squared}); },
        [](const Clouds& a, const Clouds& b) {
            return sinkhorn_loss(a, b, {.norm = ops::DistanceNorm::squared, .epsilon = 0.05f}, true);
        }};
    for (const Loss& loss : losses) {
        const torch::Tensor made = normal_tensor({20, 3}, 12).to(device()).set_requires_grad(true);
        torch::optim::Adam adam({made}, torch::optim::AdamOptions(0.05));
        const double before = loss({made, batch}, {truth, batch}).item<double>();
        for (int step = 0; step < 60; ++step) {
            adam.zero_grad();
            loss({made, batch}, {truth, batch}).backward();
            adam.step();
        }
        EXPECT_LT(loss({made, batch}, {truth, batch}).item<double>(), before / 10);
    }
}

TEST_P(LearnLosses, TakeTheOutputsOfNetworks) {
    const network::Network flow = models::puflow({});
    const Batch batch = Batch::dense(2, 24);
    Module module(flow, network::initial_weights(flow, 1), device());
    const torch::Tensor points = normal_tensor({48, 3}, 13).to(device());
    const auto outputs = module.run(batch, {{"points", points}}, {.is_training = true});
    const torch::Tensor nll = flow_loss(outputs.at("nll"));
    EXPECT_NEAR(nll.item<double>(), outputs.at("nll").to(torch::kFloat64).mean().item<double>(), 1e-9);
    // The children of a point follow each other: four times the points of each cloud.
    (nll * 1e-4 +
     chamfer_loss({outputs.at("upsampled"), Batch::dense(2, 96)}, {points, batch}, ChamferConvention::squared_sum))
        .backward();
    for (const torch::Tensor& parameter : module.trained())
        EXPECT_TRUE(parameter.grad().defined() && parameter.grad().isfinite().all().item<bool>());

    const network::Network classifier = models::pointnet_classifier({.classes = 5});
    Module of_classes(classifier, network::initial_weights(classifier, 1), device());
    const auto found = of_classes.run(batch, {{"points", points}}, {.is_training = true});
    const torch::Tensor labels = torch::tensor(std::vector<int64_t>{3, 1}, torch::kInt64).to(device());
    const torch::Tensor regulariser = transform_regulariser(found.at("feature_transform"), TransformConvention::torch);
    (cross_entropy(found.at("logits"), labels) + 1e-3 * regulariser).backward();
    for (const torch::Tensor& parameter : of_classes.trained())
        EXPECT_TRUE(parameter.grad().defined() && parameter.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace stipple::learn
