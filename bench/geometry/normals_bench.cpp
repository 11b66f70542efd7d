// Normals, consistent orientation and statistical outliers beside their peers, on the same points in the same run: best
// of N, all taking turns.
//
//   normals_bench [REPEAT]
//
// 100,000 points of the wavy torus, k = 16; trees are built within the clock. `agree` is the share of normals within
// half a degree of ours but for the sign, of normals oriented outwards, or of points that are kept or removed alike.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "normals_peers.h"
#include "stipple/bench/data.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/outliers.h"
#include "stipple/io/text.h"

namespace {

using namespace stipple;
using Clock = std::chrono::steady_clock;

constexpr int64_t kPoints = 100'000;
constexpr int kNeighbours = 16;
constexpr double kRatio = 2;

struct Row {
    std::string name;
    peer::NormalsRun run;
    double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
};

using Score = std::function<double(const peer::NormalsRun&)>;

/// The first row is ours.
void compare(const std::string& title, std::vector<Row> rows, int repeat, const Score& agree) {
    for (int i = 0; i < repeat; ++i) {
        for (const int threads : {1, 2}) {
            for (Row& row : rows) {
                row.run.prepare(threads);
                const auto begin = Clock::now();
                row.run.run(threads);
                const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                row.best[threads - 1] = std::min(row.best[threads - 1], seconds);
            }
        }
    }
    fmt::print("\n### {}\n\n| | 1 thread ms | 2 threads ms | ratio | agree |\n|---|---|---|---|---|\n", title);
    for (const Row& row : rows)
        fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} / {:.1f} | {:.3f} % |\n", row.name, 1e3 * row.best[0],
                   1e3 * row.best[1], row.best[0] / rows[0].best[0], row.best[1] / rows[0].best[1], agree(row.run));
}

double dot(const float* a, const float* b) {
    return double{a[0]} * b[0] + double{a[1]} * b[1] + double{a[2]} * b[2];
}

std::vector<float> as_vector(const Array<float, 2>& rows) {
    return {rows.data(), rows.data() + rows.elements()};
}

}  // namespace

int main(int argc, char** argv) {
    int64_t repeat = 5;
    if (argc > 2 || (argc == 2 && !io::parse_number(argv[1], repeat))) {
        std::fputs("usage: normals_bench [REPEAT]\n", stderr);
        return 2;
    }
    const int times = static_cast<int>(repeat);
    const Array<float, 2> points = bench::wavy_torus(kPoints, 1);
    Array<float, 2> normals({kPoints, 3}), turned({kPoints, 3});
    Array<uint8_t, 1> keep({kPoints});
    geometry::estimate_normals(points.view(), normals.view(), {}, kNeighbours);
    const std::vector<float> unoriented = as_vector(normals);
    std::copy(unoriented.begin(), unoriented.end(), turned.data());
    geometry::orient_consistently(points.view(), turned.view(), kNeighbours);
    const std::vector<float> outwards = as_vector(turned);
    const peer::NormalsJob job{points.data(), nullptr, kPoints, kNeighbours};
    [[maybe_unused]] peer::NormalsJob with_normals = job;
    with_normals.normals = unoriented.data();

    std::vector<Row> rows;
    rows.push_back({"stipple",
                    {[](int threads) { set_threads(threads); },
                     [&](int) { geometry::estimate_normals(points.view(), normals.view(), {}, kNeighbours); },
                     [&] { return as_vector(normals); }}});
#ifdef STIPPLE_BENCH_OPEN3D
    rows.push_back({"Open3D", peer::open3d_normals(job)});
#endif
#ifdef STIPPLE_BENCH_PCL
    rows.push_back({"PCL", peer::pcl_normals(job)});
#endif
    const auto percent = [](int64_t count) { return 100.0 * static_cast<double>(count) / kPoints; };
    compare("Normals, 100k points, k = 16", std::move(rows), times, [&](const peer::NormalsRun& run) {
        const std::vector<float> found = run.normals();
        int64_t same = 0;
        for (size_t i = 0; i < found.size(); i += 3)
            same += std::fabs(dot(&found[i], &unoriented[i])) > std::cos(0.5 * M_PI / 180);
        return percent(same);
    });

    rows.clear();
    rows.push_back({"stipple",
                    {[&](int threads) {
                         set_threads(threads);
                         std::copy(unoriented.begin(), unoriented.end(), turned.data());
                     },
                     [&](int) { geometry::orient_consistently(points.view(), turned.view(), kNeighbours); },
                     [&] { return as_vector(turned); }}});
#ifdef STIPPLE_BENCH_OPEN3D
    rows.push_back({"Open3D", peer::open3d_orientation(with_normals)});
#endif
    compare("Consistent orientation, 100k points, k = 16", std::move(rows), times, [&](const peer::NormalsRun& run) {
        const std::vector<float> found = run.normals();
        int64_t same = 0;
        for (size_t i = 0; i < found.size(); i += 3) same += dot(&found[i], &outwards[i]) > 0;
        return percent(std::max(same, kPoints - same));  // Open3D does not choose a side
    });

    rows.clear();
    rows.push_back({"stipple",
                    {[](int threads) { set_threads(threads); },
                     [&](int) { geometry::statistical_outliers(points.view(), keep.view(), kNeighbours, kRatio); },
                     {},
                     [&] {
                         std::vector<int> kept;
                         for (int i = 0; i < kPoints; ++i)
                             if (keep.data()[i]) kept.push_back(i);
                         return kept;
                     }}});
#ifdef STIPPLE_BENCH_OPEN3D
    rows.push_back({"Open3D", peer::open3d_outliers(job, kRatio)});
#endif
#ifdef STIPPLE_BENCH_PCL
    rows.push_back({"PCL (no threads)", peer::pcl_outliers(job, kRatio)});
#endif
    compare("Statistical outliers, 100k points, k = 16, ratio 2", std::move(rows), times,
            [&](const peer::NormalsRun& run) {
                std::vector<uint8_t> theirs(kPoints, 0);
                for (const int i : run.kept()) theirs[i] = 1;
                int64_t same = 0;
                for (int64_t i = 0; i < kPoints; ++i) same += theirs[i] == keep.data()[i];
                return percent(same);
            });
}
