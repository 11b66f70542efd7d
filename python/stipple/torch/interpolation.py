"""Weighted sums of neighbours' rows, and where the weights come from."""
import torch

from .. import ops
from .autograd import dense, first_derivative, float_inputs, plain
from .neighbours import knn


class _Interpolate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, neighbours, weights, offsets):
        ctx.offsets = offsets
        ctx.save_for_backward(rows, neighbours, weights)
        return ops.interpolate(plain(rows), neighbours, plain(weights), rows_offsets=offsets[0],
                               neighbours_offsets=offsets[1])

    @first_derivative("interpolate")
    def backward(ctx, dL_dout):
        rows, neighbours, weights = ctx.saved_tensors
        rows, dL_dout = plain(rows), dense(dL_dout)
        of_rows = of_weights = None
        if ctx.needs_input_grad[0]:
            inverse = ops.invert_index(neighbours, rows, rows_offsets=ctx.offsets[0], neighbours_offsets=ctx.offsets[1])
            of_rows = ops.interpolate_backward_rows(plain(weights), inverse, dL_dout).reshape(rows.shape)
        if ctx.needs_input_grad[2]:
            of_weights = ops.interpolate_backward_weights(rows, neighbours, dL_dout, rows_offsets=ctx.offsets[0],
                                                          neighbours_offsets=ctx.offsets[1])
        return of_rows, None, of_weights, None


def interpolate(rows, neighbours, weights, *, rows_offsets=None, neighbours_offsets=None):
    """ops.interpolate. Gradients for rows and weights."""
    rows, weights = float_inputs(rows, weights)
    return _Interpolate.apply(rows, neighbours, weights, (rows_offsets, neighbours_offsets))


class _ThreeWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx, distances_sq, options):
        ctx.options = options
        ctx.save_for_backward(distances_sq)
        return ops.three_weights(plain(distances_sq), **options)

    @first_derivative("three_weights")
    def backward(ctx, dL_dweights):
        distances_sq = plain(ctx.saved_tensors[0])
        return ops.three_weights_backward(distances_sq, dense(dL_dweights), **ctx.options), None


def three_weights(distances_sq, *, power="squared", epsilon=1e-8):
    """ops.three_weights. Gradients for distances_sq."""
    return _ThreeWeights.apply(float_inputs(distances_sq), {"power": power, "epsilon": epsilon})


def three_interpolate(known, queries, features, *, k=3, power="squared", epsilon=1e-8, known_offsets=None,
                      queries_offsets=None):
    """PointNet++'s feature propagation: knn, three_weights and interpolate.

    known [n, 3], their features [n, c], queries [m, 3]; returns [m, c], or the same of a batch. Gradients for all three.
    """
    found = knn(known, k, queries, points_offsets=known_offsets, queries_offsets=queries_offsets)
    weights = three_weights(found.distances_sq, power=power, epsilon=epsilon).unsqueeze(-2)
    return interpolate(features, found.indices, weights, rows_offsets=known_offsets,
                       neighbours_offsets=queries_offsets).squeeze(-2)


class _SoftProject(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, queries, neighbours, temperature, min_sigma, offsets):
        ctx.min_sigma, ctx.offsets = min_sigma, offsets
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(points, queries, neighbours, temperature)
        return tuple(ops.soft_project(plain(points), plain(queries), neighbours, plain(temperature), min_sigma,
                                      points_offsets=offsets[0], queries_offsets=offsets[1]))

    @first_derivative("soft_project")
    def backward(ctx, dL_dweights, dL_dprojected):
        points, queries, neighbours, temperature = ctx.saved_tensors
        found = ops.soft_project_backward(
            plain(points), plain(queries), neighbours, plain(temperature), ctx.min_sigma,
            dL_dprojected=None if dL_dprojected is None else dense(dL_dprojected),
            dL_dweights=None if dL_dweights is None else dense(dL_dweights), points_offsets=ctx.offsets[0],
            queries_offsets=ctx.offsets[1])
        return None, found.dL_dqueries, None, found.dL_dtemperature, None, None


def soft_project(points, queries, neighbours, temperature, min_sigma=0.0, *, points_offsets=None, queries_offsets=None):
    """ops.soft_project. Gradients of weights and projected for queries and temperature; the points have none, as in the
    paper."""
    points, queries, temperature = float_inputs(points, queries, temperature)
    return ops.SoftProjection(_SoftProject.apply(points, queries, neighbours, temperature, min_sigma,
                                                 (points_offsets, queries_offsets)))
