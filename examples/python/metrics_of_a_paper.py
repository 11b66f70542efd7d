#!/usr/bin/env python3
"""The table of a paper: a folder of outputs for each method, against truths and meshes, by a named protocol.

    python3 examples/python/metrics_of_a_paper.py [OUTPUTS TRUTHS MESHES] [OUTPUT_FOLDER]

OUTPUTS has a folder for each method, with a cloud for each truth of the same name. By default both are made: shapes of
examples/data, 512 points of each brought back to 2048 without and with a network.
"""
import pathlib
import sys

import numpy as np
from stipple import io, metrics, picture, tasks

data = pathlib.Path(__file__).resolve().parent.parent / "data"
is_given = len(sys.argv) > 3
output = pathlib.Path(sys.argv[-1]) if len(sys.argv) in (2, 5) else pathlib.Path("metrics_of_a_paper")
output.mkdir(exist_ok=True)
outputs, truths, meshes = map(pathlib.Path, sys.argv[1:4]) if is_given else (
    output / "outputs", output / "truths", data / "shapes")


def make_outputs():
    """What somebody else's program would have left there."""
    truths.mkdir(exist_ok=True)
    for method in ("midpoints", "upsampler"):
        (outputs / method).mkdir(parents=True, exist_ok=True)
        upsampler = tasks.Upsampler(method)
        for name in ("airplane", "lamp", "vase"):
            mesh = io.load_mesh(meshes / f"{name}.off")
            io.save(truths / f"{name}.ply", metrics.resampled(mesh, 2048, seed=2), overwrite=True)
            sparse = metrics.resampled(mesh, 512, seed=1)
            made = tasks.upsample(upsampler, sparse, count=2048).cloud
            io.save(outputs / method / f"{name}.ply", made, overwrite=True)


if not is_given:
    make_outputs()

names = sorted(path.stem for path in truths.iterdir())
methods = sorted(path.name for path in outputs.iterdir() if path.is_dir())
columns = ("cd", "hd", "p2f")
print("| method | shape |" + "".join(f" {column} x 1000 |" for column in columns))
print("|---|---|" + "---:|" * len(columns))
panels, floors = [], []
for method in methods:
    shapes = []
    for name in names:
        made, truth = io.load_cloud(outputs / method / f"{name}.ply"), io.load_cloud(truths / f"{name}.ply")
        mesh = io.load_mesh(meshes / f"{name}.off")
        found = metrics.evaluate(made, truth, mesh, "pu-gan", errors=True, floor=method == methods[0])
        shapes.append(found)
        print(f"| {method} | {name} |" + "".join(f" {1000 * found[column]:.3f} |" for column in columns))
        if name == names[-1]:
            made.attributes["error"] = np.array(found.error_to_mesh)
            panels.append({"cloud": made, "caption": f"{method}, {name}", "color_by": "error"})
    floors = floors or metrics.floor_over_shapes(shapes)
    mean = {score.name: score for score in metrics.over_shapes(shapes)}
    print(f"| {method} | mean |" + "".join(f" {1000 * mean[column].value:.3f} |" for column in columns))
floor = {score.name: score.value for score in floors}
print("| the surface itself | mean |" + "".join(
    f" {1000 * floor[column]:.3f} |" if column in floor else " |" for column in columns))
for column in columns:
    print(f"{column}: {mean[column].convention}; {mean[column].normalisation}")

figure = picture.draw_figure(panels, panel_width=320, panel_height=320)
figure.image.save(output / "metrics_of_a_paper.jpg", overwrite=True)
