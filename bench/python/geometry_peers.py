#!/usr/bin/env python3
"""knn, farthest points, chamfer, normals and ICP from Python beside C++, Open3D, scipy and torch, in one run.

    PYTHONPATH=build/ci/python command -p python3 bench/python/geometry_peers.py [--native build/ci/bin/native_times]
        [--points 200000] [--repeat 7]

The cloud is a wavy torus with noise; the source of ICP is the same surface, sampled anew and moved by 3 degrees and 0.03.
Times are the best of the repeats, in ms; everybody has all cores. `native_times` (target of the same name, with
-DSTIPPLE_BUILD_BENCH=ON) calls the same functions from C++. Peers that are not installed are left out. torch's chamfer, cdist
and min, is measured on a fiftieth of the points, since it holds all distances, and so is ours beside it.
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy as np
from stipple import geometry, io, ops


def best_ms(call, repeat):
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


FEW = 4000


def wavy_torus(n, seed):
    random = np.random.default_rng(seed)
    u, v = random.uniform(0, 2 * np.pi, (2, n))
    r = 0.35 + 0.05 * np.sin(7 * u) * np.cos(3 * v)
    points = np.stack([(1 + r * np.cos(v)) * np.cos(u), (1 + r * np.cos(v)) * np.sin(u), r * np.sin(v)], axis=1)
    return (points + random.normal(0, 0.002, (n, 3))).astype(np.float32)


def stipple_times(source, target, repeat):
    points = target.positions
    few = [np.array(c.positions[:FEW]) for c in (source, target)]
    return {"knn": best_ms(lambda: ops.knn(points, 16), repeat),
            "fps": best_ms(lambda: ops.farthest_point_sample(points, len(points) // 8), repeat),
            "chamfer": best_ms(lambda: ops.chamfer(source.positions, points), repeat),
            "few": best_ms(lambda: ops.chamfer(*few), repeat),
            "normals": best_ms(lambda: geometry.estimate_normals(points, 16), repeat),
            "icp": best_ms(lambda: geometry.icp(source, target), repeat)}


def native_times(program, source, target, repeat):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(pathlib.Path(folder) / name) for name in ("source.ply", "target.ply")]
        for path, cloud in zip(paths, (source, target)):
            io.save(path, cloud)
        told = subprocess.run([program, *paths, str(repeat)], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in told.splitlines()}


def open3d_times(source, target, repeat):
    import open3d

    registration = open3d.pipelines.registration

    def cloud(points):
        return open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points.astype(float)))

    a, b = cloud(source.positions), cloud(target.positions)
    near = open3d.geometry.KDTreeSearchParamKNN(16)
    rows = open3d.core.Tensor(target.positions)

    def knn():
        search = open3d.core.nns.NearestNeighborSearch(rows)
        search.knn_index()
        search.knn_search(rows, 16)

    def icp():
        b.normals = open3d.utility.Vector3dVector()
        b.estimate_normals(near)
        registration.registration_icp(a, b, 0.15, np.eye(4), registration.TransformationEstimationPointToPlane())

    def chamfer():
        a.compute_point_cloud_distance(b)
        b.compute_point_cloud_distance(a)

    return {"knn": best_ms(knn, repeat), "normals": best_ms(lambda: b.estimate_normals(near), repeat),
            "chamfer": best_ms(chamfer, repeat),
            "icp": best_ms(icp, repeat)}


def scipy_times(source, target, repeat):
    from scipy.spatial import cKDTree

    other, points = source.positions.astype(float), target.positions.astype(float)

    def chamfer():
        cKDTree(points).query(other, 1, workers=-1)
        cKDTree(other).query(points, 1, workers=-1)

    return {"knn": best_ms(lambda: cKDTree(points).query(points, 16, workers=-1), repeat),
            "chamfer": best_ms(chamfer, repeat)}


def torch_times(source, target, repeat):
    import torch

    a, b = (torch.from_numpy(np.array(c.positions[:FEW])) for c in (source, target))

    def chamfer():
        distances = torch.cdist(a, b)
        return distances.min(0)[0].square().mean() + distances.min(1)[0].square().mean()

    return {"few": best_ms(chamfer, repeat)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--native")
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    target = io.PointCloud(wavy_torus(options.points, 1))
    turn = geometry.rotation_about((1, 2, 3), np.radians(3)) @ np.array(
        [[1, 0, 0, 0.03], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    source = geometry.transformed(io.PointCloud(wavy_torus(options.points, 2)), turn)
    columns = {}
    if options.native:
        columns["stipple, C++"] = native_times(options.native, source, target, options.repeat)
    columns["stipple, Python"] = stipple_times(source, target, options.repeat)
    for name, measure in (("Open3D", lambda: open3d_times(source, target, options.repeat)),
                          ("scipy", lambda: scipy_times(source, target, options.repeat)),
                          ("torch", lambda: torch_times(source, target, options.repeat))):
        try:
            columns[name] = measure()
        except ImportError:
            pass
    error = geometry.rotation_angle(geometry.icp(source, target).transform @ turn)
    print(f"{options.points} points, ms, best of {options.repeat}; our ICP ends {np.degrees(error):.4f} degrees off\n")
    print("| work | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for work, text in (("knn", "16 nearest of every point, index included"), ("fps", "farthest points, an eighth"),
                       ("chamfer", "chamfer, both ways"), ("few", f"chamfer of {FEW} points"), ("normals", "normals, k = 16"),
                       ("icp", "ICP, normals included")):
        print(f"| {text} | " + " | ".join(f"{c[work]:.1f}" if work in c else "" for c in columns.values()) + " |")


if __name__ == "__main__":
    main()
