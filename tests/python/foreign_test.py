"""Arrays of libraries that stipple does not know, by DLPack alone."""
import gc
import sys
import types

import numpy as np
import pytest
import stipple
from stipple import ops


class Tensor:
    """An array of another library: knows __dlpack__ and nothing else."""

    alive = 0

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
        self.streams = []
        Tensor.alive += 1

    def __del__(self):
        Tensor.alive -= 1

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return stipple.from_dlpack(self.array).__dlpack__()

    def __dlpack_device__(self):
        return self.device


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("other_arrays")
    monkeypatch.setitem(sys.modules, "other_arrays", module)
    monkeypatch.setattr(Tensor, "__module__", "other_arrays.core")
    return module


def test_results_come_by_from_dlpack_of_its_library(library, cloud):
    library.from_dlpack = lambda x: Tensor(np.from_dlpack(x))
    found = ops.knn(Tensor(cloud), 3)
    assert isinstance(found.indices, Tensor)
    np.testing.assert_array_equal(found.indices.array, ops.knn(cloud, 3).indices)
    del found
    gc.collect()
    assert Tensor.alive == 0


def test_results_are_ours_where_its_library_has_none(library, cloud):
    given = Tensor(cloud)
    found = ops.knn(given, 3)
    assert isinstance(found.indices, stipple.Array)
    assert given.streams == [None]  # a stream is for GPUs
    np.testing.assert_array_equal(found.indices.numpy(), ops.knn(cloud, 3).indices)
    assert stipple.asarray(Tensor(cloud.astype(np.float64))).dtype == "float32"


def test_what_goes_wrong_there_is_named(library, cloud):
    class Failing(Tensor):
        def __dlpack__(self, stream=None):
            raise RuntimeError("no luck")

    class Lying(Tensor):
        def __dlpack__(self, stream=None):
            return "text"

    with pytest.raises(stipple.ArgumentError, match="points: cannot be shared by DLPack: no luck"):
        ops.knn(Failing(cloud), 3)
    with pytest.raises(TypeError, match="points: .*gave no DLPack tensor"):
        ops.knn(Lying(cloud), 3)
    with pytest.raises(TypeError, match="points: .*type"):
        ops.knn(Tensor, 3)


def test_offsets_are_refused_by_name(cloud):
    for wrong, kind, words in (([1, 100], ValueError, "points: the offsets of a ragged batch begin with 0"),
                               ([0, 60, 40, 100], ValueError, "points: offset 2"), ([0, 99], ValueError, "points: 100 rows"),
                               ([], ValueError, "points: "), ([0.0, 100.0], TypeError, "offsets of points: float"),
                               (np.array([0.0, 100.0]), TypeError, "offsets of points"), ("ab", TypeError, "offsets of points"),
                               ([0, 2**80], ValueError, "beyond 64 bits"), (np.zeros((2, 2), np.int64), ValueError, "shape")):
        with pytest.raises(kind, match=words):
            ops.knn(cloud, 1, points_offsets=wrong)
    for right in ([0, 40, 100], (0, 40, 100), np.array([0, 40, 100]), np.array([0, 40, 100], np.int32),
                  np.array([0, 0, 40, 0, 100])[[0, 2, 4]], stipple.asarray([0, 40, 100])):
        assert ops.knn(cloud, 1, points_offsets=right).indices.shape == (100, 1)
