#pragma once
// Entropic optimal transport between clouds by Sinkhorn's iteration in the log domain, without the matrix.

#include "stipple/ops/clouds.h"
#include "stipple/ops/distance_norm.h"

namespace stipple::ops {

struct SinkhornOptions {
    DistanceNorm norm = DistanceNorm::euclidean;  // C_ij = |a_i - b_j| or its square
    float epsilon = 0.01f;                        // weight of the entropy, in units of the cost
    float epsilon_start = 0.0f;  // above epsilon: iteration t uses max(epsilon, epsilon_start * epsilon_ratio^t)
    float epsilon_ratio = 0.5f;
    int max_iterations = 1000;  // one iteration updates f, then g
    float tolerance = 1e-3f;    // L1 error of the marginals that is good enough; 0: all of max_iterations
    int check_every = 10;       // iterations between two looks at the error
};

/// Results, each caller-allocated on the device of the points.
struct SinkhornResult {
    View<float, 1> cost;          // [clouds] <P, C>, the transport cost of the plan
    View<float, 1> dual;          // [clouds] the regularised optimum: <P, C> + epsilon KL(P | weights) when converged
    View<float, 1> error;         // [clouds] sum over i of |sum over j of P_ij - weight_i|
    View<int32_t, 1> iterations;  // [clouds]
    View<int32_t, 1> converged;   // [clouds] 1 where error <= tolerance
    View<float, 1> f, g;          // [n], [m] the potentials, in units of the cost
};

/// Optimal transport with entropy [Cuturi 2013; log domain and streaming: Feydy et al. 2019]:
///
///     min over P >= 0 with row sums w_a and column sums w_b of  <P, C> + epsilon KL(P | w_a w_b^T)
///     P_ij = w_a_i w_b_j exp((f_i + g_j - C_ij) / epsilon)
///
/// a, b       [n, 3], [m, 3], the same number of clouds, the same device; any sizes
/// weights_a  [n] or empty for equal ones; made to sum to 1 within each cloud. weights_b: [m] or empty
///
/// A cloud stops when the L1 error of its row sums, looked at every check_every iterations once epsilon_start has come
/// down to epsilon, is at most the tolerance; column sums are then exact, for g was updated last. The error never
/// grows. `iterations` counts full iterations; potentials, cost and error belong together.
///
/// Points with a non-finite coordinate and points whose weight is not positive and finite carry no mass: potential 0,
/// no part in anything. The remaining weights are scaled to 1. Where a cloud or its partner has no mass left, cost,
/// dual and error are NaN, iterations and converged 0. Costs must not overflow float32.
///
/// Sums are taken in a fixed order: the same bits for any number of threads. CPU and CUDA use different exponentials
/// and agree to 1e-4 of the cost after equal iterations. Distances and exponentials are float32: the error cannot fall
/// much below 1e-7 * (largest cost) / epsilon. The CPU leaves out blocks of pairs whose part in a sum is below 2^-22 of
/// it, the faster the smaller epsilon is against the extent of the clouds.
///
/// O(n m) time an iteration, O(n + m) memory. CUDA: two launches an iteration, three in those that look; with a
/// tolerance above 0 the host waits for the device every check_every iterations, with 0 never.
/// Throws Error{bad_argument} for wrong shapes, mixed devices and options out of range.
void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result, Stream stream = {});

/// Gradient of a loss of `dual` with respect to the points: by the envelope theorem sum over j of P_ij dC_ij/da_i, the
/// potentials held fixed. Exact at convergence.
///
/// f, g           the potentials of sinkhorn; weights and options (norm, epsilon) as there
/// dL_ddual       [clouds]
/// dL_da, dL_db   [n, 3], [m, 3], written; an empty view is left out
///
/// The gradient of the Euclidean cost at distance 0 is 0; points without mass receive 0. Row sums in a fixed order, no
/// atomics. O(n m) for each of the two. CUDA does not synchronise.
void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream = {});

/// The epsilon of an iteration.
inline float sinkhorn_epsilon(const SinkhornOptions& options, int iteration) {
    double epsilon = options.epsilon_start;
    for (int i = 0; i < iteration && epsilon > options.epsilon; ++i) epsilon *= options.epsilon_ratio;
    return epsilon > options.epsilon ? static_cast<float>(epsilon) : options.epsilon;
}

/// Whether an iteration begins with a look at the error: both the last one and this one must be at the final epsilon.
inline bool sinkhorn_looks(const SinkhornOptions& options, int iteration) {
    return options.tolerance > 0 && iteration > 0 && iteration % options.check_every == 0 &&
           sinkhorn_epsilon(options, iteration - 1) == options.epsilon;
}

namespace cpu {
void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result);
void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db);
}  // namespace cpu
namespace cuda {
void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result, Stream stream);
void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
