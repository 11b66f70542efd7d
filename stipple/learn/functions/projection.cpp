// SampleNet's soft projection.

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/soft_project.h"

namespace stipple::learn {
namespace {

struct Projection {
    ops::Batch of_points, of_queries;
    float min_sigma;
};

class SoftProjectFunction : public torch::autograd::Function<SoftProjectFunction> {
public:
    static variable_list forward(AutogradContext* context, const torch::Tensor& points, const torch::Tensor& queries,
                                 const torch::Tensor& temperature, const torch::Tensor& indices,
                                 const Projection& arguments) {
        const auto& [of_points, of_queries, min_sigma] = arguments;
        torch::Tensor weights = new_floats(points, indices.sizes()), projected = torch::empty_like(queries);
        ops::soft_project(clouds_of(points, of_points), clouds_of(queries, of_queries),
                          neighbours_of(indices, of_queries), view_of<const float, 1>(temperature), min_sigma,
                          view_of<float, 2>(weights), view_of<float, 2>(projected), current_stream(points));
        keep(context, arguments);
        context->save_for_backward({points, queries, temperature, indices});
        const torch::Tensor nan = nan_of_rows(queries);
        return {projected.add_(nan), weights.add_(nan)};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("soft_project", [&]() -> variable_list {
            if (!gradients[0].defined() && !gradients[1].defined()) return variable_list(5);
            const auto [of_points, of_queries, min_sigma] = kept<Projection>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &points = saved[0], &queries = saved[1], &temperature = saved[2], &indices = saved[3];
            const torch::Tensor dL_dprojected = gradients[0].defined() ? gradients[0].contiguous() : torch::Tensor(),
                                dL_dweights = gradients[1].defined() ? gradients[1].contiguous() : torch::Tensor();
            // The op gives both.
            const torch::Tensor dL_dqueries = torch::empty_like(queries),
                                dL_dtemperature = torch::empty_like(temperature);
            ops::soft_project_backward(clouds_of(points, of_points), clouds_of(queries, of_queries),
                                       neighbours_of(indices, of_queries), view_of<const float, 1>(temperature),
                                       min_sigma, view_of<const float, 2>(dL_dprojected),
                                       view_of<const float, 2>(dL_dweights), view_of<float, 2>(dL_dqueries),
                                       view_of<float, 1>(dL_dtemperature), current_stream(points));
            return {{}, dL_dqueries, dL_dtemperature, {}, {}};
        });
    }
};

}  // namespace

SoftProjection soft_project(const Clouds& points, const Clouds& queries, const torch::Tensor& neighbours,
                            const torch::Tensor& temperature, float min_sigma) {
    const char* op = "soft_project";
    const torch::Tensor from = checked_floats(op, "points", points.rows, 2, {});
    const variable_list found = SoftProjectFunction::apply(from, checked_floats(op, "queries", queries.rows, 2, from),
                                                           checked_floats(op, "temperature", temperature, 1, from),
                                                           checked_indices(op, neighbours, 2, from),
                                                           Projection{points.batch, queries.batch, min_sigma});
    return {found[0], found[1]};
}

}  // namespace stipple::learn
