#!/usr/bin/env python3
"""Makes scans/street.ply: one sweep of a spinning LiDAR in a street that was made up.

32 rings between -24 and 8 degrees, 140 degrees, 1.7 m above flat ground: two houses with a gap, parked boxes, poles and a
kerb. 15 mm of noise along each ray, one beam in fifty without an echo, and beams that an edge cuts in two come back from
between. Metres, z is up, the scanner is the origin. Needs numpy; the file is committed, so that nobody needs to run it.
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
HEIGHT = 1.7


def boxes():
    """Low and high corners."""
    yield (-14, 6, -HEIGHT), (-1, 14, 6)  # houses
    yield (3, 7, -HEIGHT), (15, 14, 5)
    for x, y, long, high in [(-7, 3.5, 4.2, 1.5), (1, 4, 4.4, 1.6), (8, 3.6, 4, 1.45)]:  # parked
        yield (x, y, -HEIGHT), (x + long, y + 1.8, -HEIGHT + high)
        yield (x + 0.8, y + 0.1, -HEIGHT), (x + long - 1, y + 1.7, -HEIGHT + high + 0.5)
    yield (-20, 5.6, -HEIGHT), (20, 15, -HEIGHT + 0.14)  # the pavement


def poles():
    """Places and radii."""
    return [(-4.5, 5.9, 0.12), (0.8, 6.2, 0.1), (6.4, 5.8, 0.15)]


def ranges(directions):
    """Of rays from the origin; infinite where nothing is hit within 40 m."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(directions[:, 2] < 0, -HEIGHT / directions[:, 2], np.inf)
        for low, high in boxes():
            a, b = np.array(low) / directions, np.array(high) / directions
            near, far = np.minimum(a, b).max(1), np.maximum(a, b).min(1)
            best = np.where((near > 0) & (near <= far) & (near < best), near, best)
        for x, y, radius in poles():
            a = (directions[:, :2] ** 2).sum(1)
            b = directions[:, 0] * x + directions[:, 1] * y
            root = b * b - a * (x * x + y * y - radius * radius)
            t = (b - np.sqrt(root)) / a
            hit = (root > 0) & (t > 0) & (directions[:, 2] * t < 3.5)
            best = np.where(hit & (t < best), t, best)
    return np.where(best < 40, best, np.inf)


def main():
    rng = np.random.default_rng(7)
    elevation = np.radians(np.linspace(-24, 8, 32))[:, None]
    azimuth = np.radians(np.linspace(20, 160, 300))[None]
    shift = rng.uniform(-0.002, 0.002, elevation.shape)

    def rays(turn):
        a = azimuth + shift + turn
        return np.stack(np.broadcast_arrays(np.cos(elevation) * np.cos(a), np.cos(elevation) * np.sin(a), np.sin(elevation)),
                        -1).reshape(-1, 3)

    seen, beside = ranges(rays(0)), ranges(rays(np.radians(0.15)))
    with np.errstate(invalid="ignore"):
        jump = np.isfinite(seen) & np.isfinite(beside) & (np.abs(seen - beside) > 0.5) & (rng.uniform(size=seen.size) < 0.3)
        seen = np.where(jump, seen + rng.uniform(size=seen.size) * (beside - seen), seen)
    kept = np.isfinite(seen) & (rng.uniform(size=seen.size) > 0.02)
    points = rays(0)[kept] * (seen[kept] + rng.normal(0, 0.015, kept.sum()))[:, None]
    header = f"""ply
format binary_little_endian 1.0
comment a sweep of a made up street, metres, made by make_street.py
element vertex {len(points)}
property float x
property float y
property float z
end_header
"""
    (HERE / "scans" / "street.ply").write_bytes(header.encode() + points.astype("<f4").tobytes())


main()
