#!/usr/bin/env python3
"""A folder of scans over Dask: thinned, made denser again, and scored against what they were, one task for each.

    python3 examples/python/folder_over_dask.py [FOLDER] [OUTPUT_FOLDER] [--workers 2] [--scheduler tcp://HOST:8786]

By default eight turned pieces of the knot of examples/data, on two worker processes of this machine. With a scheduler's
address the same runs on a cluster whose workers see both folders.
"""
import argparse
import pathlib

import numpy as np
import stipple.dask
from distributed import Client, LocalCluster
from stipple import io, picture


def make_scans(folder):
    """Pieces of a scan, in files as a scanner would leave them."""
    folder.mkdir(exist_ok=True)
    knot = io.load_cloud(pathlib.Path(__file__).resolve().parents[1] / "data" / "knot.ply")
    angle = np.arctan2(knot.positions[:, 1], knot.positions[:, 0])
    for i in range(8):
        turn = np.pi * (i / 4 - 1)
        piece = knot.select(np.flatnonzero(np.cos(angle - turn) > 0.6).astype(np.int64))
        io.save(folder / f"piece{i}.ply", piece, overwrite=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("output", nargs="?", default="folder_over_dask")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler")
    arguments = parser.parse_args()
    output = pathlib.Path(arguments.output)
    output.mkdir(exist_ok=True)
    folder = pathlib.Path(arguments.folder) if arguments.folder else output / "scans"
    if not arguments.folder:
        make_scans(folder)

    # Nothing of this has run yet: these are lists of tasks, one for each cloud.
    few = stipple.dask.sample(folder, method="fps", count=500)
    dense = stipple.dask.upsample(few, ratio=4, model="midpoints", output=output / "dense", overwrite=True)
    scores = stipple.dask.metrics(few, folder), stipple.dask.metrics(dense, folder)

    cluster = arguments.scheduler or LocalCluster(n_workers=arguments.workers, threads_per_worker=1,
                                                  dashboard_address=None, host="127.0.0.1")
    with Client(cluster) as client:
        paths, before, after = client.gather([client.compute(tasks) for tasks in (dense, *scores)])
    if not arguments.scheduler:
        cluster.close()

    print(f"{'cloud':<12} {'cd of 500':>10} {'cd of 2000':>10}")
    for path, one, other in zip(paths, before, after):
        print(f"{pathlib.Path(path).stem:<12} {one['cd']:>10.6f} {other['cd']:>10.6f}")
    names = [pathlib.Path(path).stem for path in paths]
    chart = picture.draw_chart([{"name": "500 points", "values": [score["cd"] for score in before]},
                                {"name": "2,000 points of them", "values": [score["cd"] for score in after]}],
                               groups=names, y="chamfer distance to the scan", title="Thinned, and made denser again")
    chart.save(output / "folder_over_dask.jpg", overwrite=True)


if __name__ == "__main__":  # workers import this file
    main()
