"""stipple.tasks: what the commands do, on objects and arrays."""
import os
import subprocess
import sys

import numpy as np
import pytest
import stipple
from scipy.spatial import cKDTree
from stipple import io, metrics, tasks
from tasks_calls import CLASSIFIER, DATA, MIDPOINTS, POSE_NETWORK, RECONSTRUCTOR, SEGMENTER, SPHERE, knot


def test_a_table_is_a_table():
    mesh = io.load_mesh(os.path.join(DATA, "shapes", "table.off"))
    cloud = metrics.resampled(mesh, 1024)
    answer = tasks.classify(CLASSIFIER, [cloud, cloud.positions], poses="all")
    assert [a.guesses[0].name for a in answer] == ["table", "table"]
    assert answer[0].points == 1024 and sum(g.probability for g in answer[0].guesses) == pytest.approx(1)
    assert len(CLASSIFIER.classes) == 40 and answer[0].error is None


def test_clouds_without_points_are_answers_with_their_error():
    bad = np.full((5, 3), np.nan, np.float32)
    empty, good = tasks.classify(CLASSIFIER, [bad, SPHERE])
    assert "no finite points" in empty.error and good.error is None and good.guesses
    assert tasks.classify(CLASSIFIER, []) == []
    with pytest.raises(TypeError, match="list of clouds"):
        tasks.classify(CLASSIFIER, SPHERE)
    with pytest.raises(ValueError):
        tasks.classify(CLASSIFIER, [SPHERE], sample="best")


def test_parts_are_those_of_the_category():
    found = tasks.segment(SEGMENTER, SPHERE, "chair")
    begin, end = SEGMENTER.parts_of("chair")
    assert found.labels.shape == (400,) and found.labels.min() >= begin and found.labels.max() < end
    assert ((found.probabilities > 0) & (found.probabilities <= 1)).all()
    with pytest.raises(ValueError, match='category: "sofa"'):
        tasks.segment(SEGMENTER, SPHERE, "sofa")


def test_samples_carry_attributes():
    cloud = knot()
    sample = tasks.sample_cloud(cloud, method="fps", count=100)
    assert len(sample) == 100 and list(sample.attributes) == list(cloud.attributes)
    np.testing.assert_array_equal(cKDTree(cloud.positions).query(sample.positions)[0], 0)
    thinned = tasks.sample_cloud(cloud, method="voxel", voxel=0.1)
    assert 0 < len(thinned) < len(cloud)
    with pytest.raises(ValueError, match="farthest") as caught:
        tasks.sample_cloud(cloud, method="farthest", count=3)
    assert "fps" in str(caught.value)
    with pytest.raises(ValueError):
        tasks.sample_cloud(cloud, count=len(cloud) + 1)


@pytest.mark.parametrize("model", ["midpoints", "upsampler"])
def test_upsampling_carries_colours(model):
    upsampler = MIDPOINTS if model == "midpoints" else tasks.Upsampler(model, device="cpu")
    red = (SPHERE[:, :1] > 0) * np.array([[255, 0, 0]]) + (SPHERE[:, :1] <= 0) * np.array([[0, 0, 255]])
    cloud = io.PointCloud(SPHERE, origin=(1e6, 0, 0), attributes={"color": red.astype(np.uint8)})
    done = []
    made = tasks.upsample(upsampler, cloud, ratio=4, advance=done.append)
    assert len(made.cloud) == 1600 and made.duplicates == made.nonfinite == 0 and done
    assert made.measured == (0 if model == "midpoints" else 400)
    assert made.cloud.origin == cloud.origin
    radii = np.linalg.norm(made.cloud.positions, axis=1)
    assert np.abs(radii - 1).mean() < 0.03
    colours = made.cloud.attributes["color"].astype(int)
    sure = np.abs(made.cloud.positions[:, 0]) > 0.4
    assert (colours[sure, 0] > 200).mean() == pytest.approx((made.cloud.positions[sure, 0] > 0).mean(), abs=0.01)
    with pytest.raises(ValueError):
        tasks.upsample(upsampler, cloud)
    with pytest.raises(ValueError):
        tasks.upsample(upsampler, SPHERE[:5], ratio=2)


def test_keywords_are_the_fields_of_the_options():
    with pytest.raises(TypeError, match=r"upsample\(\) got an unexpected keyword argument 'hole'; did you mean holes"):
        tasks.upsample(MIDPOINTS, SPHERE, ratio=2, hole="keep")
    with pytest.raises(TypeError, match="ratio: expected float, got str"):
        tasks.upsample(MIDPOINTS, SPHERE, ratio="two")
    with pytest.raises(TypeError, match="keep_input: expected bool, got int"):
        tasks.upsample(MIDPOINTS, SPHERE, ratio=2, keep_input=1)
    with pytest.raises(ValueError, match="tile must be from 32, got 5"):
        tasks.upsample(MIDPOINTS, SPHERE, ratio=2, tile=5)
    with pytest.raises(ValueError, match="start is for method fps"):
        tasks.sample_cloud(SPHERE, method="random", count=3, start=2)
    assert len(tasks.upsample(MIDPOINTS, SPHERE, ratio=np.float32(2), holes=None).cloud) == 800
    first = tasks.upsample.__doc__.splitlines()[0]
    assert first.startswith("upsample(upsampler: stipple.tasks.Upsampler, cloud: object, *, ratio: float = 0.0, count: int = 0")
    assert "holes: str = 'keep'" in first and first.endswith("seed: int = 0, advance: object = None) -> Upsampled")
    assert "tile = 8192  (Points that are worked on at a time; from 32)" in tasks.upsample.__doc__


