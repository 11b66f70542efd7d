"""stipple.metrics against slow formulas."""
import itertools
import sys

import numpy as np
import pytest
import stipple
from conftest import address, addresses_seen
from metrics_calls import TRIANGLES, VERTICES, A, B
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from stipple import io, metrics

D = cdist(A.astype(float), B.astype(float))


def test_conventions_of_chamfer_and_hausdorff():
    a, b = D.min(1), D.min(0)
    chamfer = {"squared_sum": (a**2).mean() + (b**2).mean(), "squared_half": ((a**2).mean() + (b**2).mean()) / 2,
               "l1_sum": a.mean() + b.mean(), "l1_half": (a.mean() + b.mean()) / 2, "l1_max": max(a.mean(), b.mean())}
    hausdorff = {"symmetric": max(a.max(), b.max()), "to_truth": a.max(), "from_truth": b.max(),
                 "squared_sum": a.max()**2 + b.max()**2, "squared_half": (a.max()**2 + b.max()**2) / 2}
    searched = metrics.cloud_distances(A, B)
    for kind, value in chamfer.items():
        assert metrics.chamfer(A, B, kind=kind) == pytest.approx(value, rel=1e-9)
        assert metrics.chamfer(searched, kind=kind) == metrics.chamfer(A, B, kind=kind)
    for kind, value in hausdorff.items():
        assert metrics.hausdorff(A, B, kind=kind) == pytest.approx(value, rel=1e-9)
    with pytest.raises(stipple.ArgumentError, match='kind: "l2"; wanted is "squared_sum"'):
        metrics.chamfer(A, B, kind="l2")
    with pytest.raises(TypeError, match="truth"):
        metrics.chamfer(A)


def test_arrays_become_clouds_without_a_copy():
    mesh = (VERTICES, TRIANGLES)
    for call in (lambda: metrics.chamfer(A, B), lambda: metrics.hausdorff(A, B), lambda: metrics.density_of(A),
                 lambda: metrics.in_frame(A), lambda: metrics.unit_sphere(A), lambda: metrics.evaluate(A, B, protocol="pu-gan", mesh=mesh)):
        with addresses_seen() as seen:
            call()
        assert {a for name, a in seen if name} <= {address(x) for x in (A, B, VERTICES, TRIANGLES)}
        assert len(seen) >= 2  # what was given, and the cloud made around it
    wide = np.concatenate([A, A], 1)
    assert metrics.chamfer(wide[:, :3], B) == metrics.chamfer(A, B)  # rows that are apart are copied


def test_nearest_points_are_views_that_live_on():
    found = metrics.nearest_between(A, B)
    index, squared = found.of_a.index, found.of_b.squared
    del found
    np.testing.assert_array_equal(index, D.argmin(1))
    np.testing.assert_allclose(squared, D.min(0) ** 2, rtol=1e-9)
    assert not index.flags.writeable
    np.testing.assert_array_equal(metrics.nearest_of(A, B).index, index)


def test_f_score_and_earth_mover():
    radius = 0.15
    precision, recall = (D.min(1) <= radius).mean(), (D.min(0) <= radius).mean()
    score = metrics.f_score(A, B, radius=radius)
    assert (score.precision, score.recall) == pytest.approx((precision, recall))
    assert score.f == pytest.approx(2 * precision * recall / (precision + recall))
    rows, columns = linear_sum_assignment(D[:50])
    assert metrics.earth_mover(A[:50], B, "exact").value == pytest.approx(D[rows, columns].mean(), rel=1e-6)


def test_clouds_are_compared_in_the_world():
    near, far = io.PointCloud(A, origin=(1e7, 0, 0)), io.PointCloud(B, origin=(1e7, 0, 0))
    assert metrics.chamfer(near, far) == pytest.approx(metrics.chamfer(A, B), rel=1e-9)
    shifted = io.PointCloud(A + np.float32(1), origin=(-1, -1, -1))
    assert metrics.hausdorff(shifted, A) < 1e-6
    with pytest.raises(ValueError, match="both are Points"):
        metrics.chamfer(metrics.in_frame(A), B)


def test_evaluate_gives_the_protocols_scores():
    def in_sphere(points):
        points = points.astype(float) - points.astype(float).mean(0)
        return points / np.linalg.norm(points, axis=1).max()

    d = cdist(in_sphere(A), in_sphere(B))
    found = metrics.evaluate(A, B, (VERTICES, TRIANGLES), "pu-gan", errors=True)
    assert found["cd"] == pytest.approx((d.min(1)**2).mean() + (d.min(0)**2).mean(), rel=1e-6)
    assert found.scores[0].metric == "chamfer_squared_sum" and found.error_to_mesh.shape == (60,)
    np.testing.assert_allclose(found.error_to_truth, D.min(1), rtol=1e-5)
    assert any("60" in note for note in found.notes)  # sizes differ
    mean = metrics.over_shapes([found, metrics.evaluate(B, A, (VERTICES, TRIANGLES))])
    assert mean[0].shapes == 2 and mean[0].value == pytest.approx(found["cd"])
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(stipple.ArgumentError):
        metrics.evaluate(A, B, protocol="nobody's")
    bad = A.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match="finite"):
        metrics.evaluate(bad, B)
    assert metrics.evaluate(bad, B, nonfinite="leave_out").prediction_left_out == 1


