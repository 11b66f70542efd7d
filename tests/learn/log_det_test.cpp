// Estimators of log-determinants: their means are the exact ones, and so are the means of their gradients.

#include "stipple/learn/flows/log_det.h"

#include <gtest/gtest.h>

#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/flows/lipschitz.h"
#include "tests/learn/gradients.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// -0.5 tanh(x A) A^T on rows one by one, |A| = 1: determinants well below 1, so that errors have something to be small
/// against. `gain` is differentiated by.
struct RowBranch {
    Tensor a, b;
    Tensor gain = torch::ones({}, torch::kFloat64).requires_grad_(true);
    RowBranch() {
        a = test::normal_tensor({3, 12}, 1).to(torch::kFloat64);
        a = a / spectral_norm_bound(a);
        b = -0.5 * a.t();
    }
    Tensor operator()(const Tensor& x) const { return gain * torch::tanh(x.matmul(a)).matmul(b); }
};

/// The exact ln |det| of each row [n, 1], with gradients.
Tensor exact_log_det_of(const RowBranch& g, const Tensor& x) {
    const Tensor h = torch::tanh(x.matmul(g.a));
    const Tensor jacobian =
        torch::matmul((g.a.unsqueeze(0) * (1 - h * h).unsqueeze(1)), g.b) * g.gain;  // d/dx_j, out i
    return torch::log(torch::det(jacobian + torch::eye(3, torch::kFloat64))).unsqueeze(1);
}

struct Mean {
    double mean = 0, error = 0;  // of the mean: its standard error
};

template <class F>
Mean mean_of(int draws, const F& draw) {
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
        const double value = draw(static_cast<uint64_t>(i));
        sum += value;
        squares += value * value;
    }
    const double mean = sum / draws, variance = std::max(0.0, squares / draws - mean * mean);
    return {mean, std::sqrt(variance / draws)};
}

std::vector<LogDetOptions> unbiased_options() {
    std::vector<LogDetOptions> all;
    for (const LogDetMethod method : {LogDetMethod::power_series, LogDetMethod::hutchinson, LogDetMethod::neumann}) {
        all.push_back({.method = method, .length = SeriesLength::geometric, .exact_terms = 2, .rate = 0.5});
        all.push_back({.method = method, .length = SeriesLength::geometric, .exact_terms = 0, .rate = 0.3});
        all.push_back({.method = method, .length = SeriesLength::poisson, .exact_terms = 2, .rate = 2});
        all.push_back({.method = method, .length = SeriesLength::poisson, .exact_terms = 1, .rate = 4});
    }
    return all;
}

// Sums over 200 rows, each with its own probe, so that one draw is already an average; the tolerance is five standard
// errors, which are themselves a small part of the value.
TEST(LogDet, MeansOfTheEstimatorsAreTheExactDeterminant) {
    const RowBranch g;
    const Tensor x = test::normal_tensor({200, 3}, 3).to(torch::kFloat64);
    const torch::NoGradGuard no_gradients;
    const double exact = exact_log_det_of(g, x).sum().item<double>();
    for (const LogDetOptions& options : unbiased_options()) {
        const Mean mean = mean_of(600, [&](uint64_t i) {
            return estimate_log_det(g, x, options, Rng(7 + test::trial(), i)).sum().item<double>();
        });
        const std::string name = fmt::format("method {}, length {}, {} exact", static_cast<int>(options.method),
                                             static_cast<int>(options.length), options.exact_terms);
        EXPECT_BELOW(std::abs(mean.mean - exact), 5 * mean.error + 1e-9) << name;
        EXPECT_BELOW(mean.error, 0.02 * std::abs(exact)) << name;
    }
}

TEST(LogDet, MeansOfTheirGradientsAreTheExactGradient) {
    RowBranch g;
    const Tensor x = test::normal_tensor({200, 3}, 4).to(torch::kFloat64).requires_grad_(true);
    const std::vector<Tensor> inputs = {g.gain, x};
    const auto of = [&](const Tensor& log_det) {
        const auto gradients = torch::autograd::grad({log_det.sum()}, inputs);
        return std::vector<double>{gradients[0].item<double>(), gradients[1].select(1, 0).sum().item<double>()};
    };
    const auto exact = of(exact_log_det_of(g, x));
    for (const LogDetOptions& options : unbiased_options()) {
        std::vector<double> by_x;
        const Mean by_gain = mean_of(200, [&](uint64_t i) {
            const auto got = of(estimate_log_det(g, x, options, Rng(9 + test::trial(), i)));
            by_x.push_back(got[1]);
            return got[0];
        });
        const Mean of_x = mean_of(200, [&](uint64_t i) { return by_x[i]; });
        EXPECT_BELOW(std::abs(by_gain.mean - exact[0]), 5 * by_gain.error + 1e-9) << static_cast<int>(options.method);
        EXPECT_BELOW(std::abs(of_x.mean - exact[1]), 5 * of_x.error + 1e-9) << static_cast<int>(options.method);
    }
}

