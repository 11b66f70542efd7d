// Closest points, rays and surface samples beside their peers, on the same mesh in the same run: best of N, all taking
// turns.
//
//   mesh_bench [REPEAT]
//
// The wavy torus of 100,352 faces. Closest points: 100,000 points of it moved by N(0, 0.02), in random order, building
// included. Rays: 1M from a sphere of radius 3 to points in the torus's box, in random order; and those of a pinhole
// camera, in the order of its pixels; trees are built outside the clock. Samples: 8192 by Poisson disk, 1M uniform.
// `difference` is the largest between our numbers and the peer's, relative to the diagonal of the mesh; of rays the
// share that hits for one and not for the other.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "mesh_peers.h"
#include "stipple/bench/data.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/geometry/signed_distance.h"
#include "stipple/io/text.h"

namespace {

using namespace stipple;
using Clock = std::chrono::steady_clock;

struct Row {
    std::string name;
    peer::MeshRun run;
    double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    std::vector<float> values = {};
};
using Compare = std::function<std::string(const std::vector<float>& ours, const std::vector<float>& theirs)>;

/// The first row is ours.
void compare(const std::string& title, std::vector<Row> rows, int repeat, const Compare& difference) {
    for (int i = 0; i < repeat; ++i)
        for (const int threads : {1, 2})
            for (Row& row : rows) {
                set_threads(threads);
                const auto begin = Clock::now();
                row.run.run(threads, row.values);
                const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                row.best[threads - 1] = std::min(row.best[threads - 1], seconds);
            }
    fmt::print("\n### {}\n\n| | 1 thread ms | 2 threads ms | ratio | difference |\n|---|---|---|---|---|\n", title);
    for (const Row& row : rows)
        fmt::print("| {} | {:.1f} | {:.1f} | {:.2f} / {:.2f} | {} |\n", row.name, 1e3 * row.best[0], 1e3 * row.best[1],
                   row.best[0] / rows[0].best[0], row.best[1] / rows[0].best[1],
                   difference(rows[0].values, row.values));
    std::fflush(stdout);
}

constexpr double kDiagonal = 4.0;  // of the torus's box, within a few percent

std::string largest_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
    double most = 0;
    for (size_t i = 0; i < ours.size(); ++i) most = std::max(most, std::fabs(double{ours[i]} - theirs[i]));
    return fmt::format("{:.1e}", most / kDiagonal);
}

std::string hit_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
    int64_t hits = 0, other = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
        hits += std::isfinite(theirs[i]);
        other += std::isfinite(ours[i]) != std::isfinite(theirs[i]);
    }
    return fmt::format("{} hits, {} other", hits, other);
}

/// A pinhole at (0, 0, 2.6) that looks down, image plane +-0.6.
bench::RayArrays camera_rays(int side) {
    const int64_t n = int64_t{side} * side;
    bench::RayArrays rays{Array<float, 2>({n, 3}), Array<float, 2>({n, 3})};
    float *origin = rays.origins.data(), *direction = rays.directions.data();
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x) {
            const float u = 1.2f * ((static_cast<float>(x) + 0.5f) / static_cast<float>(side) - 0.5f);
            const float v = 1.2f * ((static_cast<float>(y) + 0.5f) / static_cast<float>(side) - 0.5f);
            for (const float c : {0.0f, 0.0f, 2.6f}) *origin++ = c;
            for (const float c : {u, v, -1.0f}) *direction++ = c;
        }
    return rays;
}

