// How good and how fast emd is on more clouds than the ops' own case: cost above emd_exact, the gap it proves, times,
// and what the solver did: scans for bids, scans of searches, moves of prices, for a pair on average.
//
//     emd_bench [cpu|cuda]
//
// A batch takes as long as its slowest pair, so that the times of batches of other seeds differ.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "stipple/bench/data.h"
#include "stipple/bench/timing.h"
#include "stipple/core/error.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd/auction.h"
#include "stipple/ops/emd_exact.h"

namespace {

using namespace stipple;

struct Result {
    double above = NAN, gap = 0;  // the worst of the batch, relative; above exact: not a number if that was not asked
    double best_ms = 0;
    double phases = 0, bids = 0, scans = 0, price_updates = 0;  // mean of the batch; bids and scans per bidder
};

Result run(const Array<float, 3>& a, const Array<float, 3>& b, Device device, bool judge) {
    const int64_t clouds = a.size(0), n = a.size(1);
    const Array<float, 3> from = a.to(device), to = b.to(device);
    Array<float, 1> cost({clouds}, device), bound({clouds}, device);
    Array<int32_t, 1> matching({clouds * n}, device);
    Result result;
    const auto work = [&] { ops::emd(from.view(), to.view(), {cost.view(), bound.view(), matching.view()}); };
    result.best_ms = 1e3 * bench::measure(work, device, {5, 0.3}).best;
    const Array<float, 1> found = cost.to(Device{}), proven = bound.to(Device{});
    Array<double, 1> exact({clouds});
    if (judge) ops::emd_exact(a.view(), b.view(), {exact.view(), {}, {}, {}});
    for (int64_t k = 0; k < clouds; ++k) {
        const double c = found.data()[k];
        result.gap = std::max(result.gap, c / proven.data()[k] - 1);
        if (judge) result.above = std::fmax(result.above, c / exact.data()[k] - 1);
    }
    for (int64_t k = 0; k < clouds; ++k) {
        std::vector<int32_t> partner(n);
        const float *p = a.data() + 3 * n * k, *q = b.data() + 3 * n * k;
        const auto effort = ops::assignment::solve({p, q, 3, 3, n, false, 0.01, 0.0}, partner.data(), nullptr).effort;
        const auto all = static_cast<double>(clouds), points = all * static_cast<double>(n);
        result.phases += static_cast<double>(effort.phases) / all;
        result.bids += static_cast<double>(effort.bids) / points;
        result.scans += static_cast<double>(effort.search_scans) / points;
        result.price_updates += static_cast<double>(effort.price_updates) / all;
    }
    return result;
}

void print(const std::string& what, const Result& result) {
    const std::string above = std::isnan(result.above) ? "-" : fmt::format("{:.3f}", 100 * result.above);
    std::puts(fmt::format("| {} | {} | {:.3f} | {:.4g} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |", what, above,
                          100 * result.gap, result.best_ms, result.phases, result.bids, result.scans,
                          result.price_updates)
                  .c_str());
    std::fflush(stdout);
}

Array<float, 3> batch_of_one(const Array<float, 2>& cloud) {
    Array<float, 3> batch({1, cloud.size(0), 3});
    std::copy(cloud.span().begin(), cloud.span().end(), batch.data());
    return batch;
}

/// Two clusters far apart, and a lattice with many equal points, from a torus.
Array<float, 2> clusters(int64_t n, uint64_t seed) {
    Array<float, 2> cloud = bench::wavy_torus(n, seed);
    for (int64_t i = 0; i < n; ++i)
        cloud.data()[3 * i] = 0.1f * cloud.data()[3 * i] + (i % 5 < (seed % 2 != 0 ? 3 : 2) ? 10.0f : 0.0f);
    return cloud;
}
Array<float, 2> lattice(int64_t n, uint64_t seed) {
    Array<float, 2> cloud = bench::wavy_torus(n, seed);
    for (float& x : cloud.span()) x = std::round(8 * x) / 8;
    return cloud;
}

void bench_on(Device device) {
    std::puts(
        "| clouds | cost above exact % | gap proven % | best ms | phases | bids / n | scans / n | price updates |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|");
    for (const uint64_t seed : {0, 1000, 2000})
        print(fmt::format("32 x 2048, torus, seeds from {}", seed + 1),
              run(bench::wavy_tori(32, 2048, seed + 1), bench::wavy_tori(32, 2048, seed + 2), device, true));
    for (const uint64_t seed : {0, 1000, 2000})
        print(fmt::format("8192, torus, seeds from {}", seed + 1),
              run(bench::wavy_tori(1, 8192, seed + 1), bench::wavy_tori(1, 8192, seed + 2), device, false));
    struct Shape {
        const char* name;
        Array<float, 2> (*make)(int64_t n, uint64_t seed);
    };
    const Shape shapes[] = {
        {"torus", bench::wavy_torus}, {"cube", bench::unit_cube}, {"clusters", clusters}, {"lattice", lattice}};
    for (const Shape& a : shapes)
        for (const Shape& b : shapes)
            print(fmt::format("2048, {} and {}", a.name, b.name),
                  run(batch_of_one(a.make(2048, 1)), batch_of_one(b.make(2048, 2)), device, true));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string where = argc > 1 ? argv[1] : "cpu";
    if (argc > 2 || (where != "cpu" && where != "cuda")) {
        std::fputs("usage: emd_bench [cpu|cuda]\n", stderr);
        return 2;
    }
    try {
        bench_on(where == "cuda" ? Device{DeviceType::cuda, 0} : Device{});
        return 0;
    } catch (const Error& error) {
        std::fputs(fmt::format("emd_bench: {}\n", error.what()).c_str(), stderr);
        return 1;
    }
}
