"""Arrays in and out: hostile ones, other libraries' ones, lifetimes and leaks."""
import ctypes
import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest
import stipple
from conftest import address
from hypothesis import given, settings
from hypothesis import strategies as st
from stipple import ops


def refused(kind, array, *words):
    with pytest.raises(kind) as raised:
        ops.knn(array, 1)
    text = str(raised.value)
    assert text.startswith("points: ") and "\n" not in text, text
    for word in words:
        assert word in text, text
    return text


def test_wrong_types_are_refused_by_name(cloud):
    assert "stipple.asarray(points, \"float32\")" in refused(TypeError, cloud.astype(np.float64), "float64", "float32")
    refused(TypeError, cloud.astype(">f4"), "byte order", "asarray")
    refused(TypeError, cloud.astype(np.float16), "float16")
    refused(TypeError, cloud.astype(np.complex64), "complex64")
    refused(TypeError, cloud.astype(np.longdouble), "float128" if np.longdouble(0).nbytes == 16 else "")
    refused(TypeError, cloud.astype(object), "object")
    refused(TypeError, cloud.astype("U8"))
    refused(TypeError, np.zeros((4, 3), "datetime64[s]"))
    refused(TypeError, np.zeros(5, [("x", "f4"), ("y", "f4"), ("z", "f4")]), "asarray")
    refused(TypeError, np.ma.masked_array(cloud), "masked")
    refused(TypeError, cloud.tolist(), "list", "asarray")
    refused(TypeError, None, "NoneType")
    refused(TypeError, "points", "str")
    refused(TypeError, 3.0, "float")
    refused(TypeError, np.ndarray, "type")
    refused(TypeError, memoryview(cloud), "memoryview")


def test_wrong_shapes_and_strides_are_refused_by_name(cloud):
    refused(ValueError, np.array(1, np.float32), "[]")
    refused(ValueError, np.zeros(3, np.float32), "[3]")
    refused(ValueError, np.zeros((2, 2, 2, 3), np.float32), "[2, 2, 2, 3]")
    refused(ValueError, np.zeros((1,) * 12, np.float32), "12 dimensions")
    refused(ValueError, np.asfortranarray(cloud), "adjacent", "asarray")
    refused(ValueError, cloud[::-1], "asarray")
    refused(ValueError, cloud[:, ::-1], "asarray")
    refused(ValueError, cloud.reshape(10, 10, 3)[:, :7], "asarray")
    packed = np.zeros(5, [("tag", "u1"), ("xyz", "f4", 3)])
    refused(ValueError, packed["xyz"], "aligned", "asarray")


def test_what_is_unusual_but_right_is_taken(cloud):
    expected = ops.knn(cloud, 3).indices
    read_only = cloud.copy()
    read_only.flags.writeable = False
    wide = np.zeros((100, 8), np.float32)
    wide[:, 2:5] = cloud
    aligned = np.zeros(100, np.dtype([("tag", "u4"), ("xyz", "f4", 3)]))
    aligned["xyz"] = cloud
    for array in (read_only, wide[:, 2:5], cloud.view(np.matrix), np.repeat(cloud, 2, 0)[::2], aligned["xyz"],
                  cloud.view(type("Mine", (np.ndarray,), {}))):
        found = ops.knn(array, 3).indices
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)
    same = np.broadcast_to(cloud[0], (5, 3))  # every row the same memory
    assert ops.knn(same, 1).distances_sq.max() == 0


@pytest.mark.parametrize("shape", [(0, 3), (0, 0, 3), (2, 0, 3), (0, 5, 3)])
def test_empty_arrays_give_empty_results(shape):
    found = ops.knn(np.zeros(shape, np.float32), 1)
    assert found.indices.shape == (*shape[:-1], 1) and found.indices.dtype == np.int32
    mean = ops.chamfer(np.zeros(shape, np.float32), np.zeros(shape, np.float32)).a_to_b.mean
    assert np.isnan(mean).all() and mean.shape == shape[:-2]


def test_results_too_large_for_memory_are_named():
    many = np.broadcast_to(np.zeros((1, 3), np.float32), (2**40, 3))
    with pytest.raises(MemoryError) as raised:
        ops.knn(many, 128)
    assert isinstance(raised.value, stipple.OutOfMemoryError) and raised.value.code == "out_of_memory"
    with pytest.raises(ValueError):
        ops.knn(np.broadcast_to(np.zeros((1, 3), np.float32), (2**60, 3)), 128)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_array_gives_a_result_or_a_named_error(data):
    dtype = data.draw(st.sampled_from(["f4", "f8", ">f4", "i4", "?", "f2", "c8", "O"]))
    shape = data.draw(st.lists(st.integers(0, 5), max_size=4))
    array = np.zeros(shape, dtype)
    slices = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
    array = array[(..., *slices)]
    if data.draw(st.booleans()):
        array = array.T
    try:
        found = ops.knn(array, data.draw(st.integers(-1, 4)))
    except (TypeError, ValueError) as error:
        assert str(error)
    else:
        assert found.indices.shape[:-1] == array.shape[:-1]


