#pragma once
// bilateral_weights: bilateral interpolation of features [Hui et al. 2020, PDGN].
//
// The paper weighs neighbour j of point i, in channel l, by th_l psi_l with th = ReLU(W_th,j^T (p_i - p_j)) and
// psi = ReLU(W_ps,j^T (x_i - x_j)). The two products are dense layers on group()'s output, and belong to the network,
// which has them with gradients already; what is left is done here: similarities, and the normalised sum.

#include "stipple/ops/invert_index.h"

namespace stipple::ops {

/// similarity[i, j] = exp(-beta |rows[neighbours[i, j]] - queries[i]|^2), 0 for a missing neighbour.
///
/// rows, queries  [n, c], [m, c], as many clouds
/// neighbours     [m, k] indices into the clouds of `rows`, batch of `queries`
/// beta           >= 0
/// similarity     [m, k]
///
/// Distances are summed in double; CPU and CUDA agree to 1e-6 relative. Throws Error{bad_argument} for wrong shapes and
/// mixed devices. O(m k c) time.
void bilateral_similarity(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                          View<float, 2> similarity, Stream stream = {});

/// Gradient with respect to the differences rows[neighbours[i, j]] - queries[i], from which scatter_add makes that of
/// the rows and group_backward_centres that of the queries.
///
/// similarity      [m, k] as it came out
/// dL_dsimilarity  [m, k] contiguous
/// dL_doffsets     [m, k, c], zero for missing neighbours
void bilateral_similarity_backward(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                                   View<const float, 2> similarity, View<const float, 2> dL_dsimilarity,
                                   View<float, 3> dL_doffsets, Stream stream = {});

/// out[i, l] = sum over j of th psi rows[neighbours[i, j], l] / max(sum over j of th psi, guard), all at [i, j, l].
///
/// rows         [n, c]
/// neighbours   [m, k] indices into the clouds of `rows`
/// th, psi      [m, k, c] contiguous
/// guard        > 0: the least denominator; a point all of whose weights are 0 gets zeros
/// out          [m, c]
/// denominator  [m, c], kept for the gradient
///
/// Summed in double in the order of the neighbours; missing ones are left out of both sums. CPU and CUDA agree to 1e-6
/// relative. Throws Error{bad_argument} for wrong shapes and mixed devices. O(m k c) time, bound by memory.
void bilateral_combine(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> th,
                       View<const float, 3> psi, float guard, View<float, 2> out, View<float, 2> denominator,
                       Stream stream = {});

/// Gradients of bilateral_combine, where the guard is active with the denominator as a constant.
///
/// inverse            what invert_index made of the neighbours
/// out, denominator   [m, c] as they came out
/// dL_dth, dL_dpsi    [m, k, c], zero for missing neighbours
/// dL_drows           [n, c], summed in a fixed order without atomics
void bilateral_combine_backward(const Clouds& rows, const Neighbours& neighbours, const InvertedIndex& inverse,
                                View<const float, 3> th, View<const float, 3> psi, float guard,
                                View<const float, 2> out, View<const float, 2> denominator,
                                View<const float, 2> dL_dout, View<float, 3> dL_dth, View<float, 3> dL_dpsi,
                                View<float, 2> dL_drows, Stream stream = {});

namespace cuda {
void bilateral_similarity(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                          View<float, 2> similarity, Stream stream);
void bilateral_similarity_backward(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                                   View<const float, 2> similarity, View<const float, 2> dL_dsimilarity,
                                   View<float, 3> dL_doffsets, Stream stream);
void bilateral_combine(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> th,
                       View<const float, 3> psi, float guard, View<float, 2> out, View<float, 2> denominator,
                       Stream stream);
void bilateral_combine_backward(const Clouds& rows, const Neighbours& neighbours, const InvertedIndex& inverse,
                                View<const float, 3> th, View<const float, 3> psi, float guard,
                                View<const float, 2> out, View<const float, 2> denominator,
                                View<const float, 2> dL_dout, View<float, 3> dL_dth, View<float, 3> dL_dpsi,
                                View<float, 2> dL_drows, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
