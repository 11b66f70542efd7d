#include "stipple/learn/flows/log_det.h"

#include <cmath>
#include <torch/torch.h>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr int64_t kMostTerms = 1000;
// Draws of one rng: the length, then the probes.
constexpr uint64_t kLengthIndex = 0, kFirstProbe = 16;

double uniform_above_zero(const Rng& rng) {
    return (static_cast<double>(rng.bits(kLengthIndex)) + 1) * 0x1p-32;  // (0, 1]
}

/// N >= 1 with P(N >= k) = (1 - p)^(k - 1).
int64_t geometric(double p, double uniform) {
    return 1 + static_cast<int64_t>(std::floor(std::log(uniform) / std::log1p(-p)));
}

/// P(N < count) of a Poisson number.
double poisson_below(double mean, int64_t count) {
    double term = std::exp(-mean), sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        sum += term;
        term *= mean / static_cast<double>(i + 1);
    }
    return sum;
}

int64_t poisson(double mean, double uniform) {
    int64_t n = 0;
    while (n < kMostTerms && poisson_below(mean, n + 1) < uniform) ++n;
    return n;
}

/// v J, row by row of the whole output.
Tensor vector_times_jacobian(const Tensor& g, const Tensor& x, const Tensor& v, bool create_graph) {
    return torch::autograd::grad({g}, {x}, {v}, /*retain_graph=*/true, create_graph)[0];
}

Tensor normal_like(const Tensor& x, const Rng& rng) {
    Tensor probe = torch::empty(x.sizes(), torch::kFloat64);
    double* to = probe.data_ptr<double>();
    for (int64_t i = 0; i < probe.numel(); ++i) to[i] = rng.normal(kFirstProbe + static_cast<uint64_t>(i));
    return probe.to(x.options().requires_grad(false));
}

double term_factor(const std::vector<double>& factors, size_t k) {
    return (k % 2 == 0 ? 1 : -1) * factors[k] / static_cast<double>(k + 1);
}

Tensor by_row(const Tensor& a, const Tensor& b) {
    return (a * b).sum(1, true);
}

Tensor power_series(const Tensor& g, const Tensor& x, const std::vector<double>& factors, bool create_graph) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < x.size(1); ++i) {
        Tensor unit = torch::zeros_like(g);
        unit.select(1, i).fill_(1);
        rows.push_back(vector_times_jacobian(g, x, unit, create_graph));
    }
    const Tensor jacobian = torch::stack(rows, 1);
    Tensor power = jacobian, sum = torch::zeros({x.size(0), 1}, x.options().requires_grad(false));
    for (size_t k = 0; k < factors.size(); ++k) {
        if (k > 0) power = torch::matmul(power, jacobian);
        sum = sum + term_factor(factors, k) * power.diagonal(0, 1, 2).sum(1, true);
    }
    return sum;
}

Tensor hutchinson(const Tensor& g, const Tensor& x, const Tensor& probe, const std::vector<double>& factors,
                  bool create_graph) {
    Tensor v = probe, sum = torch::zeros({x.size(0), 1}, x.options().requires_grad(false));
    for (size_t k = 0; k < factors.size(); ++k) {
        v = vector_times_jacobian(g, x, v, create_graph);
        sum = sum + term_factor(factors, k) * by_row(v, probe);
    }
    return sum;
}

/// The value of hutchinson(); u is a number as far as the gradient is concerned.
Tensor neumann(const Tensor& g, const Tensor& x, const Tensor& probe, const std::vector<double>& factors,
               bool create_graph) {
    Tensor v = probe, u = probe.clone(), value = torch::zeros({x.size(0), 1}, x.options().requires_grad(false));
    for (size_t k = 0; k < factors.size(); ++k) {
        v = vector_times_jacobian(g, x, v, false);
        value += term_factor(factors, k) * by_row(v, probe);
        u += (k % 2 == 0 ? -1 : 1) * factors[k] * v;
    }
    if (!create_graph) return value;
    const Tensor slope = by_row(vector_times_jacobian(g, x, u, true), probe);
    return value + slope - slope.detach();
}

}  // namespace

std::vector<double> series_factors(const LogDetOptions& options, const Rng& rng) {
    const bool is_fixed = options.length == SeriesLength::fixed;
    STIPPLE_REQUIRE(!is_fixed || (options.terms >= 1 && options.terms <= kMostTerms),
                    "a series of {} terms, must be 1 to {}", options.terms, kMostTerms);
    if (is_fixed) return std::vector<double>(static_cast<size_t>(options.terms), 1.0);
    STIPPLE_REQUIRE(options.exact_terms >= 0 && options.exact_terms <= kMostTerms, "{} exact terms, must be 0 to {}",
                    options.exact_terms, kMostTerms);
    const bool is_geometric = options.length == SeriesLength::geometric;
    STIPPLE_REQUIRE(options.rate > 0 && (is_geometric ? options.rate < 1 : options.rate <= 100),
                    "a rate of {}, must be above 0 and {}", options.rate, is_geometric ? "below 1" : "at most 100");
    const double uniform = uniform_above_zero(rng);
    const int64_t more = is_geometric ? geometric(options.rate, uniform) : poisson(options.rate, uniform);
    std::vector<double> factors(static_cast<size_t>(options.exact_terms), 1.0);
    for (int64_t k = 1; k <= std::min(more, kMostTerms); ++k) {
        const double kept =
            is_geometric ? std::pow(1 - options.rate, static_cast<double>(k - 1)) : 1 - poisson_below(options.rate, k);
        factors.push_back(1 / kept);
    }
    return factors;
}

Tensor estimate_log_det(const std::function<Tensor(const Tensor&)>& g, const Tensor& x, const LogDetOptions& options,
                        const Rng& rng) {
    STIPPLE_REQUIRE(options.method != LogDetMethod::exact, "the exact determinant is no estimate");
    const std::vector<double> factors = series_factors(options, rng);
    const bool create_graph = torch::GradMode::is_enabled();
    const torch::AutoGradMode with_graph(true);  // products with the Jacobian are reverse passes, in evaluation too
    // A tensor of its own, so that the passes end here; gradients go on to x where there is a graph.
    const Tensor at = x.requires_grad() && create_graph ? x.view_as(x) : x.detach().requires_grad_(true);
    const Tensor value = g(at);
    Tensor estimate;
    if (options.method == LogDetMethod::power_series) {
        estimate = power_series(value, at, factors, create_graph);
    } else {
        const Tensor probe = normal_like(at, rng);
        estimate = options.method == LogDetMethod::hutchinson ? hutchinson(value, at, probe, factors, create_graph)
                                                              : neumann(value, at, probe, factors, create_graph);
    }
    return create_graph ? estimate : estimate.detach();
}

}  // namespace stipple::learn
