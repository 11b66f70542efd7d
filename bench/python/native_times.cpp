// The calls of geometry_peers.py from C++: the same functions on the same files.
//
//   native_times SOURCE TARGET REPEAT        prints "NAME BEST_MS" a line

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "stipple/geometry/icp.h"
#include "stipple/geometry/normals.h"
#include "stipple/io/format.h"
#include "stipple/ops/chamfer.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/knn.h"

namespace {

using namespace stipple;

template <class Work>
void measure(const char* name, int repeat, Work&& work) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeat; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    fmt::print("{} {:.6f}\n", name, 1e3 * best);
}

/// Memory for one direction of the chamfer distance.
struct Side {
    Array<int32_t, 1> nearest, used;
    Array<float, 1> distances_sq, mean;
    explicit Side(int64_t n) : nearest({n}), used({1}), distances_sq({n}), mean({1}) {}
    ops::ChamferSide view() { return {nearest.view(), distances_sq.view(), mean.view(), used.view()}; }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    io::Warnings warnings;
    const PointCloud source = io::load_cloud(argv[1], {}, warnings), target = io::load_cloud(argv[2], {}, warnings);
    const int repeat = std::stoi(argv[3]);
    const View<const float, 2> points = target.positions.view();
    const int64_t n = target.size();
    measure("knn", repeat, [&] {
        Array<int32_t, 2> indices({n, 16});
        Array<float, 2> distances_sq({n, 16});
        const ops::Clouds clouds(points);
        ops::knn(clouds, clouds, indices.view(), distances_sq.view());
    });
    measure("fps", repeat, [&] {
        Array<int32_t, 1> indices({n / 8});
        Array<float, 1> distances_sq({n / 8});
        ops::farthest_point_sample(ops::Clouds(points), ops::Batch::single(n / 8), indices.view(), distances_sq.view());
    });
    measure("chamfer", repeat, [&] {
        Side a_to_b(source.size()), b_to_a(n);
        ops::chamfer(ops::Clouds(source.positions.view()), ops::Clouds(points), ops::DistanceNorm::squared,
                     a_to_b.view(), b_to_a.view());
    });
    measure("normals", repeat, [&] {
        Array<float, 2> normals({n, 3});
        Array<float, 1> curvatures({n});
        geometry::estimate_normals(points, normals.view(), curvatures.view(), 16);
    });
    measure("icp", repeat, [&] { geometry::icp(source, target); });
}
