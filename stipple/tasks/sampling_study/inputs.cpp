#include "stipple/tasks/sampling_study/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "stipple/ops/random_sample.h"

namespace stipple::tasks::study {
namespace {

constexpr uint64_t kTurnStream = uint64_t{0x5455524E} << 32;  // "TURN": keeps apart from other uses of the seed

/// Items of the classes that a task is about, in the order of the set.
std::vector<int64_t> items_of_task(const data::DataSet& set, SamplingTask task) {
    STIPPLE_REQUIRE(!set.labels.empty(), "the set has no classes: samplers are compared on labelled shapes");
    std::vector<char> is_wanted(set.classes.size(), classes_of(task).empty());
    for (const std::string& name : classes_of(task)) {
        const auto found = std::find(set.classes.begin(), set.classes.end(), name);
        if (found == set.classes.end())
            throw Error(ErrorCode::bad_argument,
                        fmt::format("{} is measured on the class \"{}\", which the set has not", title_of(task), name),
                        "--tasks names tasks that the set is for");
        is_wanted[static_cast<size_t>(found - set.classes.begin())] = 1;
    }
    std::vector<int64_t> items;
    for (int64_t i = 0; i < set.size(); ++i)
        if (is_wanted[static_cast<size_t>(set.labels[static_cast<size_t>(i)])]) items.push_back(i);
    STIPPLE_REQUIRE(!items.empty(), "the set has no cloud for {}", title_of(task));
    return items;
}

/// `count` of them, evenly over the list; all for 0.
std::vector<int64_t> evenly(const std::vector<int64_t>& items, int64_t count) {
    const auto all = static_cast<int64_t>(items.size());
    if (count <= 0 || count >= all) return items;
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < count; ++i) chosen.push_back(items[static_cast<size_t>(i * all / count)]);
    return chosen;
}

void add_templates(SamplingClouds& clouds, const SamplingInputs& options, const std::vector<int64_t>& pairs) {
    const int64_t n = clouds.n, count = clouds.size();
    const ops::Batch one = ops::Batch::single(n);
    Array<int32_t, 1> order({n});
    clouds.templates = Array<float, 2>({count * n, 3});
    for (int64_t c = 0; c < count; ++c) {
        // Numbers of the pair, not of its place: fewer pairs are some of the same.
        const Rng rng(options.seed, kTurnStream | static_cast<uint64_t>(pairs[static_cast<size_t>(c)]));
        const double uniform[3] = {rng.uniform(0), rng.uniform(1), rng.uniform(2)};
        const metrics::Motion& motion = clouds.motions.emplace_back(turned_by(uniform, options.angle));
        const RandomBlock words = rng.block(1);
        ops::random_sample(one, one, uint64_t{words.word[0]} << 32 | words.word[1], order.view(),
                           {.order = ops::SampleOrder::random});
        for (int64_t i = 0; i < n; ++i) {
            const float* p = clouds.points.data() + 3 * (c * n + order.data()[i]);
            float* q = clouds.templates.data() + 3 * (c * n + i);
            for (size_t axis = 0; axis < 3; ++axis)
                q[axis] = static_cast<float>(motion[4 * axis] * p[0] + motion[4 * axis + 1] * p[1] +
                                             motion[4 * axis + 2] * p[2]);
        }
    }
}

void hash_bytes(uint64_t& hash, const void* data, int64_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3u;
}

}  // namespace

metrics::Motion turned_by(const double uniform[3], double angle) {
    double c[3], s[3];
    for (int axis = 0; axis < 3; ++axis) {
        const double radians = (2 * uniform[axis] - 1) * angle * std::numbers::pi / 180;
        c[axis] = std::cos(radians);
        s[axis] = std::sin(radians);
    }
    return {c[2] * c[1],
            c[2] * s[1] * s[0] - s[2] * c[0],
            c[2] * s[1] * c[0] + s[2] * s[0],
            0,
            s[2] * c[1],
            s[2] * s[1] * s[0] + c[2] * c[0],
            s[2] * s[1] * c[0] - c[2] * s[0],
            0,
            -s[1],
            c[1] * s[0],
            c[1] * c[0],
            0,
            0,
            0,
            0,
            1};
}

SamplingClouds sampling_clouds(const data::DataSet& set, SamplingTask task, const SamplingInputs& options) {
    const std::vector<int64_t> items = items_of_task(set, task);
    const int64_t turns = task == SamplingTask::registration ? std::max<int64_t>(1, options.turns) : 1;
    std::vector<int64_t> pairs;  // item * turns + turn
    for (size_t i = 0; i < items.size(); ++i)
        for (int64_t turn = 0; turn < turns; ++turn) pairs.push_back(static_cast<int64_t>(i) * turns + turn);
    pairs = evenly(pairs, options.clouds);

    SamplingClouds clouds;
    clouds.task = task;
    clouds.classes = set.classes;
    clouds.n = points_of(task);
    for (const int64_t pair : pairs) {
        const int64_t item = items[static_cast<size_t>(pair / turns)];
        clouds.items.push_back(item);
        clouds.labels.push_back(set.labels[static_cast<size_t>(item)]);
        clouds.is_short |= set.clouds.size_of(item) < points_of(task);
        clouds.n = std::min(clouds.n, set.clouds.size_of(item));
    }
    clouds.points = Array<float, 2>({clouds.size() * clouds.n, 3});
    for (int64_t c = 0; c < clouds.size(); ++c) {
        const int64_t first = set.clouds.offsets[static_cast<size_t>(clouds.items[static_cast<size_t>(c)])];
        std::copy_n(set.clouds.points.data() + 3 * first, 3 * clouds.n, clouds.points.data() + 3 * c * clouds.n);
    }
    if (task == SamplingTask::registration) add_templates(clouds, options, pairs);
    return clouds;
}

std::string fingerprint(const SamplingClouds& clouds) {
    uint64_t hash = 0xcbf29ce484222325u;
    hash_bytes(hash, &clouds.n, sizeof clouds.n);
    hash_bytes(hash, clouds.points.data(), 4 * clouds.points.elements());
    if (clouds.templates.elements() > 0) hash_bytes(hash, clouds.templates.data(), 4 * clouds.templates.elements());
    hash_bytes(hash, clouds.labels.data(), 4 * clouds.size());
    return fmt::format("{:016x}", hash);
}

}  // namespace stipple::tasks::study
