#pragma once
// Estimates of ln |det (1 + J)|, J the Jacobian of g at x, Lip(g) < 1: from the power series
// sum over k of (-1)^(k+1) / k tr(J^k) [Behrmann et al. 2019, Chen et al. 2019]. For a g that works on points one by
// one the determinant is exact and cheap (flow_net.h); these serve a g that couples points, and are measured against
// the exact one.

#include <functional>
#include <torch/types.h>
#include <vector>

#include "stipple/core/rng.h"

namespace stipple::learn {

enum class LogDetMethod {
    exact,         // the determinant itself
    power_series,  // with exact traces, by as many reverse passes as there are channels: g works on rows one by one
    hutchinson,    // tr(A) as <e A, e> with a normal probe e
    neumann,       // the same value; its gradient is that of <u J, e>, u = e (1 - J + J^2 - ..): one graph however many
                   // terms there are
};

/// How many terms of the series are taken. Roulette costs variance: with terms that shrink by L it is finite for
/// geometric lengths with 1 - rate > L^2 alone. Poisson lengths, whose tails are thinner than any power, have rare
/// large values, which exact_terms make rarer.
enum class SeriesLength {
    fixed,      // `terms`: cut off, biased
    geometric,  // Russian roulette: exact_terms and N more, N >= 1, P(N >= k) = (1 - rate)^(k - 1); unbiased
    poisson,    // likewise, N >= 0 with mean `rate`
};

struct LogDetOptions {
    LogDetMethod method = LogDetMethod::exact;
    SeriesLength length = SeriesLength::poisson;
    int64_t terms = 10;       // fixed: 1 or more
    int64_t exact_terms = 2;  // taken always, 0 or more
    double rate = 2;          // poisson: above 0; geometric: above 0, below 1
};

/// Factors of the terms 1, 2, .., as drawn: 1, and for what roulette keeps 1 / P(it is kept). A pure function of rng.
/// Throws Error{bad_argument} for options out of range.
std::vector<double> series_factors(const LogDetOptions& options, const Rng& rng);

/// For every row of x [n, c] its share [n, 1]: sums over the rows of a cloud estimate that cloud's ln |det|, and where
/// g works on rows one by one each row's is its own. One length for all rows, and a probe for each number. With
/// gradients for x and for what g holds where they are wanted; `hutchinson` keeps a graph of every term for them.
torch::Tensor estimate_log_det(const std::function<torch::Tensor(const torch::Tensor& x)>& g, const torch::Tensor& x,
                               const LogDetOptions& options, const Rng& rng);

}  // namespace stipple::learn
