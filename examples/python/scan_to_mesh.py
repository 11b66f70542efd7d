#!/usr/bin/env python3
"""From a scan to a mesh: read, clean, normals, surface, fewer faces, a picture.

    python3 examples/python/scan_to_mesh.py [SCAN] [OUTPUT_FOLDER]

By default the knot of examples/data, with stray points added for something to clean.
"""
import pathlib
import sys

import numpy as np
from stipple import geometry, io, picture

here = pathlib.Path(__file__).resolve().parent
scan = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / "data" / "knot.ply"
output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path("scan_to_mesh")
output.mkdir(exist_ok=True)

# Read. Positions are a view of the file's numbers: nothing is copied.
cloud = io.load_cloud(scan)
print(cloud)
if len(sys.argv) < 2:
    low, high = cloud.positions.min(axis=0), cloud.positions.max(axis=0)
    stray = np.random.default_rng(1).uniform(low, high, (300, 3)).astype(np.float32)
    cloud = io.PointCloud(np.concatenate([cloud.positions, stray]), origin=cloud.origin)

# Clean: points farther from their neighbours than is usual.
outliers = geometry.statistical_outliers(cloud, k=16, ratio=2)
clean = cloud.select(outliers.keep)
cloud.attributes["stray"] = (~outliers.keep).astype(np.float32)
print(f"{len(cloud) - len(clean)} of {len(cloud)} points are strays")

# Normals, turned outwards.
normals = geometry.estimate_normals(clean).normals
geometry.orient_consistently(clean, normals)
clean.normals = normals

# A closed surface, its largest part alone, with a quarter of the faces.
surface = geometry.reconstruct_surface(clean, clean.normals)
surface = geometry.remove_small_components(surface, largest=1).mesh
mesh = geometry.decimate(surface, surface.faces // 4).mesh
check = geometry.check_mesh(mesh)
print(f"{surface.faces} faces, then {mesh.faces}; watertight: {check.is_watertight}; volume {check.volume:.4g}")
distance = geometry.closest_point(mesh, clean.positions).distances
print(f"points are {distance.mean():.2g} from the mesh on average, {distance.max():.2g} at most")

io.save(output / "mesh.ply", mesh, overwrite=True)
figure = picture.draw_figure(
    [{"cloud": cloud, "caption": "scan", "color_by": "stray"},
     {"cloud": clean, "caption": "clean, with normals", "color_by": "normal"},
     {"mesh": mesh, "caption": f"mesh of {mesh.faces} faces"}],
    panel_width=320, panel_height=280, columns=3, legend=False, color_map="coolwarm")
figure.image.save(output / "scan_to_mesh.jpg", overwrite=True)
