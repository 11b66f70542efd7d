#include "stipple/learn/functions/linear_norm_max.h"

#include "stipple/learn/distributed/sync_norm.h"
#include "stipple/learn/functions/largest_products.h"
#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/short_numbers.h"
#include "stipple/ops/gram.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

struct LinearNormArguments {
    ops::Batch batch;
    double eps, momentum;
    bool uses_batch_statistics, has_relu;
    ProcessGroup* group;
};

/// Mean [k] and covariance [k, k] of rows.
struct RowStatistics {
    Tensor mean, covariance;
};

/// Of short numbers on a GPU their exact products are summed, in float64 at the end; there a difference of sums loses
/// nothing.
RowStatistics statistics_of_short(const Tensor& rows) {
    const auto n = static_cast<double>(rows.size(0));
    const int64_t k = rows.size(1);
    const auto doubles = rows.options().dtype(torch::kFloat64);
    Tensor sum = torch::empty({k}, doubles), products = torch::empty({k, k}, doubles);
    ops::gram(matrix_of(rows), view_of<double, 1>(sum), view_of<double, 2>(products), current_stream(rows));
    sum.div_(n);
    return {sum.to(torch::kFloat32), products.div_(n).addr_(sum, sum, 1, -1).to(torch::kFloat32)};
}

/// In float32 of shorter numbers: sums of squares soon pass the largest float16.
RowStatistics statistics_of(const Tensor& rows) {
    if (rows.is_cuda() && is_short(rows) && ops::can_gram_cuda(rows.size(1))) return statistics_of_short(rows);
    const Tensor exact = at_least_float(rows);
    const Tensor mean = exact.mean(0);
    const Tensor centred = exact - mean;
    return {mean, torch::mm(centred.t(), centred).div_(static_cast<double>(rows.size(0)))};
}

/// rows square + constant, and what the winners give, in the type of the rows.
Tensor gradient_of_input(const Tensor& rows, const Tensor& square, const Tensor& constant, const ops::Batch& batch,
                         const Tensor& weight, const Tensor& winners, const Tensor& of_winners) {
    if (rows.is_cuda() && is_short(rows) && can_add_to_short_rows(weight)) {
        // The matrix may be far below what float16 holds: it is multiplied as numbers up to 1.
        const Tensor largest = square.abs().amax().clamp_min_(1e-30).reshape({1});
        Tensor sum = torch::mm(rows, (square / largest).to(rows.scalar_type()));
        add_winners_to_scaled_rows(batch, weight, winners, of_winners, largest, constant, sum);
        return sum;
    }
    Tensor sum = torch::addmm(constant, at_least_float(rows), square);
    add_winners_rows(batch, at_least_float(weight), winners, of_winners, sum);
    return sum.to(rows.scalar_type());
}

