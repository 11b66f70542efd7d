"""One call of every function of stipple.geometry, on small clouds and meshes: what tests go through, and examples.

A call takes `c`, which makes an array of the kind under test of a numpy array, and returns what the function returns.
"""
import numpy as np
from stipple import geometry, io

_random = np.random.default_rng(7)

SPHERE = geometry.sphere_mesh(1, 2)
VERTICES, TRIANGLES = np.array(SPHERE.positions), np.array(SPHERE.triangles)
POINTS = np.ascontiguousarray(geometry.sample_surface(SPHERE, 400, 1).points)
NORMALS = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
QUERIES = _random.uniform(-1.5, 1.5, (20, 3)).astype(np.float32)
DIRECTIONS = _random.normal(size=(20, 3)).astype(np.float32)
AREAS = geometry.point_areas(POINTS)
RADII = np.full(400, 0.05, np.float32)
TURN = geometry.rotation_about((0, 0, 1), 0.05, (0, 0, 0))
#: Points without a symmetry, for registration.
BODY = np.concatenate([POINTS * np.float32([1, 0.6, 0.4]), POINTS[:150] * np.float32(0.3) + np.float32([0.9, 0.5, 0.2])])
CLOUD = io.PointCloud(BODY, attributes={"label": (np.arange(550) % 3).astype(np.int32)})
MOVED = geometry.transformed(CLOUD, TURN)
FOUND = geometry.icp(MOVED, CLOUD)
VALUES = _random.random(100)
VOXELS = geometry.voxelize_mesh(SPHERE, 0.25)
SAMPLES = geometry.sample_surface(SPHERE, 50, 1)
DESCRIPTORS = geometry.fpfh(POINTS, NORMALS, 0.4)
#: What 16 lasers see of a ball around them.
_elevation, _azimuth = np.meshgrid(np.radians(np.linspace(10, -20, 16)), np.radians(np.arange(0.5, 360)), indexing="ij")
SWEEP = io.PointCloud(5 * np.stack([np.cos(_elevation) * np.cos(_azimuth), np.cos(_elevation) * np.sin(_azimuth),
                                    np.sin(_elevation)], -1).reshape(-1, 3).astype(np.float32))
GRID = np.linalg.norm(np.mgrid[-1:1:12j, -1:1:12j, -1:1:12j], axis=0).astype(np.float32)


def _mesh(c):
    return c(VERTICES), c(TRIANGLES)


def _orient_towards(c):
    normals = c(NORMALS.copy())
    geometry.orient_towards(c(POINTS), normals, (0, 0, 9))
    return normals


def _orient_consistently(c):
    normals = c(NORMALS.copy())
    geometry.orient_consistently(c(POINTS), normals, k=8)
    return normals


def _flood_fill(c):
    grid = c(np.zeros((4, 4, 4), np.int32))
    assert geometry.flood_fill(grid, (0, 0, 0), 5) == 64
    return grid


