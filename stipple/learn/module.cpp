#include "stipple/learn/module.h"

#include <limits>

#include "stipple/learn/evaluate/fused.h"
#include "stipple/learn/profiler.h"

namespace stipple::learn {

using network::Layer;
using network::Level;
using network::Network;
using network::Parameter;

namespace {

/// The batch of each point set: those of the caller in ascending order, and those that the network makes.
std::vector<ops::Batch> batches_of_sets(const Network& network, const std::vector<ops::Batch>& given) {
    STIPPLE_REQUIRE(!given.empty(), "{}: a run needs a batch", network.name);
    std::vector<int64_t> made(1);  // by set: points of a set that the network makes, 0 for one of the caller
    std::vector<char> is_there(1);
    for (const Layer& layer : network.layers) {
        if (layer.type.level != Level::point) continue;
        const auto set = static_cast<size_t>(layer.type.set);
        made.resize(std::max(made.size(), set + 1));
        is_there.resize(made.size());
        made[set] = layer.type.points;
        is_there[set] = 1;
    }
    std::vector<ops::Batch> batches;
    size_t next = 0;
    for (size_t set = 0; set < made.size(); ++set) {
        if (made[set] > 0 || !is_there[set]) {
            batches.push_back(ops::Batch::dense(given[0].clouds(), made[set]));
            continue;
        }
        STIPPLE_REQUIRE(next < given.size(), "{}: {} batches for more point sets", network.name, given.size());
        STIPPLE_REQUIRE(given[next].clouds() == given[0].clouds(), "{}: batches of {} and {} clouds", network.name,
                        given[0].clouds(), given[next].clouds());
        batches.push_back(given[next++]);
    }
    return batches;
}

torch::Tensor input_of(const Layer& layer, const std::map<std::string, torch::Tensor>& inputs,
                       const std::vector<ops::Batch>& batches) {
    const auto found = inputs.find(layer.name);
    STIPPLE_REQUIRE(found != inputs.end(), "no input {}", layer.name);
    const torch::Tensor& tensor = found->second;
    const int64_t rows = layer.type.level == Level::cloud
                             ? batches.front().clouds()
                             : batches[static_cast<size_t>(layer.type.set)].rows() * layer.type.width;
    STIPPLE_REQUIRE(tensor.dim() == 2 && tensor.size(0) == rows && tensor.size(1) == layer.type.channels,
                    "{}: [{}, {}] expected, got {} dimensions and {} numbers", layer.name, rows, layer.type.channels,
                    tensor.dim(), tensor.numel());
    return tensor;
}

}  // namespace

Module::Module(Network network, const network::Weights& weights, torch::Device device, torch::Dtype dtype)
    : network_(std::move(network)), metadata_(weights.metadata), fused_(fused_layers(network_)) {
    network::check_weights(network_, weights);
    for (const Parameter& parameter : network::parameters_of(network_)) {
        const network::WeightTensor& stored = weights.tensors.at(parameter.name);
        torch::Tensor tensor =
            torch::from_blob(const_cast<float*>(stored.values.data()), stored.shape, torch::kFloat32)
                .to(torch::TensorOptions(device).dtype(dtype), /*non_blocking=*/false, /*copy=*/true);
        parameters_.emplace(parameter.name, tensor.set_requires_grad(parameter.is_trained));
    }
    for (const Layer& layer : network_.layers)
        if (layer.kind == network::Kind::constant)
            constants_.emplace(layer.name, torch::tensor(layer.options.values, torch::kFloat32)
                                               .to(torch::TensorOptions(device).dtype(dtype))
                                               .unsqueeze(0));
}

std::map<std::string, torch::Tensor> Module::run(const std::vector<ops::Batch>& given,
                                                 const std::map<std::string, torch::Tensor>& inputs,
                                                 const RunOptions& options) {
    const ProfileMark forward(options.profiler, "forward");
    const std::vector<ops::Batch> batches = batches_of_sets(network_, given);
    std::vector<size_t> last_use(network_.layers.size());
    for (size_t i = 0; i < network_.layers.size(); ++i)
        for (const network::Tensor input : network_.layers[i].inputs) last_use[static_cast<size_t>(input)] = i;
    for (const network::Output& output : network_.outputs)
        last_use[static_cast<size_t>(output.tensor)] = std::numeric_limits<size_t>::max();
    std::vector<char> is_left_out(network_.layers.size());  // computed with the maximum over it
    for (size_t i = 0; i < fused_.size() && options.fuses && !options.watch; ++i) {
        if (fused_[i] < 0) continue;
        is_left_out[static_cast<size_t>(fused_[i])] = 1;
        size_t& last = last_use[static_cast<size_t>(network_.layers[static_cast<size_t>(fused_[i])].inputs[0])];
        last = std::max(last, i);
    }

    std::vector<torch::Tensor> tensors(network_.layers.size());
    for (size_t i = 0; i < network_.layers.size(); ++i) {
        const Layer& layer = network_.layers[i];
        if (layer.kind == network::Kind::input) {
            tensors[i] = input_of(layer, inputs, batches);
            if (options.watch) options.watch(layer, tensors[i]);
            continue;
        }
        if (is_left_out[i]) continue;
        const bool is_fused = fused_[i] >= 0 && is_left_out[static_cast<size_t>(fused_[i])];
        const Layer& first = is_fused ? network_.layers[static_cast<size_t>(fused_[i])] : layer;
        const ProfileMark mark(options.profiler, is_fused ? first.name + " + " + layer.name : layer.name);
        std::vector<torch::Tensor> of_layer;
        for (const network::Tensor input : first.inputs) of_layer.push_back(tensors[static_cast<size_t>(input)]);
        const std::function<torch::Tensor&(const char*)> parameter = [&](const char* name) -> torch::Tensor& {
            return first.kind == network::Kind::constant ? constants_.at(first.name)
                                                         : parameters_.at(first.parameters + "." + name);
        };
        const LayerContext context = {network_, batches, parameter, options, static_cast<int64_t>(i)};
        tensors[i] = is_fused ? run_linear_max(first, of_layer[0], context) : run_layer(layer, of_layer, context);
        if (options.watch) options.watch(layer, tensors[i]);
        // What nobody reads any more need not wait for the end; autograd keeps what it wants.
        for (const network::Tensor input : first.inputs)
            if (last_use[static_cast<size_t>(input)] == i) tensors[static_cast<size_t>(input)].reset();
    }
    std::map<std::string, torch::Tensor> outputs;
    for (const network::Output& output : network_.outputs)
        outputs.emplace(output.name, at_least_float(tensors[static_cast<size_t>(output.tensor)]));
    return outputs;
}

void Module::store_weights_as(torch::Dtype type) {
    for (auto& [name, tensor] : parameters_)
        if (tensor.requires_grad() && name.find(".norm.") == std::string::npos)
            tensor = tensor.detach().to(type).set_requires_grad(true);
}

std::vector<torch::Tensor> Module::trained() const {
    std::vector<torch::Tensor> tensors;
    for (const Parameter& parameter : network::parameters_of(network_))
        if (parameter.is_trained) tensors.push_back(parameters_.at(parameter.name));
    return tensors;
}

void Module::exchange(std::map<std::string, torch::Tensor>& tensors) {
    STIPPLE_REQUIRE(tensors.size() == parameters_.size(), "{} tensors for {} parameters", tensors.size(),
                    parameters_.size());
    for (const auto& [name, tensor] : tensors) {
        const auto own = parameters_.find(name);
        STIPPLE_REQUIRE(own != parameters_.end() && own->second.sizes() == tensor.sizes(), "{} does not fit", name);
    }
    std::swap(parameters_, tensors);
}

network::Weights Module::weights(const std::map<std::string, torch::Tensor>& tensors) const {
    network::Weights weights;
    weights.metadata = metadata_;
    network::set_config(weights, network_);
    for (const auto& [name, tensor] : tensors) {
        const torch::Tensor copy = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
        const float* values = copy.data_ptr<float>();
        weights.tensors[name] = {tensor.sizes().vec(), {values, values + copy.numel()}};
    }
    return weights;
}

}  // namespace stipple::learn
