"""Distances between clouds, to be losses."""
import torch

from .. import ops
from .autograd import dense, first_derivative, float_inputs, plain
from .neighbours import pair_gradients


def _sum(one, other):
    return one if other is None else other if one is None else one + other


def _both_ways(a, b, nearest, gradients, offsets):
    """dL_da and dL_db of the squared distances of both directions, either of which may have no part in the loss."""
    of_a = of_b = None
    if gradients[0] is not None:
        of_b, of_a = pair_gradients(b, a, nearest[0].unsqueeze(-1), dense(gradients[0]).unsqueeze(-1), offsets[1],
                                    offsets[0])
    if gradients[1] is not None:
        more_a, more_b = pair_gradients(a, b, nearest[1].unsqueeze(-1), dense(gradients[1]).unsqueeze(-1), *offsets)
        of_a, of_b = _sum(of_a, more_a), _sum(of_b, more_b)
    return of_a, of_b


class _Chamfer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, norm, offsets):
        a_to_b, b_to_a = ops.chamfer(plain(a), plain(b), norm=norm, a_offsets=offsets[0], b_offsets=offsets[1])
        ctx.norm, ctx.offsets = norm, offsets
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b, a_to_b.nearest, a_to_b.used, b_to_a.nearest, b_to_a.used)
        ctx.mark_non_differentiable(a_to_b.nearest, a_to_b.used, b_to_a.nearest, b_to_a.used)
        return (*a_to_b, *b_to_a)

    @first_derivative("chamfer")
    def backward(ctx, _, of_distances_a, of_mean_a, _used_a, _nearest_b, of_distances_b, of_mean_b, _used_b):
        a, b, nearest_a, used_a, nearest_b, used_b = ctx.saved_tensors
        a, b = plain(a), plain(b)
        of_a, of_b = _both_ways(a, b, (nearest_a, nearest_b), (of_distances_a, of_distances_b), ctx.offsets)
        sides = [None if of_mean is None else (dense(of_mean), nearest, used) for of_mean, nearest, used in
                 ((of_mean_a, nearest_a, used_a), (of_mean_b, nearest_b, used_b))]
        if sides != [None, None]:
            found = ops.chamfer_backward(a, b, *sides, norm=ctx.norm, a_offsets=ctx.offsets[0], b_offsets=ctx.offsets[1])
            of_a, of_b = _sum(found.dL_da, of_a), _sum(found.dL_db, of_b)
        return of_a, of_b, None, None


def chamfer(a, b, *, norm="squared", a_offsets=None, b_offsets=None):
    """ops.chamfer. Gradients of mean and distances_sq of both directions for a and b, the nearest points held fixed."""
    a, b = float_inputs(a, b)
    found = _Chamfer.apply(a, b, norm, (a_offsets, b_offsets))
    return ops.ChamferResult((ops.ChamferSide(found[:4]), ops.ChamferSide(found[4:])))


def chamfer_loss(a, b, *, norm="squared", reduction="mean", a_offsets=None, b_offsets=None):
    """The sum of both directions of chamfer: squared distances "CD-T", as PyTorch3D's chamfer_distance has it.

    reduction   of the clouds: "mean", "sum", or "none" for a number for each
    """
    found = chamfer(a, b, norm=norm, a_offsets=a_offsets, b_offsets=b_offsets)
    loss = found.a_to_b.mean + found.b_to_a.mean
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction: "{reduction}"; wanted is "mean", "sum" or "none"')
    return loss.mean() if reduction == "mean" else loss.sum()


class _NearestPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, offsets):
        found = ops.nearest_pairs(plain(a), plain(b), a_offsets=offsets[0], b_offsets=offsets[1])
        ctx.offsets = offsets
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b, found.b_of_a, found.a_of_b)
        ctx.mark_non_differentiable(found.b_of_a, found.a_of_b)
        return tuple(found)

    @first_derivative("nearest_pairs")
    def backward(ctx, _, of_a, _a_of_b, of_b):
        a, b, b_of_a, a_of_b = ctx.saved_tensors
        return (*_both_ways(plain(a), plain(b), (b_of_a, a_of_b), (of_a, of_b), ctx.offsets), None)


def nearest_pairs(a, b, *, a_offsets=None, b_offsets=None):
    """ops.nearest_pairs. Gradients of both squared distances for a and b."""
    a, b = float_inputs(a, b)
    return ops.NearestPairs(_NearestPairs.apply(a, b, (a_offsets, b_offsets)))


class chamfer_3DDist(torch.nn.Module):
    """As in the published ChamferDistancePytorch: dist1, dist2, idx1, idx2 = chamfer_3DDist()(points1, points2).

    points1 [b, n, 3], points2 [b, m, 3], contiguous or not; dist1 [b, n] and dist2 [b, m] are squared distances with
    gradients, idx1 and idx2 int32. On the CPU as well.
    """

    def forward(self, points1, points2):
        found = nearest_pairs(points1.contiguous(), points2.contiguous())
        return found.sq_of_a, found.sq_of_b, found.b_of_a, found.a_of_b


