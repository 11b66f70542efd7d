#pragma once
// Builder: writes a Network layer by layer. Every call infers the type at once, so a mistake is reported by the line
// that makes it: Error{bad_argument} with the layer's name, what it needs and what it got.
//
// Layers are in the order of the calls, and compilers evaluate the arguments of a call in different orders: of the
// arguments of one call, at most one may call the builder (a test looks for others). The parts of a braced list, as of
// concat(), are evaluated from the left.

#include "stipple/network/network.h"

namespace stipple::network {

/// For linear(): what follows the product.
struct LinearOptions {
    bool bias = true;
    bool norm = false;
    float norm_eps = 1e-5f;
    Activation activation = {};
    Initialiser weights = Initialiser::fan_in_uniform;
};

/// For flow_step().
struct FlowStepOptions {
    int64_t hidden = 64;              // 1 to kMostFlowHidden
    int64_t steps = 0;                // of RK4, at most 1000; 0: a residual step
    Activation activation = swish();  // or tanh()
    bool log_det = false;
    bool inverse = false;
};

/// For attend().
struct AttendOptions {
    Normalise normalise = Normalise::row;
    float factor = 1;
    bool unit = false;
    bool skips_self = false;
};

class Builder {
public:
    explicit Builder(std::string network_name) { network_.name = std::move(network_name); }

