// SampleNet's simplification terms.

#include "stipple/ops/simplification.h"

#include "stipple/learn/functions/tensors.h"

namespace stipple::learn {
namespace {

struct SimplificationArguments {
    ops::Batch of_points, of_queries;
    std::vector<int64_t> sizes;
};

class SimplificationFunction : public torch::autograd::Function<SimplificationFunction> {
public:
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& points, const torch::Tensor& queries,
                                 const torch::Tensor& nearest, const SimplificationArguments& arguments) {
        const auto& [of_points, of_queries, sizes] = arguments;
        const auto count = static_cast<int64_t>(sizes.size());
        const torch::Tensor owners = new_indices(points, {count, of_points.rows()}),
                            farthest = new_indices(points, {of_points.clouds(), count});
        torch::Tensor terms =
            torch::empty({of_points.clouds(), count, 3}, points.options().dtype(torch::kFloat64).requires_grad(false));
        ops::simplification(clouds_of(points, of_points), clouds_of(queries, of_queries), sizes,
                            view_of<const int32_t, 1>(nearest),
                            {view_of<int32_t, 2>(owners), view_of<int32_t, 2>(farthest)}, view_of<double, 3>(terms),
                            current_stream(points));
        keep(context, arguments);
        context->save_for_backward({points, queries, nearest, owners, farthest});
        return terms;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("simplification", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(4);
            const auto [of_points, of_queries, sizes] = kept<SimplificationArguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &points = saved[0], &queries = saved[1], dL_dterms = gradients[0].contiguous();
            const torch::Tensor dL_dqueries = torch::empty_like(queries);
            ops::simplification_backward(
                clouds_of(points, of_points), clouds_of(queries, of_queries), sizes,
                view_of<const int32_t, 1>(saved[2]), {view_of<int32_t, 2>(saved[3]), view_of<int32_t, 2>(saved[4])},
                view_of<const double, 3>(dL_dterms), view_of<float, 2>(dL_dqueries), current_stream(points));
            return {{}, dL_dqueries, {}, {}};
        });
    }
};

}  // namespace

torch::Tensor simplification(const Clouds& points, const Clouds& queries, const torch::Tensor& nearest,
                             std::vector<int64_t> sizes) {
    const char* op = "simplification";
    const torch::Tensor from = checked_floats(op, "points", points.rows, 2, {});
    return SimplificationFunction::apply(from, checked_floats(op, "queries", queries.rows, 2, from),
                                         checked_indices(op, nearest, 1, from),
                                         SimplificationArguments{points.batch, queries.batch, std::move(sizes)});
}

}  // namespace stipple::learn
