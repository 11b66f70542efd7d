#!/usr/bin/env python3
"""Makes the chair of this folder: chair_mesh.off, and two scans of it as a scanner on a tripod leaves them.

The mesh is put together from bent slats, turned legs and a seat. The scans are what `stipple mesh rays` sees of it from two
places, with 2 mm of noise along each ray, flying points where an edge cuts a beam in two, and dust. The second is in
a frame of its own; chair_truth.matrix is the motion that lays it on the first. Metres, z is up. Needs numpy and the program on the search
path; the files are committed, so that nobody needs to run it.
"""
import pathlib
import subprocess
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent


def tube(centres, radii, sides=14):
    """A closed tube along a polyline, its cross-section an ellipse (rx, rz) or a circle."""
    centres, radii = np.asarray(centres, float), np.broadcast_to(np.asarray(radii, float), (len(centres), 2))
    along = np.gradient(centres, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.cross(along, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    other = np.cross(along, across)
    a = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    ring = centres[:, None] + radii[:, :1, None] * np.cos(a)[None, :, None] * across[:, None] \
        + radii[:, 1:, None] * np.sin(a)[None, :, None] * other[:, None]
    vertices = np.concatenate([ring.reshape(-1, 3), centres[[0, -1]]])
    faces, n = [], len(centres)
    for i in range(n - 1):
        for j in range(sides):
            p, q, r, s = i * sides + j, i * sides + (j + 1) % sides, (i + 1) * sides + j, (i + 1) * sides + (j + 1) % sides
            faces += [[p, q, s], [p, s, r]]
    for j in range(sides):
        faces += [[n * sides, (j + 1) % sides, j], [n * sides + 1, (n - 1) * sides + j, (n - 1) * sides + (j + 1) % sides]]
    return vertices, np.array(faces)


def mesh():
    parts = []
    t = np.linspace(0, 1, 9)
    for x in (-0.19, 0.19):  # turned front legs, back legs that go on as the posts of the back
        parts.append(tube(np.stack([x + 0 * t, 0.45 * t, 0.19 + 0 * t], 1), np.stack([0.017 + 0.008 * np.sin(9 * t)] * 2, 1)))
        u = np.linspace(0, 1, 21)
        lean = np.where(u < 0.47, 0.05 * (0.47 - u), 0.28 * (u - 0.47))
        parts.append(tube(np.stack([x + 0 * u, 0.96 * u, -0.18 - lean], 1), 0.019))
    for z, y in ((0.19, 0.2), (-0.19, 0.26)):  # rungs
        s = np.linspace(-0.19, 0.19, 7)
        parts.append(tube(np.stack([s, y + 0 * s, z + 0 * s], 1), 0.011))
    s = np.linspace(-0.235, 0.225, 13)  # the seat: a tube along x with a wide, thin section
    parts.append(tube(np.stack([s + 0.005, 0.455 - 0.012 * np.cos(s * 6), 0.01 + 0 * s], 1),
                      np.stack([0.022 + 0 * s, 0.225 - 0.25 * np.abs(s) ** 2.2], 1), 28))
    for y, height in ((0.62, 0.022), (0.74, 0.026), (0.89, 0.042)):  # slats, bent backwards
        s = np.linspace(-0.195, 0.195, 13)
        back = -0.18 - 0.28 * (y / 0.96 - 0.47) - 0.03 * np.cos(s * 8)
        parts.append(tube(np.stack([s, y + 0 * s, back], 1), np.stack([height + 0 * s, 0.009 + 0 * s], 1)))
    vertices, faces, count = [], [], 0
    for v, f in parts:
        vertices.append(v)
        faces.append(f + count)
        count += len(v)
    return np.concatenate(vertices)[:, [0, 2, 1]] * [1, -1, 1], np.concatenate(faces)  # z up, the front towards -y


def write_ply(path, points):
    header = f"ply\nformat binary_little_endian 1.0\ncomment metres, z up\nelement vertex {len(points)}\n"
    header += "".join(f"property float {name}\n" for name in "xyz") + "end_header\n"
    path.write_bytes(header.encode() + points.astype("<f4").tobytes())


def scan(eye, rng):
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/seen.npy"
        subprocess.run(["stipple", "mesh", "rays", str(HERE / "chair_mesh.off"), "--eye", *map(str, eye), "--look-at", "0", "0", "0.45",
                        "--fov", "38", "--size", "240x240", "-o", out, "-q"], check=True)
        points = np.load(out).astype(float)
    rays = points - eye
    distance = np.linalg.norm(rays, axis=1, keepdims=True)
    rays /= distance
    points = points + rays * rng.normal(0, 0.002, distance.shape)
    flying = rng.choice(len(points), 160, replace=False)  # beams that an edge cuts in two
    points[flying] += rays[flying] * rng.uniform(0.03, 0.25, (160, 1))
    dust = rng.uniform([-0.5, -0.5, 0], [0.5, 0.5, 1.1], (60, 3))
    return np.concatenate([points, dust])


vertices, faces = mesh()
with open(HERE / "chair_mesh.off", "w") as file:
    file.write(f"OFF\n{len(vertices)} {len(faces)} 0\n")
    file.writelines(f"{x:.4f} {y:.4f} {z:.4f}\n" for x, y, z in vertices)
    file.writelines(f"3 {a} {b} {c}\n" for a, b, c in faces)
rng = np.random.default_rng(3)
for name, azimuth, turn, shift in [("front", -60, 0, (0, 0, 0)), ("side", 0, 14, (0.06, 0.02, -0.05))]:
    azimuth, elevation, turn = np.radians([azimuth, 30, turn])
    eye = np.round([1.6 * np.cos(elevation) * np.cos(azimuth), 1.6 * np.cos(elevation) * np.sin(azimuth), 0.45 + 1.6 * np.sin(elevation)], 2)
    matrix = np.eye(4)  # from the frame of this scan to the chair's
    matrix[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    matrix[:3, 3] = shift
    write_ply(HERE / f"chair_{name}.ply", (scan(eye, rng) - shift) @ matrix[:3, :3])
    if name != "front":
        np.savetxt(HERE / "chair_truth.matrix", matrix, fmt="%.9f")
    print(name, "seen from", np.round((eye - shift) @ matrix[:3, :3], 3))
print(len(vertices), "vertices,", len(faces), "faces")
