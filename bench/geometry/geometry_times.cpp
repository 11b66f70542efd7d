// Our own times on one device, without peers: what a GPU machine runs, where the peers' libraries are not.
//
//   geometry_times [cpu|cuda] [REPEAT]
//
// Data as in bench/geometry: the wavy torus of 100,352 faces; queries are points of it moved by N(0, 0.02) in random
// order, rays go from a sphere of radius 3 to points in the torus's box.

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/signed_distance.h"

namespace {

using namespace stipple;

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
        const Array<float, 2> queries = bench::noisy_torus(n).to(device);
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
        const bench::RayArrays host = bench::random_rays(n);
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
        const Array<float, 2> queries = bench::noisy_torus(n).to(device);
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
