"""The scripts of examples/python run as a user runs them, and make what they say."""
import os
import pathlib
import subprocess
import sys

import pytest
from stipple import geometry, io

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def run(script, folder, *arguments):
    done = subprocess.run([sys.executable, str(EXAMPLES / script), *arguments], cwd=folder, env=os.environ, text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same_size(name, folder):
    """The picture beside the script is one that it makes; pixels may differ in their last bits between machines."""
    shown, made = io.load_image(EXAMPLES / name).numpy(), io.load_image(folder / name).numpy()
    assert shown.shape == made.shape, f"make examples/python/{name} again"
    assert abs(shown.astype(int) - made).mean() < 3


def test_scan_to_mesh(tmp_path):
    told = run("scan_to_mesh.py", tmp_path)
    assert "watertight: True" in told
    made = tmp_path / "scan_to_mesh"
    assert geometry.check_mesh(io.load_mesh(made / "mesh.ply")).is_watertight
    same_size("scan_to_mesh.jpg", made)


def test_align_two_scans(tmp_path):
    told = run("align_two_scans.py", tmp_path)
    off = float(told.split("off the truth by ")[1].split()[0])
    assert off < 2
    same_size("align_two_scans.jpg", tmp_path / "align_two_scans")


def test_chamfer_training_loop(tmp_path):
    pytest.importorskip("torch")
    told = run("chamfer_training_loop.py", tmp_path, "--steps", "60", "--points", "512")
    first, last = (float(told.split(word)[1].split()[0]) for word in ("chamfer ", "first, "))
    assert last < 0.2 * first
    made = tmp_path / "chamfer_training_loop"
    assert io.load_image(made / "loss.png").width > 500
    name = "chamfer_training_loop.jpg"  # of other points each time that torch or its threads change
    assert io.load_image(made / name).numpy().shape == io.load_image(EXAMPLES / name).numpy().shape


def test_folder_over_dask(tmp_path):
    pytest.importorskip("distributed")
    told = run("folder_over_dask.py", tmp_path)
    assert told.count("piece") == 8
    assert len(io.load_cloud(tmp_path / "folder_over_dask" / "dense" / "piece3.ply")) == 2000
    same_size("folder_over_dask.jpg", tmp_path / "folder_over_dask")


def test_metrics_of_a_paper(tmp_path):
    told = run("metrics_of_a_paper.py", tmp_path)
    rows = [line.split("|")[1:-1] for line in told.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 2 * 4 + 1
    means = {row[0].strip(): float(row[2]) for row in rows if row[1].strip() == "mean"}
    assert 0 < means["the surface itself"] < min(means["midpoints"], means["upsampler"])
    same_size("metrics_of_a_paper.jpg", tmp_path / "metrics_of_a_paper")


def test_upsample_with_attributes(tmp_path):
    told = run("upsample_with_attributes.py", tmp_path)
    assert float(told.split("colours differ by ")[1].split()[0]) < 5
    made = io.load_cloud(tmp_path / "upsample_with_attributes" / "upsampled.ply")
    assert len(made) == 6000 and {"color", "normal"} <= set(made.attributes.keys())
    same_size("upsample_with_attributes.jpg", tmp_path / "upsample_with_attributes")


def test_every_script_has_a_test():
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    for script in EXAMPLES.glob("*.py"):
        assert f'run("{script.name}"' in text, script.name


