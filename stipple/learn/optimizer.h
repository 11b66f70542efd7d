#pragma once
// Optimisers: from gradients to the next parameters, with a state that a checkpoint keeps.
//
// Written on torch's multi-tensor operations: a few launches for all parameters, and the state is plain tensors by
// name.

#include <map>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "stipple/learn/optimizer_options.h"

namespace stipple::learn {

class Optimizer {
public:
    /// Of parameters that require gradients, by name. With masters, steps are made on float32 copies of parameters that
    /// are shorter, which then are rounded. Throws Error{bad_argument} for options out of range.
    Optimizer(const OptimizerOptions& options, const std::map<std::string, torch::Tensor>& parameters,
              bool keeps_masters = false);

    /// One step with the gradients times gradient_scale. A parameter without a gradient stays as it is, and so does its
    /// state. Step counts and rates are numbers of the host: nothing waits for the device.
    void step(double rate, double gradient_scale = 1);

    /// One step as ops::update_rules decided in control [ControlSlot::count] in the memory of the parameters' device,
    /// where the step is counted: set_steps() tells it afterwards. Waits for nothing.
    void step_on_device(const torch::Tensor& control);
    /// float32 [1] on the device: the Euclidean norm of all gradients, not finite where one of them is not.
    torch::Tensor gradient_norm() const;

    void zero_gradients();

    /// By name, the masters of parameters that have one.
    std::map<std::string, torch::Tensor> masters() const;
    /// The tensors of the state by name ("first.conv1.weight", "master.conv1.weight"), which stay the optimiser's own,
    /// and the steps made.
    std::map<std::string, torch::Tensor> state() const;
    int64_t steps() const { return steps_; }
    /// For one whose state was filled from a checkpoint.
    void set_steps(int64_t steps) { steps_ = steps; }

private:
    void step_values(double rate, double gradient_scale);

    OptimizerOptions options_;
    std::vector<std::string> names_;
    std::vector<torch::Tensor> parameters_, values_;  // values_: what is stepped: masters, or the parameters
    std::vector<torch::Tensor> first_, second_;       // first_: momentum; second_: of Adam
    int64_t steps_ = 0;
};

/// Euclidean norm of all gradients together, as a number on their device: it is not finite when one of them is not.
torch::Tensor gradient_norm(const std::vector<torch::Tensor>& parameters);

/// Exponential moving average of parameters and running statistics: average += (1 - decay) (value - average). In the
/// first steps the decay is at most (1 + n) / (10 + n), so that the start is forgotten.
class Average {
public:
    /// Averages are float32, also of shorter numbers.
    Average(double decay, const std::map<std::string, torch::Tensor>& values);
    void update();
    /// As Optimizer::step_on_device; set_updates() tells of it afterwards.
    void update_on_device(const torch::Tensor& control);
    const std::map<std::string, torch::Tensor>& values() const { return averages_; }
    int64_t updates() const { return updates_; }
    void set_updates(int64_t updates) { updates_ = updates; }

private:
    double decay_;
    std::map<std::string, torch::Tensor> values_, averages_;
    std::vector<torch::Tensor> from_, to_;
    int64_t updates_ = 0;
};

}  // namespace stipple::learn
