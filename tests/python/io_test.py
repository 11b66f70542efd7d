"""stipple.io: clouds and meshes whose arrays are views, files of every format, errors with their place."""
import copy
import gc
import pathlib
import pickle
import sys
import warnings
from collections.abc import MutableMapping

import numpy as np
import pytest
import stipple
from conftest import address, addresses_seen
from io_calls import ARRAYS, CALLS, CLOUD, MESH
from stipple import geometry, io

DATA = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data"


def small(n=50, **options):
    return io.PointCloud(np.random.default_rng(1).random((n, 3), dtype=np.float32), **options)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_returns(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", io.FileWarning)
        CALLS[name](tmp_path)


def test_arrays_of_a_cloud_are_views_that_keep_it():
    cloud = small(attributes={"normal": np.ones((50, 3), np.float32), "label": np.arange(50)})
    positions = cloud.positions
    assert address(positions) == address(cloud.positions) and not positions.flags.owndata
    positions[3] = 7
    assert (cloud.positions[3] == 7).all()
    label, normals = cloud.attributes["label"], cloud.normals
    assert label.shape == (50,) and normals.shape == (50, 3) and address(normals) == address(cloud.attributes["normal"])
    del cloud
    gc.collect()
    assert (positions[3] == 7).all() and label.sum() == 1225 and normals.sum() == 150
    mesh = MESH.copy()
    triangles, vertices = mesh.triangles, mesh.vertices
    assert address(vertices.positions) == address(mesh.positions)
    del mesh
    assert triangles.max() == len(vertices) - 1


def test_a_cloud_is_made_around_the_arrays_it_is_given():
    points, label, faces = np.zeros((4, 3), np.float32), np.zeros(4, np.uint8), np.zeros((1, 3), np.int32)
    mesh = io.Mesh(points, faces, attributes={"label": label})
    cloud = io.PointCloud(points, attributes={"label": label})
    assert address(cloud.positions) == address(mesh.positions) == address(points)
    assert address(cloud.attributes["label"]) == address(mesh.vertices.attributes["label"]) == address(label)
    assert address(mesh.triangles) == address(faces)
    points[1] = 1
    cloud.positions[2] = 2
    assert cloud.positions[:, 0].tolist() == points[:, 0].tolist() == [0, 1, 2, 0]
    view = cloud.positions
    del points, cloud, mesh
    gc.collect()
    assert view[2, 0] == 2


@pytest.mark.parametrize("change", [lambda a: np.asfortranarray(a), lambda a: np.repeat(a, 2, 0)[::2],
                                    lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(-1, 3)])
def test_arrays_that_cannot_be_shared_are_copied_and_let_go(change):
    points = change(np.arange(12, dtype=np.float32).reshape(4, 3))
    cloud = io.PointCloud(points)
    assert address(cloud.positions) != address(points) and cloud.positions.flags.writeable
    assert (cloud.positions == points).all() and sys.getrefcount(points) == 2


def test_what_is_assigned_is_copied():
    cloud, column = small(), np.arange(50)
    cloud.attributes["a"] = column
    cloud.attributes["b"] = cloud.attributes["a"]  # else the column would keep its own cloud alive
    cloud.positions = cloud.positions
    column[:] = 0
    cloud.attributes["b"][:] = 1
    assert cloud.attributes["a"].sum() == 1225 and cloud.attributes["b"].sum() == 50


def test_views_outlive_what_is_replaced():
    cloud = small()
    cloud.attributes["a"] = np.arange(50, dtype=np.int16)
    old, positions = cloud.attributes["a"], cloud.positions
    cloud.attributes["a"] = np.arange(50, dtype=np.int16) + 1    # the same type: into the same memory
    assert address(cloud.attributes["a"]) == address(old) and old[0] == 1
    cloud.attributes["a"] = np.zeros((50, 2))                    # another: the old memory stays for its views
    del cloud.attributes["a"]
    assert old.sum() == 1275 and "a" not in cloud.attributes
    cloud.positions = np.ones((50, 3), np.float32)
    assert (positions == 1).all()
    cloud.positions += np.float32(1)
    assert (positions == 2).all()
    cloud.positions = np.zeros((5, 3), np.float32)
    assert len(cloud) == 5 and (positions == 2).all()


def test_attributes_are_a_mapping():
    cloud = small(attributes={"a": np.zeros(50, np.uint8)})
    attributes = cloud.attributes
    assert isinstance(attributes, MutableMapping) and list(attributes) == ["a"] and len(attributes) == 1
    attributes.update({"b": np.zeros((50, 4))})
    assert dict(attributes.items())["b"].shape == (50, 4) and [v.dtype.name for v in attributes.values()] == ["uint8", "float64"]
    assert attributes.get("c") is None and attributes.get("c", 3) == 3
    with pytest.raises(KeyError):
        attributes["c"]
    with pytest.raises(ValueError, match=r"b: an array of shape \[3\]; wanted are 50 rows"):
        attributes["b"] = np.zeros(3)
    cloud.colors = np.zeros((50, 3), np.uint8)
    cloud.colors = None
    assert cloud.colors is None and cloud.normals is None


@pytest.mark.parametrize("array, error, text", [
    (np.zeros((5, 3)), TypeError, "positions: an array of float64"),
    (np.zeros((5, 2), np.float32), ValueError, r"positions: an array of shape \[5, 2\]"),
    (np.zeros(3, np.float32), ValueError, "positions"),
    (np.float32(3), (TypeError, ValueError), "positions"),
    (np.zeros((5, 3), ">f4"), TypeError, "positions"),
    (np.zeros(5, [("x", np.float32)]), TypeError, "positions"),
    ([[1, 2, 3]], TypeError, "positions"),
    ("text", TypeError, "positions"),
])
def test_what_is_no_cloud_is_refused_by_name(array, error, text):
    with pytest.raises(error, match=text):
        io.PointCloud(array)


def test_arrays_of_any_strides_make_a_cloud():
    points = np.random.default_rng(2).random((20, 3), dtype=np.float32)
    for given in (np.asfortranarray(points), points[::-1], np.repeat(points, 2, axis=1)[:, ::2], points[::3]):
        np.testing.assert_array_equal(io.PointCloud(given).positions, given)
    fixed = points.copy()
    fixed.setflags(write=False)
    assert io.PointCloud(fixed).positions.flags.writeable
    assert len(io.PointCloud(points[:0])) == 0 and io.PointCloud(points[:0]).positions.shape == (0, 3)


def test_meshes_check_their_triangles():
    points = np.zeros((3, 3), np.float32)
    assert io.Mesh(points, np.array([[0, 1, 2]])).faces == 1
    with pytest.raises(ValueError, match="triangles: vertex 3 of face 0; there are 3"):
        io.Mesh(points, np.array([[0, 1, 3]], np.int32))
    with pytest.raises(TypeError, match="triangles: an array of float64"):
        io.Mesh(points, np.zeros((1, 3)))
    mesh = io.Mesh(small(), np.zeros((2, 3), np.int32), face_attributes={"part": np.array([4, 5], np.int8)})
    assert mesh.face_attributes["part"].tolist() == [4, 5]
    assert copy.deepcopy(mesh).faces == copy.copy(mesh).faces == 2


def test_float64_keeps_its_digits_in_the_origin():
    world = np.array([[500000.127, 4000000.25, 10], [500001.5, 4000002.75, 12]])
    cloud = io.cloud_from_npy(world)
    np.testing.assert_allclose(cloud.world(), world, rtol=0, atol=1e-7)
    assert cloud.origin[0] >= 4e5
    places = cloud.world()
    cloud.move_origin((500000, 4000000, 0))
    np.testing.assert_allclose(cloud.world(), places, rtol=0, atol=1e-7)
    cloud.shift_origin((1, 0, 0))
    np.testing.assert_allclose(cloud.world()[:, 0], places[:, 0] + 1, rtol=0, atol=1e-7)
    assert cloud.bounds().finite == 2 and cloud.bounds().min[0] == pytest.approx(500001.127, abs=1e-6)


@pytest.mark.parametrize("format_", [entry["name"] for entry in io.formats() if entry["name"] not in ("hdf5", "kitti", "xyzn", "xyzrgb", "stl")])
def test_every_format_gives_back_what_it_holds(format_, tmp_path):
    cloud = small(attributes={"intensity": np.arange(50, dtype=np.float32)})
    path = tmp_path / ("a." + next(e["extensions"][0] for e in io.formats() if e["name"] == format_))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", io.FileWarning)
        io.save(path, cloud)
        back = io.load(path, format=format_).vertices
    np.testing.assert_allclose(back.world(), cloud.world(), atol=1e-6)
    if "intensity" in back.attributes:
        np.testing.assert_array_equal(back.attributes["intensity"].astype(np.float32), np.arange(50))
    with pytest.raises(stipple.OutputError):
        io.save(path, cloud)


def test_what_a_format_cannot_hold_is_a_warning(tmp_path):
    with pytest.warns(io.FileWarning, match="intensity"):
        io.save(tmp_path / "a.xyz", CLOUD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(io.FileWarning):
            io.write(CLOUD, "xyz")


def test_errors_have_their_place(tmp_path):
    path = tmp_path / "a.ply"
    path.write_text("ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
                    "end_header\n0 0 0\n0 oops 0\n")
    with pytest.raises(stipple.FileFormatError) as caught:
        io.load(path)
    assert caught.value.place["path"] == str(path) and caught.value.place["line"] == 9 and isinstance(caught.value, ValueError)
    with pytest.raises(stipple.Error, match="none.ply"):
        io.load_cloud(str(tmp_path / "none.ply"))
    with pytest.raises(TypeError, match="path: int; wanted is a str or a path"):
        io.load(3)
    with pytest.raises(ValueError, match="embedded null"):
        io.load("a\0b")
    with pytest.raises(stipple.ArgumentError, match='limits: no "most"'):
        io.load(path, limits={"most": 3})
    with pytest.raises(TypeError, match="limits: max_points: str is no whole number"):
        io.load(path, limits={"max_points": "3"})
    with pytest.raises(stipple.FileFormatError):
        io.load_cloud(DATA / "knot.ply", limits={"max_points": 10})
    with pytest.raises(stipple.FileFormatError, match="faces"):
        io.load_mesh(DATA / "knot.ply")
    for data in (b"", b"ply", b"ply\nformat ascii 1.0\nelement vertex 999999999\n", io.write(MESH, "ply")[:-5]):
        with pytest.raises(stipple.Error):
            io.parse(data)


def test_progress_is_told_and_may_end_the_reading():
    seen = []
    io.load(DATA / "knot.ply", on_progress=lambda done, total: seen.append((done, total)))

    def stop(_done, _total):
        raise KeyboardInterrupt

    if seen:
        with pytest.raises(KeyboardInterrupt):
            io.load(DATA / "knot.ply", on_progress=stop)


def test_the_points_of_a_mesh_are_written_without_faces():
    assert io.parse(io.write(MESH.vertices, "ply")).faces == 0
    assert io.parse(io.write(MESH, "ply")).faces == MESH.faces


def test_clouds_in_chunks(tmp_path):
    cloud = small(1000, attributes={"label": (np.arange(1000) % 4).astype(np.uint8)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", io.FileWarning)
        io.save(tmp_path / "a.las", cloud)
        with io.CloudReader(tmp_path / "a.las", chunk_points=300) as reader, io.CloudWriter(tmp_path / "b.las") as writer:
            assert reader.points == 1000 and reader.format == "las"
            sizes = []
            for chunk in reader:
                sizes.append(len(chunk))
                writer.write(chunk.select(chunk.attributes["label"] == 2))
        assert sizes == [300, 300, 300, 100]
        back = io.load_cloud(tmp_path / "b.las")
        assert len(back) == 250 and io.summarise_las(back).classes == {2: 250}
        with pytest.raises(RuntimeError), io.CloudWriter(tmp_path / "c.las") as writer:
            writer.write(cloud)
            raise RuntimeError
        assert not (tmp_path / "c.las").exists()
        with pytest.raises(stipple.ArgumentError, match="closed"):
            next(reader)


def test_arrays_by_name(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.float16([1.5])}
    io.save_npz(tmp_path / "a.npz", arrays)
    with np.load(tmp_path / "a.npz") as back:
        for name, array in arrays.items():
            np.testing.assert_array_equal(back[name], array)
    np.savez_compressed(tmp_path / "n.npz", **arrays)
    for name, array in io.load_npz(tmp_path / "n.npz").items():
        np.testing.assert_array_equal(array, arrays[name])
    io.save_safetensors(tmp_path / "w.safetensors", arrays, {"epoch": "3"})
    found = io.load_safetensors(tmp_path / "w.safetensors")
    assert found.metadata["epoch"] == "3"
    np.testing.assert_array_equal(found.tensors["a"], arrays["a"])
    header = b'{"half":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (tmp_path / "h.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\x40")
    half = io.load_safetensors(tmp_path / "h.safetensors").tensors["half"]  # numpy has no such type
    assert isinstance(half, stipple.Array) and half.dtype == "bfloat16"
    io.save_safetensors(tmp_path / "again.safetensors", {"half": half})
    assert io.load_safetensors(tmp_path / "again.safetensors").tensors["half"].shape == (2,)
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(stipple.FileFormatError):
        io.load_npy(tmp_path / "p.npy")


def test_writers_take_arrays_without_a_copy(tmp_path):
    with addresses_seen() as seen:
        io.save_npz(tmp_path / "a.npz", ARRAYS)
    assert [a for _, a in seen] == [address(ARRAYS["points"])]


def test_cameras(tmp_path):
    model = CALLS["load_colmap"](tmp_path)
    np.testing.assert_array_equal(model.positions, [[1, 2, 3]])
    assert model.colors.tolist() == [[255, 0, 0]] and model.cameras[0]["fx"] == 50 and model.images[0]["name"] == "a.png"
    assert CALLS["load_transforms"](tmp_path)[0]["to_world"][2, 3] == 4


def test_real_files_of_the_examples():
    knot = io.load_cloud(DATA / "knot.ply")
    assert len(knot) > 1000 and np.isfinite(knot.positions).all()
    assert geometry.check_mesh(io.load_mesh(DATA / "knot_mesh.off")).area > 0


def test_clouds_and_meshes_are_pickled_whole(tmp_path):
    cloud = small(40, origin=(5e5, 0, 1), attributes={"label": np.arange(40, dtype=np.uint8), "time": np.arange(40.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", io.FileWarning)
        io.save(tmp_path / "a.las", cloud)
        cloud = io.load_cloud(tmp_path / "a.las")
    back = pickle.loads(pickle.dumps(cloud))
    assert io.write(back, "las") == io.write(cloud, "las") and back.facts == cloud.facts and back.facts["grid"]
    mesh = io.Mesh(MESH.vertices, np.array(MESH.triangles), face_attributes={"part": np.arange(MESH.faces, dtype=np.int16)})
    assert io.write(pickle.loads(pickle.dumps(mesh, 2)), "npz") == io.write(mesh, "npz")
    assert len(pickle.loads(pickle.dumps(io.PointCloud(np.zeros((0, 3), np.float32))))) == 0
    state = list(cloud.__getstate__())
    with pytest.raises(ValueError, match="version"):
        io.PointCloud.__new__(io.PointCloud).__setstate__((9, *state[1:]))
    with pytest.raises((ValueError, TypeError)):
        state[3] = [("label", 0, 1, b"short")]
        io.PointCloud.__new__(io.PointCloud).__setstate__(tuple(state))


def test_memory_that_nobody_looks_at_goes():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    cloud = small(100_000)
    columns = [np.zeros(100_000, np.float32), np.zeros(100_000, np.float64)]
    for i in range(10):
        cloud.attributes["a"] = columns[i % 2]
    before = resident()
    for i in range(300):
        cloud.attributes["a"] = columns[i % 2]
        cloud.attributes["b"] = columns[0]
        del cloud.attributes["b"]
    assert resident() - before < 30 << 20
    with pytest.raises(ValueError, match="rows without numbers"):
        cloud.attributes["c"] = np.zeros((100_000, 0))


def test_points_are_chosen_by_indices_and_masks():
    cloud = small(attributes={"label": np.arange(50)})
    mask = cloud.positions[:, 0] > 0.5
    for chosen in (mask, np.flatnonzero(mask), np.flatnonzero(mask).astype(np.int32), np.flatnonzero(mask).tolist()):
        np.testing.assert_array_equal(cloud.select(chosen).attributes["label"], np.flatnonzero(mask))
    assert len(cloud.select([])) == 0 and len(cloud.select((3, 3))) == 2
    for wrong, error in ((np.array([50]), ValueError), ([-1], ValueError), (mask[:-1], ValueError), (mask.astype(np.uint8), TypeError),
                         (np.zeros((2, 2), np.int32), ValueError), (np.array([0.5]), TypeError)):
        with pytest.raises(error, match="indices"):
            cloud.select(wrong)
