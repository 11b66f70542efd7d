#pragma once
// Program: a Network as the engine runs it. lower() folds what can be folded and fuses what can be fused, once and for
// every device; a backend (run/backend.h, of which there are two: cpu/backend.cpp and cuda/backend.cu) then turns each
// step into kernels of its precision.
//
// Almost all work is chains: dense layers applied row by row, one after the other, of which only the last result, or
// only its maximum over the points, is wanted. What lower() does, all of it exact in real arithmetic:
//   - batch norm, actnorm, mix and scale become part of the product before or after them; dropout goes;
//   - x T followed by a product with W becomes one product with the cloud's own matrix W T^T (step fold_matrix);
//   - add_identity becomes part of the bias;
//   - a product over concatenated inputs is cut: parts with one row a cloud, one row a point or a gathered row are
//     multiplied there, where there are fewer rows, and added (Dense::addends); edge features are such parts:
//     W [x_i, x_j, x_j - x_i] = (Wa - Wc) x_i + (Wb + Wc) x_j;
//   - a cheap layer whose result several chains want is computed again in each rather than stored;
//   - bias and activation of a chain's last layer come after its max: both are monotone, and so is rounding.

#include <cstdint>
#include <string>
#include <vector>

#include "stipple/engine/precision.h"
#include "stipple/network/network.h"
#include "stipple/network/weights.h"