def test_scans_are_laid_on_each_other():
    front, side = (io.load_cloud(os.path.join(DATA, f"chair_{view}.ply")) for view in ("front", "side"))
    truth = tasks.load_transform(os.path.join(DATA, "chair_truth.matrix"))
    found = tasks.register_clouds(side, front, "auto")
    error = tasks.pose_error(found.transform, truth, side)
    if error.degrees > 90:  # the file may hold the motion the other way round
        error = tasks.pose_error(found.transform, np.linalg.inv(truth), side)
    assert found.state == "good" and found.is_believed and found.failure is None
    assert error.degrees < 3
    assert metrics.rotation_error(found.transform, found.transform) == 0
    again = tasks.register_clouds(side.positions, front.positions, "icp", initial=found.transform)
    assert tasks.pose_error(again.transform, found.transform, side).degrees < 2
    with pytest.raises(ValueError, match="icp"):
        tasks.register_clouds(side, front, "by hand")
    with pytest.raises(ValueError, match="network"):
        tasks.register_clouds(side, front, "learned")
    with pytest.raises(TypeError, match="PoseNetwork"):
        tasks.register_clouds(side, front, "learned", learned="pcrnet")


def test_several_scans_and_networks_that_start_them():
    cloud = metrics.resampled(io.load_mesh(os.path.join(DATA, "shapes", "airplane.off")), 800)
    moved = io.PointCloud(cloud.positions + np.float32(0.01))
    found = tasks.register_scans([cloud, moved], "icp")
    assert found.is_placed == [True, True] and len(found.pairs) == 1
    learned = tasks.register_clouds(cloud, moved, "learned", learned=POSE_NETWORK)
    assert learned.method == "learned" and learned.story.startswith("PCRNet")


def test_what_is_unlike_is_refused_unless_forced():
    made = tasks.reconstruct(RECONSTRUCTOR, SPHERE, force=True)
    assert len(made.cloud) == RECONSTRUCTOR.count == 128 and made.unlikeness is None
    with pytest.raises(ValueError):
        tasks.reconstruct(RECONSTRUCTOR, SPHERE, count=1000)
    with pytest.raises(ValueError):
        tasks.reconstruct(RECONSTRUCTOR, SPHERE[:3])


def test_data_sets_are_scored(tmp_path):
    for name in ("table", "vase"):
        os.makedirs(tmp_path / name / "test")
        mesh = io.load_mesh(os.path.join(DATA, "shapes", name + ".off"))
        io.save(tmp_path / name / "test" / "a.off", mesh)
    scores = tasks.evaluate(CLASSIFIER, tmp_path, [512], draws=2)
    assert len(scores) == 1 and scores[0].draws == 2
    assert scores[0].confusion.total() == 4 and 0 <= scores[0].accuracy.mean <= 1
    with pytest.raises(TypeError, match="Classifier"):
        tasks.evaluate("pointnet-cls", tmp_path)
    with pytest.raises(stipple.FileFormatError):
        tasks.evaluate(CLASSIFIER, tmp_path / "nothing")


def test_weights_are_found_beside_the_module(tmp_path):
    assert os.path.isfile(tasks.shipped_weights("pointnet-cls"))
    with pytest.raises(stipple.FileFormatError, match="unheard-of"):
        tasks.Classifier("unheard-of")
    # As a wheel has them: the package alone, weights in it, somewhere else.
    package = os.path.dirname(stipple.__file__)
    target = tmp_path / "stipple"
    os.makedirs(target / "weights")
    for name in os.listdir(package):
        if name.endswith((".py", ".so")):
            os.symlink(os.path.join(package, name), target / name) if name.endswith(".py") else \
                os.link(os.path.join(package, name), target / name)
    (target / "weights" / "mine.safetensors").write_bytes(b"")
    code = "from stipple import tasks; print(tasks.list_weights())"
    out = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]},
                         capture_output=True, text=True, check=True).stdout
    assert out.strip() == "('mine',)"


def test_points_that_are_not_finite_are_told():
    spoilt = SPHERE.copy()
    spoilt[[3, 50]] = np.nan
    with pytest.warns(io.FileWarning, match="cloud: 2 of 400 points not finite, dropped"):
        made = tasks.upsample(MIDPOINTS, spoilt, ratio=2)
    assert made.nonfinite == 2 and len(made.cloud) == 2 * 398 and np.isfinite(made.cloud.positions).all()
    classifier = tasks.Classifier(device="cpu")
    with pytest.warns(io.FileWarning, match=r"clouds\[1\]: 2 of 400 points not finite, dropped"):
        answers = tasks.classify(classifier, [SPHERE, spoilt])
    assert [answer.nonfinite for answer in answers] == [0, 2]


def test_holes_of_a_scan():
    flat = np.stack(np.meshgrid(np.arange(24.0), np.arange(24.0)), -1).reshape(-1, 2)
    flat += np.random.default_rng(2).uniform(-0.3, 0.3, flat.shape)
    holed = flat[np.linalg.norm(flat - 11.5, axis=1) > 4]
    cloud = np.pad(holed, ((0, 0), (0, 1))).astype(np.float32)
    upsampler = tasks.Upsampler(device="cpu")
    kept = tasks.upsample(upsampler, cloud, ratio=4)
    filled = tasks.upsample(upsampler, cloud, ratio=4, holes="fill")
    inside = lambda made: (np.linalg.norm(made.cloud.positions[:, :2] - 11.5, axis=1) < 3.2).sum()
    assert inside(kept) == 0 and inside(filled) > 0 and kept.dropped > filled.dropped == 0
    assert tasks.holes_names() == ("keep", "fill")
    with pytest.raises(ValueError, match="holes"):
        tasks.upsample(upsampler, cloud, ratio=4, holes="mend")
