// Open3D reads what we write and we read what it writes, to the last bit where the format allows.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/clouds.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

Mesh load(const std::string& path) {
    io::Warnings warnings;
    return io::load(path, {}, warnings);
}

void save(const std::string& path, const Mesh& mesh, bool ascii = false) {
    io::Warnings warnings;
    io::save(path, mesh, Overwrite::refuse, {ascii}, warnings);
}

/// Float64 numbers that a script left with numpy's tofile.
std::vector<double> numbers(const std::string& path) {
    const std::string bytes = read_file(path);
    std::vector<double> values(bytes.size() / sizeof(double));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
    return values;
}

void expect_positions(const Mesh& mesh, const std::vector<double>& expected, double tolerance,
                      const std::string& name) {
    ASSERT_EQ(expected.size(), static_cast<size_t>(3 * mesh.vertices.size())) << name;
    for (int64_t i = 0; i < mesh.vertices.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            ASSERT_NEAR(mesh.vertices.world(i, axis), expected[3 * i + axis], tolerance) << name << " point " << i;
}

TEST(IoOpen3d, WeReadTheirs) {
    const TemporaryFolder folder;
    run_python(folder, R"(
import numpy as np, open3d as o3d
rng = np.random.default_rng(1)
points = rng.random((500, 3)).astype(np.float32).astype(np.float64)
normals = rng.normal(size=(500, 3)); normals /= np.linalg.norm(normals, axis=1, keepdims=True)
colors = rng.integers(0, 256, (500, 3)) / 255
cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
cloud.normals = o3d.utility.Vector3dVector(normals); cloud.colors = o3d.utility.Vector3dVector(colors)
for name, options in {'binary.ply': {}, 'ascii.ply': dict(write_ascii=True), 'binary.pcd': {}, 'ascii.pcd': dict(write_ascii=True),
                      'compressed.pcd': dict(compressed=True), 'plain.xyz': {}, 'plain.pts': {}, 'plain.xyzn': {}, 'plain.xyzrgb': {}}.items():
    assert o3d.io.write_point_cloud(name, cloud, **options), name
points.tofile('points'); normals.tofile('normals'); (colors * 255).round().tofile('colors')
mesh = o3d.geometry.TriangleMesh.create_sphere(1.0, 10); mesh.compute_vertex_normals()
np.asarray(mesh.vertices).tofile('vertices'); np.asarray(mesh.triangles).astype(np.float64).tofile('triangles')
for name in ['mesh.ply', 'mesh.off', 'mesh.obj', 'mesh.stl']:
    assert o3d.io.write_triangle_mesh(name, mesh), name
)");
    const std::vector<double> points = numbers(folder / "points"), normals = numbers(folder / "normals"),
                              colors = numbers(folder / "colors");
    for (const char* name : {"binary.ply", "ascii.ply", "binary.pcd", "ascii.pcd", "compressed.pcd", "plain.xyz",
                             "plain.pts", "plain.xyzn", "plain.xyzrgb"}) {
        const Mesh mesh = load(folder / name);
        // Open3D writes ten decimals into text; binary and PLY text are exact.
        const bool exact = std::string(name) == "binary.ply" || std::string(name) == "binary.pcd" ||
                           std::string(name) == "compressed.pcd";
        expect_positions(mesh, points, exact ? 0 : 1e-6, name);
        if (const Attribute* normal = find(mesh.vertices.attributes, "normal")) {
            for (int64_t i = 0; i < 1500; ++i) ASSERT_NEAR(normal->value(i / 3, i % 3), normals[i], 1e-6) << name;
        }
        if (const Attribute* color = find(mesh.vertices.attributes, "color")) {
            for (int64_t i = 0; i < 1500; ++i) ASSERT_EQ(color->value(i / 3, i % 3), colors[i]) << name;
        }
    }
    for (const char* name : {"binary.ply", "ascii.ply", "binary.pcd", "ascii.pcd", "compressed.pcd"}) {
        const Mesh mesh = load(folder / name);
        EXPECT_TRUE(find(mesh.vertices.attributes, "normal")) << name;
        EXPECT_TRUE(find(mesh.vertices.attributes, "color")) << name;
    }
    EXPECT_TRUE(find(load(folder / "plain.xyzn").vertices.attributes, "normal"));
    const Mesh colored = load(folder / "plain.xyzrgb");
    ASSERT_TRUE(find(colored.vertices.attributes, "color"));
    EXPECT_EQ(find(colored.vertices.attributes, "color")->dtype(), DType::u8);
    const std::vector<double> vertices = numbers(folder / "vertices"), triangles = numbers(folder / "triangles");
    for (const char* name : {"mesh.ply", "mesh.off", "mesh.obj"}) {
        const Mesh mesh = load(folder / name);
        expect_positions(mesh, vertices, 1e-5, name);  // Open3D's OFF and OBJ have six digits
        ASSERT_EQ(static_cast<size_t>(3 * mesh.faces()), triangles.size()) << name;
        for (size_t i = 0; i < triangles.size(); ++i) ASSERT_EQ(mesh.triangles.data()[i], triangles[i]) << name;
    }
    EXPECT_EQ(static_cast<size_t>(3 * load(folder / "mesh.stl").faces()), triangles.size());
}

TEST(IoOpen3d, TheyReadOurs) {
    const TemporaryFolder folder;
    Mesh cloud = random_cloud(500);
    add_normals(cloud.vertices);
    add_colors(cloud.vertices);
    save(folder / "binary.ply", cloud);
    save(folder / "ascii.ply", cloud, true);
    save(folder / "binary.pcd", cloud);
    save(folder / "ascii.pcd", cloud, true);
    io::Warnings warnings;
    io::save(folder / "compressed.pcd", cloud, Overwrite::refuse, {false, true}, warnings);
    save(folder / "plain.xyz", cloud);
    save(folder / "plain.xyzn", cloud);
    save(folder / "plain.xyzrgb", cloud);
    save(folder / "plain.pts", cloud);
    Mesh mesh = random_mesh(300);
    for (const char* name : {"mesh.ply", "mesh.off", "mesh.obj", "mesh.stl"}) save(folder / name, mesh);
    Mesh utm = random_cloud(500);
    utm.vertices.origin = {500000, 5400000, 0};
    save(folder / "utm.ply", utm);
    const auto dump = [&](const char* name, const void* data, int64_t bytes) {
        write_file(folder / name, {static_cast<const char*>(data), static_cast<size_t>(bytes)});
    };
    dump("points", cloud.vertices.positions.data(), 6000);
    dump("normals", cloud.vertices.attributes[0].data(), 6000);
    dump("colors", cloud.vertices.attributes[1].data(), 1500);
    dump("vertices", mesh.vertices.positions.data(), 12 * 300);
    dump("triangles", mesh.triangles.data(), 12 * mesh.faces());
    dump("utm", utm.vertices.positions.data(), 6000);
    run_python(folder, R"(
import numpy as np, open3d as o3d
def same(a, b, tolerance, what):
    assert a.shape == b.shape and np.abs(a - b).max() <= tolerance, (what, a.shape, b.shape)
read = lambda name, type: np.fromfile(name, type).reshape(-1, 3)
points, normals, colors = read('points', '<f4'), read('normals', '<f4'), read('colors', 'u1')
for name in ['binary.ply', 'ascii.ply', 'binary.pcd', 'ascii.pcd', 'compressed.pcd', 'plain.xyz', 'plain.xyzn', 'plain.xyzrgb', 'plain.pts']:
    cloud = o3d.io.read_point_cloud(name)
    same(np.asarray(cloud.points), points, 1e-7 if name != 'plain.pts' else 1e-6, name)
    if name[-3:] in ('ply', 'pcd') or name == 'plain.xyzn':
        same(np.asarray(cloud.normals), normals, 1e-6, name)
    if name[-3:] in ('ply', 'pcd') or name == 'plain.xyzrgb':
        same(np.asarray(cloud.colors) * 255, colors, 1e-4, name)
same(np.asarray(o3d.io.read_point_cloud('utm.ply').points), read('utm', '<f4') + np.array([500000.0, 5400000.0, 0.0]), 1e-8, 'utm')
for name in ['mesh.ply', 'mesh.off', 'mesh.obj']:
    # Corner by corner: its OBJ reader leaves out vertices without faces.
    mesh = o3d.io.read_triangle_mesh(name)
    same(np.asarray(mesh.vertices)[np.asarray(mesh.triangles)], read('vertices', '<f4')[read('triangles', '<i4')], 1e-6, name)
assert len(o3d.io.read_triangle_mesh('mesh.stl').triangles) == len(read('triangles', '<i4'))
)");
}

/// A LAS file of UTM coordinates and 16-bit colours, as Open3D sees it in the formats that it reads.
TEST(IoOpen3d, TheyReadWhatWeMakeOfLas) {
    const TemporaryFolder folder;
    Mesh scan = random_cloud(400);
    scan.vertices.origin = {500000, 4649776, 100};
    for (int64_t i = 0; i < 1200; ++i) {
        float& p = scan.vertices.positions.data()[i];
        p = static_cast<float>(std::round(p * 10000) * 0.01);
    }
    Attribute color("color", DType::u16, 400, 3);
    for (int64_t i = 0; i < 1200; ++i)
        reinterpret_cast<uint16_t*>(color.data())[i] = static_cast<uint16_t>((i * 37 % 256) * 256);
    scan.vertices.attributes.push_back(std::move(color));
    save(folder / "scan.las", scan);
    const Mesh source = load(folder / "scan.las");
    for (const char* name : {"scan.ply", "scan.pcd", "scan.xyzrgb", "scan.pts"}) save(folder / name, source);
    save(folder / "text.pcd", source, true);
    std::vector<double> world;
    for (int64_t i = 0; i < 400; ++i)
        for (int axis = 0; axis < 3; ++axis) world.push_back(source.vertices.world(i, axis));
    write_file(folder / "world", {reinterpret_cast<const char*>(world.data()), world.size() * 8});
    run_python(folder, R"(
import numpy as np, open3d as o3d
world = np.fromfile('world').reshape(-1, 3)
colors = (np.arange(1200) * 37 % 256).reshape(-1, 3)
for name in ['scan.ply', 'scan.pcd', 'text.pcd', 'scan.xyzrgb', 'scan.pts']:
    cloud = o3d.io.read_point_cloud(name)
    points, seen = np.asarray(cloud.points), np.asarray(cloud.colors)
    origin = np.array([500000.0, 4649776.0, 100.0]) if name.endswith('.pcd') else 0
    assert points.shape == world.shape and np.abs(points + origin - world).max() < 1e-5, (name, points[:2], world[:2])
    if name == 'scan.pts':
        continue
    assert seen.shape == colors.shape and np.abs(seen * 255 - colors).max() < 1e-3, (name, seen[:2], colors[:2])
)");
}

}  // namespace
}  // namespace stipple::test
