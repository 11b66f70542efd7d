"""One call of every function of stipple.ops, on small clouds: what tests of the whole module go through, and examples.

A call takes `c`, which makes an array of the kind under test of a numpy array, and returns what the function returns.
"""
import numpy as np
from stipple import ops

_random = np.random.default_rng(7)


def _floats(*shape):
    return _random.random(shape, dtype=np.float32)


POINTS, OTHERS = _floats(2, 40, 3), _floats(2, 40, 3)
QUERIES = _floats(2, 10, 3)
FEATURES = _floats(2, 40, 5)
FLAT = _floats(64, 16)
NEIGHBOURS = np.ascontiguousarray(ops.knn(POINTS, 4, QUERIES).indices)
NEAREST = np.ascontiguousarray(ops.knn(POINTS, 1, QUERIES).indices[..., 0])
INVERSE = ops.invert_index(NEIGHBOURS, POINTS)
WEIGHTS = _floats(2, 10, 3, 4)
KERNEL = ops.kernel_lattice(2, 0.2)
ONES = np.ones(2, np.float32)
TEMPERATURE = np.array([0.3], np.float32)
CHAMFER = ops.chamfer(POINTS, OTHERS)
SINKHORN = ops.sinkhorn(POINTS, OTHERS, epsilon=0.05)
HAUSDORFF = ops.hausdorff(POINTS, OTHERS)
EMD = ops.emd(POINTS, OTHERS)
PLAN = ops.emd_transport(POINTS, QUERIES)
GRID = ops.voxel_grid(POINTS, 0.5)
SIMPLE = ops.simplification(POINTS, QUERIES, [2, 10], NEAREST)
BILATERAL = ops.bilateral_combine(FEATURES, NEIGHBOURS, np.ones((2, 10, 4, 5), np.float32),
                                  np.ones((2, 10, 4, 5), np.float32), 1e-6)
LINEAR = ops.linear_max(FEATURES, _floats(8, 5))
STATISTICS = ops.column_statistics(FLAT)
GAMMA, BETA = np.ones(16, np.float32), np.zeros(16, np.float32)
NORM = ops.norm_columns(STATISTICS.mean, STATISTICS.variance, 64, GAMMA, BETA, BETA.copy(), GAMMA.copy())
SIMILARITY = ops.bilateral_similarity(FEATURES, np.ascontiguousarray(FEATURES[:, :10]), NEIGHBOURS, 1.0)
STEP = np.array([3], np.int64)


def _control(is_made=1.0):
    control = np.zeros(ops.ControlSlot.count)
    control[ops.ControlSlot.is_made] = is_made
    control[ops.ControlSlot.rate] = 0.1
    control[ops.ControlSlot.gradient_factor] = 1
    control[ops.ControlSlot.correction1] = control[ops.ControlSlot.correction2] = 1
    control[ops.ControlSlot.average_decay] = 0.5
    return control


def _columns(c):
    return [c(part) for part in (STATISTICS.mean, *NORM)]


def _inverse(c):
    return tuple(c(part) for part in INVERSE)


def _side(c, side):
    return c(ONES), c(side.nearest), c(side.used)


def _linear_max_backward_rows(c):
    into = c(np.zeros((2, 40, 5), np.float32))
    ops.linear_max_backward_rows(c(np.ones((8, 5), np.float32)), c(LINEAR.winners), c(np.ones((2, 8), np.float32)), into)
    return into


def _update_rules(c):
    control = c(np.zeros(ops.ControlSlot.count))
    state = c(np.zeros(ops.StepSlot.count))
    ops.update_rules(c(np.array([0.1])), c(np.array([0.0])), c(np.array([2.0], np.float32)), c(np.array([0.5])), state,
                     control, clip=1.0)
    return control, state


def _optimizer_update(c):
    value = c(FLAT.copy())
    ops.optimizer_update([{"value": value, "gradient": c(FLAT), "first": c(np.zeros_like(FLAT)),
                           "second": c(np.zeros_like(FLAT))}], c(_control()))
    return value


def _average_update(c):
    average = c(np.zeros_like(FLAT))
    ops.average_update([{"value": c(FLAT), "average": average}], c(_control()))
    return average


def _restore_skipped(c):
    value = c(np.zeros_like(FLAT))
    ops.restore_skipped([{"value": value, "saved": c(FLAT)}], c(_control(0.0)))
    return value