// Points that a branch couples: sums over a cloud estimate the cloud's determinant.
TEST(LogDet, CoupledPointsAreEstimatedCloudByCloud) {
    const int64_t points = 6;
    const RowBranch g;
    const Tensor random = test::normal_tensor({points, points}, 5).to(torch::kFloat64);
    const Tensor mixing = 0.6 * torch::eye(points, torch::kFloat64) + 0.4 * random / spectral_norm_bound(random);
    const auto coupled = [&](const Tensor& x) { return g(mixing.matmul(x)); };
    const Tensor x = test::normal_tensor({points, 3}, 6).to(torch::kFloat64).requires_grad_(true);
    const Tensor out = (x + coupled(x)).reshape({-1});
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < out.numel(); ++i)
        rows.push_back(torch::autograd::grad({out[i]}, {x}, {}, true)[0].reshape({-1}));
    const double exact = std::get<1>(torch::slogdet(torch::stack(rows))).item<double>();
    const torch::NoGradGuard no_gradients;
    const LogDetOptions options{.method = LogDetMethod::hutchinson, .length = SeriesLength::poisson};
    const Mean mean = mean_of(6000, [&](uint64_t i) {
        return estimate_log_det(coupled, x.detach(), options, Rng(11 + test::trial(), i)).sum().item<double>();
    });
    EXPECT_BELOW(std::abs(mean.mean - exact), 5 * mean.error);
    EXPECT_BELOW(mean.error, 0.05 * std::abs(exact));
}

TEST(LogDet, ACutSeriesTendsToTheDeterminant) {
    const RowBranch g;
    const Tensor x = test::normal_tensor({50, 3}, 8).to(torch::kFloat64);
    const torch::NoGradGuard no_gradients;
    const Tensor exact = exact_log_det_of(g, x);
    double before = INFINITY;
    for (const int64_t terms : {1, 5, 20, 40}) {
        const LogDetOptions options{
            .method = LogDetMethod::power_series, .length = SeriesLength::fixed, .terms = terms};
        const double error = torch::abs(estimate_log_det(g, x, options, Rng(1)) - exact).max().item<double>();
        EXPECT_LE(error, 6 * std::pow(0.5, terms + 1) / (static_cast<double>(terms) + 1) + 1e-14);
        EXPECT_LT(error, before);
        before = error;
    }
}

TEST(LogDet, FactorsAreOneOverTheProbabilityToBeKept) {
    const LogDetOptions options{
        .method = LogDetMethod::hutchinson, .length = SeriesLength::geometric, .exact_terms = 3, .rate = 0.5};
    int kept = 0;
    const int draws = 20000;
    for (int i = 0; i < draws; ++i) {
        const std::vector<double> factors = series_factors(options, Rng(3 + test::trial(), static_cast<uint64_t>(i)));
        ASSERT_GE(factors.size(), 4u);
        for (size_t k = 0; k < 4; ++k) EXPECT_EQ(factors[k], 1);  // the first beyond is kept always
        if (factors.size() >= 6) {
            EXPECT_EQ(factors[5], 4);
            ++kept;
        }
    }
    EXPECT_BELOW(std::abs(static_cast<double>(kept) / draws - 0.25), 0.015);
    EXPECT_EQ(series_factors({.length = SeriesLength::fixed, .terms = 7}, Rng(1)), std::vector<double>(7, 1.0));
}

TEST(LogDet, OptionsOutOfRangeAreRefused) {
    const auto refused = [](const LogDetOptions& options, const char* words) {
        EXPECT_ERROR(series_factors(options, Rng(1)), bad_argument, words);
    };
    refused({.length = SeriesLength::fixed, .terms = 0}, "terms");
    refused({.length = SeriesLength::geometric, .rate = 1}, "rate");
    refused({.length = SeriesLength::poisson, .rate = 0}, "rate");
    refused({.length = SeriesLength::poisson, .exact_terms = -1}, "exact");
}

}  // namespace
}  // namespace stipple::learn
