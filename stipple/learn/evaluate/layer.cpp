#include "stipple/learn/evaluate/layer.h"

#include <cmath>
#include <numbers>
#include <string>

#include "stipple/learn/distributed/global_rows.h"
#include "stipple/learn/distributed/sync_norm.h"
#include "stipple/learn/evaluate/attend.h"
#include "stipple/learn/evaluate/clouds.h"
#include "stipple/learn/evaluate/flow_step.h"
#include "stipple/learn/functions/dropout.h"
#include "stipple/learn/functions/norm_activation.h"

namespace stipple::learn {
namespace {

using network::Activation;
using network::ActivationKind;
using network::Kind;
using network::Layer;
using network::Level;
using network::TensorType;
using torch::Tensor;

Tensor activate(const Activation& activation, const Tensor& x) {
    switch (activation.kind) {
        case ActivationKind::none: return x;
        case ActivationKind::relu: return torch::relu(x);
        case ActivationKind::leaky_relu: return torch::leaky_relu(x, activation.slope);
        case ActivationKind::tanh: return torch::tanh(x);
        case ActivationKind::sigmoid: return torch::sigmoid(x);
        case ActivationKind::elu: return torch::elu(x, activation.slope);
        case ActivationKind::gelu: return torch::gelu(x);
        case ActivationKind::swish: return torch::silu(x);
        case ActivationKind::softplus: return torch::softplus(x);
        case ActivationKind::log: return torch::log(torch::relu(x) + double{activation.slope});
    }
    return x;
}

class LayerRun {
public:
    LayerRun(const Layer& layer, const std::vector<Tensor>& inputs, const LayerContext& context)
        : layer_(layer), inputs_(inputs), context_(context) {}

    Tensor run() const;

private:
    const Tensor& x(size_t i = 0) const { return inputs_[i]; }
    const TensorType& type(size_t i = 0) const { return context_.network[layer_.inputs[i]].type; }
    const ops::Batch& batch(int32_t set) const { return context_.batches[static_cast<size_t>(set)]; }
    const ops::Batch& clouds_of(const TensorType& of) const { return batch(of.set); }
    Tensor& parameter(const char* name) const { return context_.parameter(name); }
    /// [points, width, c]
    Tensor by_point(size_t i = 0) const { return x(i).reshape({-1, type(i).width, x(i).size(1)}); }
    int64_t channels() const { return layer_.type.channels; }

    Tensor linear() const;
    Tensor dropout() const;
    Tensor transform() const;
    Tensor add_identity() const;
    Tensor rotation() const;
    Tensor repeat() const;
    Tensor knn() const;
    Tensor neighbours() const;
    Tensor interpolate() const;
    Tensor actnorm() const;
    void start_actnorm() const;
    Tensor mix() const;
    Tensor couple() const;
    Tensor inject() const;
    Tensor flow_log_det() const;
    Tensor gaussian_log_density() const;

