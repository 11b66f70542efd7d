#!/usr/bin/env python3
"""SciPy's side of ops_bench: reads two clouds of n points (float32 x y z), prints {"seconds": ..., "value": ...}.

    scipy_peers.py emd FILE N                  cost matrix and exact assignment, mean distance of the pairs
    scipy_peers.py sinkhorn FILE N ITERATIONS EPSILON
"""

import json
import sys
import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import logsumexp


def emd(a, b):
    cost = cdist(a, b)
    rows, columns = linear_sum_assignment(cost)
    return cost[rows, columns].mean()


def sinkhorn(a, b, iterations, epsilon):
    cost = cdist(a, b).astype(np.float32) / np.float32(epsilon)
    n = len(a)
    f, g = np.zeros(n, np.float32), np.zeros(n, np.float32)
    for _ in range(iterations):
        f = -logsumexp(g[None, :] - cost, axis=1) - np.log(n)
        g = -logsumexp(f[:, None] - cost, axis=0) - np.log(n)
    return float((np.exp(f[:, None] + g[None, :] - cost) * cost).sum() * epsilon)


def main():
    op, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    points = np.fromfile(path, np.float32).reshape(2, n, 3)
    begin = time.perf_counter()
    if op == "emd":
        value = emd(points[0], points[1])
    else:
        value = sinkhorn(points[0], points[1], int(sys.argv[4]), float(sys.argv[5]))
    print(json.dumps({"seconds": time.perf_counter() - begin, "value": float(value)}))


main()