class LinearNormMaxFunction : public torch::autograd::Function<LinearNormMaxFunction> {
public:
    static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& weight, const Tensor& bias,
                          const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
                          const Tensor& running_var, const LinearNormArguments& arguments) {
        RowStatistics of_rows;
        const Tensor exact = at_least_float(weight);
        Tensor mean, variance;  // of the products without bias
        Tensor all;             // [1]: how many rows the ranks have together
        if (arguments.uses_batch_statistics) {
            of_rows = statistics_of(rows);
            if (arguments.group) {
                const RowMoments of_ranks =
                    moments_of_ranks(*arguments.group, of_rows.mean, of_rows.covariance, rows.size(0));
                of_rows = {of_ranks.mean, of_ranks.covariance};
                all = of_ranks.n;
            }
            mean = torch::mv(exact, of_rows.mean);
            variance = (torch::mm(exact, of_rows.covariance) * exact).sum(1).clamp_min_(0);
            const auto n = static_cast<double>(rows.size(0));
            Tensor(running_mean).lerp_(mean + bias, arguments.momentum);
            Tensor(running_var)
                .lerp_(all.defined() ? variance * (all / (all - 1)) : variance * (n / (n - 1)), arguments.momentum);
        } else {
            mean = running_mean - bias;
            variance = running_var;
        }
        const Tensor inverse = torch::rsqrt(variance + arguments.eps);
        const Tensor sign = torch::where(gamma < 0, -torch::ones_like(gamma), torch::ones_like(gamma));
        LargestProducts found =
            largest_products(rows, arguments.batch, weight * sign.to(weight.scalar_type()).unsqueeze(1));
        const Tensor normalised = found.values.mul_(sign).sub_(mean).mul_(inverse);
        Tensor y = torch::addcmul(beta, gamma, normalised);
        if (arguments.has_relu) y.relu_();
        keep(context, arguments);
        context->save_for_backward(
            {rows, weight, gamma, inverse, normalised, found.winners, y, of_rows.mean, of_rows.covariance, all});
        return y;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("linear_norm_max", [&]() -> variable_list {
            variable_list wanted(8);  // of the arguments of forward
            if (!gradients[0].defined()) return wanted;
            const LinearNormArguments arguments = kept<LinearNormArguments>(context);
            const variable_list saved = context->get_saved_variables();
            const Tensor &rows = saved[0], weight = at_least_float(saved[1]), &gamma = saved[2], &inverse = saved[3],
                         &normalised = saved[4], &winners = saved[5], &y = saved[6], &mean = saved[7],
                         &covariance = saved[8];
            const Tensor g = arguments.has_relu ? gradients[0] * (y > 0) : gradients[0];
            const Tensor dL_dbeta = g.sum(0), dL_dgamma = (g * normalised).sum(0);
            const Tensor factor = gamma * inverse;
            const Tensor of_winners = (g * factor).contiguous();  // [clouds, channels]
            if (context->needs_input_grad(3)) wanted[3] = dL_dgamma;
            if (context->needs_input_grad(4)) wanted[4] = dL_dbeta;
            const bool wants_rows = context->needs_input_grad(0), wants_weight = context->needs_input_grad(1);
            if (!arguments.uses_batch_statistics) {
                if (context->needs_input_grad(2)) wanted[2] = of_winners.sum(0);
                if (wants_weight)
                    wanted[1] = winners_weight(rows, arguments.batch, winners, of_winners).to(saved[1].scalar_type());
                if (wants_rows) {
                    Tensor sum = torch::zeros(rows.sizes(), weight.options());
                    add_winners_rows(arguments.batch, weight, winners, of_winners, sum);
                    wanted[0] = sum.to(rows.scalar_type());
                }
                return wanted;
            }
            if (context->needs_input_grad(2)) wanted[2] = torch::zeros_like(gamma);
            const auto n = static_cast<double>(rows.size(0));
            Tensor alpha, slope;
            if (arguments.group) {  // means over the rows of all ranks; these rows' share of what they lead to is n
                const std::vector<Tensor> sums = sums_of_ranks(*arguments.group, {dL_dbeta, dL_dgamma});
                alpha = factor * (sums[0].to(factor.scalar_type()) / saved[9]) * -1;
                slope = factor * (sums[1].to(factor.scalar_type()) / saved[9]) * inverse * -1;
            } else {
                alpha = factor * dL_dbeta * (-1 / n), slope = factor * dL_dgamma * inverse * (-1 / n);
            }
            if (wants_weight) {
                Tensor sum = winners_weight(rows, arguments.batch, winners, of_winners);
                sum.addr_(alpha, mean, 1, n).addcmul_(slope.unsqueeze(1), torch::mm(weight, covariance), n);
                wanted[1] = sum.to(saved[1].scalar_type());
            }
            if (wants_rows) {
                const Tensor square = torch::mm(weight.t(), weight * slope.unsqueeze(1));  // [k, k]
                const Tensor constant = torch::mv(weight.t(), alpha) - torch::mv(square.t(), mean);
                wanted[0] = gradient_of_input(rows, square, constant, arguments.batch, saved[1], winners, of_winners);
            }
            return wanted;
        });
    }
};

}  // namespace

Tensor linear_norm_max(const Clouds& rows, const LinearNorm& layer) {
    const Tensor input = rows.rows.contiguous();
    const Tensor bias = layer.bias.defined() ? layer.bias : torch::zeros_like(layer.beta.detach());
    return LinearNormMaxFunction::apply(input, layer.weight, bias, layer.gamma, layer.beta, layer.running_mean,
                                        layer.running_var,
                                        LinearNormArguments{rows.batch, layer.eps, layer.momentum,
                                                            layer.uses_batch_statistics, layer.has_relu, layer.group});
}

}  // namespace stipple::learn
