#include "stipple/learn/functions/dropout.h"

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/dropout.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

struct DropoutArguments {
    double rate;
    uint64_t key;
    int64_t first;
};

Tensor dropped(const Tensor& x, const Tensor& step, const DropoutArguments& arguments) {
    if (x.scalar_type() == torch::kFloat64) {  // of checks of gradients
        const Tensor ones = torch::ones(x.sizes(), x.options().dtype(torch::kFloat32));
        return x * dropped(ones, step, arguments).ne(0) / (1 - arguments.rate);
    }
    const Tensor rows = x.contiguous();
    Tensor out = torch::empty_like(rows);
    ops::dropout(matrix_of(rows), static_cast<float>(arguments.rate), arguments.key, step.data_ptr<int64_t>(),
                 arguments.first, out.data_ptr(), current_stream(rows));
    return out;
}

class DropoutFunction : public torch::autograd::Function<DropoutFunction> {
public:
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& step,
                          const DropoutArguments& arguments) {
        keep(context, arguments);
        context->saved_data["step"] = step;  // not as a variable: it may have gone on, where a graph repeats the pass
        return dropped(x, step, arguments);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("dropout", [&]() -> variable_list {
            if (!gradients[0].defined()) return {Tensor(), Tensor(), Tensor()};
            const Tensor step = context->saved_data.at("step").toTensor();
            return {dropped(gradients[0], step, kept<DropoutArguments>(context)), Tensor(), Tensor()};
        });
    }
};

}  // namespace

Tensor dropout(const Tensor& x, double rate, uint64_t key, const Tensor& step, int64_t first) {
    STIPPLE_REQUIRE(step.scalar_type() == torch::kInt64 && step.numel() == 1 && step.device() == x.device(),
                    "dropout: step must be one int64 on the device of the rows");
    return DropoutFunction::apply(x, step, DropoutArguments{rate, key, first});
}

}  // namespace stipple::learn
