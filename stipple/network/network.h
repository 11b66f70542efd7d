#pragma once
// Network: a model as data. A static graph of layers, in the order in which they can be run; every layer has one
// output.
//
// A tensor is rows of channels, and a row belongs to a cloud or to a point. A point may have several rows: one for each
// of its neighbours or children. So a network knows no batch and no number of points: it runs on any of them, ragged
// batches included. In text: [B, 1024] a row for each cloud, [B, N, 64] a row for each point, [B, N, 16, 64] sixteen
// rows for each point.
//
// Points belong to a point set. Most networks have one, number 0. Others have several, of the same clouds but with
// numbers of points of their own: queries beside their cloud, a template beside a source. In text [B, N1, 64] is set 1.
// A set may also be made by the network, with the same number of points for every cloud (unflatten): [B, 32, 64].
//
//   Builder build("pointnet-classifier");
//   Tensor x = build.input("points", points_of(3));
//   x = build.linear("conv1", x, 64, {.norm = true, .activation = relu()});
//   x = build.max_points("pool", x);
//   build.output("logits", build.linear("fc", x, 40));
//   Network network = build.finish();
//
// Three readers share it: the engine compiles it, the trainer runs it under autograd, onnx.h writes it for others.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stipple::network {

/// What a row of a tensor belongs to.
enum class Level { cloud, point };

struct TensorType {
    Level level = Level::point;
    int64_t width = 1;      // rows of each point: neighbours or children. Always 1 for clouds
    int64_t channels = 0;   // numbers of a row
    bool is_index = false;  // int32 positions in a cloud, else float32. One channel, `width` neighbours
    int32_t set = 0;        // the point set whose points have these rows. Always 0 for clouds
    int32_t of = 0;         // of indices: the point set whose points they name
    int64_t points = 0;     // of a set that the network makes: points of every cloud. 0: the caller's number

    bool operator==(const TensorType&) const = default;
};

inline TensorType clouds_of(int64_t channels) {
    return {Level::cloud, 1, channels};
}
inline TensorType points_of(int64_t channels, int32_t set = 0) {
    return {Level::point, 1, channels, false, set};
}
inline TensorType rows_of(int64_t width, int64_t channels, int32_t set = 0) {
    return {Level::point, width, channels, false, set};
}
/// Rows of the same points as `type`.
inline TensorType rows_of(const TensorType& type, int64_t width, int64_t channels) {
    return {type.level, width, channels, false, type.set, 0, type.points};
}

/// "[B, N, 16, 64]"; indices "[B, N, 16] int32", "[B, N1, 16] int32 of set 0"; a set of 32 points "[B, 32, 64]".
std::string to_string(const TensorType& type);

constexpr int32_t kMostSets = 64;

/// A layer's output: the layer's position in Network::layers.
using Tensor = int32_t;

