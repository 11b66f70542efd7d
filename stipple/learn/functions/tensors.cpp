#include "stipple/learn/functions/tensors.h"

#include <torch/csrc/autograd/functions/basic_ops.h>

#include "stipple/ops/group.h"
#include "stipple/ops/scatter_add.h"

namespace stipple::learn {
namespace {

torch::Tensor checked(const char* op, const char* name, const torch::Tensor& tensor, torch::Dtype dtype,
                      const char* dtype_name, int64_t rank, const torch::Tensor& beside) {
    STIPPLE_REQUIRE(tensor.defined(), "{}: {} is an undefined tensor", op, name);
    STIPPLE_REQUIRE(tensor.scalar_type() == dtype, "{}: {} must be {}, got {}", op, name, dtype_name,
                    c10::toString(tensor.scalar_type()));
    STIPPLE_REQUIRE(tensor.dim() == rank, "{}: {} must have {} dimensions, got {}", op, name, rank, tensor.dim());
    STIPPLE_REQUIRE(!beside.defined() || tensor.device() == beside.device(), "{}: {} is on {}, others on {}", op, name,
                    tensor.device().str(), beside.defined() ? beside.device().str() : "");
    ops_device(tensor);
    return tensor.contiguous();
}

}  // namespace

torch::Tensor checked_floats(const char* op, const char* name, const torch::Tensor& tensor, int64_t rank,
                             const torch::Tensor& beside) {
    return checked(op, name, tensor, torch::kFloat32, "float32", rank, beside);
}

torch::Tensor checked_indices(const char* op, const torch::Tensor& tensor, int64_t rank, const torch::Tensor& beside) {
    return checked(op, "indices", tensor, torch::kInt32, "int32", rank, beside);
}

ops::MatrixView matrix_of(const torch::Tensor& tensor) {
    STIPPLE_ASSERT(tensor.dim() == 2 && tensor.is_contiguous());
    DType type = DType::f32;
    if (tensor.scalar_type() == torch::kHalf)
        type = DType::f16;
    else if (tensor.scalar_type() == torch::kBFloat16)
        type = DType::bf16;
    else
        STIPPLE_ASSERT(tensor.scalar_type() == torch::kFloat32);
    return {tensor.data_ptr(), type, tensor.size(0), tensor.size(1), ops_device(tensor)};
}

ops::MutableMatrixView mutable_matrix_of(const torch::Tensor& tensor) {
    const ops::MatrixView view = matrix_of(tensor);
    return {tensor.data_ptr(), view.dtype, view.rows, view.columns, view.device};
}

variable_list not_differentiable_twice(const char* op, variable_list gradients) {
    for (torch::Tensor& gradient : gradients)
        if (gradient.defined()) gradient = gradient.detach().set_requires_grad(true);
    const auto node = std::make_shared<torch::autograd::DelayedError>(fmt::format("{} has no second derivative", op),
                                                                      static_cast<int>(gradients.size()));
    return (*node)(std::move(gradients));
}

InvertedTensors inverted(const torch::Tensor& indices, const ops::Batch& of_indices, const ops::Batch& of_rows) {
    const InvertedTensors inverse = {new_indices(indices, {of_rows.rows(), 2}),
                                     new_indices(indices, {indices.numel()})};
    ops::invert_index(neighbours_of(indices, of_indices), of_rows, view_of<int32_t, 2>(inverse.ranges),
                      view_of<int32_t, 1>(inverse.positions), current_stream(indices));
    return inverse;
}

torch::Tensor gradient_of_rows(const torch::Tensor& dL_dgrouped, const torch::Tensor& indices,
                               const ops::Batch& of_indices, const ops::Batch& of_rows) {
    const int64_t channels = dL_dgrouped.size(2);
    torch::Tensor dL_drows = new_floats(dL_dgrouped, {of_rows.rows(), channels});
    const InvertedTensors inverse = inverted(indices, of_indices, of_rows);
    ops::scatter_add(view_of<const float, 2>(dL_dgrouped.view({indices.numel(), channels})), inverse.view(),
                     view_of<float, 2>(dL_drows), current_stream(indices));
    return dL_drows;
}

torch::Tensor gradient_of_centres(const torch::Tensor& dL_dgrouped, const torch::Tensor& indices,
                                  const ops::Batch& of_indices, const ops::Batch& of_rows) {
    torch::Tensor dL_dcentres = new_floats(dL_dgrouped, {dL_dgrouped.size(0), dL_dgrouped.size(2)});
    ops::group_backward_centres(neighbours_of(indices, of_indices), of_rows, view_of<const float, 3>(dL_dgrouped),
                                view_of<float, 2>(dL_dcentres), current_stream(indices));
    return dL_dcentres;
}

}  // namespace stipple::learn
