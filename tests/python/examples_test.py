"""The scripts of examples/python run as a user runs them, and make what they say."""
import os
import pathlib
import subprocess
import sys

from stipple import geometry, io

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def run(script, folder):
    done = subprocess.run([sys.executable, str(EXAMPLES / script)], cwd=folder, env=os.environ, text=True,
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


def test_every_script_has_a_test():
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    for script in EXAMPLES.glob("*.py"):
        assert f'run("{script.name}"' in text, script.name


