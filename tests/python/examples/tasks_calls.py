"""One call of every function of stipple.tasks, as ops_calls.py has them for ops."""
import os
import tempfile

import numpy as np
from stipple import io, models, network, tasks

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
DATA = os.path.join(ROOT, "examples", "data")
FOLDER = tempfile.mkdtemp(prefix="stipple-tasks-")

_random = np.random.default_rng(4)
_sphere = _random.normal(size=(400, 3))
SPHERE = (_sphere / np.linalg.norm(_sphere, axis=1, keepdims=True)).astype(np.float32)
POINTS = _random.random((400, 3), dtype=np.float32) * np.array([1, 2, 0.5], np.float32)
LARGE = _random.random((2000, 3), dtype=np.float32)
MOVED = POINTS + np.array([0.02, 0, 0], np.float32)


def untrained(model, config):
    """A file of weights as training begins with them: what is asked of it is its shape."""
    path = os.path.join(FOLDER, model + ".safetensors")
    network.save_weights(path, network.initial_weights(models.build_model(model, config), 1), overwrite=True)
    return path


def _set_of_classes():
    """A data set in folders: CLASS/test/*.off."""
    for name, shape in (("table", "table"), ("vase", "vase")):
        folder = os.path.join(FOLDER, "set", name, "test")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(DATA, "shapes", shape + ".off"), "rb") as source:
            data = source.read()
        with open(os.path.join(folder, "a.off"), "wb") as file:
            file.write(data)
    return os.path.join(FOLDER, "set")


CLASSIFIER = tasks.Classifier(device="cpu")
SEGMENTER = tasks.Segmenter(device="cpu")
MIDPOINTS = tasks.Upsampler("midpoints")
SAMPLER = tasks.load_sampler("critical", device="cpu")
POSE_NETWORK = tasks.load_pose_network(untrained("pcrnet", {"features": 64, "hidden": 32}), device="cpu")
RECONSTRUCTOR = tasks.Reconstructor(untrained("autoencoder", {"count": 128, "hidden": 32, "latent": 16}), device="cpu")

CALLS = {
    "weights_folders": lambda c: len(tasks.weights_folders()) > 0,
    "find_weights": lambda c: os.path.basename(tasks.find_weights("pointnet-cls")),
    "shipped_weights": lambda c: os.path.basename(tasks.shipped_weights("upsampler")),
    "list_weights": lambda c: "pointnet-cls" in tasks.list_weights(),
    "convert_weights": lambda c: tasks.convert_weights(
        network.load_weights(tasks.find_weights("pointnet-cls")), "f16").tensors[0].bytes,
    "classify": lambda c: tasks.classify(CLASSIFIER, [c(SPHERE), c(POINTS)])[1].guesses[0].name,
    "segment": lambda c: tasks.segment(SEGMENTER, c(POINTS), "chair").labels,
    "choose_view": lambda c: tasks.choose_view(SEGMENTER, c(SPHERE), [0, 4], None),
    "sample_cloud": lambda c: tasks.sample_cloud(c(POINTS), method="fps", count=20).positions,
    "has_network": lambda c: tasks.has_network("critical"),
    "load_sampler": lambda c: tasks.load_sampler("samplenet-cls", m=32, device="cpu").points,
    "sample_by_network": lambda c: tasks.sample_by_network(SAMPLER, c(LARGE), SAMPLER.count).indices,
    "holes_names": lambda c: len(tasks.holes_names()),
    "upsampled_count": lambda c: tasks.upsampled_count(c(SPHERE), ratio=4),
    "upsampling_work": lambda c: tasks.upsampling_work(MIDPOINTS, c(SPHERE), 800),
    "upsample": lambda c: tasks.upsample(MIDPOINTS, c(SPHERE), ratio=2).cloud.positions,
    "reconstruct": lambda c: tasks.reconstruct(RECONSTRUCTOR, c(SPHERE), count=64, force=True).cloud.positions,
    "register_clouds": lambda c: tasks.register_clouds(c(POINTS), c(MOVED), "icp", metric="point").transform,
    "register_scans": lambda c: tasks.register_scans([c(POINTS), c(MOVED)], "icp").is_placed,
    "pose_error": lambda c: tasks.pose_error(np.eye(4), np.eye(4), c(POINTS)),
    "method_names": lambda c: tasks.method_names(),
    "kernel_names": lambda c: tasks.kernel_names(),
    "load_transform": lambda c: tasks.load_transform(os.path.join(DATA, "chair_truth.matrix")),
    "load_pose_network": lambda c: POSE_NETWORK.find(c(POINTS), c(MOVED))[0].shape,
    "evaluate": lambda c: tasks.evaluate(CLASSIFIER, _set_of_classes(), [256], draws=1)[0].draws,
    "spread_of": lambda c: tasks.spread_of([1, 2, 3]),
}


def knot():
    return io.load_cloud(os.path.join(DATA, "knot.ply"))
