"""Fits the confidence of a pose to what confidence_study printed, and chooses the thresholds.

usage: command -p python3 bench/geometry/confidence_fit.py FIT.csv[,MORE.csv...] [CHECK.csv...]

A pose is right within 2 degrees and 3 % of the source's RMS radius, or where all that both scans saw lies on
the body in this pose too (symmetries); near within 5 degrees and 10 %, else wrong; near ones do not count. A logistic regression (ridge 0.3) over searched poses and those of ICP from near and from random starts gives the weights of
pose_confidence(). Thresholds: the
least confidence, rounded up to a hundredth, above which at most 1 % of the wrong poses of FIT and CHECK lie; kBelieved by searched
poses, kClear by those of ICP. Needs numpy.
"""

import csv
import sys

import numpy as np

NAMES = ["1", "close", "wide", "even", "overlap", "log10 stiffness", "residual", "other"]


def features(row):
    value = {k: float(v) for k, v in row.items() if k not in ("kind", "verdict")}
    return [
        1,
        value["close"],
        value["wide"],
        value["even"],
        max(value["forth_overlap"], value["back_overlap"]),
        np.log10(max(value["stiffness"], 1e-4)),
        min(value["residual"], 3),
        min(value["other"], 1),
    ]


def label(row):
    if row["related"] == "0":
        return 0
    if row["same"] == "1":
        return 1
    degrees, rms = float(row["degrees"]), float(row["rms"])
    return 1 if degrees <= 2 and rms <= 0.03 else -1 if degrees <= 5 and rms <= 0.1 else 0


def load(paths):
    return [row for path in paths for row in csv.DictReader(open(path)) if row["seconds"]]


def fit(x, y, ridge=0.3):
    w, penalty = np.zeros(x.shape[1]), ridge * np.eye(x.shape[1])
    penalty[0, 0] = 1e-6
    for _ in range(60):
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + penalty, x.T @ (y - p) - penalty @ w)
    return w


def threshold(p, wrong):
    ordered = np.sort(p[wrong])[::-1]
    return np.ceil(100 * ordered[int(0.01 * len(ordered))] + 1e-9) / 100


def main():
    fitted, checked = load(sys.argv[1].split(",")), load(sys.argv[2:])
    rows = fitted + checked
    x, y = np.array([features(r) for r in rows]), np.array([label(r) for r in rows])
    method, kind = np.array([int(r["method"]) for r in rows]), np.array([r["kind"] for r in rows])
    counts = np.ones(len(rows), bool)
    first = np.arange(len(rows)) < len(fitted)
    w = fit(x[first & counts & (y >= 0)], y[first & counts & (y >= 0)])
    p = np.minimum(1 / (1 + np.exp(-x @ w)), 1 / (1 + x[:, -1] ** 4))
    print("weights: " + ", ".join(f"{n} {v:.2f}" for n, v in zip(NAMES, w)))
    searched = method == 0
    believed, clear = (threshold(p, (y == 0) & counts & m) for m in (searched, ~searched))
    print(f"kBelieved {believed:.2f} ({((y == 0) & searched).sum()} wrong poses), kClear {clear:.2f} ({((y == 0) & ~searched & counts).sum()})\n")
    print("| poses | of | 1 % | 10 % | 25 % | half | 75 % | 90 % | 99 % | believed |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, which, limit in (("searched", searched, believed), ("ICP", ~searched & counts, clear)):
        for title, value in (("right", 1), ("near", -1), ("wrong", 0)):
            q = p[which & (y == value)]
            if len(q):
                shares = " | ".join(f"{v:.2f}" for v in np.quantile(q, [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]))
                print(f"| {name}, {title} | {len(q)} | {shares} | {(q >= limit).sum()} |")
    print("\n| searched | overlap | pairs | right | right and believed | wrong and believed | s |\n|---|---|--:|--:|--:|--:|--:|")
    overlap, seconds = np.array([float(r["overlap"]) for r in rows]), np.array([float(r["seconds"]) for r in rows])
    for name in ("views", "room", "symmetric", "different", "other room"):
        for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01)):
            these = searched & (kind == name) & (overlap >= low) & (overlap < high)
            if these.any():
                right, sure = y[these] == 1, p[these] >= believed
                print(f"| {name} | {100 * low:.0f} to {100 * min(high, 1):.0f} % | {these.sum()} | {right.sum()} | {(right & sure).sum()} | "
                      f"{((y[these] == 0) & sure).sum()} | {seconds[these].mean():.2f} |")
    print("\nwrong with most confidence:")
    for i in np.argsort(np.where((y == 0) & counts, -p, 9))[:12]:
        print(f"  case {rows[i]['case']} {kind[i]} method {method[i]} {p[i]:.3f}: {rows[i]['degrees']} deg, {rows[i]['rms']} R, " +
              " ".join(f"{n} {v:.3g}" for n, v in zip(NAMES[1:], x[i][1:])))


if __name__ == "__main__":
    main()
