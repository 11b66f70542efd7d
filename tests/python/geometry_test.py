"""stipple.geometry: nothing is copied, kinds of arrays agree, and the numbers are right."""
import gc
import threading

import numpy as np
import pytest
import stipple
from conftest import address, arrays_of, as_numpy, traced
from geometry_calls import BODY, CALLS, CLOUD, FOUND, MOVED, NORMALS, OTHERS, POINTS, QUERIES, SPHERE, SWEEP, TURN, TRIANGLES, VERTICES
from scipy.spatial import cKDTree
from stipple import geometry, io, ops


def numbers(result):
    """Every array and number of a result, flat."""
    if isinstance(result, dict):
        return [value for part in result.values() for value in numbers(part)]
    if isinstance(result, (tuple, list)):
        return [value for part in result for value in numbers(part)]
    return as_numpy(result)


@pytest.mark.parametrize("kind", ["numpy", "stipple"])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_nothing_is_copied_on_the_way_in_or_out(name, kind):
    convert = (lambda a: a) if kind == "numpy" else stipple.from_dlpack
    result, given, _kept, taken, made = traced(CALLS[name], convert)
    assert taken == given
    assert made <= {address(a) for a in arrays_of(result)}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_kinds_of_arrays_agree(name):
    for part, other in zip(numbers(CALLS[name](lambda a: a)), numbers(CALLS[name](stipple.from_dlpack)), strict=True):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_calls_of_clouds_meshes_and_matrices_return(name):
    assert OTHERS[name]() is not None


def test_wrong_arguments_are_refused_by_name():
    with pytest.raises(TypeError, match="points: an array of float64"):
        geometry.estimate_normals(POINTS.astype(float))
    with pytest.raises(ValueError, match=r"points: .* not adjacent"):
        geometry.estimate_normals(np.asfortranarray(POINTS))
    with pytest.raises(TypeError, match="source: numpy.ndarray; wanted is a stipple.io.PointCloud"):
        geometry.icp(BODY, CLOUD)
    with pytest.raises(TypeError, match="mesh: stipple.io.PointCloud; wanted is a stipple.io.Mesh or a tuple"):
        geometry.face_areas(CLOUD)
    with pytest.raises(ValueError, match="transform: wanted are 4 x 4"):
        geometry.transformed(CLOUD, np.eye(3))
    with pytest.raises(ValueError, match="last row"):
        geometry.inverse(np.ones((4, 4)))
    with pytest.raises(ValueError, match="initial"):
        geometry.icp(MOVED, CLOUD, 2 * np.eye(4) - np.diag([0, 0, 0, 1]))
    with pytest.raises(stipple.ArgumentError, match='metric: "planes"'):
        geometry.icp(MOVED, CLOUD, metric="planes")
    with pytest.raises(ValueError, match="read-only"):
        fixed = NORMALS.copy()
        fixed.setflags(write=False)
        geometry.orient_towards(POINTS, fixed, (0, 0, 1))
    with pytest.raises(ValueError, match="column"):
        geometry.PointFilter("z >")
    with pytest.raises(ValueError, match="parts: part 50 of 2"):
        geometry.members(np.array([0, 50, 1], np.int32), 2)
    empty = np.zeros((0, 3), np.float32)
    assert geometry.estimate_normals(empty).normals.shape == (0, 3)
    assert geometry.estimate_normals(np.full((5, 3), np.nan, np.float32)).normals.shape == (5, 3)


def test_normals_are_the_least_spread_of_the_neighbours():
    found = geometry.estimate_normals(POINTS, k=10)
    _, neighbours = cKDTree(POINTS).query(POINTS.astype(float), 10)
    for i in range(0, len(POINTS), 17):
        near = POINTS[neighbours[i]].astype(float)
        values, vectors = np.linalg.eigh(np.cov(near.T, bias=True))
        assert abs(found.normals[i] @ vectors[:, 0]) == pytest.approx(1, abs=1e-5)
        assert found.curvatures[i] == pytest.approx(values[0] / values.sum(), abs=1e-5)
    oriented = found.normals.copy()
    geometry.orient_consistently(POINTS, oriented)
    assert np.mean((oriented * POINTS).sum(1) > 0) > 0.99


def test_a_cloud_gives_what_its_positions_give():
    of_cloud, of_points = geometry.estimate_normals(CLOUD), geometry.estimate_normals(BODY)
    np.testing.assert_array_equal(of_cloud.normals, of_points.normals)
    np.testing.assert_array_equal(geometry.face_areas(SPHERE), geometry.face_areas((VERTICES, TRIANGLES)))


