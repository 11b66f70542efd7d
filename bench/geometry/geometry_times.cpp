// Our own times on one device, without peers: what a GPU machine runs, where the peers' libraries are not.
//
//   geometry_times [cpu|cuda] [REPEAT]
//
// Data as in bench/geometry: the wavy torus of 100,352 faces; queries are points of it moved by N(0, 0.02) in random
// order, rays go from a sphere of radius 3 to points in the torus's box.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/signed_distance.h"

namespace {

using namespace stipple;

Array<float, 2> noisy_torus(int64_t n) {
    Array<float, 2> points = bench::wavy_torus(n, 9);
    const Rng rng(10);
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] += 0.02f * rng.normal(static_cast<uint64_t>(i));
    return points;
}

struct RayArrays {
    Array<float, 2> origins, directions;
};
RayArrays random_rays(int64_t n) {
    RayArrays rays{Array<float, 2>({n, 3}), Array<float, 2>({n, 3})};
    const Rng rng(11);
    const double half[] = {1.3, 1.3, 0.5};
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(8 * i);
        const double z = 2.0 * rng.uniform(at) - 1, angle = 6.283185307179586 * rng.uniform(at + 1);
        const double ring = std::sqrt(1 - z * z),
                     from[] = {3 * ring * std::cos(angle), 3 * ring * std::sin(angle), 3 * z};
        for (int axis = 0; axis < 3; ++axis) {
            const double to = half[axis] * (2.0 * rng.uniform(at + 2 + static_cast<uint64_t>(axis)) - 1);
            rays.origins.data()[3 * i + axis] = static_cast<float>(from[axis]);
            rays.directions.data()[3 * i + axis] = static_cast<float>(to - from[axis]);
        }
    }
    return rays;
}

void print(const std::string& what, const bench::Timing& timing, int64_t items, const char* unit) {
    fmt::print("| {} | {:.3f} | {:.3f} | {} | {:.1f} M {}/s |\n", what, 1e3 * timing.best, 1e3 * timing.median,
               timing.runs, static_cast<double>(items) / timing.best / 1e6, unit);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const Device device = parse_device(argc > 1 ? argv[1] : "cpu");
    const bench::Budget budget{argc > 2 ? std::stoi(argv[2]) : 5, 0.5};
    const bool is_gpu = device.type != DeviceType::cpu;
    const Mesh torus = bench::wavy_torus_mesh();
    const Array<float, 2> vertices = torus.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = torus.triangles.to(device);
    const geometry::MeshView mesh(vertices.view(), triangles.view());

    fmt::print("{}, mesh queries by {}\n\n", to_string(device),
               is_gpu ? "own hierarchy" : geometry::mesh_query_engine());
    fmt::print("| work | best (ms) | median (ms) | runs | rate |\n|---|---|---|---|---|\n");
    const auto time = [&](const std::function<void()>& work) { return bench::measure(work, device, budget); };
    print("mesh index, 100,352 faces", time([&] { geometry::MeshIndex built(mesh); }), mesh.faces(), "faces");
    const geometry::MeshIndex index(mesh);
    for (const int64_t n : {100'000, 1'000'000}) {
        const Array<float, 2> queries = noisy_torus(n).to(device);
        Array<float, 1> distances({n}, device);
        Array<int32_t, 1> faces({n}, device);
        const geometry::ClosestPoints found{distances.view(), faces.view(), {}, {}};
        print(fmt::format("closest point, {} queries", n),
              time([&] { geometry::closest_point(index, queries.view(), found); }), n, "queries");
        print(fmt::format("closest point, {} queries, index included", n),
              time([&] { geometry::closest_point(geometry::MeshIndex(mesh), queries.view(), found); }), n, "queries");
    }
    for (const int64_t n : {1'000'000, 10'000'000}) {
        if (!is_gpu && n > 1'000'000) continue;
        const RayArrays host = random_rays(n);
        const Array<float, 2> origins = host.origins.to(device), directions = host.directions.to(device);
        Array<float, 1> t({n}, device);
        Array<int32_t, 1> faces({n}, device);
        Array<uint8_t, 1> any({n}, device);
        const geometry::Rays rays{origins.view(), directions.view()};
        print(fmt::format("first hit, {} rays", n), time([&] {
                  geometry::first_hit(index, rays, {t.view(), faces.view(), {}});
              }),
              n, "rays");
        print(fmt::format("any hit, {} rays", n), time([&] { geometry::any_hit(index, rays, any.view()); }), n, "rays");
    }
    {
        constexpr int64_t n = 100'000;
        const Array<float, 2> queries = noisy_torus(n).to(device);
        Array<float, 1> values({n}, device);
        const geometry::WindingIndex winding(mesh);
        print("winding number, 100,000 queries",
              time([&] { geometry::winding_number(winding, queries.view(), values.view()); }), n, "queries");
        print("signed distance, 100,000 queries, both indices included", time([&] {
                  geometry::signed_distance(geometry::MeshIndex(mesh), geometry::WindingIndex(mesh), queries.view(),
                                            {values.view(), {}, {}, {}});
              }),
              n, "queries");
        const Array<float, 2> points = bench::wavy_torus(n, 1).to(device);
        Array<float, 2> normals({n, 3}, device);
        print("normals, 100,000 points, k 16",
              time([&] { geometry::estimate_normals(points.view(), normals.view(), {}); }), n, "points");
    }
    return 0;
}
