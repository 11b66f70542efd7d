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

Tensor Builder::linear(std::string name, Tensor x, int64_t channels, const LinearOptions& options) {
    return add_layer(std::move(name), Kind::linear, {x}, linear_options(channels, options));
}

Tensor Builder::linear_sharing(std::string name, Tensor x, int64_t channels, const LinearOptions& options,
                               std::string parameters) {
    return add_layer(std::move(name), Kind::linear, {x}, linear_options(channels, options), std::move(parameters));
}

Tensor Builder::attend(std::string name, Tensor queries, Tensor keys, Tensor values, const AttendOptions& options) {
    LayerOptions result;
    result.normalise = options.normalise;
    result.factor = options.factor;
    result.unit = options.unit;
    result.skips_self = options.skips_self;
    return add_layer(std::move(name), Kind::attend, {queries, keys, values}, result);
}

Tensor Builder::flow_step(std::string name, Tensor x, Tensor condition, const FlowStepOptions& options,
                          std::string parameters) {
    LayerOptions result;
    result.channels = options.hidden;
    result.steps = options.steps;
    result.activation = options.activation;
    result.log_det = options.log_det;
    result.inverse = options.inverse;
    return add_layer(std::move(name), Kind::flow_step, {x, condition}, result, std::move(parameters));
}

Tensor Builder::flow_log_det(std::string name, Tensor x, std::string parameters) {
    STIPPLE_REQUIRE(!parameters.empty(), "flow_log_det '{}': needs the name of an actnorm or mix", name);
    return add_layer(std::move(name), Kind::flow_log_det, {x}, {}, std::move(parameters));
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