    const Layer& layer_;
    const std::vector<Tensor>& inputs_;
    const LayerContext& context_;
};

/// Of short numbers, sums are float32. Few CPUs multiply them, and libraries refuse on the others: there the products
/// are those of float32, which have the same factors.
Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    if (!x.is_cpu() || !is_short(x)) return torch::linear(x, weight, bias);
    return torch::linear(at_least_float(x), at_least_float(weight), bias.defined() ? at_least_float(bias) : bias)
        .to(x.scalar_type());
}

/// Columns of zeros behind few columns of short numbers: tensor cores take rows of whole 16 bytes.
Tensor padded(const Tensor& x) {
    constexpr int64_t kNumbers = 8;
    return x.is_cuda() && is_short(x) && x.size(1) < kNumbers ? torch::constant_pad_nd(x, {0, kNumbers - x.size(1)})
                                                              : x;
}

Tensor LayerRun::linear() const {
    const network::LayerOptions& options = layer_.options;
    const torch::Dtype type = type_of_products(parameter("weight"), context_.options);
    const Tensor input = padded(x().to(type)), weight = padded(parameter("weight").to(type));
    const bool is_training = context_.options.is_training, has_relu = options.activation.kind == ActivationKind::relu;
    const double momentum =
        context_.options.norm_momentum >= 0 ? context_.options.norm_momentum : double{options.norm_momentum};
    ProcessGroup* const group = is_training ? context_.options.group : nullptr;
    if (options.norm && is_training && !group && can_norm_activation(input) &&
        (has_relu || options.activation.kind == ActivationKind::none)) {
        STIPPLE_REQUIRE(input.size(0) > 1, "{}: batch norm cannot learn from one row", layer_.name);
        return norm_activation(torch::linear(input, weight),
                               {.gamma = parameter("norm.weight"),
                                .beta = parameter("norm.bias"),
                                .running_mean = parameter("norm.running_mean"),
                                .running_var = parameter("norm.running_var"),
                                .offset = options.bias ? at_least_float(parameter("bias")) : Tensor(),
                                .eps = options.norm_eps,
                                .momentum = momentum,
                                .has_relu = has_relu});
    }
    // Batch statistics take out what is added to all rows: a bias counts for the running mean alone, and its gradient
    // is 0 as it should be, not what rounding leaves of it, which Adam would take for a direction.
    const bool has_idle_bias = options.bias && options.norm && is_training;
    Tensor y = product(input, weight, options.bias && !has_idle_bias ? parameter("bias").to(type) : Tensor());
    if (options.norm) {
        STIPPLE_REQUIRE(!is_training || group || y.size(0) > 1, "{}: batch norm cannot learn from one row",
                        layer_.name);
        const Tensor bias = has_idle_bias ? at_least_float(parameter("bias")) : Tensor();
        const Tensor beta = has_idle_bias ? parameter("norm.bias") + 0 * bias : parameter("norm.bias");
        if (group)
            y = sync_batch_norm(y,
                                {parameter("norm.weight"), beta, parameter("norm.running_mean"),
                                 parameter("norm.running_var"), options.norm_eps, momentum},
                                *group);
        else
            y = torch::batch_norm(y, parameter("norm.weight"), beta, parameter("norm.running_mean"),
                                  parameter("norm.running_var"), is_training, momentum, options.norm_eps,
                                  /*cudnn_enabled=*/true);
        // By data(): torch keeps the running mean for a backward pass in which it does not look at it.
        if (has_idle_bias) parameter("norm.running_mean").data().add_(bias.detach(), momentum);
    }
    // In place where nobody else wants the value: half of the memory of the widest layers. The gradients of batch norm
    // and product read their inputs alone.
    return has_relu ? torch::relu_(y) : activate(options.activation, y);
}

Tensor LayerRun::dropout() const {
    const double rate = layer_.options.rate;
    const RunOptions& how = context_.options;
    if (!how.is_training || rate == 0) return x();
    const uint64_t key = (how.seed ^ static_cast<uint64_t>(context_.position)) * 0x9E3779B97F4A7C15u;
    const Tensor step = how.step_on_device.defined()
                            ? how.step_on_device
                            : torch::full({1}, how.step, x().options().dtype(torch::kInt64).requires_grad(false));
    std::vector<Tensor> kept;  // ranks draw what one process would
    for (const RowRun& run : global_rows(context_, layer_.type, x().size(0)))
        kept.push_back(learn::dropout(x().narrow(0, run.begin, run.rows), rate, key, step, run.global * x().size(1)));
    return kept.size() == 1 ? kept[0] : torch::cat(kept);
}

Tensor LayerRun::transform() const {
    const int64_t k = x().size(1);
    const Tensor matrices = x(1).to(x().scalar_type()).reshape({-1, k, k});
    if (type().level == Level::cloud) return torch::bmm(x().unsqueeze(1), matrices).squeeze(1);
    return transform_rows(x(), matrices, clouds_of(type()), type().width);
}

Tensor LayerRun::add_identity() const {
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(channels()))));
    return x() + torch::eye(k, x().options()).reshape({1, k * k});
}

/// 1 + 2 w [u]x + 2 [u]x^2 of the unit quaternion (w, u); a quaternion of length 0 is no turn.
Tensor LayerRun::rotation() const {
    const Tensor square = (x() * x()).sum(1, true);
    const Tensor is_there = square > 0;
    const Tensor length = torch::sqrt(torch::where(is_there, square, torch::ones_like(square)));
    const Tensor none = torch::eye(1, 4, x().options());  // made on the device: a graph can hold it
    const Tensor q = torch::where(is_there, x() / length, none.expand_as(x()));
    const Tensor w = q.select(1, 0), a = q.select(1, 1), b = q.select(1, 2), c = q.select(1, 3);
    const double sign = layer_.options.inverse ? -1 : 1;  // the transpose turns back
    const Tensor wa = sign * w * a, wb = sign * w * b, wc = sign * w * c;
    return torch::stack(
        {1 - 2 * (b * b + c * c), 2 * (a * b - wc), 2 * (a * c + wb), 2 * (a * b + wc), 1 - 2 * (a * a + c * c),
         2 * (b * c - wa), 2 * (a * c - wb), 2 * (b * c + wa), 1 - 2 * (a * a + b * b)},
        1);
}

