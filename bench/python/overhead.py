#!/usr/bin/env python3
"""What a call costs besides its work: knn of 8 points, by stipple, scipy and Open3D's legacy binding; and the import.

    PYTHONPATH=build/ci/python OMP_NUM_THREADS=1 command -p python3 bench/python/overhead.py
"""
import subprocess
import sys
import timeit

import numpy as np
import stipple
from stipple import ops


def microseconds(call, number=20_000):
    return 1e6 * min(timeit.repeat(call, number=number, repeat=5)) / number


def import_ms(module):
    code = f"import time; t = time.perf_counter(); import {module}; print(1e3 * (time.perf_counter() - t))"
    times = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(5)]
    return min((float(t.stdout.split()[-1]) for t in times if t.returncode == 0), default=float("nan"))


def main():
    points = np.random.default_rng(0).random((8, 3), dtype=np.float32)
    index, array, query = ops.PointIndex(points), stipple.asarray(points), np.array(points[:1])
    rows = [
        ("stipple.ops.knn, points", lambda: ops.knn(points, 2)),
        ("stipple.ops.knn, PointIndex", lambda: ops.knn(index, 2, points)),
        ("stipple.ops.knn, stipple.Array", lambda: ops.knn(array, 2)),
        ("stipple.ops.knn, one query", lambda: ops.knn(index, 2, query)),
        ("stipple.ops.random_sample", lambda: ops.random_sample(points, 2)),
        ("stipple.asarray", lambda: stipple.asarray(points)),
    ]
    try:
        import torch

        tensor = torch.from_numpy(points)
        rows.append(("stipple.ops.knn, torch tensor", lambda: ops.knn(tensor, 2)))
    except ImportError:
        pass
    try:
        from scipy.spatial import cKDTree

        tree, doubles = cKDTree(points), points.astype(float)
        rows.append(("scipy cKDTree(points).query", lambda: cKDTree(points).query(points, 2)))
        rows.append(("scipy cKDTree.query, built before", lambda: tree.query(doubles, 2)))
    except ImportError:
        pass
    try:
        import open3d

        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
        built = open3d.geometry.KDTreeFlann(cloud)
        place = points[0].astype(float)
        rows.append(("Open3D KDTreeFlann.search_knn, ONE query", lambda: built.search_knn_vector_3d(place, 2)))
    except ImportError:
        pass
    print("| call, 8 points, k = 2 | us |\n|---|--:|")
    for name, call in rows:
        print(f"| {name} | {microseconds(call):.2f} |")
    print("\n| import | ms |\n|---|--:|")
    for module in ("stipple", "numpy", "scipy.spatial", "open3d"):
        print(f"| {module} | {import_ms(module):.1f} |")


if __name__ == "__main__":
    main()