def test_icp_finds_the_motion_and_says_so():
    np.testing.assert_allclose(FOUND.transform, np.linalg.inv(TURN), atol=1e-4)
    assert FOUND.converged and FOUND.stop == "converged" and FOUND.fitness == 1 and FOUND.transform.dtype == np.float64
    assert geometry.judge(FOUND).state == "good"
    assert FOUND.information.shape == (6, 6) and len(FOUND.history) == FOUND.iterations
    target = geometry.IcpTarget(CLOUD)
    np.testing.assert_array_equal(geometry.icp(MOVED, target).transform, FOUND.transform)
    fine = geometry.icp(MOVED, CLOUD, np.linalg.inv(TURN), levels=[(0, 0.1), (0, 0.05, 10, 1)])
    np.testing.assert_allclose(fine.transform, np.linalg.inv(TURN), atol=1e-5)


def test_global_registration_finds_any_turn():
    turn = geometry.rotation_about((1, 2, 3), 2.5, (0.2, 0, 0))
    found = geometry.register_globally(geometry.transformed(CLOUD, turn), CLOUD)
    assert geometry.rotation_angle(found.poses[0].transform @ turn) < 0.05


def test_poses_of_a_graph():
    edges = [geometry.edge_of(i, i + 1, FOUND, 1.0) for i in range(2)]
    solved = geometry.optimise_poses(3, edges, tolerance=0.1)
    assert solved.is_placed.all() and not solved.is_dropped.any()
    step = np.linalg.inv(np.asarray(solved.poses[1])) @ solved.poses[0]
    np.testing.assert_allclose(step, FOUND.transform, atol=1e-6)


def test_queries_of_a_sphere():
    found = geometry.signed_distance(SPHERE, None, QUERIES)
    radii = np.linalg.norm(QUERIES, axis=1)
    np.testing.assert_allclose(found.distances, radii - 1, atol=0.03)
    np.testing.assert_array_equal(geometry.is_inside(SPHERE, QUERIES), found.distances < 0)
    corners = VERTICES[TRIANGLES[found.faces]]
    np.testing.assert_allclose((corners * found.barycentrics[:, :, None]).sum(1), found.points, atol=1e-5)
    index = geometry.MeshIndex(SPHERE)
    np.testing.assert_array_equal(geometry.closest_point(index, QUERIES).distances, np.abs(found.distances))
    hit = geometry.first_hit(index, QUERIES, -QUERIES)
    outside = radii > 1.01
    np.testing.assert_allclose((hit.t * radii)[outside], radii[outside] - 1, atol=0.03)
    assert geometry.any_hit(index, QUERIES, -QUERIES).all()
    every = geometry.all_hits(index, QUERIES, -QUERIES)
    assert every.offsets[-1] == len(every.t) == len(every.faces)


def test_a_surface_from_points_is_closed():
    mesh = geometry.reconstruct_surface(POINTS, NORMALS)
    check = geometry.check_mesh(mesh)
    assert check.is_watertight and check.volume == pytest.approx(4.19, rel=0.1)
    small = geometry.decimate(mesh, 200)
    assert small.mesh.faces <= 200 and geometry.check_mesh(small.mesh).is_watertight
    far = io.PointCloud(POINTS, origin=(5e5, 4e6, 0))
    placed = geometry.reconstruct_surface(far, NORMALS)
    np.testing.assert_allclose(placed.origin, (5e5, 4e6, 0))


