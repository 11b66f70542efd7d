#pragma once
// The ops of stipple/ops as functions of torch tensors with gradients.
//
//   const learn::Neighbours near = {learn::knn(points, queries, 3).indices, queries.batch};
//   torch::Tensor grouped = learn::group(points, near, queries.rows);        // [m, k, 3]
//   learn::chamfer({made, batch}, truth, ops::DistanceNorm::squared).a_to_b.mean().backward();
//
// Numbers, ties and missing neighbours are those of the op of the same name: its header has the contract. What holds
// for all of them:
//
//   - Tensors are rows of channels, as in module.h: clouds one after the other, a batch says where they begin.
//   - Ops work on the tensors' own memory, on torch's current stream, and wait for nothing that the op itself does not
//     wait for. A tensor that is not contiguous is made so first, which copies it.
//   - Numbers are float32 and indices int32, all on one device. Error{bad_argument} says which tensor is not; what does
//     not fit in its shape is told by the op.
//   - Gradients are computed where torch wants them, and are the same from run to run. The gradient of a distance of 0
//     is 0.
//   - Without gradients (NoGradGuard, or no input that requires one) nothing is kept. Otherwise the inputs are, and an
//     input that is changed before the backward pass is an error.
//   - There is no second derivative: backward with create_graph works, and differentiating its result throws, as with
//     Python's once_differentiable.
//   - Where an op would pass over a NaN or infinity, the function here does not, so that a diverged network is seen:
//     each says how.

#include <torch/types.h>

#include "stipple/ops/distance_norm.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/kernel_interpolate.h"
#include "stipple/ops/sinkhorn.h"
#include "stipple/ops/three_interpolate.h"

namespace stipple::learn {

/// Rows [n, c] of a batch of clouds.
struct Clouds {
    torch::Tensor rows;
    ops::Batch batch;
};

/// Indices [m, k] int32 that name rows of other clouds, counted from the first row of each; `batch` holds the m rows.
/// One outside its cloud, -1 above all, is a missing neighbour.
struct Neighbours {
    torch::Tensor indices;
    ops::Batch batch;
};

// --- distances of clouds -------------------------------------------------------------------------------------------

struct ChamferMeans {
    torch::Tensor a_to_b, b_to_a;  // [clouds] mean distance of a cloud's points to the nearest of the other
};

/// ops::chamfer, both ways. Gradients for a and b, the choice of nearest points held fixed. A pair of clouds with a
/// point that is not finite has NaN both ways and in its gradients; so has one with an empty cloud.
ChamferMeans chamfer(const Clouds& a, const Clouds& b, ops::DistanceNorm norm);

struct EmdMatching {
    torch::Tensor cost;         // [clouds] mean over the matched pairs
    torch::Tensor lower_bound;  // [clouds] without gradient
    torch::Tensor matching;     // [rows of a] int32: the partner in b
};

/// ops::emd, between clouds of equal sizes. Gradients of the cost for a and b, the matching held fixed. A pair of
/// clouds with a point that is not finite has cost NaN and NaN in its gradients.
EmdMatching emd(const Clouds& a, const Clouds& b, const ops::EmdOptions& options = {});

struct SinkhornTransport {
    torch::Tensor dual;   // [clouds] the regularised optimum
    torch::Tensor cost;   // [clouds] of the plan; without gradient
    torch::Tensor error;  // [clouds] of the plan's row sums; without gradient
};

/// ops::sinkhorn with equal weights, between clouds of any sizes. Gradients of the dual for a and b, exact at
/// convergence. A pair of clouds with a point that is not finite has dual NaN and NaN in its gradients.
SinkhornTransport sinkhorn(const Clouds& a, const Clouds& b, const ops::SinkhornOptions& options = {});

// --- neighbours and their rows -------------------------------------------------------------------------------------

struct NearestPoints {
    torch::Tensor indices;       // [m, k] int32, nearest first; -1 for none
    torch::Tensor distances_sq;  // [m, k]; +infinity for none
};

/// ops::knn among points that are searched once. Gradients of the squared distances for points and queries.
NearestPoints knn(const Clouds& points, const Clouds& queries, int64_t k);

/// ops::gather: out[i] = rows[indices[i]], indices [m] int32 of the clouds of `of_indices`. [m, c].
torch::Tensor gather(const Clouds& rows, const torch::Tensor& indices, const ops::Batch& of_indices);

/// ops::group: [m, k, c], less the centres [m, c] where there are any (undefined: none). Gradients for rows and
/// centres.
torch::Tensor group(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& centres = {});

// --- weights and weighted sums -------------------------------------------------------------------------------------

/// ops::interpolate: out[i, r] = sum over j of weights[i, r, j] rows[neighbours[i, j]]; weights [m, q, k], out
/// [m, q, c]. Gradients for rows and weights. A weight of exactly 0 passes over a row, NaN or not, as in the op.
torch::Tensor interpolate(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& weights);

/// ops::three_weights: inverse distances that sum to 1, [m, k] of squared distances [m, k].
torch::Tensor three_weights(const torch::Tensor& distances_sq, const ops::InverseDistance& options = {});

/// PointNet++'s feature propagation: knn, three_weights and interpolate. features [n, c] of the known points [n, 3];
/// [m, c]. Gradients for features, known points and queries. A query that is not finite gets NaN.
torch::Tensor three_interpolate(const torch::Tensor& features, const Clouds& known, const Clouds& queries,
                                int64_t k = 3, const ops::InverseDistance& options = {});

/// ops::kernel_weights: [m, q, k] for kernel points [q, 3]. interpolate() does the rest. Gradients for points, queries
/// and kernel. A query that is not finite gets NaN.
torch::Tensor kernel_weights(const Clouds& points, const Clouds& queries, const torch::Tensor& neighbours,
                             const torch::Tensor& kernel, const ops::KernelWeights& options);

/// ops::bilateral_similarity: exp(-beta |row - query|^2), [m, k]. Gradients for rows and queries.
torch::Tensor bilateral_similarity(const Clouds& rows, const Clouds& queries, const torch::Tensor& neighbours,
                                   float beta);

/// ops::bilateral_combine: sums of rows with the weights th psi, each [m, k, c], over max(sum of weights, guard);
/// [m, c]. Gradients for rows, th and psi.
torch::Tensor bilateral_combine(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& th,
                                const torch::Tensor& psi, float guard = 1e-8f);

struct SoftProjection {
    torch::Tensor projected;  // [m, 3]
    torch::Tensor weights;    // [m, k], for interpolate() of features
};

/// ops::soft_project: queries [m, 3] onto the neighbours [m, k] among the points [n, 3], temperature [1]. Gradients for
/// queries and temperature; the points get none, as in the paper. A query that is not finite gets NaN.
SoftProjection soft_project(const Clouds& points, const Clouds& queries, const torch::Tensor& neighbours,
                            const torch::Tensor& temperature, float min_sigma);

/// ops::simplification of the beginnings of queries, dense: [clouds, sizes, 3] float64. nearest: [m] of knn. Gradients
/// for the queries alone, what is nearest held fixed.
torch::Tensor simplification(const Clouds& points, const Clouds& queries, const torch::Tensor& nearest,
                             std::vector<int64_t> sizes);

}  // namespace stipple::learn
