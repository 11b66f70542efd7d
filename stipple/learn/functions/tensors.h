#pragma once
// What every function over an op needs: tensors checked and seen as views, and what is kept for the backward pass.

#include <torch/torch.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/stream.h"
#include "stipple/ops/invert_index.h"
#include "stipple/ops/matrix_view.h"

namespace stipple::learn {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The tensor, contiguous. Throws Error{bad_argument} unless it is float32 (int32) of this rank, on the device of
/// `beside`. By way of autograd: a copy that is needed passes gradients on.
torch::Tensor checked_floats(const char* op, const char* name, const torch::Tensor& tensor, int64_t rank,
                             const torch::Tensor& beside);
torch::Tensor checked_indices(const char* op, const torch::Tensor& tensor, int64_t rank, const torch::Tensor& beside);

/// The tensor's own memory, which must be contiguous; an empty view where it is undefined: ops leave that out.
template <class T, int Rank>
View<T, Rank> view_of(const torch::Tensor& tensor) {
    if (!tensor.defined()) return {};
    STIPPLE_ASSERT(tensor.dim() == Rank && tensor.is_contiguous());
    typename View<T, Rank>::Shape shape;
    std::copy_n(tensor.sizes().begin(), Rank, shape.begin());
    return {tensor.data_ptr<std::remove_const_t<T>>(), shape, ops_device(tensor)};
}
/// [rows, columns] of float32, float16 or bfloat16, likewise.
ops::MatrixView matrix_of(const torch::Tensor& tensor);
ops::MutableMatrixView mutable_matrix_of(const torch::Tensor& tensor);

inline ops::Clouds clouds_of(const torch::Tensor& rows, const ops::Batch& batch) {
    return {view_of<const float, 2>(rows), batch};
}
inline ops::Neighbours neighbours_of(const torch::Tensor& indices, const ops::Batch& batch) {
    return {view_of<const int32_t, 2>(indices), batch};
}

/// Not initialised, on the device of `like`.
inline torch::Tensor new_floats(const torch::Tensor& like, torch::IntArrayRef shape) {
    return torch::empty(shape, like.options().dtype(torch::kFloat32));
}
inline torch::Tensor new_indices(const torch::Tensor& like, torch::IntArrayRef shape) {
    return torch::empty(shape, like.options().dtype(torch::kInt32));
}

/// For the gradient of input i: memory like the input's where it is wanted, else undefined.
inline torch::Tensor new_gradient(const AutogradContext* context, size_t i, const torch::Tensor& input) {
    return context->needs_input_grad(i) ? torch::empty_like(input) : torch::Tensor();
}

/// [rows, 1]: 0, or NaN for a row with a number that is not finite.
inline torch::Tensor nan_of_rows(const torch::Tensor& rows) {
    return (rows * 0).sum(1, /*keepdim=*/true);
}

/// Arguments that are no tensors, from the forward pass to the backward one.
template <class T>
struct Kept : torch::CustomClassHolder {
    explicit Kept(T kept) : value(std::move(kept)) {}
    T value;
};
template <class T>
void keep(AutogradContext* context, T value) {
    context->set_materialize_grads(false);  // an output without gradient is undefined, not a tensor of zeros
    context->saved_data["arguments"] = c10::IValue::make_capsule(c10::make_intrusive<Kept<T>>(std::move(value)));
}
template <class T>
T kept(const AutogradContext* context) {
    return static_cast<const Kept<T>&>(*context->saved_data.at("arguments").toCapsule()).value;
}

/// The same numbers; differentiating them throws. For gradients that torch was asked to differentiate again.
variable_list not_differentiable_twice(const char* op, variable_list gradients);

/// What f() gives, the gradients of all arguments of the forward pass, without a graph of its own.
template <class F>
variable_list first_derivative(const char* op, const F& f) {
    const bool is_graph_wanted = torch::GradMode::is_enabled();
    variable_list gradients;
    {
        const torch::NoGradGuard no_gradients;
        gradients = f();
    }
    return is_graph_wanted ? not_differentiable_twice(op, std::move(gradients)) : gradients;
}

/// ops::invert_index on tensors: which entries name a row.
struct InvertedTensors {
    torch::Tensor ranges, positions;
    ops::InvertedIndex view() const {
        return {view_of<const int32_t, 2>(ranges), view_of<const int32_t, 1>(positions)};
    }
};
InvertedTensors inverted(const torch::Tensor& indices, const ops::Batch& of_indices, const ops::Batch& of_rows);

/// The gradient of rows [n, c] from that of their copies in groups, dL_dgrouped [m, k, c].
torch::Tensor gradient_of_rows(const torch::Tensor& dL_dgrouped, const torch::Tensor& indices,
                               const ops::Batch& of_indices, const ops::Batch& of_rows);

/// The gradient of centres [m, c] that were taken off the groups.
torch::Tensor gradient_of_centres(const torch::Tensor& dL_dgrouped, const torch::Tensor& indices,
                                  const ops::Batch& of_indices, const ops::Batch& of_rows);

}  // namespace stipple::learn
