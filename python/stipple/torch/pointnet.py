"""PointNet's widest layer and the maximum over points behind it, as one function."""
import torch

from .. import ops
from .autograd import dense, first_derivative, float_inputs, plain


class _LinearMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, offsets):
        largest, winners = ops.linear_max(plain(rows), plain(weight), offsets=offsets)
        ctx.offsets = offsets
        ctx.save_for_backward(rows, weight, winners)
        ctx.mark_non_differentiable(winners)
        return largest, winners

    @first_derivative("linear_max")
    def backward(ctx, dL_dlargest, _):
        rows, weight, winners = ctx.saved_tensors
        rows, weight, dL_dlargest = plain(rows), plain(weight), dense(dL_dlargest)
        of_rows = of_weight = None
        if ctx.needs_input_grad[0]:
            of_rows = torch.zeros_like(rows, memory_format=torch.contiguous_format)
            ops.linear_max_backward_rows(weight, winners, dL_dlargest, of_rows, offsets=ctx.offsets)
        if ctx.needs_input_grad[1]:
            of_weight = ops.linear_max_backward_weight(rows, winners, dL_dlargest, offsets=ctx.offsets).to(weight.dtype)
        return of_rows, of_weight, None


def linear_max(rows, weight, *, offsets=None):
    """ops.linear_max. Gradients of largest for rows and weight; ties: the first row has it."""
    rows, weight = float_inputs(rows, weight)
    return ops.LinearMax(_LinearMax.apply(rows, weight, offsets))


def linear_norm_max(rows, weight, gamma, beta, running_mean, running_var, *, bias=None, training=False, momentum=0.1,
                    eps=1e-5, relu=False, offsets=None):
    """A linear layer, batch norm, perhaps ReLU, and the maximum over the rows of a cloud, in the memory of input and
    result: the products [rows, channels] are never kept.

    rows          [n, k], [b, n, k], or [total, k] with offsets
    weight        [channels, k]; bias, gamma, beta, running_mean, running_var: [channels]
    training      statistics of these rows, which move the running ones by momentum; else the running ones count

    Returns [channels] or [b, channels]. Mean and variance of the products come from mean and covariance of the rows; a
    positive factor and ReLU do not change which row is the largest, and where gamma is negative it is the smallest.
    Gradients for rows, weight, bias, gamma and beta. The numbers are those of torch.nn.Linear, BatchNorm1d and max one
    after the other, up to rounding. On CUDA for what ops.can_linear_max_cuda takes.
    """
    rows, weight, gamma, beta, bias = float_inputs(rows, weight, gamma, beta, bias)
    with torch.autocast(device_type=rows.device.type, enabled=False):  # sums of squares are no work for 16 bits
        if training:
            flat = rows.reshape(-1, rows.shape[-1]).float()
            count = flat.shape[0]
            if count < 2:
                raise ValueError(f"rows: {count} in all; statistics of a batch need 2")
            row_mean = flat.mean(0)
            centred = flat - row_mean
            exact = weight.float()
            mean = exact.mv(row_mean)  # of the products without bias, which the norm takes off again
            variance = (exact.mm(centred.t().mm(centred) / count) * exact).sum(1).clamp_min(0)
            with torch.no_grad():
                running_mean.lerp_(mean if bias is None else mean + bias, momentum)
                running_var.lerp_(variance * (count / (count - 1)), momentum)
        else:
            mean = running_mean if bias is None else running_mean - bias
            variance = running_var
        sign = torch.where(gamma.detach() < 0, -torch.ones_like(gamma), torch.ones_like(gamma)).detach()
        largest = linear_max(rows, weight * sign.to(weight.dtype).unsqueeze(1), offsets=offsets).largest * sign
        out = (largest - mean) * (gamma * torch.rsqrt(variance + eps)) + beta
        if training and bias is not None:
            out = out + 0 * bias  # its gradient is 0, and not missing
        return out.relu() if relu else out