#: Calls that take arrays.
CALLS = {
    "estimate_normals": lambda c: geometry.estimate_normals(c(POINTS), k=12),
    "orient_towards": _orient_towards,
    "orient_consistently": _orient_consistently,
    "statistical_outliers": lambda c: geometry.statistical_outliers(c(POINTS), k=8, ratio=1),
    "radius_outliers": lambda c: geometry.radius_outliers(c(POINTS), 0.2),
    "density_clusters": lambda c: geometry.density_clusters(c(POINTS), 0.3, 5),
    "unique_points": lambda c: geometry.unique_points(c(POINTS), 0.1),
    "fpfh": lambda c: geometry.fpfh(c(POINTS), c(NORMALS), 0.4),
    "fpfh_reversed": lambda c: geometry.fpfh_reversed(c(DESCRIPTORS)),
    "statistics_of": lambda c: geometry.statistics_of(c(VALUES)),
    "histogram_of": lambda c: geometry.histogram_of(c(VALUES), 10),
    "point_density": lambda c: geometry.point_density(c(POINTS)),
    "face_normals": lambda c: geometry.face_normals(_mesh(c)),
    "vertex_normals": lambda c: geometry.vertex_normals(_mesh(c), weights="area"),
    "face_areas": lambda c: geometry.face_areas(_mesh(c)),
    "surface_area": lambda c: geometry.surface_area(_mesh(c)),
    "closest_point": lambda c: geometry.closest_point(_mesh(c), c(QUERIES)),
    "signed_distance": lambda c: geometry.signed_distance(_mesh(c), None, c(QUERIES)),
    "is_inside": lambda c: geometry.is_inside(_mesh(c), c(QUERIES)),
    "winding_number": lambda c: geometry.winding_number(
        geometry.WindingIndex.of_points(c(POINTS), c(NORMALS), c(AREAS)), c(QUERIES), accuracy=3),
    "point_areas": lambda c: geometry.point_areas(c(POINTS), c(NORMALS)),
    "first_hit": lambda c: geometry.first_hit(_mesh(c), c(QUERIES), c(DIRECTIONS)),
    "any_hit": lambda c: geometry.any_hit(geometry.MeshIndex(_mesh(c)), c(QUERIES), c(DIRECTIONS), t_far=0.5),
    "all_hits": lambda c: geometry.all_hits(_mesh(c), c(QUERIES), c(DIRECTIONS)),
    "mesh_distance": lambda c: geometry.mesh_distance(_mesh(c), _mesh(c), samples=100),
    "sample_surface": lambda c: geometry.sample_surface(_mesh(c), 50, 1),
    "sample_surface_poisson": lambda c: geometry.sample_surface_poisson(_mesh(c), 50, 1),
    "interpolate": lambda c: geometry.interpolate(_mesh(c), c(SAMPLES.faces), c(SAMPLES.barycentrics), c(VERTICES)),
    "cloud_of_samples": lambda c: geometry.cloud_of_samples(
        SPHERE, c(SAMPLES.points), c(SAMPLES.faces), c(SAMPLES.barycentrics)).positions,
    "select_faces": lambda c: geometry.select_faces(SPHERE, c(np.array([3, 1], np.int32))).vertices,
    "select_vertices": lambda c: geometry.select_vertices(SPHERE, c(VERTICES[:, 2] > 0)).faces,
    "connected_components": lambda c: geometry.connected_components(_mesh(c)),
    "check_mesh": lambda c: geometry.check_mesh(_mesh(c)),
    "mesh_edges": lambda c: geometry.mesh_edges(_mesh(c)),
    "vertex_adjacency": lambda c: geometry.vertex_adjacency(_mesh(c)),
    "find_orientation": lambda c: geometry.find_orientation(_mesh(c)),
    "smooth_mesh": lambda c: geometry.smooth_mesh(_mesh(c), iterations=3, back_step=-0.53),
    "sphere_glyphs": lambda c: geometry.sphere_glyphs(c(POINTS), c(RADII)).positions,
    "surfel_glyphs": lambda c: geometry.surfel_glyphs(c(POINTS), c(NORMALS), c(RADII), segments=5).positions,
    "reconstruct_surface": lambda c: geometry.reconstruct_surface(c(POINTS), c(NORMALS), resolution=12).positions,
    "watertight": lambda c: geometry.watertight(_mesh(c), resolution=8).positions,
    "hollow_share": lambda c: geometry.hollow_share(_mesh(c), _mesh(c)),
    "marching_cubes": lambda c: geometry.marching_cubes(c(GRID), 0.7, low=(-1, -1, -1), step=2 / 11).positions,
    "voxelize_mesh": lambda c: geometry.voxelize_mesh(_mesh(c), 0.25),
    "boundary_voxels": lambda c: geometry.boundary_voxels(c(VOXELS)),
    "voxel_mesh": lambda c: geometry.voxel_mesh(c(VOXELS), 0.25, gap=0.1).positions,
    "flood_fill": _flood_fill,
    "morton_encode": lambda c: geometry.morton_encode(c(VOXELS)),
    "morton_decode": lambda c: geometry.morton_decode(c(np.array([0, 7, 12345], np.uint64))),
    "best_fit": lambda c: geometry.best_fit(c(POINTS), c(POINTS + np.float32(0.5))),
    "members": lambda c: geometry.members(c(np.array([0, 1, 0, -1], np.int32)), 2),
}

