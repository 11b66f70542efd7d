// Distances of clouds: chamfer, earth mover's, entropic transport.

#include "stipple/learn/evaluate/clouds.h"
#include "stipple/learn/functions/tensors.h"
#include "stipple/ops/chamfer.h"

namespace stipple::learn {
namespace {

template <class Options>
struct Pair {
    ops::Batch of_a, of_b;
    Options options;
};

/// A gradient of one number a cloud, contiguous as ops want it.
View<const float, 1> per_cloud(const torch::Tensor& gradient) {
    return view_of<const float, 1>(gradient);
}

/// [clouds]: 0, or NaN where not all points of a cloud were used.
torch::Tensor nan_of_unused(const torch::Tensor& used, const ops::Batch& batch) {
    const torch::Tensor missing = batch.is_dense()
                                      ? used - batch.largest()
                                      : used - sizes_of_clouds(batch, used).squeeze(1);  // ragged: by a small upload
    return torch::zeros_like(used, torch::kFloat32).masked_fill_(missing.ne(0), NAN);
}

class ChamferFunction : public torch::autograd::Function<ChamferFunction> {
public:
    using Arguments = Pair<ops::DistanceNorm>;

    static variable_list forward(AutogradContext* context, const torch::Tensor& a, const torch::Tensor& b,
                                 const Arguments& arguments) {
        const auto& [of_a, of_b, norm] = arguments;
        struct Side {
            torch::Tensor nearest, distances_sq, mean, used;
            Side(const torch::Tensor& rows, const ops::Batch& batch)
                : nearest(new_indices(rows, {batch.rows()})),
                  distances_sq(new_floats(rows, {batch.rows()})),
                  mean(new_floats(rows, {batch.clouds()})),
                  used(new_indices(rows, {batch.clouds()})) {}
            ops::ChamferSide view() const {
                return {view_of<int32_t, 1>(nearest), view_of<float, 1>(distances_sq), view_of<float, 1>(mean),
                        view_of<int32_t, 1>(used)};
            }
        };
        const Side a_to_b(a, of_a), b_to_a(b, of_b);
        ops::chamfer(clouds_of(a, of_a), clouds_of(b, of_b), norm, a_to_b.view(), b_to_a.view(), current_stream(a));
        const torch::Tensor nan = nan_of_unused(a_to_b.used, of_a) + nan_of_unused(b_to_a.used, of_b);
        keep(context, arguments);
        context->save_for_backward({a, b, a_to_b.nearest, a_to_b.used, b_to_a.nearest, b_to_a.used, nan});
        return {a_to_b.mean + nan, b_to_a.mean + nan};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("chamfer", [&]() -> variable_list {
            const auto [of_a, of_b, norm] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &a = saved[0], &b = saved[1], &nan = saved[6];
            variable_list dL_dmean;
            for (const torch::Tensor& gradient : gradients)
                dL_dmean.push_back(gradient.defined() ? gradient + nan : torch::Tensor());
            const auto side = [&](size_t i) -> ops::ChamferSideGradient {
                if (!dL_dmean[i].defined()) return {};
                return {per_cloud(dL_dmean[i]), view_of<const int32_t, 1>(saved[2 + 2 * i]),
                        view_of<const int32_t, 1>(saved[3 + 2 * i])};
            };
            if (!dL_dmean[0].defined() && !dL_dmean[1].defined()) return variable_list(3);
            const torch::Tensor dL_da = new_gradient(context, 0, a), dL_db = new_gradient(context, 1, b);
            ops::chamfer_backward(clouds_of(a, of_a), clouds_of(b, of_b), norm, side(0), side(1),
                                  view_of<float, 2>(dL_da), view_of<float, 2>(dL_db), current_stream(a));
            return {dL_da, dL_db, {}};
        });
    }
};

class EmdFunction : public torch::autograd::Function<EmdFunction> {
public:
    using Arguments = Pair<ops::EmdOptions>;

