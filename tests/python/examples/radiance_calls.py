"""One call of every function of stipple.radiance, as ops_calls.py has them for ops."""
import json
import os
import struct
import tempfile
import zlib

import numpy as np
from stipple import radiance

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
FILE = os.path.join(ROOT, "examples", "data", "table.field")
FOLDER = tempfile.mkdtemp(prefix="stipple-radiance-")
FIELD = radiance.load_field(FILE)
CAMERAS = radiance.orbit(FIELD, 8, width=32, height=32)
RENDERER = radiance.Renderer(FIELD)
VIEW = RENDERER.render(CAMERAS[0], geometry=True)


def save_png(path, pixels):
    """RGBA of uint8."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_scene(folder):
    """The field's own pictures in Blender's layout."""
    for split, cameras in (("train", CAMERAS), ("test", CAMERAS[:2])):
        frames = []
        for i, camera in enumerate(cameras):
            view = RENDERER.render(camera)
            pixels = np.concatenate([radiance.colour_image(view), radiance.alpha_image(view)], axis=2)
            save_png(os.path.join(folder, f"{split}_{i}.png"), np.ascontiguousarray(pixels))
            pose = np.vstack([camera.to_world, [0, 0, 0, 1]])
            frames.append({"file_path": f"./{split}_{i}", "transform_matrix": pose.tolist()})
        angle = 2 * np.arctan(camera.width / 2 / camera.fx)
        with open(os.path.join(folder, f"transforms_{split}.json"), "w", encoding="utf-8") as file:
            json.dump({"camera_angle_x": float(angle), "frames": frames}, file)
    return folder


def few_steps():
    """Enough to find the table, in a second."""
    options = radiance.small_options()
    for key, value in {"N_iters": 25, "N_rand": 256, "num_voxels": 4096, "num_voxels_base": 4096}.items():
        for stage in ("coarse", "fine"):
            radiance.set_train_option(options, f"{stage}.{key}", value)
    radiance.set_train_option(options, "coarse.lrate_density", 0.5)
    radiance.set_train_option(options, "coarse.alpha_init", 1e-3)
    return options


SCENE = radiance.load_scene(write_scene(FOLDER))
OPTIONS = few_steps()


def _save_field():
    path = os.path.join(FOLDER, "copy.field")
    radiance.save_field(path, FIELD, overwrite=True)
    return radiance.load_field(path).size


CALLS = {
    "load_field": lambda c: radiance.load_field(FILE).size,
    "save_field": lambda c: _save_field(),
    "is_field_file": lambda c: radiance.is_field_file(FILE),
    "fault_of": lambda c: radiance.fault_of(FIELD),
    "summarise": lambda c: radiance.summarise(FIELD).nodes,
    "look_at": lambda c: radiance.look_at(FIELD, (3, 3, 2), (0, 0, 0), (0, 0, 1), width=16, height=16).to_world,
    "up_of": lambda c: radiance.up_of(FIELD),
    "orbit": lambda c: radiance.orbit(FIELD, 4, 30)[1].to_world,
    "colour_image": lambda c: radiance.colour_image(VIEW),
    "alpha_image": lambda c: radiance.alpha_image(VIEW),
    "normal_image": lambda c: radiance.normal_image(VIEW),
    "depth_range": lambda c: radiance.depth_range(VIEW),
    "export_points": lambda c: radiance.export_points(FIELD, count=500).positions,
    "export_mesh": lambda c: radiance.export_mesh(FIELD).triangles,
    "export_density": lambda c: radiance.export_density(FIELD),
    "density_of_opacity": lambda c: radiance.density_of_opacity(FIELD, 0.5),
    "evaluate": lambda c: radiance.evaluate(RENDERER, SCENE).psnr,
    "load_scene": lambda c: radiance.load_scene(FOLDER, train_only=True).sizes,
    "parity_options": lambda c: radiance.to_toml(radiance.parity_options(160)),
    "fast_options": lambda c: radiance.to_toml(radiance.fast_options()),
    "quality_options": lambda c: radiance.to_toml(radiance.quality_options()),
    "small_options": lambda c: radiance.to_toml(radiance.small_options()),
    "set_train_option": lambda c: radiance.set_train_option(few_steps(), "fine.N_iters", 5),
    "train_keys_text": lambda c: radiance.train_keys_text(),
    "to_toml": lambda c: radiance.to_toml(OPTIONS),
    "train_options_from_toml": lambda c: str(radiance.train_options_from_toml(radiance.to_toml(OPTIONS))),
    "usual_background": lambda c: radiance.usual_background(SCENE),
    "estimate_bytes": lambda c: radiance.estimate_bytes(SCENE, OPTIONS),
    "train": lambda c: radiance.train(SCENE, OPTIONS).field.size,
}