Tensor LayerRun::repeat() const {
    if (type().level == Level::cloud) return repeat_for_points(x(), clouds_of(layer_.type));
    const int64_t width = layer_.type.width;
    return x().unsqueeze(1).expand({x().size(0), width, x().size(1)}).reshape({-1, x().size(1)});
}

Tensor LayerRun::knn() const {
    const size_t last = inputs_.size() - 1;
    return nearest(x(), clouds_of(type()), x(last), clouds_of(type(last)), layer_.type.width, last == 0);
}

/// gather, edge, edge_distance: a row for each neighbour.
Tensor LayerRun::neighbours() const {
    const int64_t width = layer_.type.width;
    const Tensor rows = rows_of_indices(x(1), clouds_of(layer_.type), clouds_of(type()));
    const Tensor others = x().index_select(0, rows);
    if (layer_.kind == Kind::gather) return others;
    const Tensor own = x().unsqueeze(1).expand({x().size(0), width, x().size(1)}).reshape({-1, x().size(1)});
    if (layer_.kind == Kind::edge) return torch::cat({own, others, others - own}, 1);
    const Tensor difference = own - others, square = (difference * difference).sum(1, true);
    const Tensor is_apart = square > 0;  // the slope of a distance at 0 is taken as 0
    const Tensor distance = torch::where(
        is_apart, torch::sqrt(torch::where(is_apart, square, torch::ones_like(square))), torch::zeros_like(square));
    return torch::cat({own, others, difference, distance}, 1);
}

Tensor LayerRun::interpolate() const {
    return torch::bmm(by_point(0).transpose(1, 2), by_point(1)).reshape({-1, x(1).size(1)});
}

void LayerRun::start_actnorm() const {
    const torch::NoGradGuard no_gradients;
    constexpr double kLeast = 1e-6;
    STIPPLE_REQUIRE(!context_.options.group, "{}: an actnorm starts in one process", layer_.name);
    const Tensor mean = x().mean(0), deviation = x().std(0, /*unbiased=*/false) + kLeast;
    parameter("logs").copy_(-torch::log(deviation));
    parameter("bias").copy_(-mean / deviation);
}

Tensor LayerRun::actnorm() const {
    if (context_.options.starts_actnorm && !layer_.options.inverse) start_actnorm();
    const Tensor &logs = parameter("logs"), &bias = parameter("bias");
    return layer_.options.inverse ? (x() - bias) * torch::exp(-logs) : x() * torch::exp(logs) + bias;
}

/// Rows r of a 3 x 3 matrix as r1 x r2, r2 x r0, r0 x r1: the columns of its inverse times its determinant.
Tensor cross_rows(const Tensor& matrix) {
    const Tensor next = matrix.roll(-1, 0), second = matrix.roll(-2, 0);
    return torch::linalg_cross(next, second, 1);
}

/// By its formula where it is 3 x 3: libraries wait for the GPU to see whether there is one.
Tensor determinant_of(const Tensor& matrix) {
    return matrix.size(0) == 3 ? (matrix[0] * cross_rows(matrix)[0]).sum() : torch::det(matrix);
}

Tensor inverse_of(const Tensor& matrix) {
    if (matrix.size(0) != 3) return torch::inverse(matrix);
    const Tensor columns = cross_rows(matrix);
    return columns.t() / (matrix[0] * columns[0]).sum();
}

Tensor LayerRun::mix() const {
    const Tensor& weight = parameter("weight");
    return x().matmul((layer_.options.inverse ? inverse_of(weight) : weight).t());
}

Tensor LayerRun::couple() const {
    const int64_t begin = layer_.options.begin;
    const Tensor tail = x().slice(1, begin);
    return torch::cat({x().slice(1, 0, begin), layer_.options.inverse ? tail + x(1) : tail - x(1)}, 1);
}

Tensor LayerRun::inject() const {
    return layer_.options.inverse ? x() * torch::exp(x(1)) + x(2) : (x() - x(2)) * torch::exp(-x(1));
}