CALLS = {
    "knn": lambda c: ops.knn(c(POINTS), 4, c(QUERIES)),
    "radius_count": lambda c: ops.radius_count(c(POINTS), 0.3, c(QUERIES)),
    "radius_offsets": lambda c: ops.radius_offsets(c(np.array([3, 0, 2], np.int32))),
    "radius_search": lambda c: ops.radius_search(c(POINTS), 0.3, c(QUERIES), order="index"),
    "ball_query": lambda c: ops.ball_query(c(POINTS), 0.4, 6, c(QUERIES)),
    "nearest_pairs": lambda c: ops.nearest_pairs(c(POINTS), c(QUERIES)),
    "farthest_point_sample": lambda c: ops.farthest_point_sample(c(POINTS), 8, start=3),
    "random_sample": lambda c: ops.random_sample(c(POINTS), 8, 1, order="random"),
    "inverse_density_sample": lambda c: ops.inverse_density_sample(c(POINTS), 8, 1, k=4),
    "poisson_disk": lambda c: ops.poisson_disk(c(POINTS), 8, progressive=True),
    "poisson_disk_of_part": lambda c: ops.poisson_disk_of_part(c(POINTS[0]), c(np.zeros(40, np.uint8)), 8, 0.1),
    "poisson_disk_radius": lambda c: ops.poisson_disk_radius(c(POINTS[0]), 8),
    "poisson_disk_radius_of_area": lambda c: ops.poisson_disk_radius_of_area(2.0, 100),
    "argmax_points": lambda c: ops.argmax_points(c(FEATURES)),
    "voxel_grid": lambda c: ops.voxel_grid(c(POINTS), 0.5).coordinates,
    "voxel_centroids": lambda c: ops.voxel_centroids(GRID, c(FEATURES)),
    "voxel_representatives": lambda c: ops.voxel_representatives(GRID, c(POINTS)),
    "simplification": lambda c: ops.simplification(c(POINTS), c(QUERIES), [2, 10], c(NEAREST)),
    "simplification_backward": lambda c: ops.simplification_backward(
        c(POINTS), c(QUERIES), [2, 10], c(NEAREST), c(SIMPLE.owners), c(SIMPLE.farthest), c(np.ones((2, 2, 3)))),
    "gather": lambda c: ops.gather(c(FEATURES), c(NEAREST)),
    "group": lambda c: ops.group(c(POINTS), c(NEIGHBOURS), c(QUERIES)),
    "group_backward_centres": lambda c: ops.group_backward_centres(c(NEIGHBOURS), c(POINTS), c(_ones(2, 10, 4, 3))),
    "invert_index": lambda c: ops.invert_index(c(NEIGHBOURS), c(POINTS)),
    "scatter_add": lambda c: ops.scatter_add(c(_ones(2, 10, 4, 5)), _inverse(c)),
    "interpolate": lambda c: ops.interpolate(c(FEATURES), c(NEIGHBOURS), c(WEIGHTS)),
    "interpolate_backward_rows": lambda c: ops.interpolate_backward_rows(c(WEIGHTS), _inverse(c), c(_ones(2, 10, 3, 5))),
    "interpolate_backward_weights": lambda c: ops.interpolate_backward_weights(
        c(FEATURES), c(NEIGHBOURS), c(_ones(2, 10, 3, 5))),
    "three_weights": lambda c: ops.three_weights(c(_ones(2, 10, 3))),
    "three_weights_backward": lambda c: ops.three_weights_backward(c(_ones(10, 3)), c(_ones(10, 3)), power="plain"),
    "kernel_lattice": lambda c: ops.kernel_lattice(3, 0.1),
    "kernel_weights": lambda c: ops.kernel_weights(c(POINTS), c(QUERIES), c(NEIGHBOURS), c(KERNEL), width=0.3),
    "kernel_weights_backward": lambda c: ops.kernel_weights_backward(
        c(POINTS), c(QUERIES), c(NEIGHBOURS), c(KERNEL), c(_ones(2, 10, 8, 4)), width=0.3),
    "bilateral_similarity": lambda c: ops.bilateral_similarity(
        c(FEATURES), c(FEATURES[:1, :10].repeat(2, 0)), c(NEIGHBOURS), 1.0),
    "bilateral_similarity_backward": lambda c: ops.bilateral_similarity_backward(
        c(FEATURES), c(np.ascontiguousarray(FEATURES[:, :10])), c(NEIGHBOURS), 1.0, c(SIMILARITY), c(_ones(2, 10, 4))),
    "bilateral_combine": lambda c: ops.bilateral_combine(
        c(FEATURES), c(NEIGHBOURS), c(_ones(2, 10, 4, 5)), c(_ones(2, 10, 4, 5)), 1e-6),
    "bilateral_combine_backward": lambda c: ops.bilateral_combine_backward(
        c(FEATURES), c(NEIGHBOURS), _inverse(c), c(_ones(2, 10, 4, 5)), c(_ones(2, 10, 4, 5)), 1e-6, c(BILATERAL.out),
        c(BILATERAL.denominator), c(_ones(2, 10, 5))),
    "soft_project": lambda c: ops.soft_project(c(POINTS), c(QUERIES), c(NEIGHBOURS), c(TEMPERATURE)),
    "soft_project_backward": lambda c: ops.soft_project_backward(
        c(POINTS), c(QUERIES), c(NEIGHBOURS), c(TEMPERATURE), dL_dprojected=c(_ones(2, 10, 3))),
    "chamfer": lambda c: ops.chamfer(c(POINTS), c(QUERIES), norm="euclidean"),
    "chamfer_backward": lambda c: ops.chamfer_backward(
        c(POINTS), c(OTHERS), _side(c, CHAMFER.a_to_b), _side(c, CHAMFER.b_to_a)),
    "hausdorff": lambda c: ops.hausdorff(c(POINTS), c(QUERIES)),
    "hausdorff_backward": lambda c: ops.hausdorff_backward(c(POINTS), c(OTHERS), c(HAUSDORFF.pair), c(ONES)),
    "sinkhorn": lambda c: ops.sinkhorn(c(POINTS), c(OTHERS), epsilon=0.05),
    "sinkhorn_backward": lambda c: ops.sinkhorn_backward(
        c(POINTS), c(OTHERS), c(SINKHORN.f), c(SINKHORN.g), c(ONES), epsilon=0.05),
    "emd": lambda c: ops.emd(c(POINTS), c(OTHERS)),
    "emd_backward": lambda c: ops.emd_backward(c(POINTS), c(OTHERS), c(EMD.matching), c(ONES)),
    "emd_exact": lambda c: ops.emd_exact(c(POINTS), c(OTHERS)),
    "emd_transport": lambda c: ops.emd_transport(c(POINTS), c(QUERIES)).cost,
    "emd_transport_auction": lambda c: ops.emd_transport_auction(c(POINTS), c(QUERIES)).cost,
    "emd_transport_backward": lambda c: ops.emd_transport_backward(c(POINTS), c(QUERIES), PLAN, c(ONES)),
    "linear_max": lambda c: ops.linear_max(c(FEATURES), c(_ones(8, 5))),
    "can_linear_max_cuda": lambda c: ops.can_linear_max_cuda(64, 128),
    "linear_max_backward_rows": _linear_max_backward_rows,
    "linear_max_backward_weight": lambda c: ops.linear_max_backward_weight(
        c(FEATURES), c(LINEAR.winners), c(_ones(2, 8))),
    "column_statistics": lambda c: ops.column_statistics(c(FLAT)),
    "norm_columns": lambda c: ops.norm_columns(c(STATISTICS.mean), c(STATISTICS.variance), 64, c(GAMMA), c(BETA),
                                               c(BETA.copy()), c(GAMMA.copy())),
    "normalise_rows": lambda c: ops.normalise_rows(c(FLAT), c(NORM.scale), c(NORM.shift), True),
    "norm_backward_sums": lambda c: ops.norm_backward_sums(c(FLAT), c(FLAT), *_columns(c)),
    "norm_backward_rows": lambda c: ops.norm_backward_rows(c(FLAT), c(FLAT), *_columns(c), c(GAMMA), c(BETA), 64),
    "gram": lambda c: ops.gram(c(FLAT)),
    "can_gram_cuda": lambda c: ops.can_gram_cuda(64),
    "dropout": lambda c: ops.dropout(c(FLAT), 0.5, 11, c(STEP)),
    "gradient_norm": lambda c: ops.gradient_norm([c(FLAT), c(GAMMA)]),
    "update_rules": _update_rules,
    "optimizer_update": _optimizer_update,
    "average_update": _average_update,
    "restore_skipped": _restore_skipped,
    "registry": lambda c: ops.registry(),
    "knn_graph": lambda c: ops.knn_graph(c(POINTS[0]), 3),
}


def _ones(*shape):
    return np.ones(shape, np.float32)