def test_asarray_converts_what_functions_refuse(cloud):
    expected = ops.knn(cloud, 2).indices
    packed = np.zeros(100, [("tag", "u1"), ("xyz", "f4", 3)])
    packed["xyz"] = cloud
    for array in (cloud.astype(np.float64), cloud.astype(">f4"), np.asfortranarray(cloud), cloud.tolist(), packed["xyz"],
                  cloud[::-1][::-1], memoryview(cloud)):
        found = ops.knn(stipple.asarray(array), 2).indices
        assert isinstance(found, stipple.Array)
        np.testing.assert_array_equal(found.numpy(), expected)
    assert stipple.asarray(cloud).data_ptr == address(cloud)  # nothing to convert, nothing copied
    assert stipple.asarray(cloud, "float64").dtype == "float64"
    assert stipple.asarray([1, 2], np.int32).dtype == "int32"
    assert stipple.asarray(stipple.asarray(cloud)).data_ptr == address(cloud)
    for wrong, words in ((np.ma.masked_array(cloud), "masked"), ("text", "x: "), (cloud.astype(object), "object")):
        with pytest.raises(TypeError, match=words):
            stipple.asarray(wrong)
    with pytest.raises(TypeError, match="no type"):
        stipple.asarray(cloud, "float31")
    with pytest.raises(stipple.Error):
        stipple.asarray(cloud, device="cuda:99")


def test_an_array_describes_itself(cloud):
    array = stipple.asarray(cloud)
    assert (array.shape, array.strides, array.ndim, array.size) == ((100, 3), (3, 1), 2, 300)
    assert (array.dtype, array.device, len(array)) == ("float32", "cpu", 100)
    assert repr(array) == "stipple.Array(shape=[100, 3], dtype=float32, device=cpu)"
    assert array.__dlpack_device__() == (1, 0)
    assert not hasattr(array, "__cuda_array_interface__")
    assert array.to("cpu").data_ptr == array.data_ptr
    with pytest.raises(TypeError):
        len(stipple.asarray(np.float32(1)))
    with pytest.raises(TypeError):
        pickle.dumps(array)
    for view in (array.numpy(), np.asarray(array), np.from_dlpack(array)):
        assert address(view) == address(cloud)
        np.testing.assert_array_equal(view, cloud)


@pytest.mark.parametrize("name", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
                                  "float32", "float64", "bool"])
def test_types_go_there_and_back(name):
    array = np.arange(6).reshape(2, 3).astype(name)
    shared = stipple.from_dlpack(array)
    assert shared.dtype == name and shared.data_ptr == address(array)
    np.testing.assert_array_equal(shared.numpy(), array)
    assert np.asarray(shared).dtype == array.dtype
    if name != "bool":  # numpy 1.24's from_dlpack has none
        np.testing.assert_array_equal(np.from_dlpack(shared), array)


def capsule_name(capsule):
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


class Producer:
    """Another library's array: gives one capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, stream=None):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_capsules_are_taken_once_and_freed_once(cloud):
    class Owner(np.ndarray):  # can be referred to weakly
        pass

    for versions in (None, (0, 8), (1, 0), (1, 2)):
        name = b"dltensor" if versions is None or versions[0] == 0 else b"dltensor_versioned"
        owner = cloud.copy().view(Owner)
        gone = weakref.ref(owner)
        array = stipple.from_dlpack(owner)
        unused = array.__dlpack__(max_version=versions)
        assert capsule_name(unused) == name
        del unused  # never taken: its share goes with it
        taken = array.__dlpack__(max_version=versions)
        other = stipple.from_dlpack(Producer(taken))
        assert capsule_name(taken) == b"used_" + name
        assert other.data_ptr == address(owner)
        with pytest.raises(TypeError, match="no DLPack tensor"):
            stipple.from_dlpack(Producer(taken))
        del array, owner, taken
        gc.collect()
        assert gone() is not None  # `other` still looks at it
        np.testing.assert_array_equal(other.numpy(), cloud)
        del other
        gc.collect()
        assert gone() is None


def test_read_only_arrays_stay_read_only(cloud):
    cloud.flags.writeable = False
    shared = stipple.from_dlpack(cloud)
    assert not shared.numpy().flags.writeable
    with pytest.raises(BufferError):
        shared.__dlpack__()
    assert capsule_name(shared.__dlpack__(max_version=(1, 0))) == b"dltensor_versioned"
    control = np.zeros(ops.ControlSlot.count)
    with pytest.raises(stipple.ArgumentError, match="value: is written, but the array is read-only"):
        ops.restore_skipped([{"value": cloud, "saved": cloud}], control)


def test_results_outlive_what_made_them(cloud):
    grid = ops.voxel_grid(cloud, 0.25)
    coordinates, copy = grid.coordinates, grid.coordinates.copy()
    row = ops.knn(cloud, 3).indices[7]
    view = stipple.asarray(cloud.tolist()).numpy()
    del grid
    gc.collect()
    junk = [np.full((100, 3), 7, np.int32) for _ in range(200)]
    np.testing.assert_array_equal(coordinates, copy)
    np.testing.assert_array_equal(view, cloud)
    assert row[0] == 7 and len(junk) == 200


def test_import_is_light():
    code = "import sys; import stipple; print([m for m in ('torch', 'scipy', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    timed = "import time; t = time.perf_counter(); import stipple; print(1e3 * (time.perf_counter() - t))"
    milliseconds = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout
    print(f"import stipple: {float(milliseconds):.1f} ms")


def test_strides_of_dimensions_of_one_element_do_not_matter():
    strided = np.lib.stride_tricks.as_strided
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    single = strided(rows, (8, 1, 3), (12, 4, 4))  # as torch leaves them: any stride for the one
    np.testing.assert_array_equal(ops.knn(single, 1).indices, np.zeros((8, 1, 1)))
    neighbours = np.zeros((8, 1, 1), np.int32)
    inverse = ops.invert_index(neighbours, single)
    values = strided(rows, (8, 1, 1, 3), (12, 4, 4, 4))
    np.testing.assert_array_equal(ops.scatter_add(values, inverse), rows)
    np.testing.assert_array_equal(ops.group_backward_centres(neighbours, single, values), -rows.reshape(8, 1, 3))
    with pytest.raises(ValueError, match="follow each other"):
        ops.knn(single[::-1], 1)
