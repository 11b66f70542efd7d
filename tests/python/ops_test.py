"""stipple.ops as a whole: nothing is copied, kinds of arrays agree, batches agree, and the numbers are right."""
import numpy as np
import pytest
import stipple
from conftest import address, arrays_of, as_numpy, traced
from ops_calls import CALLS, OTHERS, POINTS, QUERIES
from scipy.spatial import cKDTree
from stipple import ops

ON_HOST = {"knn_graph", "emd_transport", "emd_transport_auction"}  # whatever goes in, scipy or numpy comes out
WITHOUT_ARRAYS = {"registry", "can_gram_cuda", "can_linear_max_cuda", "poisson_disk_radius_of_area", "kernel_lattice"}


@pytest.mark.parametrize("kind", ["numpy", "stipple"])
@pytest.mark.parametrize("name", sorted(set(CALLS) - WITHOUT_ARRAYS))
def test_nothing_is_copied_on_the_way_in_or_out(name, kind):
    convert = (lambda a: a) if kind == "numpy" else stipple.from_dlpack
    result, given, _kept, taken, made = traced(CALLS[name], convert)
    assert taken == given
    if name in ON_HOST:
        return
    found = arrays_of(result)
    for array in found:
        assert isinstance(array, np.ndarray if kind == "numpy" else stipple.Array)
        if made:  # what is written in place is among the given
            assert address(array) in made | given
    views_of_a_grid = name == "voxel_grid"
    assert len(made) == 0 or views_of_a_grid or made <= {address(a) for a in found}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_kinds_of_arrays_agree(name):
    expected = as_numpy(CALLS[name](lambda a: a))
    for part, other in zip(expected, as_numpy(CALLS[name](stipple.from_dlpack)), strict=True):
        np.testing.assert_array_equal(part, other)


def test_knn_finds_what_scipy_finds(cloud):
    found = ops.knn(cloud, 5)
    distances, indices = cKDTree(cloud).query(cloud.astype(float), 5)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(np.sqrt(found.distances_sq), distances, atol=1e-6)


def test_an_index_finds_what_the_points_find(cloud):
    index = ops.PointIndex(cloud)
    queries = np.array(cloud[::7])
    for part, other in zip(ops.knn(index, 4, queries), ops.knn(cloud, 4, queries), strict=True):
        np.testing.assert_array_equal(part, other)
    assert (index.rows, index.dimension, index.clouds, index.device) == (100, 3, 1, "cpu")
    with pytest.raises(stipple.ArgumentError, match="queries"):
        ops.knn(index, 4)


def test_batches_agree_with_their_clouds():
    dense = ops.knn(POINTS, 3, QUERIES)
    assert dense.indices.shape == (2, 10, 3)
    flat, ends = POINTS.reshape(-1, 3), [0, 40, 80]
    ragged = ops.knn(flat, 3, QUERIES.reshape(-1, 3), points_offsets=ends, queries_offsets=np.array([0, 10, 20]))
    assert ragged.indices.shape == (20, 3)
    np.testing.assert_array_equal(ragged.indices, dense.indices.reshape(-1, 3))
    for i in range(2):
        np.testing.assert_array_equal(ops.knn(POINTS[i], 3, QUERIES[i]).indices, dense.indices[i])
    chamfer = ops.chamfer(POINTS, OTHERS)
    single = ops.chamfer(POINTS[1], OTHERS[1])
    assert chamfer.a_to_b.mean.shape == (2,) and single.a_to_b.mean.shape == ()
    assert float(single.a_to_b.mean) == chamfer.a_to_b.mean[1]


def test_counts_may_differ_by_cloud():
    samples = ops.farthest_point_sample(POINTS, [3, 5])
    assert samples.indices.shape == (8,)
    np.testing.assert_array_equal(samples.indices[:3], ops.farthest_point_sample(POINTS[0], 3).indices)
    np.testing.assert_array_equal(samples.indices[3:], ops.farthest_point_sample(POINTS[1], 5).indices)
    with pytest.raises(ValueError, match="samples: 1 numbers for 2 clouds"):
        ops.farthest_point_sample(POINTS, [3])
    for wrong in (2.5, "3", None):
        with pytest.raises(TypeError, match="samples: .*whole number"):
            ops.farthest_point_sample(POINTS, wrong)
    assert ops.random_sample(POINTS, np.int64(3)).shape == ops.random_sample(POINTS, np.array(3)).shape == (2, 3)
    with pytest.raises(ValueError, match="beyond 64 bits"):
        ops.random_sample(POINTS, 2**80)


def test_chamfer_and_its_gradient_are_those_of_the_formula():
    a, b = POINTS[0].astype(float), OTHERS[0].astype(float)
    squared = ((a[:, None] - b[None]) ** 2).sum(-1)
    result = ops.chamfer(POINTS[0], OTHERS[0])
    assert float(result.a_to_b.mean) == pytest.approx(squared.min(1).mean(), rel=1e-5)
    assert float(result.b_to_a.mean) == pytest.approx(squared.min(0).mean(), rel=1e-5)
    one = np.ones((), np.float32)
    side = result.a_to_b
    gradient = ops.chamfer_backward(POINTS[0], OTHERS[0], (one, side.nearest, side.used), None).dL_da
    np.testing.assert_allclose(gradient, 2 * (a - b[squared.argmin(1)]) / len(a), atol=1e-6)


def test_the_graph_is_scipys(cloud):
    graph = ops.knn_graph(cloud, 4)
    assert graph.shape == (100, 100) and graph.nnz == 400
    distances = np.sort(cKDTree(cloud).query(cloud.astype(float), 4)[0], axis=1)
    np.testing.assert_allclose(np.sort(graph.data.reshape(100, 4), axis=1), distances, atol=1e-6)
    with_nan = cloud.copy()
    with_nan[5] = np.nan
    assert ops.knn_graph(with_nan, 2, mode="connectivity")[5].nnz == 0


def test_radius_search_is_scipys(cloud):
    found = ops.radius_search(cloud, 0.2, order="index")
    tree = cKDTree(cloud)
    for i, wanted in enumerate(tree.query_ball_point(cloud.astype(float), 0.2, return_sorted=True)):
        np.testing.assert_array_equal(found.indices[found.offsets[i]:found.offsets[i + 1]], wanted)


def test_words_are_refused_by_name(cloud):
    with pytest.raises(stipple.ArgumentError, match='norm: "l2"; wanted is "squared" or "euclidean"'):
        ops.chamfer(cloud, cloud, norm="l2")
    with pytest.raises(TypeError):
        ops.knn(cloud, 3.5)
    with pytest.raises(stipple.ArgumentError, match="k: 0"):
        ops.knn(cloud, 0)


def test_the_registry_is_bound():
    names = {entry["name"] for entry in ops.registry()}
    files = {"voxel_grid", "inverse_density", "three_interpolate", "kernel_interpolate", "bilateral_weights", "row_norm"}
    assert names - files <= set(ops.__all__)
