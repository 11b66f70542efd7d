"""stipple.radiance: pictures, exports and training."""
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import stipple
from radiance_calls import CAMERAS, FIELD, OPTIONS, RENDERER, SCENE, VIEW, few_steps
from stipple import metrics, radiance


def test_views_are_arrays_that_live_on():
    view = RENDERER.render(CAMERAS[1], geometry=True)
    colour, depth = view.colour, view.depth
    del view
    assert colour.shape == (32, 32, 3) and colour.dtype == np.float32 and np.isfinite(colour).all()
    seen = np.isfinite(depth)
    assert 0.02 < seen.mean() < 1 and (depth[seen] > 0).all()
    np.testing.assert_array_equal(RENDERER.render(CAMERAS[1]).colour, colour)
    assert radiance.colour_image(VIEW).dtype == np.uint8


def test_the_fields_own_pictures_score_high():
    scores = radiance.evaluate(RENDERER, SCENE)
    assert len(scores.views) == 2 and scores.psnr > 25
    assert SCENE.sizes == {"train": 8, "validation": 0, "test": 2}
    assert SCENE.pixels("test", 0).shape == (32, 32, 4)
    with pytest.raises(ValueError, match="split"):
        SCENE.cameras("all")


def test_exports_agree_with_the_depth():
    cloud, mesh = radiance.export_points(FIELD, count=300), radiance.export_mesh(FIELD)
    assert set(cloud.attributes) >= {"normal", "color", "confidence"} and len(cloud) > 100
    size = np.subtract(*FIELD.box[::-1]).max()
    distances = metrics.point_to_face(metrics.IndexedMesh(mesh), cloud).distance
    assert np.median(distances) < 0.05 * size


def test_training_learns_and_tells():
    steps = []
    result = radiance.train(SCENE, OPTIONS, report=steps.append)
    assert steps and steps[-1].step == steps[-1].steps == 50 and steps[-1].stage == "fine"
    assert radiance.Renderer(result.field).render(CAMERAS[0]).colour.shape == (32, 32, 3)
    assert len(result.field.cameras) == 8  # what has been seen, for export_points
    again = radiance.train(SCENE, OPTIONS).field
    np.testing.assert_array_equal(radiance.export_density(again), radiance.export_density(result.field))


def test_a_report_that_raises_ends_the_training():
    def report(step):
        raise RuntimeError(f"enough at {step.step}")

    with pytest.raises(RuntimeError, match="enough"):
        radiance.train(SCENE, OPTIONS, report=report)


def test_options_are_checked():
    with pytest.raises(ValueError, match="no key") as caught:
        radiance.set_train_option(few_steps(), "fine.N_iter", 3)
    assert "fine.N_iters" in caught.value.hint
    with pytest.raises(ValueError, match="background"):
        few_steps().background = "pink"
    with pytest.raises(stipple.FileFormatError):
        radiance.load_field(__file__)
    with pytest.raises(stipple.FileFormatError):
        radiance.load_scene(os.path.dirname(__file__), find_cameras=False)
    with pytest.raises(TypeError, match="to_world"):
        radiance.Camera(8, 8, 1, 1, 4, 4, np.eye(4))


def test_ctrl_c_ends_a_training():
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from radiance_calls import SCENE, few_steps
from stipple import radiance
options = few_steps()
radiance.set_train_option(options, "fine.N_iters", 100000)
print("ready", flush=True)
try:
    radiance.train(SCENE, options)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    examples = os.path.join(os.path.dirname(__file__), "examples")
    with subprocess.Popen([sys.executable, "-c", code, examples], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
        child.send_signal(signal.SIGINT)
        try:
            assert child.communicate(timeout=60)[0] == "stopped\n"
        finally:
            child.kill()
