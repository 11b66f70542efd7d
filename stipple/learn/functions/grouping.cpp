// Rows that indices name: knn, gather, group.

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/gather.h"
#include "stipple/ops/group.h"
#include "stipple/ops/knn.h"

namespace stipple::learn {
namespace {

struct GroupingBatches {
    ops::Batch of_rows, of_indices;
};

torch::Tensor grouped(const torch::Tensor& rows, const ops::Batch& of_rows, const torch::Tensor& indices,
                      const ops::Batch& of_indices, const torch::Tensor& centres) {
    torch::Tensor out = new_floats(rows, {indices.size(0), indices.size(1), rows.size(1)});
    ops::group(clouds_of(rows, of_rows), neighbours_of(indices, of_indices), view_of<const float, 2>(centres),
               view_of<float, 3>(out), current_stream(rows));
    return out;
}

class KnnFunction : public torch::autograd::Function<KnnFunction> {
public:
    static variable_list forward(AutogradContext* context, const torch::Tensor& points, const torch::Tensor& queries,
                                 const GroupingBatches& batches, int64_t k) {
        const torch::Tensor indices = new_indices(points, {queries.size(0), k}),
                            distances_sq = new_floats(points, {queries.size(0), k});
        ops::knn(clouds_of(points, batches.of_rows), clouds_of(queries, batches.of_indices),
                 view_of<int32_t, 2>(indices), view_of<float, 2>(distances_sq), current_stream(points));
        keep(context, batches);
        context->mark_non_differentiable({indices});
        context->save_for_backward({points, queries, indices});
        return {indices, distances_sq};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("knn", [&]() -> variable_list {
            if (!gradients[1].defined()) return variable_list(4);
            const auto [of_rows, of_indices] = kept<GroupingBatches>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor& indices = saved[2];
            torch::Tensor offsets = grouped(saved[0], of_rows, indices, of_indices, saved[1]);
            offsets.mul_((2 * gradients[1]).unsqueeze(2));
            variable_list found(4);
            if (context->needs_input_grad(0)) found[0] = gradient_of_rows(offsets, indices, of_indices, of_rows);
            if (context->needs_input_grad(1)) found[1] = gradient_of_centres(offsets, indices, of_indices, of_rows);
            return found;
        });
    }
};

class GatherFunction : public torch::autograd::Function<GatherFunction> {
public:
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows, const torch::Tensor& indices,
                                 const GroupingBatches& batches) {
        torch::Tensor out = new_floats(rows, {indices.size(0), rows.size(1)});
        ops::gather(clouds_of(rows, batches.of_rows),
                    ops::Neighbours(view_of<const int32_t, 1>(indices), batches.of_indices), view_of<float, 2>(out),
                    current_stream(rows));
        keep(context, batches);
        context->save_for_backward({indices});
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("gather", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(3);
            const auto [of_rows, of_indices] = kept<GroupingBatches>(context);
            const torch::Tensor indices = context->get_saved_variables()[0].unsqueeze(1);
            return {gradient_of_rows(gradients[0].contiguous().unsqueeze(1), indices, of_indices, of_rows), {}, {}};
        });
    }
};

class GroupFunction : public torch::autograd::Function<GroupFunction> {
public:
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows, const torch::Tensor& centres,
                                 const torch::Tensor& indices, const GroupingBatches& batches, bool has_centres) {
        torch::Tensor out =
            grouped(rows, batches.of_rows, indices, batches.of_indices, has_centres ? centres : torch::Tensor());
        keep(context, batches);
        context->save_for_backward({indices});
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("group", [&]() -> variable_list {
            variable_list found(5);
            if (!gradients[0].defined()) return found;
            const auto [of_rows, of_indices] = kept<GroupingBatches>(context);
            const torch::Tensor indices = context->get_saved_variables()[0], dL_dout = gradients[0].contiguous();
            if (context->needs_input_grad(0)) found[0] = gradient_of_rows(dL_dout, indices, of_indices, of_rows);
            if (context->needs_input_grad(1)) found[1] = gradient_of_centres(dL_dout, indices, of_indices, of_rows);
            return found;
        });
    }
};

}  // namespace

NearestPoints knn(const Clouds& points, const Clouds& queries, int64_t k) {
    const torch::Tensor of_points = checked_floats("knn", "points", points.rows, 2, {}),
                        of_queries = checked_floats("knn", "queries", queries.rows, 2, of_points);
    STIPPLE_REQUIRE(k >= 1, "knn: {} neighbours", k);
    const variable_list found =
        KnnFunction::apply(of_points, of_queries, GroupingBatches{points.batch, queries.batch}, k);
    return {found[0], found[1]};
}

torch::Tensor gather(const Clouds& rows, const torch::Tensor& indices, const ops::Batch& of_indices) {
    const torch::Tensor from = checked_floats("gather", "rows", rows.rows, 2, {});
    return GatherFunction::apply(from, checked_indices("gather", indices, 1, from),
                                 GroupingBatches{rows.batch, of_indices});
}

torch::Tensor group(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& centres) {
    const torch::Tensor from = checked_floats("group", "rows", rows.rows, 2, {});
    const torch::Tensor indices = checked_indices("group", neighbours.indices, 2, from);
    // torch's functions take no undefined tensors.
    const torch::Tensor less =
        centres.defined() ? checked_floats("group", "centres", centres, 2, from) : new_floats(from, {0});
    return GroupFunction::apply(from, less, indices, GroupingBatches{rows.batch, neighbours.batch}, centres.defined());
}

}  // namespace stipple::learn
