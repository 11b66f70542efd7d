#include "stipple/engine/cpu/plan.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "stipple/core/checked.h"
#include "stipple/core/error.h"
#include "stipple/engine/cpu/steps.h"

namespace stipple::engine::cpu {
namespace {

// Output channels of a slice: 64 rows of 1024 float32 weights are 256 KiB, half of a small second-level cache.
constexpr int64_t kSliceChannels = 64;

void for_each_source(const Step& step, const std::function<void(Value)>& visit) {
    const auto visit_source = [&](const Source& source) {
        visit(source.value);
        if (source.indices >= 0) visit(source.indices);
    };
    for (const Source& source : step.inputs) visit_source(source);
    for (const Dense& layer : step.layers) {
        for (const Source& source : layer.parts) visit_source(source);
        for (const Source& source : layer.addends) visit_source(source);
        if (layer.matrix >= 0) visit(layer.matrix);
    }
}

bool is_head(const Step& step) {
    if (step.kind != StepKind::chain || step.level != Level::cloud || step.reduce != Reduce::none) return false;
    return std::none_of(step.layers.begin(), step.layers.end(), [](const Dense& layer) { return layer.matrix >= 0; });
}

/// Output channels [begin, end) of a layer of a head. Not a copy that is cut: a layer of 16384 channels has 256 slices,
/// and copying all weights for each took most of the time of compile().
Dense slice_of(const Dense& dense, int64_t begin, int64_t end) {
    Dense slice;
    slice.name = dense.name;
    slice.parts = dense.parts;
    slice.addends = dense.addends;
    slice.in = dense.in;
    slice.out = end - begin;
    slice.weight.assign(dense.weight.begin() + begin * dense.in, dense.weight.begin() + end * dense.in);
    if (!dense.bias.empty()) slice.bias.assign(dense.bias.begin() + begin, dense.bias.begin() + end);
    slice.activation = dense.activation;
    slice.precision = dense.precision;
    slice.input_range = dense.input_range;
    return slice;
}

void plan_chain(const Step& step, Plan& plan, StepPlan& step_plan) {
    const Dense& first = step.layers.front();
    STIPPLE_REQUIRE(first.parts.size() <= kMostSources && first.addends.size() <= kMostSources,
                    "{}: {} parts and {} addends, more than {}", step.name, first.parts.size(), first.addends.size(),
                    kMostSources);
    STIPPLE_REQUIRE(step.layers.size() <= kMostSources, "{}: a chain of {} layers, more than {}", step.name,
                    step.layers.size(), kMostSources);
    const auto count = [&](const Chain& chain) {
        plan.weight_bytes += chain.weight_bytes();
        plan.scratch_bytes = std::max(plan.scratch_bytes, chain.scratch_bytes());
    };
    if (!is_head(step)) {
        step_plan.chain = std::make_unique<const Chain>(step.layers, step.reduce);
        count(*step_plan.chain);
        if (step.reduce == Reduce::max_points) plan.widest_max = std::max(plan.widest_max, step.layers.back().out);
        return;
    }
    for (const Dense& dense : step.layers) {
        HeadLayer layer{dense.in, dense.out, {}};
        for (int64_t begin = 0; begin < dense.out; begin += kSliceChannels) {
            const int64_t end = std::min(begin + kSliceChannels, dense.out);
            layer.slices.push_back({Chain({slice_of(dense, begin, end)}, Reduce::none), begin});
            count(layer.slices.back().chain);
        }
        step_plan.head.push_back(std::move(layer));
        plan.head_numbers = std::max(plan.head_numbers, dense.out);
    }
}

std::vector<Group> group_steps(const Program& program) {
    std::vector<Group> groups;
    for (size_t s = 0; s < program.steps.size(); ++s) {
        const bool head = is_head(program.steps[s]);
        if (groups.empty() || head || groups.back().is_head) groups.push_back({s, s, head});
        groups.back().end = s + 1;
    }
    return groups;
}

// Steps of one value in use, counted in groups or, inside of one group, in steps.
Lifetime widened(Lifetime life, int32_t at) {
    return {std::min(life.first, at), std::max(life.last, at)};
}

void plan_homes(const Program& program, const Options& options, Plan& plan) {
    const size_t n = program.values.size();
    constexpr Lifetime kNever{INT32_MAX, -1};
    std::vector<Lifetime> by_group(n, kNever), by_step(n, kNever);
    std::vector<char> is_read(n, 0);
    for (size_t g = 0; g < plan.groups.size(); ++g)
        for (size_t s = plan.groups[g].begin; s < plan.groups[g].end; ++s) {
            const auto touch = [&](Value value) {
                const auto v = static_cast<size_t>(value);
                by_group[v] = widened(by_group[v], static_cast<int32_t>(g));
                by_step[v] = widened(by_step[v], static_cast<int32_t>(s));
            };
            for_each_source(program.steps[s], [&](Value value) {
                touch(value);
                is_read[static_cast<size_t>(value)] = 1;
            });
            touch(program.steps[s].output);
        }
    plan.homes.resize(n);
    for (size_t v = 0; v < n; ++v) {
        const TensorType& type = program.values[v].type;
        Home& home = plan.homes[v];
        home.per_cloud = type.level == Level::cloud;
        // Indices are one row a point, whichever way their type says it.
        home.width = type.is_index ? 1 : type.width;
        home.channels = type.is_index ? type.width * type.channels : type.channels;
        home.set = type.set;
        home.is_index = type.is_index;
        home.kind = home.per_cloud || by_group[v].first != by_group[v].last ? Home::shared : Home::local;
    }
    for (const Binding& binding : program.inputs) plan.homes[static_cast<size_t>(binding.value)].kind = Home::caller;
    for (const Binding& binding : program.outputs) {
        Home& home = plan.homes[static_cast<size_t>(binding.value)];
        // An output that is not wanted and that no step reads is not computed at all. Rows of indices are adjacent,
        // which the caller's need not be: they are copied in the end.
        if (home.kind != Home::caller)
            home.kind = is_read[static_cast<size_t>(binding.value)] || home.is_index ? Home::shared : Home::caller;
        if (home.is_index)
            by_group[static_cast<size_t>(binding.value)] =
                widened(by_group[static_cast<size_t>(binding.value)], static_cast<int32_t>(plan.groups.size()) - 1);
    }
    std::vector<int64_t> shared(n, 0);
    for (size_t v = 0; v < n; ++v) {
        const Home& home = plan.homes[v];
        if (home.kind != Home::shared || by_group[v].last < 0) continue;
        const int64_t made = plan.sets[static_cast<size_t>(home.set)].points;
        const int64_t points = checked_mul(options.max_batch, made > 0 ? made : options.max_points);
        const int64_t rows = home.per_cloud ? options.max_batch : checked_mul(points, home.width);
        shared[v] = checked_mul(checked_mul(rows, home.channels), sizeof(float));
    }
    const MemoryPlan shared_plan = plan_memory(by_group, shared);
    plan.shared_bytes = shared_plan.bytes;
    for (size_t v = 0; v < n; ++v)
        if (shared[v] > 0) plan.homes[v].offset = shared_plan.offsets[v];
    for (size_t g = 0; g < plan.groups.size(); ++g) {
        std::vector<int64_t> local(n, 0);
        for (size_t v = 0; v < n; ++v)
            if (plan.homes[v].kind == Home::local && by_group[v].first == static_cast<int32_t>(g))
                local[v] =
                    kLocalRows * plan.homes[v].width * plan.homes[v].channels * static_cast<int64_t>(sizeof(float));
        const MemoryPlan local_plan = plan_memory(by_step, local);
        plan.local_bytes = std::max(plan.local_bytes, local_plan.bytes);
        for (size_t v = 0; v < n; ++v)
            if (local[v] > 0) plan.homes[v].offset = local_plan.offsets[v];
    }
}

}  // namespace

int64_t most_points(const Plan& plan, const Options& options) {
    int64_t most = options.max_points;
    for (const PointSet& set : plan.sets) most = std::max(most, set.points);
    return checked_mul(options.max_batch, most);
}

Plan make_plan(const Program& program, const Options& options) {
    Plan plan;
    plan.sets = point_sets(program);
    plan.most_neighbours.resize(plan.sets.size());
    plan.groups = group_steps(program);
    plan.steps.resize(program.steps.size());
    for (size_t s = 0; s < program.steps.size(); ++s) {
        const Step& step = program.steps[s];
        plan.steps[s].type = &step_type(step.kind);
        if (step.kind == StepKind::chain) plan_chain(step, plan, plan.steps[s]);
        plan.weight_bytes += static_cast<int64_t>(step.weight.size() * sizeof(float));
        if (step.kind == StepKind::knn) {
            const TensorType& type = program.values[static_cast<size_t>(step.output)].type;
            const int64_t k = type.width * type.channels;
            const int64_t channels = program.values[static_cast<size_t>(step.inputs.front().value)].type.channels;
            int64_t& most = plan.most_neighbours[static_cast<size_t>(type.of)];
            most = std::max(most, k);
            plan.scratch_bytes = std::max(plan.scratch_bytes, knn_scratch_bytes(channels, k));
        }
    }
    for (size_t s = 0; s < program.steps.size(); ++s)
        for (size_t reader = s + 1; reader < program.steps.size(); ++reader)
            for_each_source(program.steps[reader], [&](Value value) {
                if (value == program.steps[s].output) plan.steps[s].readers.push_back(reader);
            });
    plan_homes(program, options, plan);
    return plan;
}

}  // namespace stipple::engine::cpu