def fscore(dist1, dist2, threshold=0.0001):
    """F-score, precision and recall [b] of squared distances [b, n] and [b, m]: shares of those below the threshold.

    As in the published ChamferDistancePytorch: 0 where both shares are 0. Also called fscore.fscore, for code that
    imported its module.
    """
    precision, recall = ((distances < threshold).float().mean(dim=1) for distances in (dist1, dist2))
    both = precision + recall
    return torch.where(both > 0, 2 * precision * recall / both.clamp_min(1e-30), torch.zeros_like(both)), precision, recall


fscore.fscore = fscore


class _Hausdorff(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, direction, offsets):
        found = ops.hausdorff(plain(a), plain(b), direction=direction, a_offsets=offsets[0], b_offsets=offsets[1])
        ctx.offsets = offsets
        ctx.save_for_backward(a, b, found.pair)
        ctx.mark_non_differentiable(found.pair)
        return tuple(found)

    @first_derivative("hausdorff")
    def backward(ctx, dL_ddistance, _):
        a, b, pair = ctx.saved_tensors
        found = ops.hausdorff_backward(plain(a), plain(b), pair, dense(dL_ddistance), a_offsets=ctx.offsets[0],
                                       b_offsets=ctx.offsets[1])
        return found.dL_da, found.dL_db, None, None


def hausdorff(a, b, *, direction="both", a_offsets=None, b_offsets=None):
    """ops.hausdorff. Subgradients of distance for a and b: the two points of the pair have one."""
    a, b = float_inputs(a, b)
    return ops.HausdorffResult(_Hausdorff.apply(a, b, direction, (a_offsets, b_offsets)))


class _Emd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, options, offsets):
        found = ops.emd(plain(a), plain(b), **options, a_offsets=offsets[0], b_offsets=offsets[1])
        ctx.norm, ctx.offsets = options["norm"], offsets
        ctx.save_for_backward(a, b, found.matching)
        ctx.mark_non_differentiable(found.lower_bound, found.matching)
        return tuple(found)

    @first_derivative("emd")
    def backward(ctx, dL_dcost, _bound, _matching):
        a, b, matching = ctx.saved_tensors
        found = ops.emd_backward(plain(a), plain(b), matching, dense(dL_dcost), norm=ctx.norm, a_offsets=ctx.offsets[0],
                                 b_offsets=ctx.offsets[1])
        return found.dL_da, found.dL_db, None, None


def emd(a, b, *, norm="euclidean", relative=0.01, absolute=0.0, a_offsets=None, b_offsets=None):
    """ops.emd. Gradients of cost for a and b, through the matched pairs."""
    a, b = float_inputs(a, b)
    options = {"norm": norm, "relative": relative, "absolute": absolute}
    return ops.EmdResult(_Emd.apply(a, b, options, (a_offsets, b_offsets)))


class _Sinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, weights_a, weights_b, options, offsets):
        found = ops.sinkhorn(plain(a), plain(b), weights_a=plain(weights_a), weights_b=plain(weights_b), **options,
                             a_offsets=offsets[0], b_offsets=offsets[1])
        ctx.options, ctx.offsets = {key: options[key] for key in ("norm", "epsilon")}, offsets
        ctx.save_for_backward(a, b, found.f, found.g, weights_a, weights_b)
        ctx.mark_non_differentiable(*(part for name, part in zip(_SINKHORN, found) if name != "dual"))
        return tuple(found)

    @first_derivative("sinkhorn")
    def backward(ctx, _cost, dL_ddual, *_):
        a, b, f, g, weights_a, weights_b = ctx.saved_tensors
        found = ops.sinkhorn_backward(plain(a), plain(b), f, g, dense(dL_ddual), weights_a=plain(weights_a),
                                      weights_b=plain(weights_b), **ctx.options, a_offsets=ctx.offsets[0],
                                      b_offsets=ctx.offsets[1])
        return found.dL_da, found.dL_db, None, None, None, None


_SINKHORN = ("cost", "dual", "error", "iterations", "converged", "f", "g")


def sinkhorn(a, b, *, weights_a=None, weights_b=None, norm="euclidean", epsilon=0.01, a_offsets=None, b_offsets=None,
             **options):
    """ops.sinkhorn, with its options. Gradients of dual for a and b, exact at convergence; not of cost."""
    a, b, weights_a, weights_b = float_inputs(a, b, weights_a, weights_b)
    options = {"norm": norm, "epsilon": epsilon, **options}
    return ops.SinkhornResult(_Sinkhorn.apply(a, b, weights_a, weights_b, options, (a_offsets, b_offsets)))