    static variable_list forward(AutogradContext* context, const torch::Tensor& a, const torch::Tensor& b,
                                 const Arguments& arguments) {
        const auto& [of_a, of_b, options] = arguments;
        const torch::Tensor cost = new_floats(a, {of_a.clouds()}), lower_bound = new_floats(a, {of_a.clouds()}),
                            matching = new_indices(a, {of_a.rows()});
        ops::emd(clouds_of(a, of_a), clouds_of(b, of_b),
                 {view_of<float, 1>(cost), view_of<float, 1>(lower_bound), view_of<int32_t, 1>(matching)}, options,
                 current_stream(a));
        keep(context, arguments);
        context->mark_non_differentiable({lower_bound, matching});
        context->save_for_backward({a, b, matching, cost * 0});
        return {cost, lower_bound, matching};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("emd", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(3);
            const auto [of_a, of_b, options] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &a = saved[0], &b = saved[1], dL_dcost = gradients[0].contiguous();
            const torch::Tensor dL_da = new_gradient(context, 0, a), dL_db = new_gradient(context, 1, b);
            ops::emd_backward(clouds_of(a, of_a), clouds_of(b, of_b), options.norm, view_of<const int32_t, 1>(saved[2]),
                              per_cloud(dL_dcost), view_of<float, 2>(dL_da), view_of<float, 2>(dL_db),
                              current_stream(a));
            // A cloud with a point that is not finite has no matching, and zeros from the op.
            const torch::Tensor nan = saved[3].unsqueeze(1);
            if (dL_da.defined()) dL_da.add_(repeat_for_points(nan, of_a));
            if (dL_db.defined()) dL_db.add_(repeat_for_points(nan, of_b));
            return {dL_da, dL_db, {}};
        });
    }
};

class SinkhornFunction : public torch::autograd::Function<SinkhornFunction> {
public:
    using Arguments = Pair<ops::SinkhornOptions>;

    static variable_list forward(AutogradContext* context, const torch::Tensor& a, const torch::Tensor& b,
                                 const Arguments& arguments) {
        const auto& [of_a, of_b, options] = arguments;
        const int64_t clouds = of_a.clouds();
        const torch::Tensor cost = new_floats(a, {clouds}), dual = new_floats(a, {clouds}),
                            error = new_floats(a, {clouds}), iterations = new_indices(a, {clouds}),
                            converged = new_indices(a, {clouds}), f = new_floats(a, {of_a.rows()}),
                            g = new_floats(a, {of_b.rows()});
        ops::sinkhorn(clouds_of(a, of_a), clouds_of(b, of_b), {}, {}, options,
                      {view_of<float, 1>(cost), view_of<float, 1>(dual), view_of<float, 1>(error),
                       view_of<int32_t, 1>(iterations), view_of<int32_t, 1>(converged), view_of<float, 1>(f),
                       view_of<float, 1>(g)},
                      current_stream(a));
        // Points that are not finite carry no mass in the op; here they spoil their clouds.
        const torch::Tensor nan =
            (sum_of_clouds(nan_of_rows(a), of_a, 1) + sum_of_clouds(nan_of_rows(b), of_b, 1)).squeeze(1);
        keep(context, arguments);
        context->mark_non_differentiable({cost, error});
        context->save_for_backward({a, b, f, g, nan});
        return {dual + nan, cost, error};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        return first_derivative("sinkhorn", [&]() -> variable_list {
            if (!gradients[0].defined()) return variable_list(3);
            const auto [of_a, of_b, options] = kept<Arguments>(context);
            const variable_list saved = context->get_saved_variables();
            const torch::Tensor &a = saved[0], &b = saved[1], dL_ddual = gradients[0] + saved[4];
            const torch::Tensor dL_da = new_gradient(context, 0, a), dL_db = new_gradient(context, 1, b);
            ops::sinkhorn_backward(clouds_of(a, of_a), clouds_of(b, of_b), {}, {}, options,
                                   view_of<const float, 1>(saved[2]), view_of<const float, 1>(saved[3]),
                                   per_cloud(dL_ddual), view_of<float, 2>(dL_da), view_of<float, 2>(dL_db),
                                   current_stream(a));
            return {dL_da, dL_db, {}};
        });
    }
};

/// a and b checked, then the function of both.
template <class Function, class Options>
variable_list of_pair(const char* op, const Clouds& a, const Clouds& b, const Options& options) {
    const torch::Tensor from = checked_floats(op, "a", a.rows, 2, {}), to = checked_floats(op, "b", b.rows, 2, from);
    return Function::apply(from, to, Pair<Options>{a.batch, b.batch, options});
}

}  // namespace

ChamferMeans chamfer(const Clouds& a, const Clouds& b, ops::DistanceNorm norm) {
    const variable_list found = of_pair<ChamferFunction>("chamfer", a, b, norm);
    return {found[0], found[1]};
}

EmdMatching emd(const Clouds& a, const Clouds& b, const ops::EmdOptions& options) {
    const variable_list found = of_pair<EmdFunction>("emd", a, b, options);
    return {found[0], found[1], found[2]};
}

SinkhornTransport sinkhorn(const Clouds& a, const Clouds& b, const ops::SinkhornOptions& options) {
    const variable_list found = of_pair<SinkhornFunction>("sinkhorn", a, b, options);
    return {found[0], found[1], found[2]};
}

}  // namespace stipple::learn
