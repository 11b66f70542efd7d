// watertight() over a folder of meshes and over broken ones: a row for each, and exit status 1 on any violation.
//
//   watertight_study FOLDER [RESOLUTION = 64] [BROKEN = 200] [SAMPLES = 2000]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

#include "stipple/geometry/mesh_check.h"
#include "stipple/geometry/watertight.h"
#include "stipple/io/format.h"
#include "tests/geometry/broken_meshes.h"
#include "tests/geometry/shell_quality.h"

namespace {

using namespace stipple;

struct Group {
    std::string name;
    int64_t meshes = 0, violations = 0, faces = 0, most_faces = 0, flat = 0, crossings = 0;
    double from_output = 0, from_visible = 0, seconds = 0, slowest = 0;
};

double extent_of(const Mesh& mesh) {
    double extent = 0;
    for (int k = 0; k < 3; ++k) {
        double min = INFINITY, max = -INFINITY;
        for (int64_t i = 0; i < 3 * mesh.faces(); ++i) {
            const double value = mesh.vertices.positions.data()[3 * int64_t{mesh.triangles.data()[i]} + k];
            min = std::min(min, value), max = std::max(max, value);
        }
        extent = std::max(extent, max - min);
    }
    return extent;
}

void study(const std::string& name, const Mesh& mesh, int resolution, int64_t samples, Group& group) {
    const auto start = std::chrono::steady_clock::now();
    geometry::WatertightOptions options;
    options.resolution = resolution;
    const Mesh closed = geometry::watertight(mesh, options);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const geometry::MeshCheck check = geometry::check_mesh(closed);
    const double voxel = extent_of(mesh) / resolution;
    const test::ShellFit fit = test::measure_fit(mesh, closed, voxel, samples);
    const double from_output = fit.from_output / voxel, from_visible = fit.from_visible / voxel;
    const int64_t crossings = test::crossing_edges(closed);
    const bool good = check.is_watertight(closed) && check.volume > 0 && from_output < 1 && from_visible < 1;
    fmt::print("{:<58.58} {:>7} {:>7} {:>6.3f} {:>6.3f} {:>4.0f}% {:>7.3f} {:>5} {:>5} {}\n", name, mesh.faces(),
               closed.faces(), from_output, from_visible, 100.0 * fit.visible / fit.samples, seconds,
               check.degenerate_faces, crossings,
               good                          ? ""
               : check.is_watertight(closed) ? "TOO FAR"
                                             : "NOT WATERTIGHT");
    std::fflush(stdout);
    group.meshes += 1;
    group.violations += !good;
    group.faces += closed.faces();
    group.most_faces = std::max(group.most_faces, closed.faces());
    group.from_output = std::max(group.from_output, from_output);
    group.from_visible = std::max(group.from_visible, from_visible);
    group.flat += check.degenerate_faces;
    group.crossings += crossings;
    group.seconds += seconds;
    group.slowest = std::max(group.slowest, seconds);
}

void print(const Group& g) {
    fmt::print(
        "{}: {} meshes, {} violations; in voxels: output to input {:.3f}, visible input to output {:.3f}; "
        "{:.2f} s, slowest {:.3f} s; {} faces, at most {}, {} without area, {} edges cut the mesh itself\n",
        g.name, g.meshes, g.violations, g.from_output, g.from_visible, g.seconds, g.slowest, g.faces, g.most_faces,
        g.flat, g.crossings);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: watertight_study FOLDER [RESOLUTION] [BROKEN] [SAMPLES]\n");
        return 2;
    }
    const int resolution = argc > 2 ? std::stoi(argv[2]) : 64, broken = argc > 3 ? std::stoi(argv[3]) : 200;
    const int64_t samples = argc > 4 ? std::stoll(argv[4]) : 2000;
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
        if (entry.path().extension() == ".ply" || entry.path().extension() == ".off") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    fmt::print("{:<58} {:>7} {:>7} {:>6} {:>6} {:>5} {:>7} {:>5} {:>5}\n", "mesh", "faces", "out", "to in", "to out",
               "seen", "s", "flat", "cross");
    Group files{"files"}, made{"broken"};
    for (const std::string& path : paths) {
        io::Warnings warnings;
        study(std::filesystem::path(path).stem(), io::load_mesh(path, {}, warnings), resolution, samples, files);
    }
    for (int i = 0; i < broken; ++i) {
        const test::BrokenMesh mesh = test::broken_mesh(i, 40);
        study(fmt::format("{} {}", i, mesh.name), mesh.mesh, resolution, samples, made);
    }
    print(files);
    print(made);
    return files.violations + made.violations > 0 ? 1 : 0;
}
