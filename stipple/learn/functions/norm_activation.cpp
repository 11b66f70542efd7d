#include "stipple/learn/functions/norm_activation.h"

#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/short_numbers.h"
#include "stipple/ops/row_norm.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

struct NormArguments {
    double eps, momentum;
    bool has_relu;
};

View<const float, 1> column(const Tensor& tensor) {
    return view_of<const float, 1>(tensor);
}

class NormActivationFunction : public torch::autograd::Function<NormActivationFunction> {
public:
    static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& gamma, const Tensor& beta,
                          const Tensor& running_mean, const Tensor& running_var, const Tensor& offset,
                          const NormArguments& arguments) {
        const Stream stream = current_stream(rows);
        Tensor mean = new_floats(rows, {rows.size(1)}), variance = torch::empty_like(mean);
        ops::column_statistics(matrix_of(rows), view_of<float, 1>(mean), view_of<float, 1>(variance), stream);
        Tensor inverse = torch::empty_like(mean), scale = torch::empty_like(mean), shift = torch::empty_like(mean);
        ops::norm_columns(column(mean), column(variance), static_cast<double>(rows.size(0)),
                          {.gamma = column(gamma),
                           .beta = column(beta),
                           .offset = column(offset),
                           .eps = arguments.eps,
                           .momentum = arguments.momentum},
                          view_of<float, 1>(running_mean), view_of<float, 1>(running_var), view_of<float, 1>(inverse),
                          view_of<float, 1>(scale), view_of<float, 1>(shift), stream);
        Tensor out = torch::empty_like(rows);
        ops::normalise_rows(matrix_of(rows), column(scale), column(shift), arguments.has_relu, mutable_matrix_of(out),
                            stream);
        keep(context, arguments);
        context->save_for_backward({rows, mean, inverse, scale, shift});
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("norm_activation", [&]() -> variable_list {
            variable_list wanted(7);  // of the arguments of forward
            if (!gradients[0].defined()) return wanted;
            const bool has_relu = kept<NormArguments>(context).has_relu;
            const variable_list saved = context->get_saved_variables();
            const Tensor& rows = saved[0];
            const ops::NormColumns columns = {column(saved[1]), column(saved[2]), column(saved[3]), column(saved[4])};
            const Tensor dL_dout = gradients[0].contiguous();
            const Stream stream = current_stream(rows);
            Tensor dL_dbeta = torch::empty_like(saved[1]), dL_dgamma = torch::empty_like(saved[1]);
            ops::norm_backward_sums(matrix_of(dL_dout), matrix_of(rows), columns, has_relu, view_of<float, 1>(dL_dbeta),
                                    view_of<float, 1>(dL_dgamma), stream);
            if (context->needs_input_grad(0)) {
                Tensor dL_drows = torch::empty_like(rows);
                ops::norm_backward_rows(matrix_of(dL_dout), matrix_of(rows), columns, column(dL_dbeta),
                                        column(dL_dgamma), static_cast<double>(rows.size(0)), has_relu,
                                        mutable_matrix_of(dL_drows), stream);
                wanted[0] = dL_drows;
            }
            if (context->needs_input_grad(1)) wanted[1] = dL_dgamma;
            if (context->needs_input_grad(2)) wanted[2] = dL_dbeta;
            if (context->needs_input_grad(5)) wanted[5] = torch::zeros_like(dL_dbeta);
            return wanted;
        });
    }
};

}  // namespace

bool can_norm_activation(const Tensor& rows) {
    return rows.is_cuda() && (is_short(rows) || rows.scalar_type() == torch::kFloat32);
}

Tensor norm_activation(const Tensor& rows, const RowNorm& norm) {
    return NormActivationFunction::apply(rows.contiguous(), norm.gamma, norm.beta, norm.running_mean, norm.running_var,
                                         norm.offset, NormArguments{norm.eps, norm.momentum, norm.has_relu});
}

}  // namespace stipple::learn
