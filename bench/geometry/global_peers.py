"""Registration from any pose: stipple's methods, many-start ICP, Open3D's FPFH + RANSAC and its fast global registration (FGR) on
the same pairs, in one run.

usage: command -p python3 bench/geometry/global_peers.py build/dev/bin/stipple DATA [EVERY [FRAGMENTS [METHOD]]]

DATA holds scans/bunny, scans/lidar_pair and upsample_dev/meshes; of the pairs and shapes each EVERY-th is taken (1). Needs Open3D
for Python (Debian 12: python3-open3d). With FRAGMENTS, a folder of confidence_study --save, only the pairs in it are taken, as they
lie; or a folder of 3DMatch (*pairs.json and SCENE.npz): of each of its files every EVERY-th pair. METHOD: only those whose names hold it.

A pair succeeds when the found rotation is within 5 degrees of the truth and the middle of the source within 5 % of its diameter; of
3DMatch by its own rule, 15 degrees and 0.3 m. Open3D's cells are a sixteenth of the radius, for 3DMatch 5 cm.
Times are CPU seconds of all threads, reading included for stipple and left out for Open3D. Clouds are turned by a random rotation
(fixed seed) before they are registered, so that no method starts near the truth. "told" counts the failures that a method itself
reports: of stipple exit 7 or a warning, of Open3D a fitness below 0.3.
FGR's maximum_correspondence_distance is half a cell, as in Open3D's tutorial.
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import open3d as o3d

o3d.utility.set_verbosity_level(o3d.utility.VerbosityLevel.Error)


def rotation(q):
    w, x, y, z = q / np.linalg.norm(q)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])


def rigid(r, t):
    m = np.eye(4)
    m[:3, :3], m[:3, 3] = r, t
    return m


def move(m, points):
    return points @ m[:3, :3].T + m[:3, 3]


def write_ply(path, points):
    with open(path, "wb") as file:
        file.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(points))
        file.write(b"property float x\nproperty float y\nproperty float z\nend_header\n")
        file.write(points.astype("<f4").tobytes())


def read_points(path):
    return np.asarray(o3d.io.read_point_cloud(path).points)


def bunny(data):
    """Pairs whose true poses bring a fifth of the smaller scan within 2 mm of the other."""
    scans = []
    for line in open(f"{data}/scans/bunny/bun.conf"):
        word = line.split()
        if not word or word[0] != "bmesh":
            continue
        t, (x, y, z, w) = [float(v) for v in word[2:5]], [float(v) for v in word[5:9]]
        pose = rigid(rotation(np.array([w, -x, -y, -z])), t)
        scans.append((word[1][:-4], read_points(f"{data}/scans/bunny/{word[1]}"), pose))
    for (name_a, a, pose_a), (name_b, b, pose_b) in itertools.combinations(scans, 2):
        moved = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(move(pose_a, a)))
        other = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(move(pose_b, b)))
        forth = (np.asarray(moved.compute_point_cloud_distance(other)) < 0.002).mean()
        back = (np.asarray(other.compute_point_cloud_distance(moved)) < 0.002).mean()
        if max(forth, back) >= 0.2:
            yield f"{name_a}-{name_b}", a, b, np.linalg.inv(pose_b) @ pose_a


def shapes(data):
    """Two independent samples of 4,000 points of each shape."""
    for i, file in enumerate(sorted(os.listdir(f"{data}/upsample_dev/meshes"))):
        mesh = o3d.io.read_triangle_mesh(f"{data}/upsample_dev/meshes/{file}")
        o3d.utility.random.seed(i) if hasattr(o3d.utility, "random") else None
        a, b = (np.asarray(mesh.sample_points_uniformly(4000).points) for _ in range(2))
        yield file[:-4], a, b, np.eye(4)


def lidar(data):
    folder = f"{data}/scans/lidar_pair"
    truth = np.loadtxt(f"{folder}/T_target_source.txt")
    for i in range(3):
        yield f"street {i}", read_points(f"{folder}/source.ply"), read_points(f"{folder}/target.ply"), truth


def fragments(folder):
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".txt")):
        stem = f"{folder}/{name[:-4]}"
        yield name[:-4], read_points(f"{stem}_a.ply"), read_points(f"{stem}_b.ply"), np.loadtxt(f"{stem}.txt")


def fragments_3dmatch(path, every):
    """Pairs of one file of the 3DMatch test set, every so many of them."""
    scenes = {}
    for pair in json.load(open(path))[::every]:
        scene = pair["scene"]
        if scene not in scenes:
            scenes[scene] = np.load(f"{os.path.dirname(path)}/{scene}.npz")
        a, b = (scenes[scene][f"cloud_bin_{pair[end]}"].astype(np.float64) / 1000 for end in ("source", "target"))
        yield f"{scene} {pair['source']} on {pair['target']}", a, b, rigid(np.array(pair["R"]), np.array(pair["t"]))


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Stipple:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *more):
        done = subprocess.run(
            [self.program, "register", f"{self.folder}/a.ply", f"{self.folder}/b.ply", "--json", "--quiet", *more],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )
        report = json.loads(done.stdout)
        failed = done.returncode != 0
        return (None if failed else np.array(report["transform"])), failed or report["verdict"] != "good", report

    def method(self, name):
        return lambda a, b: self.run("--method", name)[:2]

    def many_starts(self, a, b):
        """24 turns of the cube, middles laid on each other; one coarse level each, then the best with all levels."""
        radius = np.sqrt(((b - b.mean(0)) ** 2).sum(1).mean())
        best, best_score = None, -1
        for axes in itertools.permutations(range(3)):
            for signs in itertools.product((1, -1), repeat=3):
                turn = np.zeros((3, 3))
                turn[range(3), axes] = signs
                if np.linalg.det(turn) < 0:
                    continue
                np.savetxt(f"{self.folder}/init.txt", rigid(turn, b.mean(0) - turn @ a.mean(0)))
                found, _, report = self.run("--method", "icp", "--init", f"{self.folder}/init.txt", "--keep-failed",
                                            "--max-distance", str(radius / 2), "--voxel", str(radius / 16))
                score = report.get("overlap", 0) * report.get("agreement", 0)
                if found is not None and score > best_score:
                    best, best_score = found, score
        np.savetxt(f"{self.folder}/init.txt", best)
        return self.run("--method", "icp", "--init", f"{self.folder}/init.txt")[:2]


class Open3D:
    """The pipelines of its tutorial: cells of one edge (0: a sixteenth of the radius), FPFH, a search, then ICP on all points."""

    def __init__(self, cell=0):
        self.cell = cell

    def prepared(self, a, b):
        registration = o3d.pipelines.registration
        cell = self.cell or np.sqrt(((b - b.mean(0)) ** 2).sum(1).mean()) / 16
        clouds, thin, features = [], [], []
        for points in (a, b):
            cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
            down = cloud.voxel_down_sample(cell)
            down.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(radius=2 * cell, max_nn=30))
            cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(radius=2 * cell, max_nn=30))
            clouds.append(cloud)
            thin.append(down)
            features.append(registration.compute_fpfh_feature(down, o3d.geometry.KDTreeSearchParamHybrid(radius=5 * cell, max_nn=100)))
        return cell, clouds, thin, features

    @staticmethod
    def refined(cell, clouds, found):
        registration = o3d.pipelines.registration
        refined = registration.registration_icp(clouds[0], clouds[1], 0.4 * cell, found.transformation,
                                                registration.TransformationEstimationPointToPlane())
        return refined.transformation, found.fitness < 0.3

    def ransac(self, a, b):
        registration = o3d.pipelines.registration
        cell, clouds, thin, features = self.prepared(a, b)
        found = registration.registration_ransac_based_on_feature_matching(
            thin[0], thin[1], features[0], features[1], True, 1.5 * cell,
            registration.TransformationEstimationPointToPoint(False), 3,
            [registration.CorrespondenceCheckerBasedOnEdgeLength(0.9), registration.CorrespondenceCheckerBasedOnDistance(1.5 * cell)],
            registration.RANSACConvergenceCriteria(100000, 0.999),
        )
        return self.refined(cell, clouds, found)

    def fgr(self, a, b):
        registration = o3d.pipelines.registration
        cell, clouds, thin, features = self.prepared(a, b)
        found = registration.registration_fgr_based_on_feature_matching(
            thin[0], thin[1], features[0], features[1],
            registration.FastGlobalRegistrationOption(maximum_correspondence_distance=0.5 * cell))
        return self.refined(cell, clouds, found)


def main():
    program, data = os.path.abspath(sys.argv[1]), sys.argv[2]
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        ours, open3d = Stipple(program, folder), Open3D()
        methods = {
            "ICP from 24 starts": ours.many_starts,
            "stipple, global": ours.method("global"),
            "stipple, auto": ours.method("auto"),
            "Open3D, FPFH + RANSAC": open3d.ransac,
            "Open3D, FPFH + FGR": open3d.fgr,
        }
        print("| pairs | method | success | wrong, told | wrong, not told | median degrees | CPU s |\n|---|---|--:|--:|--:|--:|--:|")
        sets = (("bunny scans", bunny), ("shapes, any pose", shapes), ("street, any pose", lidar))
        most_degrees, most_shift = 5, 0  # 0: 5 % of the diameter
        if len(sys.argv) > 4:
            data = sys.argv[4]
            lists = sorted(name for name in os.listdir(data) if name.endswith("pairs.json"))
            sets = [("fragments of rooms", fragments)]
            if lists:
                sets = [(name[: -len("_pairs.json")], lambda data, name=name: fragments_3dmatch(f"{data}/{name}", every)) for name in lists]
                most_degrees, most_shift, open3d.cell = 15, 0.3, 0.05
            del methods["ICP from 24 starts"]
        if len(sys.argv) > 5:
            methods = {label: method for label, method in methods.items() if sys.argv[5] in label}
        for name, pairs in sets:
            cases = []
            as_they_lie = len(sys.argv) > 4
            for title, a, b, truth in list(pairs(data))[:: 1 if pairs is lidar or most_shift else every]:
                turn = np.eye(4) if as_they_lie else rigid(rotation(rng.normal(size=4)), np.zeros(3))
                cases.append((title, move(turn, a), b, truth @ np.linalg.inv(turn)))
            for label, method in methods.items():
                good, told, quiet, degrees, seconds = 0, 0, 0, [], 0
                for title, a, b, truth in cases:
                    write_ply(f"{folder}/a.ply", a)
                    write_ply(f"{folder}/b.ply", b)
                    begin = time.process_time() + children_seconds()
                    found, doubt = method(a, b)
                    seconds += time.process_time() + children_seconds() - begin
                    success = False
                    if found is not None:
                        off = truth[:3, :3].T @ found[:3, :3]
                        angle = np.degrees(np.arccos(np.clip((np.trace(off) - 1) / 2, -1, 1)))
                        middle = a.mean(0)[None]
                        shift = np.linalg.norm(move(found, middle) - move(truth, middle))
                        if most_shift:  # the rule of the benchmark compares translations
                            shift = np.linalg.norm(found[:3, 3] - truth[:3, 3])
                        success = angle < most_degrees and shift < (most_shift or 0.05 * np.linalg.norm(np.ptp(a, axis=0)))
                        if success:
                            degrees.append(angle)
                    good += success
                    told += not success and doubt
                    quiet += not success and not doubt
                    if os.environ.get("VERBOSE"):
                        print(f"  {label} {title}: {'ok' if success else 'wrong'}{' (doubt)' if doubt else ''}", file=sys.stderr)
                median = f"{np.median(degrees):.2f}" if degrees else ""
                print(f"| {name}, {len(cases)} | {label} | {good} | {told} | {quiet} | {median} | {seconds / len(cases):.2f} |", flush=True)


if __name__ == "__main__":
    main()
