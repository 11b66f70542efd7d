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


def test_scan_to_mesh(tmp_path):
    told = run("scan_to_mesh.py", tmp_path)
    assert "watertight: True" in told
    made = tmp_path / "scan_to_mesh"
    assert geometry.check_mesh(io.load_mesh(made / "mesh.ply")).is_watertight
    assert io.load_image(made / "scan_to_mesh.png").width > 900


def test_align_two_scans(tmp_path):
    told = run("align_two_scans.py", tmp_path)
    off = float(told.split("off the truth by ")[1].split()[0])
    assert off < 2
    assert io.load_image(tmp_path / "align_two_scans" / "align_two_scans.png").width > 700


def test_chamfer_training_loop(tmp_path):
    pytest.importorskip("torch")
    told = run("chamfer_training_loop.py", tmp_path, "--steps", "60", "--points", "512")
    first, last = (float(told.split(word)[1].split()[0]) for word in ("chamfer ", "first, "))
    assert last < 0.2 * first
    for name in ("clouds.png", "loss.png"):
        assert io.load_image(tmp_path / "chamfer_training_loop" / name).width > 500


def test_folder_over_dask(tmp_path):
    pytest.importorskip("distributed")
    told = run("folder_over_dask.py", tmp_path)
    assert told.count("piece") == 8
    assert len(io.load_cloud(tmp_path / "folder_over_dask" / "dense" / "piece3.ply")) == 2000
    assert io.load_image(tmp_path / "folder_over_dask" / "scores.png").width > 500


def test_every_script_has_a_test():
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    for script in EXAMPLES.glob("*.py"):
        assert f'run("{script.name}"' in text, script.name


