#include "stipple/learn/distributed/sync_norm.h"

#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/short_numbers.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

struct NormArguments {
    ProcessGroup* group;
    double eps, momentum;
};

class SyncNormFunction : public torch::autograd::Function<SyncNormFunction> {
public:
    static Tensor forward(AutogradContext* context, const Tensor& short_rows, const Tensor& gamma, const Tensor& beta,
                          const Tensor& running_mean, const Tensor& running_var, const NormArguments& arguments) {
        const Tensor rows = at_least_float(short_rows);
        const auto own = static_cast<double>(rows.size(0));
        const auto [own_mean, own_var] = at::batch_norm_update_stats(rows, {}, {}, 0);
        const Tensor exact = own_mean.to(torch::kFloat64);
        const std::vector<Tensor> sums = sums_of_ranks(
            *arguments.group,
            {torch::full({1}, own, exact.options()), exact * own, (own_var.to(torch::kFloat64) + exact * exact) * own});
        const Tensor &n = sums[0], exact_mean = sums[1] / n;
        const Tensor exact_var = (sums[2] / n - exact_mean * exact_mean).clamp_min_(0);
        const Tensor mean = exact_mean.to(rows.scalar_type()), var = exact_var.to(rows.scalar_type());
        Tensor(running_mean).lerp_(mean, arguments.momentum);
        Tensor(running_var).lerp_((exact_var * (n / (n - 1))).to(rows.scalar_type()), arguments.momentum);
        keep(context, arguments);
        const Tensor inverse = torch::rsqrt(var + arguments.eps);
        context->save_for_backward({short_rows, gamma, mean, inverse, n});
        // torch's own formula, with these statistics.
        return torch::batch_norm(rows, gamma, beta, mean, var, false, 0, arguments.eps, /*cudnn_enabled=*/false)
            .to(short_rows.scalar_type());
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("sync_batch_norm", [&]() -> variable_list {
            variable_list wanted(6);  // of the arguments of forward
            const NormArguments arguments = kept<NormArguments>(context);
            const variable_list saved = context->get_saved_variables();
            const Tensor rows = at_least_float(saved[0]);
            const Tensor &gamma = saved[1], &mean = saved[2], &inverse = saved[3], &n = saved[4];
            // Without a gradient too: the other ranks wait for this one's sums.
            const Tensor g = gradients[0].defined() ? at_least_float(gradients[0]) : torch::zeros_like(rows);
            const Tensor normalised = (rows - mean).mul_(inverse);
            const Tensor dL_dbeta = g.sum(0), dL_dgamma = (g * normalised).sum(0);
            const std::vector<Tensor> sums = sums_of_ranks(*arguments.group, {dL_dbeta, dL_dgamma});
            if (context->needs_input_grad(1)) wanted[1] = dL_dgamma;
            if (context->needs_input_grad(2)) wanted[2] = dL_dbeta;
            if (context->needs_input_grad(0)) {
                const Tensor of_beta = (sums[0] / n).to(rows.scalar_type()),
                             of_gamma = (sums[1] / n).to(rows.scalar_type());
                wanted[0] = (g - of_beta - normalised * of_gamma).mul_(gamma * inverse).to(saved[0].scalar_type());
            }
            return wanted;
        });
    }
};

}  // namespace

Tensor sync_batch_norm(const Tensor& rows, const SyncNorm& norm, ProcessGroup& group) {
    return SyncNormFunction::apply(rows, norm.gamma, norm.beta, norm.running_mean, norm.running_var,
                                   NormArguments{&group, norm.eps, norm.momentum});
}

RowMoments moments_of_ranks(ProcessGroup& group, const Tensor& own_mean, const Tensor& own_covariance, int64_t rows) {
    const Tensor mean = own_mean.to(torch::kFloat64);
    const auto n = static_cast<double>(rows);
    const std::vector<Tensor> sums =
        sums_of_ranks(group, {torch::full({1}, n, mean.options()), mean * n,
                              (own_covariance.to(torch::kFloat64) + torch::outer(mean, mean)) * n});
    const Tensor of_all = sums[1] / sums[0];
    return {sums[0].to(own_mean.scalar_type()), of_all.to(own_mean.scalar_type()),
            (sums[2] / sums[0] - torch::outer(of_all, of_all)).to(own_covariance.scalar_type())};
}

}  // namespace stipple::learn
