"""Fits the confidence of a pose, and judges it on poses that it was not fitted to.

usage: command -p python3 bench/geometry/confidence_fit.py FIT.csv[,MORE.csv...] [CHECK.csv...]

Reads what `stipple study registration` writes as pairs.csv (real pairs) and what confidence_study prints (simulated
ones). Two logistic regressions (ridge) give the weights of pose_confidence(): one for poses of a search, which have
matches of descriptors, and one for those of ICP alone. Each file of FIT counts as much as the others. Needs numpy and scipy.
"""

import csv
import sys

import numpy as np
from scipy.optimize import minimize

COMMON = ["1", "close", "wide", "even", "overlap", "log stiffness", "residual", "spread", "log support", "through"]
SEARCHED = COMMON + ["other", "log inliers", "log rival"]
AGAINST = {"residual", "through", "other", "log rival"}
COST_OF_ACTING_ON_WRONG, COST_OF_LOSING_RIGHT = 20, 5  # in looks: kCostOf... of pose_evidence.h


def features(row, searched):
    v = {k: float(row[k] or 0) for k in ("close", "wide", "even", "overlap", "stiffness", "residual", "spread", "support", "through", "other", "inliers", "rival")}
    x = [1, v["close"], v["wide"], v["even"], v["overlap"], np.log10(max(v["stiffness"], 1e-4)), min(v["residual"], 3), v["spread"],
         np.log10(1 + v["support"]), min(v["through"], 0.2)]
    if searched:
        x += [min(v["other"], 1), np.log10(1 + v["inliers"]), np.log10(1 + v["rival"])]
    return x


def is_searched(row):
    return float(row["matches"] or 0) > 0


def load(path):
    return [r for r in csv.DictReader(open(path)) if r["right"] != "" and float(r["support"] or 0) > 0]


def fit(x, y, weight, names, ridge=0.5):
    """Logistic regression with a ridge on features of variance 1, so that their units do not matter. No weight may have
    the other sign than its feature's meaning: more support never lowers the confidence, on data of other kinds too."""
    mean, scale = x.mean(0), np.maximum(x.std(0), 1e-9)
    mean[0], scale[0] = 0, 1
    z = (x - mean) / scale

    def loss(w):
        t = z @ w
        penalty = ridge * (w[1:] ** 2).sum() / 2
        slope = z.T @ (weight * (predict(w, z) - y))
        slope[1:] += ridge * w[1:]
        return (weight * (np.logaddexp(0, t) - y * t)).sum() + penalty, slope

    bounds = [(None, None)] + [(None, 0) if n in AGAINST else (0, None) for n in names[1:]]
    w = minimize(loss, np.zeros(len(names)), jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-13}).x / scale
    w[0] -= w[1:] @ mean[1:]
    return w


def predict(w, x):
    return 1 / (1 + np.exp(-np.clip(x @ w, -50, 50)))


def report(name, p, y):
    good, written = p >= 1 - 1 / COST_OF_ACTING_ON_WRONG, p >= 1 / COST_OF_LOSING_RIGHT
    right = y == 1
    error = sum(abs(p[m].mean() - y[m].mean()) * m.mean() for i in range(10) for m in [(p >= i / 10) & (p < (i + 1) / 10 + (i == 9))] if m.any())
    share = lambda part, of: f"{100 * part.sum() / max(of.sum(), 1):5.1f}"
    print(f"| {name} | {len(y)} | {right.sum()} | {share(right & good, right)} | {share(right & written, right)} | {(good & ~right).sum()} | "
          f"{(written & ~right).sum()} | {share(good & ~right, good)} | {share(written & ~right, written)} | {error:.3f} |")


def main():
    files = sys.argv[1].split(",")
    sets = [(path, load(path)) for path in files + sys.argv[2:]]
    for searched, names in ((True, SEARCHED), (False, COMMON)):
        print("\n" + ("Poses of a search" if searched else "Poses of ICP alone"))
        rows = [(path, [r for r in these if is_searched(r) == searched]) for path, these in sets]
        fitted = [(path, these) for path, these in rows[: len(files)] if these]
        if not fitted:
            continue
        x = np.array([features(r, searched) for _, these in fitted for r in these])
        y = np.array([float(r["right"]) for _, these in fitted for r in these])
        size = np.mean([len(these) for _, these in fitted])
        weight = np.concatenate([np.full(len(these), size / len(these)) for _, these in fitted])
        w = fit(x, y, weight, names)
        print("weights: " + ", ".join(f"{n} {v:.2f}" for n, v in zip(names, w)))
        print("| poses | of | right | right: good (%) | right: written (%) | wrong: good | wrong: written | good: wrong (%) | written: wrong (%) | calibration error |")
        for number, (path, these) in enumerate(rows):
            for key in sorted({r.get("set", "") + " " + r["method"] for r in these}):
                some = [r for r in these if r.get("set", "") + " " + r["method"] == key]
                report(f"{'fit' if number < len(files) else 'check'} {path} {key}", predict(w, np.array([features(r, searched) for r in some])),
                       np.array([float(r["right"]) for r in some]))


if __name__ == "__main__":
    main()
