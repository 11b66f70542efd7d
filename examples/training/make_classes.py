#!/usr/bin/env python3
"""Makes small data sets of our own: clouds in a folder for each class, and clouds whose points have part labels.

    python3 examples/training/make_classes.py OUT [--clouds 40] [--points 512] [--seed 0]

OUT/classes/{ball,box,cone,cross,ring,rod}/*.ply      shapes of random proportions, stretched and turned about z
OUT/parts/{lamp,mug}/*.ply and OUT/parts/parts.json   property label: 0 foot, 1 pole, 2 shade; 3 body, 4 handle
"""
import argparse
import json
import math
import os
import random


def direction(rng):
    z, a = rng.uniform(-1, 1), rng.uniform(0, 2 * math.pi)
    r = math.sqrt(1 - z * z)
    return r * math.cos(a), r * math.sin(a), z


def disc(rng, radius, z):
    r, a = radius * math.sqrt(rng.random()), rng.uniform(0, 2 * math.pi)
    return r * math.cos(a), r * math.sin(a), z


def wall(rng, radius, z0, z1, top=None):
    """On a cylinder, or a cone's side where the radius at the top is another."""
    t, a = rng.random(), rng.uniform(0, 2 * math.pi)
    r = radius + ((radius if top is None else top) - radius) * t
    return r * math.cos(a), r * math.sin(a), z0 + (z1 - z0) * t


def box(rng, x, y, z):
    point = [rng.uniform(-x, x), rng.uniform(-y, y), rng.uniform(-z, z)]
    axis = rng.choices(range(3), weights=[y * z, x * z, x * y])[0]
    point[axis] = rng.choice([-1, 1]) * (x, y, z)[axis]
    return tuple(point)


def ring(rng, major, minor):
    a, b = rng.uniform(0, 2 * math.pi), rng.uniform(0, 2 * math.pi)
    r = major + minor * math.cos(b)
    return r * math.cos(a), r * math.sin(a), minor * math.sin(b)


def shape(name, rng):
    """A function that gives one point of a shape, whose proportions are drawn now."""
    a, b = rng.uniform(0.2, 0.5), rng.uniform(0.05, 0.12)
    return {
        "ball": lambda: direction(rng),
        "box": lambda: box(rng, 0.6 + a, 0.5 + a, 0.6),
        "cone": lambda: wall(rng, 0.5 + a, -0.8, 0.8, 0) if rng.random() < 0.75 else disc(rng, 0.5 + a, -0.8),
        "cross": lambda: box(rng, *rng.choice([(0.9, b, b), (b, 0.9, b), (b, b, 0.9)])),
        "ring": lambda: ring(rng, 0.8, 0.1 + b),
        "rod": lambda: wall(rng, b, -1, 1),
    }[name]


def labelled(name, rng):
    """The same with a label for each point."""
    a, b = rng.uniform(0.25, 0.45), rng.uniform(0.4, 0.7)
    if name == "lamp":
        def point():
            part = rng.choices([0, 1, 2], weights=[2, 2, 4])[0]
            return (disc(rng, a, -0.9), wall(rng, 0.04, -0.9, 0.4), wall(rng, b, 0.3, 0.9, 0.5 * b))[part], part
    else:
        def point():
            if rng.random() < 0.2:  # half a ring beside the body
                angle, c = rng.uniform(-math.pi / 2, math.pi / 2), rng.uniform(0, 2 * math.pi)
                r = 0.3 + 0.05 * math.cos(c)
                return (b + r * math.cos(angle), 0.05 * math.sin(c), r * math.sin(angle)), 4
            return (wall(rng, b, -0.6, 0.6) if rng.random() < 0.7 else disc(rng, b, -0.6)), 3
    return point


def place(points, rng):
    """Stretched a little, turned about z, centred, largest radius 1."""
    angle, stretch = rng.uniform(0, 2 * math.pi), [rng.uniform(0.85, 1.15) for _ in range(3)]
    c, s = math.cos(angle), math.sin(angle)
    points = [[v * k + rng.gauss(0, 0.005) for v, k in zip(p, stretch)] for p in points]
    points = [(c * x - s * y, s * x + c * y, z) for x, y, z in points]
    centre = [sum(p[i] for p in points) / len(points) for i in range(3)]
    points = [[p[i] - centre[i] for i in range(3)] for p in points]
    radius = max(math.sqrt(sum(v * v for v in p)) for p in points)
    return [[v / radius for v in p] for p in points]


def save(path, points, labels=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"ply\nformat ascii 1.0\nelement vertex {len(points)}\n")
        file.write("property float x\nproperty float y\nproperty float z\n")
        file.write("property int label\nend_header\n" if labels else "end_header\n")
        for i, p in enumerate(points):
            file.write("%.5f %.5f %.5f" % tuple(p) + (f" {labels[i]}\n" if labels else "\n"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output")
    parser.add_argument("--clouds", type=int, default=40, help="of each class")
    parser.add_argument("--points", type=int, default=512, help="of each cloud")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for name in ("ball", "box", "cone", "cross", "ring", "rod"):
        for i in range(options.clouds):
            point = shape(name, rng)
            save(f"{options.output}/classes/{name}/{i:03}.ply", place([point() for _ in range(options.points)], rng))
    for name in ("lamp", "mug"):
        for i in range(options.clouds):
            point = labelled(name, rng)
            rows = [point() for _ in range(options.points)]
            save(f"{options.output}/parts/{name}/{i:03}.ply", place([p for p, _ in rows], rng), [l for _, l in rows])
    with open(f"{options.output}/parts/parts.json", "w", encoding="ascii") as file:
        json.dump({"lamp": [[0, "foot"], [1, "pole"], [2, "shade"]], "mug": [[3, "body"], [4, "handle"]]}, file)


if __name__ == "__main__":
    main()
