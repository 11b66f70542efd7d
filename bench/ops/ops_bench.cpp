// Every op beside its peers, on the same points in the same run: best of N, all programs taking turns.
//
//   ops_bench [--op NAME]... [--repeat N] [--only-ours] [-o FILE.md] [--json FILE.json]
//       NAME: knn, radius, fps, voxel, chamfer, emd, sinkhorn, or an op without a peer by its own name
//
// Peers are given the points in their own cloud type; building their tree is timed, as ours is. What has no peer is
// printed beside the time that its bytes take to copy. bench/results/ops.md is such a file.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <set>

#include "naive.h"
#include "peer.h"
#include "stipple/bench/cases.h"
#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"

namespace {

using namespace stipple;
using Json = nlohmann::ordered_json;

struct Options {
    std::set<std::string> ops;
    int repeat = 5;
    bool only_ours = false;
    std::string markdown, json;
};

/// A comparison: one job for all who can do it.
struct Comparison {
    std::string title;
    peer::Job job;
};

/// The clouds of the jobs, alive until the end. Seeds as they are numbered in bench/results/ops.md.
struct Clouds {
    Array<float, 2> torus_100k = bench::wavy_torus(100'000, 1), torus_100kb = bench::wavy_torus(100'000, 2);
    Array<float, 2> torus_1m = bench::wavy_torus(1'000'000, 3);
    Array<float, 2> torus_8192 = bench::wavy_torus(8192, 5), torus_8192b = bench::wavy_torus(8192, 6);
    Array<float, 2> cube_100k = bench::unit_cube(100'000, 7);
};

std::vector<Comparison> comparisons(const Clouds& clouds) {
    const auto one = [](const char* op, const Array<float, 2>& a, int64_t count, float length) {
        return peer::Job{op, a.data(), a.size(0), nullptr, 0, count, length};
    };
    const auto two = [](const char* op, const Array<float, 2>& a, const Array<float, 2>& b, int64_t n,
                        int64_t count = 0,
                        float length = 0) { return peer::Job{op, a.data(), n, b.data(), n, count, length}; };
    return {
        {"knn, k 16, torus 100k, build and query", one("knn", clouds.torus_100k, 16, 0)},
        {"knn, k 16, torus 1M, build and query", one("knn", clouds.torus_1m, 16, 0)},
        {"knn, k 16, cube 100k, build and query", one("knn", clouds.cube_100k, 16, 0)},
        {"radius search, r 0.03, torus 100k, build and query", one("radius", clouds.torus_100k, 0, 0.03f)},
        {"farthest point sampling, torus 100k to 4096", one("fps", clouds.torus_100k, 4096, 0)},
        {"voxel grid, edge 0.02, torus 1M", one("voxel", clouds.torus_1m, 0, 0.02f)},
        {"chamfer, both ways, torus 8192", two("chamfer", clouds.torus_8192, clouds.torus_8192b, 8192)},
        {"chamfer, both ways, torus 100k", two("chamfer", clouds.torus_100k, clouds.torus_100kb, 100'000)},
        {"EMD, 1024 points", two("emd", clouds.torus_8192, clouds.torus_8192b, 1024)},
        {"EMD, 2048 points", two("emd", clouds.torus_8192, clouds.torus_8192b, 2048)},
        {"EMD, 4096 points", two("emd", clouds.torus_8192, clouds.torus_8192b, 4096)},
        {"Sinkhorn, 2048 points, 100 iterations, epsilon 0.005",
         two("sinkhorn", clouds.torus_8192, clouds.torus_8192b, 2048, 100, 0.005f)},
    };
}

std::vector<peer::Peer> all_peers(bool only_ours) {
    std::vector<peer::Peer> peers = peer::stipple_peers();
    const auto take = [&](std::vector<peer::Peer> more) { peers.insert(peers.end(), more.begin(), more.end()); };
    if (only_ours) return peers;
#ifdef STIPPLE_BENCH_FLANN
    take(peer::flann_peers());
#endif
#ifdef STIPPLE_BENCH_NANOFLANN
    take(peer::nanoflann_peers());
#endif
#ifdef STIPPLE_BENCH_CGAL
    take(peer::cgal_peers());
#endif
#ifdef STIPPLE_BENCH_PCL
    take(peer::pcl_peers());
#endif
#ifdef STIPPLE_BENCH_OPEN3D
    take(peer::open3d_peers());
#endif
    take(peer::scipy_peers());
    take(peer::naive_peers());
    return peers;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Row {
    std::string program;
    peer::Run run;
    bool is_threaded = false;
    double best[2] = {kNever, kNever};  // seconds on one thread and on all
    double value = 0;
    double spent = 0;  // seconds in all; above kEnough no further run begins
    int runs = 0;
};
constexpr double kEnough = 20;

double seconds_of(const peer::Run& run, int threads, double& value) {
    set_threads(threads);
    const auto begin = std::chrono::steady_clock::now();
    const peer::Outcome outcome = run(threads);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    value = outcome.value;
    return outcome.seconds >= 0 ? outcome.seconds : seconds;
}

std::string ms(double seconds) {
    if (seconds == kNever) return "-";
    return seconds >= 1 ? fmt::format("{:.0f}", 1e3 * seconds) : fmt::format("{:.4g}", 1e3 * seconds);
}

std::string ratio(double a, double b) {
    return a == kNever || b == kNever ? "-" : fmt::format("{:.2f}", a / b);
}

class Report {
public:
    explicit Report(const Options& options) {
        if (!options.markdown.empty()) file_ = std::fopen(options.markdown.c_str(), "w");
    }
    ~Report() {
        if (file_) std::fclose(file_);
    }
    Report(const Report&) = delete;
    Report& operator=(const Report&) = delete;

    void line(const std::string& text) {
        std::printf("%s\n", text.c_str());
        std::fflush(stdout);
        if (file_) std::fprintf(file_, "%s\n", text.c_str());
    }
    void row(const std::vector<std::string>& cells, const std::vector<int>& widths) {
        std::string text = "|";
        for (size_t i = 0; i < cells.size(); ++i)
            text +=
                i == 0 ? fmt::format(" {:<{}} |", cells[i], widths[i]) : fmt::format(" {:>{}} |", cells[i], widths[i]);
        line(text);
    }
    void rule(const std::vector<int>& widths) {
        std::string text = "|";
        for (size_t i = 0; i < widths.size(); ++i) text += std::string(widths[i] + 1, '-') + (i == 0 ? "-|" : ":|");
        line(text);
    }

private:
    std::FILE* file_ = nullptr;
};

/// One table: ours in the first row, the others with how many times longer they take.
Json compare(const Comparison& comparison, const std::vector<peer::Peer>& peers, int all_threads,
             const Options& options, Report& report) {
    std::vector<Row> rows;
    for (const peer::Peer& peer : peers)
        if (comparison.job.op == peer.op) rows.push_back({peer.name, peer.prepare(comparison.job), peer.is_threaded});
    if (rows.empty()) return {};
    for (int i = 0; i < options.repeat; ++i)
        for (Row& row : rows) {
            if (row.spent > kEnough) continue;
            ++row.runs;
            for (int t = 0; t < (row.is_threaded && all_threads > 1 ? 2 : 1); ++t) {
                const double seconds = seconds_of(row.run, t == 0 ? 1 : all_threads, row.value);
                row.best[t] = std::min(row.best[t], seconds);
                row.spent += seconds;
            }
        }

    const std::vector<int> widths = {28, 11, 12, 8, 14, 15, 14};
    report.line(fmt::format("\n## {}\n", comparison.title));
    report.row({"program", "1 thread ms", fmt::format("{} threads ms", all_threads), "speed-up", "ours x, 1 thr.",
                fmt::format("ours x, {} thr.", all_threads), "finds"},
               widths);
    report.rule(widths);
    Json list = Json::array();
    for (const Row& row : rows) {
        // A program without threads takes as long on a machine with more of them.
        const double on_all = row.is_threaded ? row.best[1] : row.best[0];
        const double ours = rows[0].is_threaded ? rows[0].best[1] : rows[0].best[0];
        const std::string few = row.runs < options.repeat ? fmt::format(", best of {}", row.runs) : "";
        report.row({row.program + few, ms(row.best[0]), ms(row.best[1]), ratio(row.best[0], row.best[1]),
                    ratio(row.best[0], rows[0].best[0]), ratio(on_all, ours), fmt::format("{:.7g}", row.value)},
                   widths);
        list.push_back({{"program", row.program},
                        {"ms_1", 1e3 * row.best[0]},
                        {"ms_all", row.is_threaded ? Json(1e3 * row.best[1]) : Json()},
                        {"runs", row.runs},
                        {"value", row.value}});
    }
    return {{"title", comparison.title}, {"op", comparison.job.op}, {"rows", list}};
}

/// The ops without peers, beside the time that their bytes take to copy.
Json print_alone(const Options& options, int all_threads, Report& report) {
    const std::set<std::string> compared = {"knn", "radius_search", "farthest_point_sample", "voxel_grid", "chamfer",
                                            "emd", "sinkhorn"};
    set_threads(1);
    const double copy_one = bench::copy_bandwidth({});
    set_threads(all_threads);
    const double copy_all = bench::copy_bandwidth({});
    const std::vector<int> widths = {55, 11, 12, 8, 13, 7};
    report.line("\n## Ops without a peer\n");
    report.line(
        fmt::format("A copy runs at {:.1f} GB/s on one thread and {:.1f} GB/s on {} (bytes read and written).\n",
                    copy_one / 1e9, copy_all / 1e9, all_threads));
    report.row({"op", "1 thread ms", fmt::format("{} threads ms", all_threads), "speed-up", "copy limit ms", "x limit"},
               widths);
    report.rule(widths);
    Json list = Json::array();
    for (const bench::Case& c : bench::op_cases()) {
        if (!c.on_cpu || compared.count(c.op) || (!options.ops.empty() && !options.ops.count(c.op))) continue;
        const auto work = c.prepare({});
        double best[2] = {};
        for (int t = 0; t < 2; ++t) {
            set_threads(t == 0 ? 1 : all_threads);
            best[t] = bench::measure(work, {}, {options.repeat, 0.3}).best;
        }
        const double limit = static_cast<double>(c.bytes) / copy_all;
        report.row({c.op + ", " + c.shape, ms(best[0]), ms(best[1]), ratio(best[0], best[1]), ms(limit),
                    fmt::format("{:.1f}", best[1] / limit)},
                   widths);
        list.push_back({{"op", c.op},
                        {"shape", c.shape},
                        {"ms_1", 1e3 * best[0]},
                        {"ms_all", 1e3 * best[1]},
                        {"limit_ms", 1e3 * limit}});
    }
    return list;
}

std::string first_line_of(const std::string& command) {
    std::string text;
    if (std::FILE* pipe = ::popen(command.c_str(), "r")) {
        char piece[256];
        if (std::fgets(piece, sizeof piece, pipe)) text = piece;
        ::pclose(pipe);
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto next = [&]() -> std::string {
            if (i + 1 == argc) throw std::runtime_error(word + " needs a value");
            return argv[++i];
        };
        if (word == "--op")
            options.ops.insert(next());
        else if (word == "--repeat")
            options.repeat = std::max(1, std::stoi(next()));
        else if (word == "--only-ours")
            options.only_ours = true;
        else if (word == "-o")
            options.markdown = next();
        else if (word == "--json")
            options.json = next();
        else
            throw std::runtime_error(
                "usage: ops_bench [--op NAME]... [--repeat N] [--only-ours] [-o MD] [--json FILE]");
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) try {
    const Options options = parse(argc, argv);
    const int all_threads = threads();
    Report report(options);
    std::string command = "build/dev/bin/ops_bench";
    for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
    std::string cpu;
    for (const DeviceInfo& info : list_devices())
        if (info.device == Device{}) cpu = fmt::format("{}, {} cores", info.name, info.units);
    report.line("# Point operations beside their peers\n");
    report.line(fmt::format("`{}` at {} on {}; best of {}, all programs in turn.", command,
                            first_line_of("git -C " STIPPLE_SOURCE_DIR " rev-parse --short HEAD"), cpu,
                            options.repeat));
    report.line(
        "Points: float32, spread evenly over a wavy torus (or a cube), in random order. \"ours x\": how many times "
        "longer "
        "than stipple.\nLibraries without threads of their own are queried from all threads. \"finds\" shows that all "
        "do the same work.");

    const Clouds clouds;
    const std::vector<peer::Peer> peers = all_peers(options.only_ours);
    Json object = {{"command", command}, {"cpu", cpu}, {"threads", all_threads}, {"comparisons", Json::array()}};
    for (const Comparison& comparison : comparisons(clouds)) {
        if (!options.ops.empty() && !options.ops.count(comparison.job.op)) continue;
        Json table = compare(comparison, peers, all_threads, options, report);
        if (!table.is_null()) object["comparisons"].push_back(std::move(table));
        if (comparison.job.op == "fps") {
            const auto expected = peer::naive_fps(comparison.job.a, comparison.job.n, comparison.job.count, 1);
            report.line(fmt::format("\nThe {} indices of stipple {} those of the plain loop.", expected.size(),
                                    peer::stipple_fps(comparison.job) == expected ? "equal" : "DIFFER FROM"));
        }
    }
    object["alone"] = print_alone(options, all_threads, report);
    if (!options.json.empty()) std::ofstream(options.json) << object.dump(2) << "\n";
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "ops_bench: %s\n", error.what());
    return 1;
}