void compare_rays(const std::string& title, const bench::RayArrays& rays, const geometry::MeshIndex& index,
                  peer::MeshJob job, int repeat) {
    const int64_t n = rays.origins.size(0);
    job.queries = rays.origins.data(), job.directions = rays.directions.data(), job.count = n;
    std::vector<int32_t> faces(static_cast<size_t>(n));
    std::vector<Row> rows;
    rows.push_back({"stipple", {[&](int, std::vector<float>& values) {
                        values.resize(static_cast<size_t>(n));
                        geometry::first_hit(
                            index,
                            {View<const float, 2>(job.queries, {n, 3}), View<const float, 2>(job.directions, {n, 3})},
                            {View<float, 1>(values.data(), {n}), View<int32_t, 1>(faces.data(), {n}), {}});
                    }}});
#ifdef STIPPLE_BENCH_EMBREE
    rows.push_back({"Embree, single rays", peer::embree_rays_1(job)});
    rows.push_back({"Embree, packets of 4", peer::embree_rays_4(job)});
#endif
    compare(title, std::move(rows), repeat, hit_difference);
}

}  // namespace

int main(int argc, char** argv) {
    int64_t repeat = 5;
    if (argc > 2 || (argc == 2 && !io::parse_number(argv[1], repeat))) {
        std::fputs("usage: mesh_bench [REPEAT]\n", stderr);
        return 2;
    }
    const int times = static_cast<int>(repeat);
    const Mesh mesh = bench::wavy_torus_mesh();
    const geometry::MeshIndex index(mesh);
    constexpr int64_t kQueries = 100'000;
    const Array<float, 2> queries = bench::noisy_torus(kQueries);
    peer::MeshJob job;
    job.vertices = mesh.vertices.positions.data(), job.triangles = mesh.triangles.data();
    job.n = mesh.vertices.size(), job.m = mesh.faces();
    job.queries = queries.data(), job.count = kQueries;
    std::vector<int32_t> faces(kQueries);

    std::vector<Row> rows;
    rows.push_back(
        {"stipple", {[&](int, std::vector<float>& values) {
             values.resize(kQueries);
             geometry::closest_point(
                 geometry::MeshIndex(mesh), queries.view(),
                 {View<float, 1>(values.data(), {kQueries}), View<int32_t, 1>(faces.data(), {kQueries}), {}, {}});
         }}});
#ifdef STIPPLE_BENCH_EMBREE
    rows.push_back({"Embree", peer::embree_closest(job)});
#endif
#ifdef STIPPLE_BENCH_OPEN3D
    rows.push_back({"Open3D", peer::open3d_closest(job)});
#endif
#ifdef STIPPLE_BENCH_CGAL
    rows.push_back({"CGAL AABB tree", peer::cgal_closest(job)});
#endif
    compare("Closest point, 100k queries, 100,352 faces, build and query", std::move(rows), times, largest_difference);

    rows.clear();
    rows.push_back({"stipple", {[&](int, std::vector<float>& values) {
                        values.resize(kQueries);
                        geometry::signed_distance(geometry::MeshIndex(mesh), geometry::WindingIndex(mesh),
                                                  queries.view(),
                                                  {View<float, 1>(values.data(), {kQueries}), {}, {}, {}});
                    }}});
    compare("Signed distance by winding number, 100k queries, both builds included", std::move(rows), times,
            largest_difference);

    compare_rays("First hit, 1M random rays", bench::random_rays(1'000'000), index, job, times);
    compare_rays("First hit, 1000 x 1000 camera rays", camera_rays(1000), index, job, times);

    for (const bool poisson : {true, false}) {
        job.count = poisson ? 8192 : 1'000'000;
        rows.clear();
        rows.push_back({"stipple", {[&](int, std::vector<float>& values) {
                            const geometry::SurfaceSamples samples =
                                poisson ? geometry::sample_surface_poisson(mesh, job.count, 1)
                                        : geometry::sample_surface(mesh, job.count, 1);
                            values.assign(samples.points.data(), samples.points.data() + 3 * samples.points.size(0));
                        }}});
#ifdef STIPPLE_BENCH_OPEN3D
        rows.push_back({"Open3D (no threads)", poisson ? peer::open3d_poisson(job) : peer::open3d_uniform(job)});
#endif
        compare(poisson ? "Poisson disk, 8192 samples" : "Uniform samples, 1M", std::move(rows), times,
                [](const auto&, const auto& points) { return fmt::format("{} points", points.size() / 3); });
    }
}
