"""Arrays of libraries that stipple does not know, by DLPack alone."""
import ctypes
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


class Edited(Tensor):
    """A tensor whose struct says something else: {offset in DLManagedTensor: (type, value)}."""

    def __init__(self, array, edits, device=(1, 0)):
        super().__init__(array, device)
        self.edits = edits

    def __dlpack__(self, stream=None):
        capsule = super().__dlpack__(stream)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        place = get(capsule, b"dltensor")
        for offset, (type_, value) in self.edits.items():
            if offset < 0:  # the first extent
                type_.from_address(ctypes.c_void_p.from_address(place + 24).value).value = value
            else:
                type_.from_address(place + offset).value = value
        return capsule


def test_tensors_that_lie_are_refused_by_name(library, cloud):
    i8, i16, i32, i64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_int64
    for edits, kind, words in (({16: (i32, -1)}, ValueError, "points: an array of -1 dimensions"),
                               ({16: (i32, 99)}, ValueError, "points: an array of 99 dimensions"),
                               ({8: (i32, 7)}, ValueError, "points: .*kind 7"), ({22: (i16, 4)}, TypeError, "points: "),
                               ({21: (i8, 24)}, TypeError, "points: .*24 bits"), ({-1: (i64, -5)}, ValueError, "points: .*-5"),
                               ({-1: (i64, 2**62)}, ValueError, "points: "), ({40: (i64, 2)}, ValueError, "points: .*aligned")):
        with pytest.raises(kind, match=words):
            ops.knn(Edited(cloud, edits), 1)
    gc.collect()
    assert Tensor.alive == 0  # and what was taken has been given back
    expected = ops.knn(cloud, 3).indices
    contiguous = ops.knn(Edited(cloud, {32: (i64, 0)}), 3)  # no strides
    np.testing.assert_array_equal(contiguous.indices.numpy(), expected)
    moved = ops.knn(Edited(cloud, {40: (i64, 12), -1: (i64, 99)}), 3)  # begins a point later
    np.testing.assert_array_equal(moved.indices.numpy(), ops.knn(np.array(cloud[1:]), 3).indices)


def test_devices_are_told_apart(library, cloud):
    on_gpu = Edited(cloud, {8: (ctypes.c_int32, 2)}, (2, 0))
    with pytest.raises(stipple.ArgumentError, match="queries: on cuda:0, while points is on cpu: stipple.asarray"):
        ops.knn(Tensor(cloud), 3, on_gpu)
    assert on_gpu.streams == [1]  # the legacy default stream
    if not stipple.has_cuda:
        with pytest.raises(stipple.DeviceError, match="built without CUDA"):
            ops.knn(on_gpu, 3)


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