def test_distances_to_a_mesh():
    mesh = metrics.IndexedMesh(io.Mesh(VERTICES, TRIANGLES))
    assert mesh.area == pytest.approx(1.5 + np.sqrt(3) / 2, rel=1e-6)
    found = metrics.point_to_face(mesh, np.array([[0.2, 0.2, -1], [2, 0, 0], [np.nan, 0, 0]], np.float32))
    np.testing.assert_allclose(found.distance, [1, 1, np.inf])
    np.testing.assert_allclose(found.nearest[:2], [[0.2, 0.2, 0], [1, 0, 0]], atol=1e-6)
    assert found.face[2] == -1
    with pytest.raises(ValueError, match="triangles"):
        metrics.IndexedMesh((VERTICES, np.array([[0, 1, 9]], np.int32)))
    with pytest.raises(TypeError, match="mesh"):
        metrics.IndexedMesh(VERTICES)


def test_labels_and_parts():
    truth = np.array([0, 0, 1, 1, 1], np.int32)
    answers = np.array([0, 1, 1, 1, 0], np.int32)
    found = metrics.confusion(answers, truth, ["a", "b"])
    np.testing.assert_array_equal(found.counts, [[1, 1], [1, 2]])
    assert metrics.overall_accuracy(found) == 0.6
    np.testing.assert_allclose(metrics.class_accuracies(found), [1 / 2, 2 / 3])
    iou = metrics.part_iou([(0, answers, truth)], [("thing", [0, 1])])
    assert iou.instance == pytest.approx((1 / 3 + 2 / 4) / 2) and iou.accuracy == 0.6
    with pytest.raises(ValueError, match="label|class"):
        metrics.confusion(np.array([7], np.int32), np.array([0], np.int32), ["a"])
    with pytest.raises(TypeError, match="int32"):
        metrics.confusion(truth.astype(np.int64), truth, ["a", "b"])


def test_motions_and_images():
    angle = np.deg2rad(30)
    turned = np.array([[np.cos(angle), -np.sin(angle), 0, 3], [np.sin(angle), np.cos(angle), 0, 4], [0, 0, 1, 0],
                       [0, 0, 0, 1]])
    assert metrics.rotation_error(turned, np.eye(4)) == pytest.approx(30)
    assert metrics.rotation_error_doubled(turned, np.eye(4)) == pytest.approx(60)
    assert metrics.translation_error(turned, np.eye(4)) == pytest.approx(5)
    with pytest.raises(ValueError):
        metrics.rotation_error(2 * np.eye(4), np.eye(4))
    with pytest.raises(ValueError, match=r"\[4, 4\]"):
        metrics.rotation_error(np.eye(3), np.eye(4))
    grey = np.full((12, 12, 1), 100, np.uint8)
    assert metrics.psnr(grey, grey + np.uint8(5)) == pytest.approx(20 * np.log10(255 / 5))
    assert metrics.psnr(grey, grey) == np.inf and metrics.ssim(grey, grey) == pytest.approx(1)
    assert metrics.psnr(np.zeros((2, 2, 1), np.float32), np.full((2, 2, 1), 0.1, np.float32)) == pytest.approx(20)


def test_the_registry_names_what_there_is():
    names = [entry["name"] for entry in metrics.registry()]
    assert len(names) == len(set(names)) > 20
    for distance, kind in itertools.chain(zip(itertools.repeat("chamfer"), ["squared_sum", "l1_max"]),
                                          [("hausdorff", "symmetric")]):
        assert metrics.metric_of(distance, kind) in names


@pytest.mark.parametrize("bad", [np.zeros((0, 3), np.float32), np.zeros((5, 2), np.float32), np.zeros(3, np.float32),
                                 np.zeros((2, 5, 3), np.float32), np.asfortranarray(A), A[::-1], A.astype(">f4"),
                                 A.astype(float), None, "cloud", 3.0])
def test_what_is_no_cloud_is_refused_or_nothing(bad):
    try:
        value = metrics.chamfer(bad, B)
    except (TypeError, ValueError) as error:
        assert "prediction" in str(error)
    else:
        assert np.isnan(value)


def test_an_indexed_mesh_keeps_its_arrays():
    vertices, triangles = VERTICES.copy(), TRIANGLES.copy()
    index = metrics.IndexedMesh((vertices, triangles))
    expected = metrics.point_to_face(index, A)
    held = sys.getrefcount(vertices)
    del vertices, triangles
    junk = [np.full(VERTICES.shape, 7, np.float32) for _ in range(200)]
    np.testing.assert_array_equal(metrics.point_to_face(index, A).distance, expected.distance)
    assert len(junk) == 200 and held > 2
