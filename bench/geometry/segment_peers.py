"""Planes and clusters beside Open3D on 1M points, in one run.

usage: command -p python3 bench/geometry/segment_peers.py build/dev/bin/stipple [runs]

Needs Open3D for Python (Debian 12: python3-open3d). Times of stipple are those of the search (`seconds` in its JSON), and in brackets
those of the whole command with reading and writing; of Open3D the call alone. Both see the same float32 coordinates, with all
threads, taking turns; best of `runs` (3).
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import open3d as o3d


def room(n):
    """Floor, two walls, a table and clutter, with 1 cm of noise."""
    rng = np.random.default_rng(1)

    def patch(count, corner, u, v):
        st = rng.random((count, 2))
        return np.array(corner) + st[:, :1] * np.array(u) + st[:, 1:] * np.array(v)

    parts = [
        patch(int(0.40 * n), (0, 0, 0), (10, 0, 0), (0, 8, 0)),
        patch(int(0.20 * n), (0, 0, 0), (10, 0, 0), (0, 0, 3)),
        patch(int(0.15 * n), (0, 0, 0), (0, 8, 0), (0, 0, 3)),
        patch(int(0.10 * n), (2, 2, 1), (2, 0, 0), (0, 3, 0)),
    ]
    flat = np.vstack(parts)
    flat += rng.normal(scale=0.01, size=flat.shape)
    clutter = rng.random((n - len(flat), 3)) * [10, 8, 3]
    return rng.permutation(np.vstack([flat, clutter])).astype(np.float32)


def blobs(n):
    """Two hundred heaps of different size and density, and noise between them."""
    rng = np.random.default_rng(2)
    centres = rng.random((200, 3)) * 100
    which = rng.integers(0, 200, int(0.9 * n))
    points = centres[which] + rng.normal(size=(len(which), 3)) * (0.3 + 1.2 * rng.random(200))[which][:, None]
    return rng.permutation(np.vstack([points, rng.random((n - len(points), 3)) * 100])).astype(np.float32)


def write_ply(path, points):
    with open(path, "wb") as file:
        file.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(points))
        file.write(b"property float x\nproperty float y\nproperty float z\nend_header\n")
        file.write(points.astype("<f4").tobytes())


def labels_of(path, points):
    with open(path, "rb") as file:
        data = file.read()
    body = data[data.index(b"end_header\n") + 11 :]
    return np.frombuffer(body, dtype=np.dtype([("p", "<f4", 3), ("label", "<i4")]), count=points)["label"]


def stipple(program, arguments, output):
    begin = time.perf_counter()
    done = subprocess.run(
        [program, *arguments, "-o", output, "--overwrite", "--json"], check=True, stdout=subprocess.PIPE
    )
    return json.loads(done.stdout), time.perf_counter() - begin


def same_partition(a, b):
    """Whether two labellings put the same points together."""
    pairs = np.unique(np.stack([a, b]), axis=1)
    return len(pairs[0]) == len(np.unique(a)) == len(np.unique(b))


def main():
    program, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    n = 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path, output = os.path.join(folder, "cloud.ply"), os.path.join(folder, "out.ply")
        print("| case | stipple s (command) | Open3D s | ratio | result |\n|---|---|---|---|---|")
        points = room(n)
        write_ply(path, points)
        cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points.astype(np.float64)))
        for trials in (100, 1000, 10000):
            ours, whole, theirs, counts = [], [], [], []
            for _ in range(runs):
                report, wall = stipple(program, ["planes", path, "--distance", "0.02", "--count", "1"], output)
                ours.append(report["seconds"])
                whole.append(wall)
                begin = time.perf_counter()
                _, inliers = cloud.segment_plane(0.02, 3, trials)
                theirs.append(time.perf_counter() - begin)
                counts.append(len(inliers))
            print(
                f"| one plane, Open3D with {trials} iterations | {min(ours):.3f} ({min(whole):.2f}) | {min(theirs):.3f} "
                f"| {min(theirs) / min(ours):.1f} | {report['planes'][0]['points']:,} points; Open3D at most {max(counts):,} |"
            )
        for name, points, radius, least in (
            ("room", points, 0.05, 10),
            ("room", points, 0.03, 10),
            ("heaps", blobs(n), 0.3, 10),
            ("heaps", blobs(n), 0.5, 20),
        ):
            write_ply(path, points)
            cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points.astype(np.float64)))
            ours, whole, theirs = [], [], []
            for _ in range(runs):
                report, wall = stipple(program, ["clusters", path, "--radius", str(radius), "--min-points", str(least)], output)
                ours.append(report["seconds"])
                whole.append(wall)
                begin = time.perf_counter()
                labels = np.asarray(cloud.cluster_dbscan(radius, least))
                theirs.append(time.perf_counter() - begin)
            mine = labels_of(output, n)
            differ = int((mine != labels).sum())
            verdict = "the same labels" if differ == 0 else f"{differ} labels differ"
            if differ and same_partition(mine, labels):
                verdict = "the same partition"
            print(
                f"| clusters, {name}, radius {radius}, {least} points | {min(ours):.3f} ({min(whole):.2f}) | {min(theirs):.3f} "
                f"| {min(theirs) / min(ours):.1f} | {report['clusters']:,} clusters, {report['noise']:,} noise; {verdict} |"
            )


if __name__ == "__main__":
    main()
