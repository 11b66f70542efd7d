// How long a batch of augmented clouds takes, by what is on.
//
//     augment_bench [cpu|cuda] [clouds] [points]

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "stipple/bench/timing.h"
#include "stipple/core/array.h"
#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "stipple/data/augment_batch.h"

namespace {

using namespace stipple;

std::vector<std::pair<std::string, data::AugmentOptions>> cases(int64_t points) {
    data::AugmentOptions moves, drops, thins, chooses, shuffles, turns;
    moves.axis_scale_min = 0.67, moves.axis_scale_max = 1.5, moves.shift = {0.2, 0.2, 0.2};
    drops = thins = chooses = shuffles = turns = moves;
    drops.dropout_form = thins.dropout_form = data::DropoutForm::repeat;
    drops.dropout_ratio = 0.97;
    thins.thin_share = 1, thins.thin_min = 16, thins.thin_max = 256;
    chooses.choose = points / 2;
    shuffles.shuffle = true;
    turns.rotation_angle = data::kHalfTurn, turns.jitter_sigma = 0.01;
    return {{"scale, shift", moves}, {"and dropout", drops},    {"and thin", thins},
            {"and choose", chooses}, {"and shuffle", shuffles}, {"and rotation, jitter", turns}};
}

void run(Device device, int64_t clouds, int64_t points) {
    const Rng rng(1);
    Array<float, 2> host({clouds * points, 3});
    for (int64_t i = 0; i < host.elements(); ++i) host.data()[i] = 2 * rng.uniform(static_cast<uint64_t>(i)) - 1;
    Array<int64_t, 1> offsets({clouds + 1}), numbers({2});
    for (int64_t i = 0; i <= clouds; ++i) offsets.data()[i] = i * points;
    numbers.data()[0] = 0, numbers.data()[1] = 5;
    Array<int32_t, 1> order({clouds});
    for (int64_t i = 0; i < clouds; ++i) order.data()[i] = static_cast<int32_t>(clouds - 1 - i);
    const Array<float, 2> stored = host.to(device);
    const Array<int64_t, 1> begins = offsets.to(device), place = numbers.to(device);
    const Array<int32_t, 1> items = order.to(device);
    Array<float, 2> out({clouds * points, 3}, device);
    data::AugmentBatch batch;
    batch.order = items.view(), batch.first = place.data(), batch.epoch = place.data() + 1;
    batch.clouds = clouds, batch.points = points, batch.seed = 3;
    fmt::print("{} clouds of {} points on {}\n", clouds, points, device);
    for (const auto& [name, options] : cases(points)) {
        batch.options = options;
        const auto work = [&] { data::augment_batch({stored.view(), begins.view(), {}, points}, batch, out.view()); };
        const bench::Timing timing = bench::measure(work, device, {});
        fmt::print("{:<22} {:8.4f} ms\n", name, 1e3 * timing.best);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse_device(argc > 1 ? argv[1] : "auto"), argc > 2 ? std::atoll(argv[2]) : 1024,
            argc > 3 ? std::atoll(argv[3]) : 1024);
    } catch (const Error& error) {
        fmt::print(stderr, "augment_bench: {}\n", error.what());
        return 1;
    }
    return 0;
}
