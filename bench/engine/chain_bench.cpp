// The innermost loops of the engine's chains on one core, and PointNet's three chains, beside the peak of its float32
// multiply-adds.
//
//   chain_bench [--all]
//
// For each precision the kernel that this CPU runs, with --all also those that it could. "product" is one panel of rows
// after the other with every panel of weights, "maximum" the same with the largest sums kept, as a chain ends; the
// chains are whole clouds of 1024 points, from coordinates to the maximum, matrices of their own packed each time.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string>

#include "stipple/bench/multiply_peak.h"
#include "stipple/bench/timing.h"
#include "stipple/core/buffer.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/engine/cpu/chain/chain.h"
#include "stipple/engine/cpu/chain/kernels.h"

namespace {

using namespace stipple;
using namespace stipple::engine;
using namespace stipple::engine::cpu;

constexpr int64_t kPoints = 1024;

double peak = 0;  // GFLOP/s

void print_row(const Kernel& kernel, const std::string& work, double macs, double seconds) {
    const double gflops = 2e-9 * macs / seconds;
    fmt::print("| {} {} | {} | {:.4f} | {:.1f} | {:.2f} |\n", name_of(kernel.precision), kernel.name, work,
               1e3 * seconds, gflops, gflops / peak);
}

double seconds_of(const std::function<void()>& work) {
    return bench::measure(work, Device{}, {.repeat = 50, .seconds = 0.3}).best;
}

void measure_loops(const Kernel& kernel, int64_t in, int64_t out) {
    constexpr int64_t kPanels = 8;
    const int64_t panel_bytes = kernel.row_panel_bytes(in), weight_bytes = kernel.weight_panel_bytes(in);
    const int64_t weight_panels = out / kernel.channels, groups = kernel.groups(in);
    Buffer rows(kPanels * panel_bytes), weights(weight_panels * weight_bytes), largest(4 * out);
    std::memset(rows.data(), 0, static_cast<size_t>(rows.bytes()));
    std::memset(weights.data(), 0, static_cast<size_t>(weights.bytes()));
    std::memset(largest.data(), 0, static_cast<size_t>(largest.bytes()));
    const double macs = static_cast<double>(in * out * kPanels * kPanelRows);
    alignas(64) float sums[kMostChannels * kPanelRows];
    const double product = seconds_of([&] {
        for (int64_t w = 0; w < weight_panels; ++w)
            for (int64_t p = 0; p < kPanels; ++p)
                kernel.product(weights.data() + w * weight_bytes, rows.data() + p * panel_bytes, groups, sums);
    });
    print_row(kernel, fmt::format("product {} to {}", in, out), macs, product);
    const double maximum = seconds_of([&] {
        for (int64_t w = 0; w < weight_panels; ++w)
            kernel.maximum(weights.data() + w * weight_bytes, rows.data(), groups, kPanels, panel_bytes,
                           largest.data() + 4 * w * kernel.channels);
    });
    print_row(kernel, fmt::format("maximum {} to {}", in, out), macs, maximum);
}

/// matrices: bit l is set where layer l has its cloud's own weights.
void measure_chain(const Kernel& kernel, const std::vector<int64_t>& sizes, unsigned matrices) {
    const Rng rng(1);
    uint64_t draws = 0;
    std::vector<Dense> layers(sizes.size() - 1);
    std::vector<std::vector<float>> own(layers.size());
    std::vector<const float*> own_data(layers.size());
    double macs = 0;
    std::string name;
    for (size_t l = 0; l < layers.size(); ++l) {
        Dense& dense = layers[l];
        dense.in = sizes[l];
        dense.out = sizes[l + 1];
        dense.weight.resize(static_cast<size_t>(dense.in * dense.out));
        for (float& w : dense.weight) w = (2 * rng.uniform(draws++) - 1) / std::sqrt(static_cast<float>(dense.in));
        dense.bias.assign(static_cast<size_t>(dense.out), 0.1f);
        dense.activation = network::relu();
        dense.precision = dense.in < 8 ? Precision::fp32 : kernel.precision;
        dense.input_range = 1;
        macs += static_cast<double>(dense.in * dense.out * kPoints);
        name += fmt::format("{}-", dense.in);
        if ((matrices >> l & 1) == 0) continue;
        own[l] = std::move(dense.weight);
        own_data[l] = own[l].data();
        dense.weight.clear();
        dense.matrix = 0;
    }
    const Kernel* kernels[] = {&kernel, kernels_of(Precision::fp32).front()};
    const Chain chain(layers, Reduce::max_points, kernels);
    Buffer scratch(chain.scratch_bytes());
    std::vector<float> points(3 * kPoints), out(static_cast<size_t>(sizes.back()));
    for (float& x : points) x = 2 * rng.uniform(draws++) - 1;
    const ChainPart part = {points.data(), 3, 3};
    ChainTask task;
    task.rows = kPoints;
    task.parts = {&part, 1};
    task.matrices = own_data;
    task.out = out.data();
    const double seconds = seconds_of([&] { chain.run(task, scratch.data()); });
    print_row(kernel, fmt::format("chain {}{}", name, sizes.back()), macs, seconds);
}

}  // namespace

int main(int argc, char** argv) {
    const bool all = argc > 1 && std::string(argv[1]) == "--all";
    set_threads(1);
    peak = 1e-9 * bench::multiply_peak().operations_per_second;
    fmt::print(
        "one thread; {:.1f} GFLOP/s of float32 multiply-adds at most\n\n"
        "| kernel | work | ms | GFLOP/s | of the fp32 peak |\n|---|---|---|---|---|\n",
        peak);
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::int8})
        for (const Kernel* kernel : kernels_of(precision)) {
            measure_loops(*kernel, 64, 128);
            measure_loops(*kernel, 128, 1024);
            measure_chain(*kernel, {3, 64, 128, 1024}, 0);
            measure_chain(*kernel, {3, 64, 64, 128, 1024}, 1);
            measure_chain(*kernel, {3, 64, 128, 1024}, 3);
            if (!all) break;
        }
    return 0;
}