def test_transforms_are_numpys():
    turn = geometry.rotation_about((0, 0, 1), np.pi / 2, (1, 0, 0))
    np.testing.assert_allclose(turn @ [2, 0, 0, 1], [1, 1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(geometry.inverse(turn) @ turn, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(geometry.parse_transform(geometry.to_text(turn)), turn)
    np.testing.assert_allclose(geometry.from_quaternion(geometry.to_quaternion(turn), turn[:3, 3]), turn, atol=1e-12)
    scaled = geometry.transformed(CLOUD, np.diag([2.0, 2, 2, 1]))
    np.testing.assert_allclose(scaled.world(), 2 * CLOUD.world(), atol=1e-6)
    np.testing.assert_array_equal(scaled.attributes["label"], CLOUD.attributes["label"])
    fit = geometry.best_fit(BODY, np.ascontiguousarray(MOVED.world().astype(np.float32)))
    np.testing.assert_allclose(fit, TURN, atol=1e-5)


def test_parts_of_clouds():
    box = geometry.sides_of(CLOUD, box=((0, -9, -9), (9, 9, 9)))
    np.testing.assert_array_equal(box == 1, BODY[:, 0] >= 0)
    mask = geometry.PointFilter("label == 1 && z > 0").mask(CLOUD)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, (CLOUD.attributes["label"] == 1) & (BODY[:, 2] > 0))
    assert len(CLOUD.select(mask)) == mask.sum()
    splitter = geometry.CloudSplitter.by_attribute("label")
    parts = splitter.assign(CLOUD)
    assert splitter.names == ["0", "1", "2"] and [len(m) for m in geometry.members(parts, 3)] == [184, 183, 183]
    both = geometry.merge_clouds([CLOUD, MOVED])
    assert len(both) == 1100 and both.attributes["label"].dtype == np.int32
    plane = io.PointCloud(np.column_stack([POINTS[:, :2], np.full(400, 3, np.float32)]))
    found = geometry.find_planes(plane, distance=0.01)
    assert found.planes[0].points == 400 and abs(found.planes[0].offset) == pytest.approx(3)
    ground = geometry.find_ground(plane, cell=0.5, window=2)
    assert ground.is_ground.all() and ground.is_ground.dtype == bool


def test_rings_of_a_sweep():
    sweep = geometry.find_sweep_rings(SWEEP)
    assert len(sweep.rings) == 16 and sweep.sensor == (0, 0, 0) and sweep.step == pytest.approx(np.radians(1), rel=1e-4)
    np.testing.assert_array_equal(np.concatenate(sweep.rings), np.arange(16 * 360))
    assert geometry.find_sweep_rings(CLOUD) is None


def test_the_gil_is_released_and_what_is_read_stays():
    big = io.PointCloud(np.random.default_rng(3).random((150_000, 3), dtype=np.float32))
    refused = []

    def work():
        geometry.icp(big, big, metric="point", levels=[(0, 0.1, 3)])

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        try:
            big.attributes["x"] = np.zeros(150_000, np.uint8)
            del big.attributes["x"]
        except stipple.ArgumentError as error:
            refused.append(str(error))
    thread.join()
    assert refused and "another thread" in refused[0]  # another thread of Python ran, and could not replace it
    big.attributes["x"] = np.zeros(150_000, np.uint8)


def test_results_and_indices_go_without_a_leak():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    points = np.random.default_rng(4).random((500, 3), dtype=np.float32)

    def round_():
        geometry.estimate_normals(points, k=4)
        cloud = io.PointCloud(points)
        view = cloud.positions
        cloud.attributes["a"] = points
        del cloud
        assert view[0, 0] == points[0, 0]

    few, index, kept = points[:8], geometry.MeshIndex(SPHERE), io.PointCloud(points, attributes={"a": points})

    def small_round():
        geometry.unique_points(few)
        geometry.face_areas(geometry.cube_mesh())
        geometry.inverse(TURN)
        assert kept.positions.shape == kept.attributes["a"].shape

    for _ in range(50):
        round_()
        small_round()
        geometry.closest_point(index, few)
    gc.collect()
    before = resident()
    for _ in range(1000):
        round_()
        geometry.closest_point(index, few)
    for _ in range(25_000):  # four calls each
        small_round()
    gc.collect()
    assert resident() - before < 8 << 20


def test_knn_of_a_cloud_is_asked_by_its_positions():
    assert ops.knn(CLOUD.positions, 3).indices.shape == (550, 3)


def test_tensors_of_torch_go_in_and_come_out():
    torch = pytest.importorskip("torch")
    points = torch.from_numpy(POINTS)
    found = geometry.estimate_normals(points)
    assert isinstance(found.normals, torch.Tensor)
    np.testing.assert_array_equal(found.normals.numpy(), geometry.estimate_normals(POINTS).normals)
    mesh = torch.from_numpy(VERTICES), torch.from_numpy(TRIANGLES)
    distances = geometry.closest_point(mesh, torch.from_numpy(QUERIES)).distances
    assert isinstance(distances, torch.Tensor)
    keep = geometry.statistical_outliers(points).keep
    assert isinstance(keep, torch.Tensor) and keep.dtype == torch.bool and points[keep].shape[1] == 3