namespace stipple::engine {

using network::Activation;
using network::ActivationKind;
using network::Level;
using network::TensorType;

/// A tensor while the program runs: position in Program::values.
using Value = int32_t;

/// How a row of a step finds its row of another value.
enum class Access {
    row,       // the same row
    cloud,     // the row of its cloud
    point,     // the row of its point, from one of the point's rows
    neighbour  // row of the cloud that `indices` gives for this row; both of the step's own point set
};

struct Source {
    Value value = -1;
    Access access = Access::row;
    Value indices = -1;  // for Access::neighbour: [B, N, k] int32, where a row of the step is one of the point's k
};

/// Those that chains apply themselves; others are steps of their own, so that the inner loops stay as they are.
inline bool is_of_chains(const Activation& activation) {
    return activation.kind <= ActivationKind::leaky_relu;
}

/// y = activation(sum over parts of x_p W_p^T + sum of addends + bias). Only the first layer of a chain names parts and
/// addends: the others take the layer before them. A first layer may have addends alone: no parts, in = 0, no weight.
/// A layer with a matrix takes one part or the layer before it; it may have addends.
struct Dense {
    std::string name;             // of the layer it came from; of a product that was cut off, "layer/source"
    std::vector<Source> parts;    // Access::row, channels in this order make up `in`
    std::vector<Source> addends;  // `out` channels each
    Value matrix = -1;            // [B, out * in]: the cloud's own weights, row-major [out, in], instead of `weight`
    int64_t in = 0, out = 0;
    std::vector<float> weight;              // [out, in]; empty when `matrix` is there
    std::vector<float> bias;                // [out]
    Activation activation;                  // one of chains
    Precision precision = Precision::fp32;  // of its product: products with few inputs stay fp32
    float input_range = 0;  // largest magnitude of its input that int8 and fp8 represent; 0: not calibrated
};

enum class Reduce { none, max_points, max_rows };

enum class StepKind {
    chain,        // layers, reduce
    fold_matrix,  // (matrix T [B, k*k]) -> [B, out*k]: weight [out, k] times T^T for every cloud. weight empty: T^T
    rotation,     // as the layer
    constant,     // [B, c]: weight [c] for every cloud
    knn,          // as the layers of the same name, below too. Neighbours that are missing, because points are not
                  // finite, are the point itself, or the first one where there are points beside the queries: every
                  // index is good
    first_neighbours,  // (indices of k neighbours) -> of the nearest ones of them
    edge_distance,
    gather,
    max_points,  // where no chain ends in it
    max_rows,
    sum_points,
    sum_channels,
    copy,  // parts side by side, each with its access: concat, repeat, gather and slice that could not be avoided
    slice,
    reverse,
    unflatten,  // [B, m c] -> [B, m, c]
    regroup,    // [B, N, w, c] -> [B, N, w', c']: w c = w' c'
    softmax_rows,
    interpolate,
    attend,  // (queries, keys, values) as the layer; begin: 1 skips the key of its own place; end: 1 a softmax over
             // the keys, 0 the mean; inverse: of length 1. A channel more than values have: ln of the softmax's sum
    weigh_points,  // [B, N, c + 1] -> [B, N, c]: times a softmax over the points of the last channel
    log_softmax,
    layer_norm,  // (x - mean) / sqrt(variance + factor); weight and bias of the layer are a map after it
    activation,
    add,        // x + factor * y: add and subtract
    multiply,   // x * y
    couple,     // channels from `begin` on plus factor * t
    inject,     // as the layer
    flow_step,  // (x, condition) as the layer; weight: its parameters one after the other; begin: hidden width, end:
                // steps of RK4, 0: residual. A channel more than x has: the log-determinant
    log_det,    // [B, 1]: factor * (points of the cloud)
    gaussian_log_density,
};

struct Step {
    StepKind kind = StepKind::chain;
    std::string name;  // of the layer whose output it makes
    /// Of every kind but chain, whose layers name theirs. All Access::row, but those of copy (any access) and s and b
    /// of inject, y of multiply and the condition of flow_step (row, point or cloud). gather and edge_distance: x, then
    /// the indices. couple: x, t; x has all channels, t those from `begin` on. copy, slice and reverse may have int32
    /// neither in nor out.
    std::vector<Source> inputs;
    Value output = -1;
    std::vector<Dense> layers;     // chain: one or more
    Reduce reduce = Reduce::none;  // chain
    Level level = Level::point;    // chain: what a row of its layers belongs to
    int64_t width = 1;             // chain: rows of each point, before the reduction
    int32_t set = 0;               // the point set whose points its rows belong to, or that it counts; of clouds 0
    std::vector<float> weight;     // fold_matrix, constant, flow_step
    int64_t begin = 0, end = 0;    // slice, couple, flow_step, attend
    float factor = 1;              // add, couple, log_det, layer_norm, attend
    bool inverse = false;          // inject, rotation, flow_step, attend
    Activation activation;         // activation, flow_step
};

struct ValueInfo {
    std::string name;
    TensorType type;
};

struct Binding {
    std::string name;
    Value value = -1;
};

struct Program {
    std::string name;  // of the network
    std::vector<ValueInfo> values;
    std::vector<Step> steps;  // in order of execution
    std::vector<Binding> inputs, outputs;
};

/// A point set of a program.
struct PointSet {
    int64_t points = 0;    // of every cloud, where the program makes it; 0: the caller's
    bool is_used = false;  // some value has rows of its points
};
/// All of them, by number; at least one.
std::vector<PointSet> point_sets(const Program& program);

/// Throws Error{bad_argument} or Error{bad_file} from validate() and check_weights().
Program lower(const network::Network& network, const network::Weights& weights);

/// Multiply-adds of all steps for one cloud of n points: what the program really computes.
int64_t multiply_adds(const Program& program, int64_t n);

/// One line a step, chains with their layers indented. For people.
std::string to_text(const Program& program);

/// First and last step that touches each value; inputs live from step 0, outputs to the end.
struct Lifetime {
    int32_t first = 0, last = 0;
};
std::vector<Lifetime> lifetimes(const Program& program);

/// Offsets in one block such that values alive at the same time do not overlap; every offset a multiple of 256. bytes:
/// of each value, 0 for those that live elsewhere (inputs and outputs of the caller).
struct MemoryPlan {
    std::vector<int64_t> offsets;
    int64_t bytes = 0;
};
MemoryPlan plan_memory(const Program& program, const std::vector<int64_t>& bytes);
/// The same for lifetimes that a backend has counted by itself: in groups of steps, or rows of one cloud at a time.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& bytes);

}  // namespace stipple::engine
