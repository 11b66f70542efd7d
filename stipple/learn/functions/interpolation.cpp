// Weighted sums of rows, and the weights: inverse distances, kernel points, bilateral.

#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/bilateral_weights.h"
#include "stipple/ops/interpolate.h"

namespace stipple::learn {
namespace {

struct InterpolationBatches {
    ops::Batch of_rows, of_indices;
};

template <class Options>
struct Weighing {
    ops::Batch of_rows, of_queries;
    Options options;
};

class InterpolateFunction : public torch::autograd::Function<InterpolateFunction> {
public:
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows, const torch::Tensor& weights,
                                 const torch::Tensor& indices, const InterpolationBatches& batches) {
        torch::Tensor out = new_floats(rows, {indices.size(0), weights.size(1), rows.size(1)});
        ops::interpolate(clouds_of(rows, batches.of_rows), neighbours_of(indices, batches.of_indices),
                         view_of<const float, 3>(weights), view_of<float, 3>(out), current_stream(rows));
        keep(context, batches);
        context->save_for_backward({rows, weights, indices});
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("interpolate", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(4);
            const auto [of_rows, of_indices] = kept<InterpolationBatches>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &rows = saved[0], &weights = saved[1], &indices = saved[2];
            const torch::Tensor dL_dout = gradients[0].contiguous();
            const torch::Tensor dL_drows = new_gradient(context, 0, rows),
                                dL_dweights = new_gradient(context, 1, weights);
            const Stream stream = current_stream(rows);
            if (dL_drows.defined()) {
                const InvertedTensors inverse = inverted(indices, of_indices, of_rows);
                ops::interpolate_backward_rows(view_of<const float, 3>(weights), inverse.view(),
                                               view_of<const float, 3>(dL_dout), view_of<float, 2>(dL_drows), stream);
            }
            if (dL_dweights.defined())
                ops::interpolate_backward_weights(clouds_of(rows, of_rows), neighbours_of(indices, of_indices),
                                                  view_of<const float, 3>(dL_dout), view_of<float, 3>(dL_dweights),
                                                  stream);
            return {dL_drows, dL_dweights, {}, {}};
        });
    }
};

class ThreeWeightsFunction : public torch::autograd::Function<ThreeWeightsFunction> {
public:
    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& distances_sq,
                                 const ops::InverseDistance& options) {
        torch::Tensor weights = torch::empty_like(distances_sq);
        ops::three_weights(view_of<const float, 2>(distances_sq), options, view_of<float, 2>(weights),
                           current_stream(distances_sq));
        keep(context, options);
        context->save_for_backward({distances_sq});
        return weights;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("three_weights", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(2);
            const torch::Tensor distances_sq = context->get_saved_variables()[0];
            const torch::Tensor dL_dweights = gradients[0].contiguous(), found = torch::empty_like(distances_sq);
            ops::three_weights_backward(view_of<const float, 2>(distances_sq), kept<ops::InverseDistance>(context),
                                        view_of<const float, 2>(dL_dweights), view_of<float, 2>(found),
                                        current_stream(distances_sq));
            return {found, {}};
        });
    }
};

