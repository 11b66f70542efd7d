#include "stipple/network/builder.h"

#include <limits>

#include "stipple/core/error.h"
#include "stipple/network/check_layer.h"

namespace stipple::network {
namespace {

LayerOptions linear_options(int64_t channels, const LinearOptions& options) {
    LayerOptions result;
    result.channels = channels;
    result.bias = options.bias;
    result.norm = options.norm;
    result.norm_eps = options.norm_eps;
    result.activation = options.activation;
    result.weights = options.weights;
    return result;
}

}  // namespace

Tensor Builder::add_layer(std::string name, Kind kind, std::vector<Tensor> inputs, LayerOptions options,
                          std::string parameters) {
    STIPPLE_REQUIRE(network_.layers.size() < size_t{std::numeric_limits<Tensor>::max()}, "too many layers");
    if (parameters.empty()) parameters = name;
    Layer layer{std::move(name), kind, std::move(inputs), std::move(options), std::move(parameters), {}};
    layer.type = check_layer(network_, network_.layers.size(), layer);
    network_.layers.push_back(std::move(layer));
    return static_cast<Tensor>(network_.layers.size() - 1);
}

Tensor Builder::input(std::string name, TensorType type) {
    LayerOptions options;
    options.type = type;
    options.channels = type.channels;
    return add_layer(std::move(name), Kind::input, {}, options);
}

Tensor Builder::linear(std::string name, Tensor x, int64_t channels, const LinearOptions& options) {
    return add_layer(std::move(name), Kind::linear, {x}, linear_options(channels, options));
}

Tensor Builder::linear_sharing(std::string name, Tensor x, int64_t channels, const LinearOptions& options,
                               std::string parameters) {
    return add_layer(std::move(name), Kind::linear, {x}, linear_options(channels, options), std::move(parameters));
}

Tensor Builder::activation(std::string name, Tensor x, Activation activation) {
    LayerOptions options;
    options.activation = activation;
    return add_layer(std::move(name), Kind::activation, {x}, options);
}

Tensor Builder::dropout(std::string name, Tensor x, float rate) {
    LayerOptions options;
    options.rate = rate;
    return add_layer(std::move(name), Kind::dropout, {x}, options);
}

Tensor Builder::transform(std::string name, Tensor x, Tensor matrix) {
    return add_layer(std::move(name), Kind::transform, {x, matrix});
}

Tensor Builder::add_identity(std::string name, Tensor matrix) {
    return add_layer(std::move(name), Kind::add_identity, {matrix});
}

Tensor Builder::max_points(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::max_points, {x});
}

Tensor Builder::sum_points(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::sum_points, {x});
}

Tensor Builder::max_rows(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::max_rows, {x});
}

Tensor Builder::sum_channels(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::sum_channels, {x});
}

Tensor Builder::concat(std::string name, std::vector<Tensor> parts) {
    return add_layer(std::move(name), Kind::concat, std::move(parts));
}

Tensor Builder::slice(std::string name, Tensor x, int64_t begin, int64_t end) {
    LayerOptions options;
    options.begin = begin;
    options.end = end;
    return add_layer(std::move(name), Kind::slice, {x}, options);
}

Tensor Builder::reverse(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::reverse, {x});
}

Tensor Builder::repeat(std::string name, Tensor x, int64_t width) {
    LayerOptions options;
    options.width = width;
    return add_layer(std::move(name), Kind::repeat, {x}, options);
}

Tensor Builder::knn(std::string name, Tensor points, int64_t k) {
    LayerOptions options;
    options.width = k;
    return add_layer(std::move(name), Kind::knn, {points}, options);
}

Tensor Builder::gather(std::string name, Tensor x, Tensor indices) {
    return add_layer(std::move(name), Kind::gather, {x, indices});
}

Tensor Builder::edge(std::string name, Tensor x, Tensor indices) {
    return add_layer(std::move(name), Kind::edge, {x, indices});
}

Tensor Builder::edge_distance(std::string name, Tensor x, Tensor indices) {
    return add_layer(std::move(name), Kind::edge_distance, {x, indices});
}

Tensor Builder::softmax_rows(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::softmax_rows, {x});
}

Tensor Builder::interpolate(std::string name, Tensor weights, Tensor values) {
    return add_layer(std::move(name), Kind::interpolate, {weights, values});
}

Tensor Builder::log_softmax(std::string name, Tensor x) {
    return add_layer(std::move(name), Kind::log_softmax, {x});
}

Tensor Builder::add(std::string name, Tensor x, Tensor y) {
    return add_layer(std::move(name), Kind::add, {x, y});
}

Tensor Builder::subtract(std::string name, Tensor x, Tensor y) {
    return add_layer(std::move(name), Kind::subtract, {x, y});
}

Tensor Builder::scale(std::string name, Tensor x, float factor) {
    LayerOptions options;
    options.factor = factor;
    return add_layer(std::move(name), Kind::scale, {x}, options);
}

Tensor Builder::actnorm(std::string name, Tensor x, bool inverse, std::string parameters) {
    LayerOptions options;
    options.inverse = inverse;
    return add_layer(std::move(name), Kind::actnorm, {x}, options, std::move(parameters));
}

Tensor Builder::mix(std::string name, Tensor x, bool inverse, std::string parameters) {
    LayerOptions options;
    options.weights = Initialiser::random_orthogonal;
    options.inverse = inverse;
    return add_layer(std::move(name), Kind::mix, {x}, options, std::move(parameters));
}

Tensor Builder::couple(std::string name, Tensor x, Tensor t, int64_t begin, bool inverse) {
    LayerOptions options;
    options.begin = begin;
    options.inverse = inverse;
    return add_layer(std::move(name), Kind::couple, {x, t}, options);
}

Tensor Builder::inject(std::string name, Tensor x, Tensor s, Tensor b, bool inverse) {
    LayerOptions options;
    options.inverse = inverse;
    return add_layer(std::move(name), Kind::inject, {x, s, b}, options);
}

Tensor Builder::flow_log_det(std::string name, Tensor x, std::string parameters) {
    STIPPLE_REQUIRE(!parameters.empty(), "flow_log_det '{}': needs the name of an actnorm or mix", name);
    return add_layer(std::move(name), Kind::flow_log_det, {x}, {}, std::move(parameters));
}

Tensor Builder::gaussian_log_density(std::string name, Tensor z) {
    return add_layer(std::move(name), Kind::gaussian_log_density, {z});
}

void Builder::output(std::string name, Tensor tensor) {
    check_name("output", name);
    STIPPLE_REQUIRE(tensor >= 0 && static_cast<size_t>(tensor) < network_.layers.size(),
                    "output '{}': is layer {} of {}", name, tensor, network_.layers.size());
    network_.outputs.push_back({std::move(name), tensor});
}

Network Builder::finish(std::map<std::string, std::string> config) {
    network_.config = std::move(config);
    validate(network_);
    return std::move(network_);
}

}  // namespace stipple::network
