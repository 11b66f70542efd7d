#!/usr/bin/env python3
"""Two scans in any pose laid on each other: global registration, ICP, a verdict, a picture.

    python3 examples/python/align_two_scans.py [SOURCE TARGET] [OUTPUT_FOLDER]

By default the two views of a chair in examples/data, whose true motion is known.
"""
import pathlib
import sys

import numpy as np
from stipple import geometry, io, picture

data = pathlib.Path(__file__).resolve().parent.parent / "data"
paths = [pathlib.Path(path) for path in sys.argv[1:3]] if len(sys.argv) > 2 else [data / "chair_side.ply", data / "chair_front.ply"]
output = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path("align_two_scans")
output.mkdir(exist_ok=True)

source, target = (io.load_cloud(path) for path in paths)

# Poses that many matches of descriptors agree on, the likeliest first; then ICP from there.
coarse = geometry.register_globally(source, target)
if not coarse.poses:
    sys.exit("no pose was found")
found = geometry.icp(source, target, coarse.poses[0].transform)
verdict = geometry.judge(found)
print(found)
print(f"confidence {coarse.confidence:.2f}; {verdict.state}", *verdict.reasons, sep="; ")
print(geometry.to_text(found.transform))

if len(sys.argv) < 3:
    truth = geometry.parse_transform((data / "chair_truth.matrix").read_text())
    error = geometry.inverse(truth) @ found.transform
    print(f"off the truth by {np.degrees(geometry.rotation_angle(error)):.2f} degrees")

moved = geometry.transformed(source, found.transform)
for name, cloud in (("source", source), ("target", target), ("moved", moved)):
    cloud.attributes["scan"] = np.full(len(cloud), name == "target", np.float32)
before = geometry.merge_clouds([source, target], missing="drop")
after = geometry.merge_clouds([moved, target], missing="drop")
figure = picture.draw_figure(
    [{"cloud": before, "caption": "as they came", "color_by": "scan"},
     {"cloud": after, "caption": "registered", "color_by": "scan"}],
    panel_width=400, panel_height=400, shared_camera=False, legend=False, color_map="coolwarm")
figure.image.save(output / "align_two_scans.jpg", overwrite=True)
io.save(output / "moved.ply", moved, overwrite=True)