class KernelWeightsFunction : public torch::autograd::Function<KernelWeightsFunction> {
public:
    using Arguments = Weighing<ops::KernelWeights>;

    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& points, const torch::Tensor& queries,
                                 const torch::Tensor& kernel, const torch::Tensor& indices,
                                 const Arguments& arguments) {
        const auto& [of_rows, of_queries, options] = arguments;
        torch::Tensor weights = new_floats(points, {indices.size(0), kernel.size(0), indices.size(1)});
        ops::kernel_weights(clouds_of(points, of_rows), clouds_of(queries, of_queries),
                            neighbours_of(indices, of_queries), view_of<const float, 2>(kernel), options,
                            view_of<float, 3>(weights), current_stream(points));
        keep(context, arguments);
        context->save_for_backward({points, queries, kernel, indices});
        return weights.add_(nan_of_rows(queries).unsqueeze(2));
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("kernel_weights", [&]() -> variable_list {
            variable_list found(5);
            if (!gradients[0].defined()) return found;
            const auto [of_rows, of_queries, options] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &points = saved[0], &queries = saved[1], &kernel = saved[2], &indices = saved[3];
            const torch::Tensor dL_dweights = gradients[0].contiguous();
            const torch::Tensor dL_doffsets = new_floats(points, {indices.size(0), indices.size(1), 3});
            found[2] = new_gradient(context, 2, kernel);
            ops::kernel_weights_backward(clouds_of(points, of_rows), clouds_of(queries, of_queries),
                                         neighbours_of(indices, of_queries), view_of<const float, 2>(kernel), options,
                                         view_of<const float, 3>(dL_dweights), view_of<float, 3>(dL_doffsets),
                                         view_of<float, 2>(found[2]), current_stream(points));
            if (context->needs_input_grad(0)) found[0] = gradient_of_rows(dL_doffsets, indices, of_queries, of_rows);
            if (context->needs_input_grad(1)) found[1] = gradient_of_centres(dL_doffsets, indices, of_queries, of_rows);
            return found;
        });
    }
};

class BilateralSimilarityFunction : public torch::autograd::Function<BilateralSimilarityFunction> {
public:
    using Arguments = Weighing<float>;

    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows, const torch::Tensor& queries,
                                 const torch::Tensor& indices, const Arguments& arguments) {
        const auto& [of_rows, of_queries, beta] = arguments;
        torch::Tensor similarity = new_floats(rows, indices.sizes());
        ops::bilateral_similarity(clouds_of(rows, of_rows), clouds_of(queries, of_queries),
                                  neighbours_of(indices, of_queries), beta, view_of<float, 2>(similarity),
                                  current_stream(rows));
        keep(context, arguments);
        context->save_for_backward({rows, queries, indices, similarity});
        return similarity;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("bilateral_similarity", [&]() -> variable_list {
            variable_list found(4);
            if (!gradients[0].defined()) return found;
            const auto [of_rows, of_queries, beta] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &rows = saved[0], &queries = saved[1], &indices = saved[2];
            const torch::Tensor dL_dsimilarity = gradients[0].contiguous();
            const torch::Tensor dL_doffsets = new_floats(rows, {indices.size(0), indices.size(1), rows.size(1)});
            ops::bilateral_similarity_backward(
                clouds_of(rows, of_rows), clouds_of(queries, of_queries), neighbours_of(indices, of_queries), beta,
                view_of<const float, 2>(saved[3]), view_of<const float, 2>(dL_dsimilarity),
                view_of<float, 3>(dL_doffsets), current_stream(rows));
            if (context->needs_input_grad(0)) found[0] = gradient_of_rows(dL_doffsets, indices, of_queries, of_rows);
            if (context->needs_input_grad(1)) found[1] = gradient_of_centres(dL_doffsets, indices, of_queries, of_rows);
            return found;
        });
    }
};

class BilateralCombineFunction : public torch::autograd::Function<BilateralCombineFunction> {
public:
    using Arguments = Weighing<float>;