    Tensor input(std::string name, TensorType type) {
        LayerOptions options;
        options.type = type;
        options.channels = type.channels;
        return add_layer(std::move(name), Kind::input, {}, options);
    }
    /// A learned scalar, or several; `start` is zeros or ones.
    Tensor learned(std::string name, int64_t channels = 1, Initialiser start = Initialiser::ones) {
        LayerOptions options;
        options.channels = channels;
        options.weights = start;
        return add_layer(std::move(name), Kind::learned, {}, options);
    }
    Tensor constant(std::string name, std::vector<float> values) {
        LayerOptions options;
        options.channels = static_cast<int64_t>(values.size());
        options.values = std::move(values);
        return add_layer(std::move(name), Kind::constant, {}, std::move(options));
    }
    Tensor linear(std::string name, Tensor x, int64_t channels, const LinearOptions& options = {});
    /// A second use of another layer's parameters.
    Tensor linear_sharing(std::string name, Tensor x, int64_t channels, const LinearOptions& options,
                          std::string parameters);
    Tensor activation(std::string name, Tensor x, Activation activation) {
        LayerOptions options;
        options.activation = activation;
        return add_layer(std::move(name), Kind::activation, {x}, options);
    }
    Tensor dropout(std::string name, Tensor x, float rate) {
        LayerOptions options;
        options.rate = rate;
        return add_layer(std::move(name), Kind::dropout, {x}, options);
    }
    Tensor transform(std::string name, Tensor x, Tensor matrix) {
        return add_layer(std::move(name), Kind::transform, {x, matrix});
    }
    Tensor add_identity(std::string name, Tensor matrix) {
        return add_layer(std::move(name), Kind::add_identity, {matrix});
    }
    /// R with R v the turned column v; the identity for a quaternion of zeros. Rows of points are turned by transform()
    /// with its transpose, the inverse rotation.
    Tensor rotation(std::string name, Tensor quaternion, bool inverse = false) {
        LayerOptions options;
        options.inverse = inverse;
        return add_layer(std::move(name), Kind::rotation, {quaternion}, options);
    }
    Tensor max_points(std::string name, Tensor x) { return add_layer(std::move(name), Kind::max_points, {x}); }
    Tensor sum_points(std::string name, Tensor x) { return add_layer(std::move(name), Kind::sum_points, {x}); }
    Tensor max_rows(std::string name, Tensor x) { return add_layer(std::move(name), Kind::max_rows, {x}); }
    Tensor sum_channels(std::string name, Tensor x) { return add_layer(std::move(name), Kind::sum_channels, {x}); }
    Tensor concat(std::string name, std::vector<Tensor> parts) {
        return add_layer(std::move(name), Kind::concat, std::move(parts));
    }
    Tensor slice(std::string name, Tensor x, int64_t begin, int64_t end) {
        LayerOptions options;
        options.begin = begin;
        options.end = end;
        return add_layer(std::move(name), Kind::slice, {x}, options);
    }
    Tensor reverse(std::string name, Tensor x) { return add_layer(std::move(name), Kind::reverse, {x}); }
    Tensor repeat(std::string name, Tensor x, int64_t width = 1) {
        LayerOptions options;
        options.width = width;
        return add_layer(std::move(name), Kind::repeat, {x}, options);
    }
    /// A cloud's row for every point of a set.
    Tensor repeat_for_set(std::string name, Tensor x, int32_t set) {
        LayerOptions options;
        options.set = set;
        return add_layer(std::move(name), Kind::repeat, {x}, options);
    }
    Tensor knn(std::string name, Tensor points, int64_t k) {
        LayerOptions options;
        options.width = k;
        return add_layer(std::move(name), Kind::knn, {points}, options);
    }
    /// The points of a new set, or of one that an unflatten before has made with as many points.
    Tensor unflatten(std::string name, Tensor x, int64_t channels, int32_t set = -1) {
        LayerOptions options;
        options.channels = channels;
        options.set = set >= 0 ? set : next_set();
        return add_layer(std::move(name), Kind::unflatten, {x}, options);
    }
    /// Rows of `channels` numbers from those of each point, in the order in which they are.
    Tensor regroup(std::string name, Tensor x, int64_t channels) {
        LayerOptions options;
        options.channels = channels;
        return add_layer(std::move(name), Kind::regroup, {x}, options);
    }
    Tensor attend(std::string name, Tensor queries, Tensor keys, Tensor values, const AttendOptions& options = {});
    /// Of each query the k nearest points of its cloud.
    Tensor knn(std::string name, Tensor queries, Tensor points, int64_t k) {
        LayerOptions options;
        options.width = k;
        return add_layer(std::move(name), Kind::knn, {queries, points}, options);
    }
    Tensor gather(std::string name, Tensor x, Tensor indices) {
        return add_layer(std::move(name), Kind::gather, {x, indices});
    }
    Tensor edge(std::string name, Tensor x, Tensor indices) {
        return add_layer(std::move(name), Kind::edge, {x, indices});
    }
    Tensor edge_distance(std::string name, Tensor x, Tensor indices) {
        return add_layer(std::move(name), Kind::edge_distance, {x, indices});
    }
    Tensor softmax_rows(std::string name, Tensor x) { return add_layer(std::move(name), Kind::softmax_rows, {x}); }
    Tensor interpolate(std::string name, Tensor weights, Tensor values) {
        return add_layer(std::move(name), Kind::interpolate, {weights, values});
    }
    Tensor log_softmax(std::string name, Tensor x) { return add_layer(std::move(name), Kind::log_softmax, {x}); }
    Tensor layer_norm(std::string name, Tensor x, float eps = 1e-5f) {
        LayerOptions options;
        options.norm_eps = eps;
        return add_layer(std::move(name), Kind::layer_norm, {x}, options);
    }
    Tensor add(std::string name, Tensor x, Tensor y) { return add_layer(std::move(name), Kind::add, {x, y}); }
    Tensor subtract(std::string name, Tensor x, Tensor y) { return add_layer(std::move(name), Kind::subtract, {x, y}); }
    Tensor multiply(std::string name, Tensor x, Tensor y) { return add_layer(std::move(name), Kind::multiply, {x, y}); }
    Tensor scale(std::string name, Tensor x, float factor) {
        LayerOptions options;
        options.factor = factor;
        return add_layer(std::move(name), Kind::scale, {x}, options);
    }
    /// Flow layers: `parameters` names the layer whose parameters they use, their own when empty.
    Tensor actnorm(std::string name, Tensor x, bool inverse = false, std::string parameters = {}) {
        LayerOptions options;
        options.inverse = inverse;
        return add_layer(std::move(name), Kind::actnorm, {x}, options, std::move(parameters));
    }
    Tensor mix(std::string name, Tensor x, bool inverse = false, std::string parameters = {}) {
        LayerOptions options;
        options.weights = Initialiser::random_orthogonal;
        options.inverse = inverse;
        return add_layer(std::move(name), Kind::mix, {x}, options, std::move(parameters));
    }
    Tensor couple(std::string name, Tensor x, Tensor t, int64_t begin, bool inverse = false) {
        LayerOptions options;
        options.begin = begin;
        options.inverse = inverse;
        return add_layer(std::move(name), Kind::couple, {x, t}, options);
    }
    Tensor inject(std::string name, Tensor x, Tensor s, Tensor b, bool inverse = false) {
        LayerOptions options;
        options.inverse = inverse;
        return add_layer(std::move(name), Kind::inject, {x, s, b}, options);
    }
    /// condition: what a linear layer with flow_condition_channels() outputs makes of features.
    Tensor flow_step(std::string name, Tensor x, Tensor condition, const FlowStepOptions& options,
                     std::string parameters = {});
    Tensor flow_log_det(std::string name, Tensor x, std::string parameters);
    Tensor gaussian_log_density(std::string name, Tensor z) {
        return add_layer(std::move(name), Kind::gaussian_log_density, {z});
    }

    void output(std::string name, Tensor tensor);

    const TensorType& type(Tensor tensor) const { return network_[tensor].type; }
    /// The lowest point set after those that are there.
    int32_t next_set() const {
        int32_t next = 0;
        for (const Layer& layer : network_.layers)
            if (layer.type.level == Level::point && layer.type.set >= next) next = layer.type.set + 1;
        return next;
    }

    /// Validates and hands over.
    Network finish(std::map<std::string, std::string> config = {});

private:
    Tensor add_layer(std::string name, Kind kind, std::vector<Tensor> inputs, LayerOptions options = {},
                     std::string parameters = {});

    Network network_;
};

}  // namespace stipple::network
