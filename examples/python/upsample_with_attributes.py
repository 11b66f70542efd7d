#!/usr/bin/env python3
"""A sparse cloud made dense by the shipped network, colours and normals carried along.

    python3 examples/python/upsample_with_attributes.py [CLOUD] [OUTPUT_FOLDER]

By default 1500 points of the knot of examples/data, so that the result can be held against all of it.
"""
import pathlib
import sys

import numpy as np
from stipple import io, metrics, ops, picture, tasks

data = pathlib.Path(__file__).resolve().parent.parent / "data"
output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path("upsample_with_attributes")
output.mkdir(exist_ok=True)
whole = io.load_cloud(sys.argv[1] if len(sys.argv) > 1 else data / "knot.ply")
if "color" not in whole.attributes:
    low, high = whole.positions.min(axis=0), whole.positions.max(axis=0)
    whole.attributes["color"] = (255 * (whole.positions - low) / (high - low)).astype(np.uint8)

sparse = tasks.sample_cloud(whole, method="fps", count=min(1500, len(whole)))
made = tasks.upsample(tasks.Upsampler(), sparse, ratio=4).cloud
print(sparse)
print(made)

# How far points and colours are from the whole cloud's.
nearest = ops.knn(whole.positions, 1, made.positions)
true_colours = whole.attributes["color"][nearest.indices[:, 0]].astype(int)
off, radius = metrics.chamfer(made, whole, kind="l1_half"), metrics.unit_sphere(whole).scale
print(f"points are {off:.3g} from the whole cloud, {100 * off / radius:.2f} % of its radius")
print(f"colours differ by {abs(made.attributes['color'] - true_colours).mean():.1f} of 255")
if "normal" in made.attributes:
    agreement = metrics.normal_consistency(
        metrics.nearest_between(made, whole), made.attributes["normal"], whole.attributes["normal"])
    print(f"normals agree to {agreement.mean:.3f}")

io.save(output / "upsampled.ply", made, overwrite=True)
figure = picture.draw_figure(
    [{"cloud": cloud, "caption": f"{len(cloud)} points{what}", "color_by": "color"}
     for cloud, what in ((sparse, ""), (made, ", upsampled"), (whole, ", the truth"))],
    panel_width=320, panel_height=280, columns=3, legend=False)
figure.image.save(output / "upsample_with_attributes.jpg", overwrite=True)