    static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows, const torch::Tensor& th,
                                 const torch::Tensor& psi, const torch::Tensor& indices, const Arguments& arguments) {
        const auto& [of_rows, of_queries, guard] = arguments;
        torch::Tensor out = new_floats(rows, {indices.size(0), rows.size(1)});
        const torch::Tensor denominator = torch::empty_like(out);
        ops::bilateral_combine(clouds_of(rows, of_rows), neighbours_of(indices, of_queries),
                               view_of<const float, 3>(th), view_of<const float, 3>(psi), guard, view_of<float, 2>(out),
                               view_of<float, 2>(denominator), current_stream(rows));
        keep(context, arguments);
        context->save_for_backward({rows, th, psi, indices, out, denominator});
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("bilateral_combine", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(5);
            const auto [of_rows, of_queries, guard] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &rows = saved[0], &th = saved[1], &psi = saved[2], &indices = saved[3];
            const torch::Tensor dL_dout = gradients[0].contiguous();
            const InvertedTensors inverse = inverted(indices, of_queries, of_rows);
            // The op gives all three.
            const torch::Tensor dL_drows = torch::empty_like(rows), dL_dth = torch::empty_like(th),
                                dL_dpsi = torch::empty_like(psi);
            ops::bilateral_combine_backward(
                clouds_of(rows, of_rows), neighbours_of(indices, of_queries), inverse.view(),
                view_of<const float, 3>(th), view_of<const float, 3>(psi), guard, view_of<const float, 2>(saved[4]),
                view_of<const float, 2>(saved[5]), view_of<const float, 2>(dL_dout), view_of<float, 3>(dL_dth),
                view_of<float, 3>(dL_dpsi), view_of<float, 2>(dL_drows), current_stream(rows));
            return {dL_drows, dL_dth, dL_dpsi, {}, {}};
        });
    }
};

}  // namespace

torch::Tensor interpolate(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& weights) {
    const torch::Tensor from = checked_floats("interpolate", "rows", rows.rows, 2, {});
    return InterpolateFunction::apply(from, checked_floats("interpolate", "weights", weights, 3, from),
                                      checked_indices("interpolate", neighbours.indices, 2, from),
                                      InterpolationBatches{rows.batch, neighbours.batch});
}

torch::Tensor three_weights(const torch::Tensor& distances_sq, const ops::InverseDistance& options) {
    return ThreeWeightsFunction::apply(checked_floats("three_weights", "distances_sq", distances_sq, 2, {}), options);
}

torch::Tensor three_interpolate(const torch::Tensor& features, const Clouds& known, const Clouds& queries, int64_t k,
                                const ops::InverseDistance& options) {
    const NearestPoints near = knn(known, queries, k);
    const torch::Tensor weights = three_weights(near.distances_sq, options).unsqueeze(1);
    const torch::Tensor out = interpolate({features, known.batch}, {near.indices, queries.batch}, weights).squeeze(1);
    return out + nan_of_rows(queries.rows.detach());
}

torch::Tensor kernel_weights(const Clouds& points, const Clouds& queries, const torch::Tensor& neighbours,
                             const torch::Tensor& kernel, const ops::KernelWeights& options) {
    const char* op = "kernel_weights";
    const torch::Tensor from = checked_floats(op, "points", points.rows, 2, {});
    return KernelWeightsFunction::apply(
        from, checked_floats(op, "queries", queries.rows, 2, from), checked_floats(op, "kernel", kernel, 2, from),
        checked_indices(op, neighbours, 2, from), Weighing<ops::KernelWeights>{points.batch, queries.batch, options});
}

torch::Tensor bilateral_similarity(const Clouds& rows, const Clouds& queries, const torch::Tensor& neighbours,
                                   float beta) {
    const char* op = "bilateral_similarity";
    const torch::Tensor from = checked_floats(op, "rows", rows.rows, 2, {});
    return BilateralSimilarityFunction::apply(from, checked_floats(op, "queries", queries.rows, 2, from),
                                              checked_indices(op, neighbours, 2, from),
                                              Weighing<float>{rows.batch, queries.batch, beta});
}

torch::Tensor bilateral_combine(const Clouds& rows, const Neighbours& neighbours, const torch::Tensor& th,
                                const torch::Tensor& psi, float guard) {
    const char* op = "bilateral_combine";
    const torch::Tensor from = checked_floats(op, "rows", rows.rows, 2, {});
    return BilateralCombineFunction::apply(
        from, checked_floats(op, "th", th, 3, from), checked_floats(op, "psi", psi, 3, from),
        checked_indices(op, neighbours.indices, 2, from), Weighing<float>{rows.batch, neighbours.batch, guard});
}

}  // namespace stipple::learn