enum class Kind {
    input,          // points or other data of the caller
    learned,        // [B, c]: numbers that are learned, the same row for every cloud
    constant,       // [B, c]: `values`, the same row for every cloud
    linear,         // x W^T + b, then batch norm, then the activation: each but the product is optional
    activation,     // the activation alone
    dropout,        // while training; otherwise passes x on
    transform,      // (x [.., k], matrix [B, k*k]): every row times its cloud's k x k matrix, x T
    add_identity,   // [B, k*k] plus the k x k identity
    rotation,       // quaternions [.., 4] (w, x, y, z) of any length -> 3 x 3 matrices [.., 9], or their transposes
    max_points,     // [B, N, w, c] -> [B, c]
    sum_points,     // [B, N, w, c] -> [B, c]
    max_rows,       // [B, N, w, c] -> [B, N, c]
    sum_channels,   // [.., c] -> [.., 1]
    concat,         // channels side by side; all inputs have the same rows
    slice,          // channels [begin, end)
    reverse,        // channels in reversed order
    repeat,         // [B, c] -> [B, N, c] (width 1) for the points of a set, or [B, N, c] -> [B, N, width, c]
    unflatten,      // [B, m c] -> [B, m, c]: points of a set that it makes, m of every cloud
    regroup,        // [B, N, w, c] -> [B, N, w c / channels, channels]: the numbers of a point cut into other rows
    knn,            // points [B, N, c] -> the `width` nearest of the same cloud, nearest first, itself included;
                    // (queries [B, N, c], points [B, M, c]) -> of each query the nearest points of its cloud
    gather,         // (x [B, M, c], indices [B, N, k] of x's set) -> [B, N, k, c]
    edge,           // (x [B, N, c], indices [B, N, k]) -> [B, N, k, 3c]: x_i, x_j, x_j - x_i
    edge_distance,  // (x [B, N, c], indices [B, N, k]) -> [B, N, k, 3c+1]: x_i, x_j, x_i - x_j, |x_i - x_j|
    softmax_rows,   // softmax over the w rows of a point, channel by channel
    attend,         // (queries [B, N, d], keys [B, M, d], values [B, M, c]) -> [B, N, c]: values of the cloud, each
                    // weighted by factor * <query, key>, normalised as `normalise` says. With `unit` the products are
                    // those of x / sqrt(|x|^2 + kUnitGuard); with `skips_self` no point sees the key of its own place:
                    // zeros where there is no other. At most kMostAttendChannels in d and c
    interpolate,    // (weights [B, N, k, r], values [B, N, k, c]) -> [B, N, r, c]: sum over k
    log_softmax,    // over the channels
    layer_norm,     // (x - mean) / sqrt(variance + eps) over the channels of a row, times weight, plus bias
    add,            // x + y, same type
    subtract,       // x - y, same type
    multiply,       // x * y, number by number, same type
    scale,          // factor * x
    actnorm,        // x exp(logs) + bias, or its inverse
    mix,            // W x for every row, or W^-1 x: the invertible matrix of a flow
    couple,         // (x, t): channels from `begin` on minus t, or plus t in the inverse
    inject,         // (x, s, b): (x - b) exp(-s), or x exp(s) + b in the inverse
    flow_step,      // (x [.., c], condition [.., 2 (2 h + c)]) -> [.., c], or its inverse: a step with a small network
                    // g(x), c -> h -> h -> c. With `steps` 0 it is x + g(x), else x at time 1 of dx/dt = g(x, t) from x
                    // at time 0 by that many steps of RK4. c is at most 3 (kMostFlowChannels). A layer of g is
                    // (W v) sigmoid(gate) + shift, the first two with the activation behind; the condition holds
                    // the shifts of the three layers (h, h, c numbers), then their gates; both grow linearly with t by
                    // the parameter `time`. With `log_det` -> [.., c + 1]: ln |det J| is the last channel, exact, of an
                    // ODE the integral of the exact trace. A residual step has an inverse where Lip(g) < 1
    flow_log_det,   // (x [B, N, c]) -> [B, 1]: what the actnorm or mix of that name adds to log |det J| of N points
    gaussian_log_density,  // (z [B, N, c]) -> [B, 1]: sum of -(z^2 + ln 2 pi) / 2
};

std::string_view name_of(Kind kind);  // "max_points"

enum class ActivationKind {
    none,
    relu,        // max(x, 0)
    leaky_relu,  // x, or slope * x below zero
    tanh,
    sigmoid,   // 1 / (1 + exp(-x))
    elu,       // x, or slope * (exp(x) - 1) below zero: `slope` is its alpha
    gelu,      // x * Phi(x), Phi the normal distribution function: by erf, not by its approximation with tanh
    swish,     // x * sigmoid(x), also called SiLU
    softplus,  // ln(1 + exp(x))
    log,       // ln(max(x, 0) + slope): `slope` keeps it finite
};
std::string_view name_of(ActivationKind kind);  // "leaky_relu"
std::optional<ActivationKind> activation_named(std::string_view name);
/// The range of `slope` that an activation wants, and whether it is inside. An activation without one has 0.
struct SlopeRange {
    float above = 0, below = 0;  // both excluded; equal: it has none
    bool contains(float slope) const { return above < below ? slope > above && slope < below : slope == 0; }
};
SlopeRange slope_range(ActivationKind kind);
struct Activation {
    ActivationKind kind = ActivationKind::none;
    float slope = 0;  // of leaky_relu below zero, 0 < slope < 1; of elu just below zero, slope > 0; of log, slope > 0
    bool operator==(const Activation&) const = default;
};
inline Activation relu() {
    return {ActivationKind::relu, 0};
}
inline Activation leaky_relu(float slope) {
    return {ActivationKind::leaky_relu, slope};
}

inline Activation tanh() {
    return {ActivationKind::tanh, 0};
}
inline Activation sigmoid() {
    return {ActivationKind::sigmoid, 0};
}
inline Activation elu(float alpha = 1) {
    return {ActivationKind::elu, alpha};
}
inline Activation gelu() {
    return {ActivationKind::gelu, 0};
}
inline Activation swish() {
    return {ActivationKind::swish, 0};
}
inline Activation softplus() {
    return {ActivationKind::softplus, 0};
}
inline Activation log(float least) {
    return {ActivationKind::log, least};
}

/// What weights of attention are, of the products of queries and keys.
enum class Normalise {
    row,    // a softmax over the keys of each query
    joint,  // a softmax over all pairs of the cloud
    none,   // the products over the number of keys, a point's own included
};
std::string_view name_of(Normalise normalise);  // "row"

