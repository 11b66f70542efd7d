#!/usr/bin/env python3
"""Makes the samples of this folder: a trefoil knot as a mesh (knot_mesh.off) and as a scan of it (knot.ply).

The scan is what a structured-light scanner sees from three sides: points on a grid of rays, 0.2 mm of noise, normals and
the reflectance of bands along the rope. Millimetres. Needs numpy; the files are committed, so that nobody needs to run it.
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
RINGS, SIDES = 240, 40


def centre(t):
    return np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], -1) * 20


def mesh():
    t = np.linspace(0, 2 * np.pi, RINGS, endpoint=False)
    c = centre(t)
    tangent = centre(t + 1e-4) - centre(t - 1e-4)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    normal = np.cross(tangent, [0, 0, 1.0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    binormal = np.cross(tangent, normal)
    a = np.linspace(0, 2 * np.pi, SIDES, endpoint=False)
    radius = 9.5 * (1 + 0.09 * np.cos(18 * t)[:, None]) + 0 * a
    vertices = c[:, None] + radius[..., None] * (np.cos(a)[None, :, None] * normal[:, None] + np.sin(a)[None, :, None] * binormal[:, None])
    i, j = np.meshgrid(np.arange(RINGS), np.arange(SIDES), indexing="ij")
    at = lambda p, q: ((p % RINGS) * SIDES + q % SIDES).ravel()
    quads = np.stack([at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)], 1)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return vertices.reshape(-1, 3), faces, np.tile(t[i.ravel()], 2)


def scan(vertices, faces, place, rng):
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1)
    normals /= area[:, None]
    # Dense samples of the surface, then for each scanner position the nearest of them on each ray.
    pick = rng.choice(len(faces), 1_500_000, p=area / area.sum())
    u, v = rng.random((2, len(pick), 1))
    flip = u + v > 1
    u, v = np.where(flip, 1 - u, u), np.where(flip, 1 - v, v)
    points = corners[pick, 0] + u * (corners[pick, 1] - corners[pick, 0]) + v * (corners[pick, 2] - corners[pick, 0])
    normal = normals[pick]
    seen_points, seen_normals, intensity = [], [], []
    for azimuth, elevation in [(20, 40), (140, 40), (260, 40)]:
        az, el = np.radians([azimuth, elevation])
        towards = np.array([np.cos(el) * np.cos(az), np.cos(el) * np.sin(az), np.sin(el)])
        right = np.cross([0, 0, 1.0], towards)
        right /= np.linalg.norm(right)
        up = np.cross(towards, right)
        cell = np.round(np.stack([points @ right, points @ up], 1) / 0.9).astype(int)
        depth = points @ towards
        order = np.lexsort((-depth, cell[:, 1], cell[:, 0]))
        first = np.ones(len(order), bool)
        first[1:] = (cell[order][1:] != cell[order][:-1]).any(1)
        chosen = order[first]
        facing = normal[chosen] @ towards
        chosen = chosen[facing > 0.25]
        seen_points.append(points[chosen] + towards * rng.normal(0, 0.2, (len(chosen), 1)))
        seen_normals.append(normal[chosen])
        intensity.append(0.55 + 0.35 * np.sin(3 * place[pick[chosen]]) + rng.normal(0, 0.02, len(chosen)))
    return np.concatenate(seen_points), np.concatenate(seen_normals), np.clip(np.concatenate(intensity), 0, 1)


vertices, faces, place = mesh()
with open(HERE / "knot_mesh.off", "w") as file:
    file.write(f"OFF\n{len(vertices)} {len(faces)} 0\n")
    file.writelines(f"{x:.3f} {y:.3f} {z:.3f}\n" for x, y, z in vertices)
    file.writelines(f"3 {a} {b} {c}\n" for a, b, c in faces)
points, normals, intensity = scan(vertices, faces, place, np.random.default_rng(1))
rows = np.concatenate([points, normals, intensity[:, None]], 1).astype("<f4")
names = "x y z nx ny nz intensity".split()
header = f"ply\nformat binary_little_endian 1.0\ncomment millimetres\nelement vertex {len(rows)}\n"
header += "".join(f"property float {name}\n" for name in names) + "end_header\n"
(HERE / "knot.ply").write_bytes(header.encode() + rows.tobytes())
print(len(rows), "points,", len(faces), "faces")
