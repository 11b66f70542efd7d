#!/usr/bin/env python3
"""Makes the meshes of shapes/: a table, a lamp, an airplane, a cup, a vase and a bottle, to classify and to paint.

They are put together from boxes, surfaces of revolution and tubes with elliptic sections, which may pass through each other. Metres, z is up.
Needs nothing but Python; the files are committed, so that nobody needs to run it.
"""
import math
import pathlib

HERE = pathlib.Path(__file__).parent / "shapes"


class Mesh:
    def __init__(self):
        self.vertices, self.faces = [], []

    def rings(self, rings, closed=True):
        """Joins rings of equally many points; `closed` puts a lid on both ends."""
        first, sides = len(self.vertices), len(rings[0])
        for ring in rings:
            self.vertices += ring
        for i in range(len(rings) - 1):
            for j in range(sides):
                p, q = first + i * sides + j, first + i * sides + (j + 1) % sides
                self.faces += [(p, q, q + sides), (p, q + sides, p + sides)]
        if closed:
            for ring, turned in ((0, True), (len(rings) - 1, False)):
                at = [first + ring * sides + j for j in range(sides)]
                middle = len(self.vertices)
                self.vertices.append(tuple(sum(self.vertices[k][axis] for k in at) / sides for axis in range(3)))
                for j in range(sides):
                    a, b = at[j], at[(j + 1) % sides]
                    self.faces.append((middle, b, a) if turned else (middle, a, b))

    def box(self, low, high):
        (x0, y0, z0), (x1, y1, z1) = low, high
        self.rings([[(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)] for z in (z0, z1)])

    def turned(self, profile, centre=(0, 0), sides=32):
        """A surface of revolution about the vertical through `centre`, from (radius, height) pairs."""
        angles = [2 * math.pi * j / sides for j in range(sides)]
        self.rings([[(centre[0] + r * math.cos(a), centre[1] + r * math.sin(a), z) for a in angles] for r, z in profile])

    def tube(self, sections, sides=16):
        """Along a path: (centre, across, radius across, upwards, radius upwards) for each section."""
        angles = [2 * math.pi * j / sides for j in range(sides)]
        self.rings([[tuple(c[k] + ra * math.cos(a) * u[k] + rb * math.sin(a) * v[k] for k in range(3)) for a in angles]
                    for c, u, ra, v, rb in sections])

    def write(self, name):
        HERE.mkdir(exist_ok=True)
        with open(HERE / f"{name}.off", "w") as file:
            file.write(f"OFF\n{len(self.vertices)} {len(self.faces)} 0\n")
            file.writelines(f"{x:.4f} {y:.4f} {z:.4f}\n" for x, y, z in self.vertices)
            file.writelines(f"3 {a} {b} {c}\n" for a, b, c in self.faces)
        print(name, len(self.vertices), "vertices,", len(self.faces), "faces")


def table():
    mesh = Mesh()
    mesh.box((-0.45, -0.8, 0.70), (0.45, 0.8, 0.74))
    for x in (-0.37, 0.37):
        for y in (-0.72, 0.72):
            mesh.turned([(0.02, 0), (0.025, 0.05), (0.03, 0.4), (0.04, 0.62), (0.04, 0.7)], (x, y), 16)
    for y in (-0.72, 0.72):  # rails under the top
        mesh.box((-0.37, y - 0.012, 0.61), (0.37, y + 0.012, 0.7))
    for x in (-0.37, 0.37):
        mesh.box((x - 0.012, -0.72, 0.61), (x + 0.012, 0.72, 0.7))
    return mesh


def lamp():
    mesh = Mesh()
    mesh.turned([(0.09, 0), (0.09, 0.012), (0.03, 0.03), (0.014, 0.06), (0.03, 0.14), (0.035, 0.18), (0.014, 0.25), (0.01, 0.27), (0.01, 0.42)])
    # The shade, without lids.
    mesh.rings([[(r * math.cos(a), r * math.sin(a), z) for a in (2 * math.pi * j / 32 for j in range(32))] for r, z in
                [(0.15, 0.27), (0.09, 0.46), (0.087, 0.46), (0.147, 0.27)]], closed=False)
    return mesh


def airplane():
    mesh = Mesh()
    y, z = (0, 1, 0), (0, 0, 1)
    body = [(-1.0, 0.02, 0.09), (-0.9, 0.05, 0.07), (-0.7, 0.085, 0.04), (-0.4, 0.115, 0.01), (0, 0.12, 0), (0.6, 0.12, 0), (0.85, 0.1, -0.01),
            (0.97, 0.06, -0.02), (1.0, 0.015, -0.025)]
    mesh.tube([((x, 0, up), y, r, z, r) for x, r, up in body], 24)
    for side in (-1, 1):
        # Wings and tail planes: flat ellipses along their span, swept back.
        mesh.tube([((0.15 - 0.35 * t, side * (0.08 + 0.95 * t), -0.05 + 0.07 * t), (1, 0, 0), 0.2 - 0.13 * t, z, 0.022 - 0.014 * t)
                   for t in (0, 0.25, 0.5, 0.75, 1)])
        mesh.tube([((-0.84 - 0.13 * t, side * (0.03 + 0.33 * t), 0.07 + 0.02 * t), (1, 0, 0), 0.1 - 0.05 * t, z, 0.012 - 0.006 * t)
                   for t in (0, 0.5, 1)])
        mesh.tube([((x, side * 0.36, -0.1), y, r, z, r) for x, r in ((0.02, 0.03), (0.1, 0.05), (0.25, 0.055), (0.3, 0.045))])  # engines
    mesh.tube([((-0.8 - 0.17 * t, 0, 0.06 + 0.33 * t), (1, 0, 0), 0.13 - 0.07 * t, y, 0.014 - 0.007 * t) for t in (0, 0.5, 1)])  # the fin
    return mesh


def cup():
    mesh = Mesh()
    mesh.turned([(0.033, 0), (0.038, 0.004), (0.041, 0.02), (0.042, 0.09), (0.042, 0.095), (0.038, 0.095), (0.037, 0.02), (0.03, 0.008)], sides=40)
    handle = []
    for i in range(13):
        a = math.pi * (i / 12 - 0.5)
        along = (math.cos(a), 0, math.sin(a))
        handle.append(((0.038 + 0.032 * math.cos(a), 0, 0.05 + 0.03 * math.sin(a)), along, 0.0035, (0, 1, 0), 0.006))
    mesh.tube(handle, 12)
    return mesh


def vase():
    mesh = Mesh()
    outside = [(0.05, 0), (0.055, 0.01), (0.07, 0.04), (0.1, 0.1), (0.115, 0.16), (0.105, 0.22), (0.07, 0.28), (0.045, 0.32), (0.042, 0.35),
               (0.055, 0.38), (0.065, 0.39)]
    mesh.turned(outside + [(r - 0.005, h) for r, h in reversed(outside[2:])], sides=40)
    return mesh


def bottle():
    mesh = Mesh()
    mesh.turned([(0.034, 0), (0.037, 0.005), (0.037, 0.17), (0.034, 0.19), (0.018, 0.22), (0.0145, 0.24), (0.0145, 0.29), (0.017, 0.292),
                 (0.017, 0.3), (0.014, 0.3)], sides=40)
    return mesh


for make in (table, lamp, airplane, cup, vase, bottle):
    make().write(make.__name__)