#: Calls of clouds, meshes and matrices.
OTHERS = {
    "transformed": lambda: geometry.transformed(SPHERE, TURN),
    "nearest_rotation": lambda: geometry.nearest_rotation(TURN[:3, :3] + 1e-6),
    "inverse": lambda: geometry.inverse(TURN),
    "determinant": lambda: geometry.determinant(np.diag([2, 3, 4, 1])),
    "about": lambda: geometry.about(np.diag([2, 2, 2, 1]), (1, 0, 0)),
    "axis_swap": lambda: geometry.axis_swap("x-zy"),
    "rotation_angle": lambda: geometry.rotation_angle(TURN),
    "to_quaternion": lambda: geometry.to_quaternion(TURN),
    "from_quaternion": lambda: geometry.from_quaternion((1, 0, 0, 0), (1, 2, 3)),
    "rotation_about": lambda: geometry.rotation_about((1, 1, 0), 0.5),
    "between_origins": lambda: geometry.between_origins(TURN, (1, 2, 3), (0, 0, 0)),
    "in_world": lambda: geometry.in_world(TURN, (1, 2, 3), (0, 0, 0)),
    "to_text": lambda: geometry.to_text(TURN),
    "parse_transform": lambda: geometry.parse_transform(geometry.to_text(TURN)),
    "parse_affine": lambda: geometry.parse_affine("2 0 0 0  0 2 0 0  0 0 2 1"),
    "drop_unreferenced_vertices": lambda: geometry.drop_unreferenced_vertices(SPHERE),
    "drop_degenerate_faces": lambda: geometry.drop_degenerate_faces(SPHERE),
    "drop_duplicate_faces": lambda: geometry.drop_duplicate_faces(SPHERE),
    "remove_small_components": lambda: geometry.remove_small_components(SPHERE, largest=1),
    "decimate": lambda: geometry.decimate(SPHERE, 100),
    "dedupe_vertices": lambda: geometry.dedupe_vertices(SPHERE),
    "dedupe_points": lambda: geometry.dedupe_points(CLOUD, 0.05),
    "merge_meshes": lambda: geometry.merge_meshes([SPHERE, geometry.cube_mesh()]),
    "merge_clouds": lambda: geometry.merge_clouds([CLOUD, MOVED]),
    "orient_faces": lambda: geometry.orient_faces(SPHERE.copy()),
    "sphere_mesh": lambda: geometry.sphere_mesh(),
    "cube_mesh": lambda: geometry.cube_mesh(1, 2, 3),
    "cylinder_mesh": lambda: geometry.cylinder_mesh(),
    "cone_mesh": lambda: geometry.cone_mesh(),
    "torus_mesh": lambda: geometry.torus_mesh(),
    "mesh_query_engine": lambda: geometry.mesh_query_engine(),
    "icp": lambda: geometry.icp(MOVED, CLOUD, metric="point", kernel="none"),
    "kernel_weight": lambda: geometry.kernel_weight("huber", 2, 1),
    "automatic_levels": lambda: geometry.automatic_levels(1.0),
    "rms_radius": lambda: geometry.rms_radius(CLOUD),
    "median_spacing": lambda: geometry.median_spacing(CLOUD),
    "common_voxel": lambda: geometry.common_voxel(CLOUD, MOVED, 1000),
    "has_normals": lambda: geometry.has_normals(CLOUD),
    "judge": lambda: geometry.judge(FOUND),
    "register_globally": lambda: geometry.register_globally(MOVED, CLOUD, most_points=300),
    "are_distinct": lambda: geometry.are_distinct(TURN, np.eye(4), (0, 0, 0), 1),
    "find_planes": lambda: geometry.find_planes(CLOUD, distance=0.02, count=1),
    "find_sweep_rings": lambda: geometry.find_sweep_rings(SWEEP),
    "find_ground": lambda: geometry.find_ground(CLOUD, cell=0.2, window=1),
    "sides_of": lambda: geometry.sides_of(CLOUD, sphere=((0, 0, 0), 0.5)),
    "parse_polygon": lambda: geometry.parse_polygon("0 0, 1 0, 1 1"),
    "edge_of": lambda: geometry.edge_of(0, 1, FOUND, 1.0),
    "optimise_poses": lambda: geometry.optimise_poses(2, [geometry.edge_of(0, 1, FOUND, 1.0)], tolerance=0.1),
}
