"""One call of every function of stipple.metrics, as ops_calls.py has them for ops."""
import numpy as np
from stipple import metrics

_random = np.random.default_rng(11)
A, B = _random.random((60, 3), dtype=np.float32), _random.random((50, 3), dtype=np.float32)
NORMALS_A, NORMALS_B = (_random.normal(size=(n, 3)).astype(np.float32) for n in (60, 50))
VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.int32)
MESH = metrics.IndexedMesh((VERTICES, TRIANGLES))
LABELS, TRUTH = np.array([0, 1, 2, 1], np.int32), np.array([0, 1, 1, 1], np.int32)
CONFUSION = metrics.confusion(LABELS, TRUTH, ["chair", "table", "lamp"])
SCORES = _random.random((4, 3), dtype=np.float32)
TURNED = np.array([[0, -1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], float)
IMAGE = _random.random((16, 12, 3), dtype=np.float32)
EVALUATION = metrics.evaluate(A, B, floor=True)

CALLS = {
    "unit_sphere": lambda c: metrics.unit_sphere(c(A)).scale,
    "in_frame": lambda c: metrics.in_frame(c(A), metrics.Frame((1, 2, 3), 2)).exact,
    "nearest_between": lambda c: metrics.nearest_between(c(A), c(B)).of_b.squared,
    "nearest_of": lambda c: metrics.nearest_of(c(A), c(B)).index,
    "distances_of_squared": lambda c: metrics.distances_of_squared([1, 4, 9]).mean,
    "distances_of": lambda c: metrics.distances_of([1, 2, 3]).deviation(),
    "pooled": lambda c: metrics.pooled(metrics.distances_of([1]), metrics.distances_of([2, 3])).mean,
    "cloud_distances": lambda c: metrics.cloud_distances(c(A), c(B)).to_truth.max,
    "chamfer": lambda c: metrics.chamfer(c(A), c(B), kind="l1_half"),
    "hausdorff": lambda c: metrics.hausdorff(c(A), c(B)),
    "metric_of": lambda c: metrics.metric_of("chamfer", "l1_half"),
    "f_score": lambda c: metrics.f_score(c(A), c(B), radius=0.1),
    "normal_consistency": lambda c: metrics.normal_consistency(
        metrics.nearest_between(c(A), c(B)), c(NORMALS_A), c(NORMALS_B)),
    "earth_mover": lambda c: metrics.earth_mover(c(A), c(B), "exact"),
    "jensen_shannon": lambda c: metrics.jensen_shannon(c(A), c(B)),
    "density_of": lambda c: metrics.density_of(c(A), k=4),
    "point_to_face": lambda c: metrics.point_to_face(MESH, c(A)),
    "face_to_point": lambda c: metrics.face_to_point(MESH, c(A), 200).mean,
    "disk_uniformity": lambda c: metrics.disk_uniformity(MESH, c(A), disks=20, shares=[0.3]),
    "normalised_uniformity": lambda c: metrics.normalised_uniformity(MESH, c(A), disks=20, shares=[0.3]),
    "confusion": lambda c: metrics.confusion(c(LABELS), c(TRUTH), ["chair", "table", "lamp"]).counts,
    "overall_accuracy": lambda c: metrics.overall_accuracy(CONFUSION),
    "class_accuracies": lambda c: metrics.class_accuracies(CONFUSION),
    "mean_accuracy": lambda c: metrics.mean_accuracy(CONFUSION),
    "to_text": lambda c: metrics.to_text(CONFUSION),
    "part_iou": lambda c: metrics.part_iou([(0, c(LABELS), c(TRUTH))], [("chair", [0, 1, 2])]),
    "best_parts": lambda c: metrics.best_parts(c(SCORES), ("chair", [1, 2])),
    "rotation_error": lambda c: metrics.rotation_error(c(TURNED), c(np.eye(4))),
    "rotation_error_doubled": lambda c: metrics.rotation_error_doubled(c(TURNED), c(np.eye(4))),
    "translation_error": lambda c: metrics.translation_error(c(TURNED), c(np.eye(4))),
    "point_rmse": lambda c: metrics.point_rmse(c(A), c(TURNED), c(np.eye(4))),
    "precision_auc": lambda c: metrics.precision_auc([0, 5, 90]),
    "success_rate": lambda c: metrics.success_rate([1, 50], [0.1, 0.1], 5, 1),
    "normalised_reconstruction_error": lambda c: metrics.normalised_reconstruction_error([2, 3], [1, 1]),
    "psnr": lambda c: metrics.psnr(c(IMAGE), c(IMAGE * np.float32(0.5))),
    "ssim": lambda c: metrics.ssim(c(IMAGE), c(IMAGE * np.float32(0.5))),
    "registry": lambda c: metrics.registry(),
    "info_of": lambda c: metrics.info_of("chamfer_squared_sum"),
    "all_extras": lambda c: metrics.all_extras(),
    "make_score": lambda c: metrics.make_score("chamfer_squared_sum", 0.5, "none").value,
    "find": lambda c: metrics.find(EVALUATION.scores, "cd").value,
    "evaluate": lambda c: metrics.evaluate(c(A), c(B), (VERTICES, TRIANGLES), "pu-gan", errors=True).error_to_mesh,
    "over_shapes": lambda c: metrics.over_shapes([EVALUATION, EVALUATION])[0].value,
    "floor_over_shapes": lambda c: len(metrics.floor_over_shapes([EVALUATION])),
    "resampled": lambda c: metrics.resampled((VERTICES, TRIANGLES), 30, "uniform").positions,
    "halves_of": lambda c: metrics.halves_of(c(A)).a.positions,
}