/// Of attend: most channels, and what is added to squared lengths.
constexpr int64_t kMostAttendChannels = 256;
constexpr float kUnitGuard = 1e-12f;

/// Of a flow_step: channels that it moves, and width of its hidden layers.
constexpr int64_t kMostFlowChannels = 3, kMostFlowHidden = 64;
/// Channels of the condition of a flow_step.
inline int64_t flow_condition_channels(int64_t channels, int64_t hidden) {
    return 2 * (2 * hidden + channels);
}

/// How a parameter starts.
enum class Initialiser {
    zeros,
    ones,
    fan_in_uniform,     // +-1/sqrt(inputs): PyTorch's Linear, weight and bias. Beside any other, a bias starts at zero
    xavier_normal,      // N(0, 2 / (inputs + outputs))
    random_orthogonal,  // a random orthogonal matrix
};

/// What a kind needs beside its inputs. Fields that a kind does not name are left as they are here.
struct LayerOptions {
    int64_t channels = 0;    // linear, learned: outputs. unflatten, regroup: of a row. flow_step: of its hidden layers
    TensorType type = {};    // input
    bool bias = true;        // linear
    bool norm = false;       // linear: batch norm over all rows
    float norm_eps = 1e-5f;  // linear with norm, layer_norm
    float norm_momentum = 0.1f;                         // linear with norm, while training
    Activation activation;                              // linear, activation; flow_step: tanh or swish
    Initialiser weights = Initialiser::fan_in_uniform;  // linear, mix, learned
    float rate = 0;                                     // dropout: probability of a zero
    int64_t begin = 0, end = 0;                         // slice; couple (begin)
    int64_t width = 1;                                  // repeat, knn
    int32_t set = 0;                        // repeat of clouds: the set whose points get them; unflatten: its own
    float factor = 1;                       // scale, attend
    bool inverse = false;                   // actnorm, mix, couple, inject, rotation, flow_step
    int64_t steps = 0;                      // flow_step: of RK4; 0: a residual step
    bool log_det = false;                   // flow_step: ln |det J| behind its channels
    std::vector<float> values;              // constant
    Normalise normalise = Normalise::row;   // attend
    bool unit = false, skips_self = false;  // attend
};

struct Layer {
    std::string name;  // unique in the network: "stn.conv1"
    Kind kind = Kind::input;
    std::vector<Tensor> inputs;
    LayerOptions options;
    /// Prefix of its parameters, its own name unless it shares those of another layer (a flow and its inverse).
    std::string parameters;
    TensorType type;  // of its output; inferred
};

struct Output {
    std::string name;
    Tensor tensor = -1;
};

struct Network {
    std::string name;                           // of the architecture: "pointnet-classifier"
    std::map<std::string, std::string> config;  // what its builder was asked for; travels with the weights
    std::vector<Layer> layers;
    std::vector<Output> outputs;

    const Layer& operator[](Tensor tensor) const { return layers[static_cast<size_t>(tensor)]; }
};

struct Parameter {
    std::string name;  // "stn.conv1.weight"
    std::vector<int64_t> shape;
    Initialiser initialiser = Initialiser::zeros;
    bool is_trained = true;  // false: running statistics of batch norm
    std::string layer;       // the first that uses it
};

/// Parameters of one layer, in order. learned: value [c]. linear: weight [out, in], bias [out], norm.weight, norm.bias,
/// norm.running_mean, norm.running_var [out]. layer_norm: weight [c], bias [c]. actnorm: logs [c], bias [c]. mix:
/// weight [c, c]. flow_step: 0.weight [h, c], 1.weight [h, h], 2.weight [c, h], of an ODE time [2 (2 h + c)].
/// flow_log_det: those of its name.
std::vector<Parameter> parameters_of(const Network& network, const Layer& layer);
/// Of the whole network, each name once.
std::vector<Parameter> parameters_of(const Network& network);

/// The type that a layer's output has, from its kind, options and the types of its inputs. Throws Error{bad_argument}
/// that names the layer, what it needs and what it got.
TensorType infer_type(const Network& network, const Layer& layer);

/// Everything that a Network promises: names unique and made of [a-z0-9_.-], inputs before their layers, types as
/// inferred, parameters shared as a whole and with a layer of the same kind before, at least one output and one input.
/// Throws Error{bad_argument} naming the layer.
void validate(const Network& network);

/// One line a layer: name, kind, options, inputs, type, parameters, then sums. For people.
std::string to_text(const Network& network);

/// Multiply-adds of all products for one cloud of n points in every set of the caller, as the graph is written (nothing
/// folded or split).
int64_t multiply_adds(const Network& network, int64_t n);

}  // namespace stipple::network
