"""A hundred thousand calls leave nothing behind, in any folder: results, refusals, views."""
import gc
import resource

import numpy as np
import pytest
import stipple
from network_calls import NET, WEIGHTS
from stipple import engine, geometry, io, metrics, network, ops, picture

FEW = np.random.default_rng(3).random((8, 3), dtype=np.float32)
WRONG = FEW.astype(np.float64)
LABEL = np.arange(8, dtype=np.uint8)
CONTEXT = engine.Context(engine.compile(NET, WEIGHTS, max_batch=1, max_points=8))
KEPT = io.PointCloud(FEW, attributes={"label": LABEL})


def refused(call):
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError("no error")


def cloud_and_view():
    cloud = io.PointCloud(FEW, attributes={"label": LABEL})
    view = cloud.positions
    cloud.attributes["b"] = LABEL
    del cloud
    return view[0, 0]


def with_torch():
    import stipple.torch as st
    import torch

    points = torch.from_numpy(FEW).requires_grad_()
    return [lambda: ops.knn(points.detach(), 2), lambda: st.chamfer_loss(points[None], points[None].detach()).backward()]


ROUNDS = {
    "array": lambda: [lambda: stipple.from_dlpack(FEW).__dlpack__(), lambda: stipple.asarray(FEW).numpy()],
    "ops": lambda: [lambda: ops.knn(FEW, 2), lambda: refused(lambda: ops.knn(WRONG, 2))],
    "io": lambda: [cloud_and_view, lambda: KEPT.select([1, 2]), lambda: refused(lambda: io.PointCloud(WRONG))],
    "geometry": lambda: [lambda: geometry.unique_points(FEW), lambda: refused(lambda: geometry.unique_points(WRONG))],
    "metrics": lambda: [lambda: metrics.chamfer(FEW, FEW), lambda: refused(lambda: metrics.chamfer(WRONG, FEW))],
    "network": lambda: [lambda: WEIGHTS["conv1.weight"].sum(), lambda: network.initial_weights(NET, 1)],
    "engine": lambda: [lambda: CONTEXT.run(FEW), lambda: refused(lambda: CONTEXT.run(WRONG))],
    "picture": lambda: [lambda: picture.map_color("viridis", 0.5), lambda: refused(lambda: picture.map_color("none", 0.5))],
    "torch": with_torch,
}


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("folder", sorted(ROUNDS))
def test_a_hundred_thousand_calls_leave_nothing_behind(folder):
    if folder == "torch":
        pytest.importorskip("torch")
    calls = ROUNDS[folder]()

    def repeat(count):
        for _ in range(count // len(calls)):
            for call in calls:
                call()

    repeat(5_000)
    before = resident()
    repeat(100_000)
    assert resident() - before < 2_000_000  # 20 bytes a call would be seen
