#pragma once
// Module: a Network with parameters that can be trained. Every layer is run as it is written, with torch tensors under
// autograd; which networks there are is of no concern here.
//
//   learn::Module module(network, network::initial_weights(network, seed));
//   torch::Tensor logits = module.run(batch, {{"points", points}}, {.is_training = true}).at("logits");
//   loss(logits).backward();
//   network::Weights trained = module.weights();
//
// A tensor is rows of channels, as network.h says: [clouds, c], [points, c] or [points * width, c], the points of all
// clouds one after the other. Nothing is padded: ragged batches cost what their points cost. Products are Linear on
// [rows, channels], which is fast on every build of LibTorch; there is no convolution.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "stipple/learn/flows/log_det.h"
#include "stipple/network/network.h"
#include "stipple/network/weights.h"
#include "stipple/ops/clouds.h"

namespace stipple::learn {

class Profiler;      // profiler.h
class ProcessGroup;  // distributed/process_group.h

struct RunOptions {
    /// Batch statistics in batch norms, which update their running ones, and dropout. Else running statistics.
    bool is_training = false;
    /// Of the running statistics: running = (1 - momentum) * running + momentum * batch. Negative: that of the layer.
    double norm_momentum = -1;
    /// What dropout draws is a function of (seed, step, layer): a resumed run draws what the first would have drawn.
    uint64_t seed = 0;
    int64_t step = 0;
    /// The step, int64 [1] in the memory of the module's device, where a CUDA graph finds it; then `step` is not read.
    torch::Tensor step_on_device = {};
    /// Actnorms take mean and deviation of this batch as their start (a flow's first step): outputs of mean 0,
    /// variance 1.
    bool starts_actnorm = false;
    /// Of flow_steps that are ODEs: above 0, steps as long as this error allows instead of the layer's number of them.
    double ode_tolerance = 0;
    /// How residual flow_steps find their log-determinants; what it draws is a function of (seed, step, layer).
    LogDetOptions log_det = {};
    /// Type of the products of linear layers and of what they hand on, float16 or bfloat16; without it that of the
    /// module. Batch norms keep float32 statistics, layers that measure or multiply points compute in float32, and
    /// outputs are float32 again.
    std::optional<torch::Dtype> products = {};
    /// Wide layers and the maximum over points behind them as one function (evaluate/fused.h): the same numbers up to
    /// rounding, in less time and without their memory.
    bool fuses = true;
    /// Sees the output of every layer as it is made: how a number that is not finite is traced to its layer. No layers
    /// are fused then.
    std::function<void(const network::Layer& layer, const torch::Tensor& output)> watch = {};
    /// Ranks that train together, each on a share of the batch: batch norms take the statistics of all their rows, and
    /// dropout draws what one process with the whole batch would. All of them run the same layers.
    ProcessGroup* group = nullptr;
    /// The clouds are so many runs of equal length, each of which the ranks have shared: looks at the same items.
    int64_t views = 1;
    /// Learns what each layer takes, below a stage "forward".
    Profiler* profiler = nullptr;
};

class Module {
public:
    /// Copies of all parameters on a device, in float32 or float64 (for checks of gradients). Trained ones require
    /// gradients. Throws as network::check_weights.
    Module(network::Network network, const network::Weights& weights, torch::Device device = torch::kCPU,
           torch::Dtype dtype = torch::kFloat32);

    const network::Network& network() const { return network_; }

    /// Keeps trained parameters in this type from now on, all but those of batch norms.
    void store_weights_as(torch::Dtype type);

    /// All outputs by name. inputs: [rows, channels] of the module's device and dtype. batches: one for each point set
    /// of the caller, in ascending order; a cloud must have the neighbours that knn wants. Indices are int64 [points,
    /// width], counted from the first point of their cloud. Where max meets NaN its output is NaN. The gradient of the
    /// distance of two equal points is 0. Throws Error{bad_argument} for an input that is missing or does not fit.
    std::map<std::string, torch::Tensor> run(const std::vector<ops::Batch>& batches,
                                             const std::map<std::string, torch::Tensor>& inputs,
                                             const RunOptions& options = {});
    std::map<std::string, torch::Tensor> run(const ops::Batch& batch,
                                             const std::map<std::string, torch::Tensor>& inputs,
                                             const RunOptions& options = {}) {
        return run(std::vector<ops::Batch>{batch}, inputs, options);
    }

    /// By name, in the order of network::parameters_of. Those that are trained, and all with the running statistics.
    std::vector<torch::Tensor> trained() const;
    const std::map<std::string, torch::Tensor>& parameters() const { return parameters_; }

    /// Copies for files and engines, with the network's configuration. Of other tensors of the same names: a moving
    /// average.
    network::Weights weights() const { return weights(parameters_); }
    network::Weights weights(const std::map<std::string, torch::Tensor>& tensors) const;

    /// Evaluates with these tensors in place of its own, which come back with the next call; not copied. Throws
    /// Error{bad_argument} for other names or shapes.
    void exchange(std::map<std::string, torch::Tensor>& tensors);

private:
    network::Network network_;
    std::map<std::string, std::string> metadata_;
    std::map<std::string, torch::Tensor> parameters_;
    std::vector<int64_t> fused_;                      // by layer, as fused_layers() says
    std::map<std::string, torch::Tensor> constants_;  // [1, c] by layer: where they are needed before a step begins
};

}  // namespace stipple::learn