Tensor LayerRun::flow_log_det() const {
    const Tensor sizes = sizes_of_clouds(clouds_of(type()), x());
    for (const network::Parameter& parameter_of : network::parameters_of(context_.network, layer_))
        if (parameter_of.name == layer_.parameters + ".logs") return parameter("logs").sum() * sizes;
    return torch::log(torch::abs(determinant_of(parameter("weight")))) * sizes;
}

Tensor LayerRun::gaussian_log_density() const {
    const Tensor densities = -(x() * x() + std::log(2 * std::numbers::pi)) / 2;
    return sum_of_clouds(densities.sum(1, true), clouds_of(type()), type().width);
}

Tensor LayerRun::run() const {
    const network::LayerOptions& options = layer_.options;
    switch (layer_.kind) {
        case Kind::input: return x();
        case Kind::constant: return parameter("values").expand({context_.batches.front().clouds(), channels()});
        case Kind::learned:
            return parameter("value").unsqueeze(0).expand({context_.batches.front().clouds(), channels()});
        case Kind::linear: return linear();
        case Kind::activation: return activate(options.activation, x());
        case Kind::dropout: return dropout();
        case Kind::transform: return transform();
        case Kind::add_identity: return add_identity();
        case Kind::rotation: return rotation();
        case Kind::max_points: return max_of_clouds(x(), clouds_of(type()), type().width);
        case Kind::sum_points: return sum_of_clouds(x(), clouds_of(type()), type().width);
        case Kind::max_rows: return std::get<0>(by_point().max(1));
        case Kind::sum_channels: return x().sum(1, true);
        case Kind::concat: return torch::cat(inputs_, 1);
        case Kind::slice: return x().slice(1, options.begin, options.end);
        case Kind::reverse: return x().flip(1);
        case Kind::repeat: return repeat();
        case Kind::unflatten:
        case Kind::regroup: return x().reshape({-1, channels()});
        case Kind::knn: return knn();
        case Kind::gather:
        case Kind::edge:
        case Kind::edge_distance: return neighbours();
        case Kind::softmax_rows: return torch::softmax(by_point(), 1).reshape(x().sizes());
        case Kind::attend: return run_attend(layer_, inputs_, context_);
        case Kind::interpolate: return interpolate();
        case Kind::log_softmax: return torch::log_softmax(x(), 1);
        case Kind::layer_norm:
            return torch::layer_norm(x(), {channels()}, parameter("weight"), parameter("bias"), options.norm_eps);
        case Kind::add: return x() + x(1);
        case Kind::subtract: return x() - x(1);
        case Kind::multiply: return x() * x(1);
        case Kind::scale: return x() * double{options.factor};
        case Kind::actnorm: return actnorm();
        case Kind::mix: return mix();
        case Kind::couple: return couple();
        case Kind::inject: return inject();
        case Kind::flow_step: return run_flow_step(layer_, inputs_, context_);
        case Kind::flow_log_det: return flow_log_det();
        case Kind::gaussian_log_density: return gaussian_log_density();
    }
    STIPPLE_ASSERT(false);
    return {};
}

/// Whether short numbers are good enough for what the layer does: it moves them, or is made for them.
bool takes_any_type(Kind kind) {
    switch (kind) {
        case Kind::linear:
        case Kind::activation:
        case Kind::dropout:
        case Kind::max_points:
        case Kind::max_rows:
        case Kind::concat:
        case Kind::slice:
        case Kind::reverse:
        case Kind::repeat:
        case Kind::unflatten:
        case Kind::regroup:
        case Kind::gather:
        case Kind::edge: return true;
        default: return false;
    }
}

}  // namespace

Tensor run_layer(const Layer& layer, const std::vector<Tensor>& inputs, const LayerContext& context) {
    // Coordinates stay float32; features are multiplied in the type that they come in.
    const bool is_feature_transform = layer.kind == Kind::transform && inputs[0].size(1) > 3 && inputs[0].is_cuda();
    if (!context.options.products || takes_any_type(layer.kind) || is_feature_transform)
        return LayerRun(layer, inputs, context).run();
    std::vector<Tensor> floats;
    for (const Tensor& input : inputs) floats.push_back(at_least_float(input));
    return LayerRun(layer, floats, context).run();
}

bool can_be_recorded(const network::Network& network) {
    for (const Layer& layer : network.layers) switch (layer.kind) {
            case Kind::flow_step:  // Newton's iterations end when all points have converged; steps of RK4 are fixed
                if (layer.options.steps == 0) return false;
                break;
            case Kind::mix:
                if (layer.type.channels != 3) return false;
                break;
            default: break;
        }
    return true;
}

}  // namespace stipple::learn
