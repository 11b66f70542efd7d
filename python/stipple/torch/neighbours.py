"""Search, sampling, and rows by index."""
import torch

from .. import ops
from .autograd import dense, first_derivative, float_inputs, plain


def pair_gradients(points, queries, neighbours, dL_ddistances_sq, points_offsets=None, queries_offsets=None):
    """dL_dpoints and dL_dqueries of the squared distances between queries [m, c] and their neighbours [m, k]."""
    difference = ops.group(points, neighbours, queries, rows_offsets=points_offsets, neighbours_offsets=queries_offsets)
    terms = difference * dL_ddistances_sq.unsqueeze(-1).mul(2)
    of_queries = ops.group_backward_centres(neighbours, points, terms, neighbours_offsets=queries_offsets,
                                            rows_offsets=points_offsets)
    return add_rows(points, neighbours, terms, points_offsets, queries_offsets), of_queries


def add_rows(rows, neighbours, values, rows_offsets=None, neighbours_offsets=None):
    """A tensor like rows: the sum of the values of the entries that name each."""
    inverse = ops.invert_index(neighbours, rows, neighbours_offsets=neighbours_offsets, rows_offsets=rows_offsets)
    return ops.scatter_add(values, inverse).reshape(rows.shape)


class _Knn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, queries, k, offsets):
        indices, distances_sq = ops.knn(plain(points), k, plain(queries), points_offsets=offsets[0],
                                        queries_offsets=offsets[1])
        ctx.offsets = offsets
        ctx.save_for_backward(points, queries, indices)
        ctx.mark_non_differentiable(indices)
        return indices, distances_sq

    @first_derivative("knn")
    def backward(ctx, _, dL_ddistances_sq):
        points, queries, indices = ctx.saved_tensors
        of_points, of_queries = pair_gradients(plain(points), plain(points if queries is None else queries), indices,
                                               dense(dL_ddistances_sq), ctx.offsets[0],
                                               ctx.offsets[0] if queries is None else ctx.offsets[1])
        if queries is None:
            return of_points + of_queries, None, None, None
        return of_points, of_queries, None, None


def knn(points, k, queries=None, *, points_offsets=None, queries_offsets=None):
    """ops.knn. Gradients of distances_sq for points and queries; a missing neighbour has none.

    An ops.PointIndex in place of points is taken as well, and has no gradient: nor have the queries then.
    """
    if isinstance(points, ops.PointIndex):
        return ops.knn(points, k, plain(float_inputs(queries)), queries_offsets=queries_offsets)
    points, queries = float_inputs(points, queries)
    return ops.KnnResult(_Knn.apply(points, queries, k, (points_offsets, queries_offsets)))


def farthest_point_sample(points, samples, *, start=0, chosen=None, offsets=None, chosen_offsets=None):
    """ops.farthest_point_sample: indices and distances, neither with gradients. gather(points, indices) has them."""
    return ops.farthest_point_sample(plain(float_inputs(points)), samples, start=start, chosen=chosen, offsets=offsets,
                                     chosen_offsets=chosen_offsets)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, indices, offsets):
        ctx.offsets = offsets
        ctx.save_for_backward(rows, indices)
        return ops.gather(plain(rows), indices, rows_offsets=offsets[0], indices_offsets=offsets[1])

    @first_derivative("gather")
    def backward(ctx, dL_dout):
        rows, indices = ctx.saved_tensors
        return add_rows(plain(rows), indices.unsqueeze(-1), dense(dL_dout), *ctx.offsets), None, None


def gather(rows, indices, *, rows_offsets=None, indices_offsets=None):
    """ops.gather. Gradients for rows."""
    return _Gather.apply(float_inputs(rows), indices, (rows_offsets, indices_offsets))


class _Group(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, neighbours, centres, offsets):
        ctx.offsets = offsets
        ctx.save_for_backward(rows, neighbours, centres)
        return ops.group(plain(rows), neighbours, plain(centres), rows_offsets=offsets[0], neighbours_offsets=offsets[1])

    @first_derivative("group")
    def backward(ctx, dL_dout):
        rows, neighbours, centres = ctx.saved_tensors
        rows, dL_dout = plain(rows), dense(dL_dout)
        of_rows = add_rows(rows, neighbours, dL_dout, *ctx.offsets) if ctx.needs_input_grad[0] else None
        of_centres = None
        if centres is not None and ctx.needs_input_grad[2]:
            of_centres = ops.group_backward_centres(neighbours, rows, dL_dout, rows_offsets=ctx.offsets[0],
                                                    neighbours_offsets=ctx.offsets[1])
        return of_rows, None, of_centres, None


def group(rows, neighbours, centres=None, *, rows_offsets=None, neighbours_offsets=None):
    """ops.group. Gradients for rows and centres."""
    rows, centres = float_inputs(rows, centres)
    return _Group.apply(rows, neighbours, centres, (rows_offsets, neighbours_offsets))
