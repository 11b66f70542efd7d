"""One call of every function of stipple.io: what tests go through, and examples. A call gets a folder."""
import numpy as np
from stipple import geometry, io, picture

MESH = geometry.sphere_mesh()
CLOUD = io.PointCloud(np.array(MESH.positions), attributes={"intensity": np.arange(642, dtype=np.float32)})
ARRAYS = {"points": np.zeros((2, 5, 3), np.float32)}


def _saved(folder, name, shape):
    io.save(folder / name, shape, overwrite=True)
    return folder / name


def _load_mesh(folder):
    return io.load_mesh(_saved(folder, "m.off", MESH), limits={"max_points": 100_000})


def _copy_cloud(folder):
    with io.CloudReader(_saved(folder, "a.las", CLOUD)) as reader, io.CloudWriter(folder / "b.las") as writer:
        return io.copy_cloud(reader, writer)


def _npz(folder):
    io.save_npz(folder / "a.npz", ARRAYS, overwrite=True)
    return folder / "a.npz"


def _npy(folder):
    np.save(folder / "a.npy", ARRAYS["points"])
    return io.load_npy(folder / "a.npy")


def _safetensors(folder):
    io.save_safetensors(folder / "a.safetensors", ARRAYS, {"by": "hand"}, overwrite=True)
    return io.load_safetensors(folder / "a.safetensors")


def _hdf5(folder):
    io.save_hdf5_arrays(folder / "a.h5", {"data": np.ones((2, 5, 3), np.float32)}, overwrite=True)
    return folder / "a.h5"


def _image(folder):
    image = picture.Image(np.zeros((4, 6, 3), np.uint8))
    io.save_png(folder / "a.png", image, overwrite=True)
    io.save_jpeg(folder / "a.jpg", image, overwrite=True, quality=80)
    return io.load_image(folder / "a.png")


def _colmap(folder):
    (folder / "cameras.txt").write_text("1 PINHOLE 64 48 50 50 32 24\n")
    (folder / "images.txt").write_text("1 1 0 0 0 0 0 2 1 a.png\n\n")
    (folder / "points3D.txt").write_text("7 1 2 3 255 0 0 0.5 1 0\n")
    assert io.has_colmap(folder)
    return io.load_colmap(folder)


def _transforms(folder):
    (folder / "transforms.json").write_text(
        '{"camera_angle_x": 0.7, "frames": [{"file_path": "a", "transform_matrix":'
        ' [[1,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}]}')
    return io.load_transforms(folder / "transforms.json")


CALLS = {
    "load": lambda folder: io.load(_saved(folder, "m.ply", MESH), format="ply"),
    "load_cloud": lambda folder: io.load_cloud(_saved(folder, "c.npz", CLOUD)),
    "load_mesh": _load_mesh,
    "save": lambda folder: io.save(folder / "c.pcd", CLOUD, compressed=True, overwrite=True),
    "write": lambda folder: io.write(MESH, "ply", ascii=True),
    "parse": lambda folder: io.parse(io.write(MESH, "off")),
    "formats": lambda folder: io.formats(),
    "format_by_extension": lambda folder: io.format_by_extension("a.laz"),
    "format_to_write": lambda folder: io.format_to_write("a.las"),
    "format_by_content": lambda folder: io.format_by_content(b"ply\nformat ascii 1.0\n"),
    "can_hold": lambda folder: io.can_hold("xyz", "color"),
    "copy_cloud": _copy_cloud,
    "is_las": lambda folder: io.is_las(folder / "none.las"),
    "summarise_las": lambda folder: io.summarise_las(io.load_cloud(_saved(folder, "s.las", CLOUD))),
    "las_class_name": lambda folder: io.las_class_name(2),
    "load_npy": _npy,
    "load_npz": lambda folder: io.load_npz(_npz(folder)),
    "save_npz": _npz,
    "cloud_from_npy": lambda folder: io.cloud_from_npy(np.array([[5e5, 4e6, 1.25], [5e5 + 1, 4e6, 2]])),
    "load_safetensors": _safetensors,
    "save_safetensors": _safetensors,
    "list_hdf5": lambda folder: io.list_hdf5(_hdf5(folder)),
    "load_hdf5": lambda folder: io.load_hdf5(_hdf5(folder)),
    "load_hdf5_array": lambda folder: io.load_hdf5_array(_hdf5(folder), "data"),
    "save_hdf5_arrays": _hdf5,
    "load_image": _image,
    "save_png": _image,
    "save_jpeg": _image,
    "has_colmap": _colmap,
    "load_colmap": _colmap,
    "load_transforms": _transforms,
}
