#include <algorithm>
#include <numeric>

#include "stipple/core/checked.h"
#include "stipple/engine/program.h"

namespace stipple::engine {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) {
    return checked_mul((checked_add(bytes, kAlignment - 1)) / kAlignment, kAlignment);
}

template <class F>
void for_each_value(const Step& step, F&& f) {
    const auto visit = [&](const std::vector<Source>& sources) {
        for (const Source& source : sources) {
            f(source.value);
            if (source.indices >= 0) f(source.indices);
        }
    };
    visit(step.inputs);
    for (const Dense& dense : step.layers) {
        visit(dense.parts);
        visit(dense.addends);
        if (dense.matrix >= 0) f(dense.matrix);
    }
    f(step.output);
}

bool overlap(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

/// The smallest gap between what lives at the same time that is large enough, the lowest among equals; else the end.
int64_t best_offset(std::vector<std::pair<int64_t, int64_t>> taken, int64_t bytes) {
    std::sort(taken.begin(), taken.end());
    int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [begin, stop] : taken) {
        const int64_t gap = begin - end;
        if (gap >= bytes && (best < 0 || gap < best_gap)) {
            best = end;
            best_gap = gap;
        }
        end = std::max(end, stop);
    }
    return best >= 0 ? best : end;
}

}  // namespace

std::vector<Lifetime> lifetimes(const Program& program) {
    const auto last_step = std::max<int32_t>(0, static_cast<int32_t>(program.steps.size()) - 1);
    std::vector<Lifetime> out(program.values.size(), Lifetime{-1, -1});
    for (const Binding& input : program.inputs) out[static_cast<size_t>(input.value)] = {0, 0};
    for (size_t i = 0; i < program.steps.size(); ++i) {
        for_each_value(program.steps[i], [&](Value value) {
            Lifetime& lifetime = out[static_cast<size_t>(value)];
            if (lifetime.first < 0) lifetime.first = static_cast<int32_t>(i);
            lifetime.last = static_cast<int32_t>(i);
        });
    }
    for (const Binding& output : program.outputs) out[static_cast<size_t>(output.value)].last = last_step;
    for (Lifetime& lifetime : out)
        if (lifetime.first < 0) lifetime = {0, lifetime.last < 0 ? 0 : lifetime.last};
    return out;
}

MemoryPlan plan_memory(const Program& program, const std::vector<int64_t>& bytes) {
    return plan_memory(lifetimes(program), bytes);
}

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, const std::vector<int64_t>& bytes) {
    STIPPLE_REQUIRE(lifetimes.size() == bytes.size(), "memory plan: {} lifetimes and {} sizes", lifetimes.size(),
                    bytes.size());
    // The largest first: small ones fit between them.
    std::vector<size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
    MemoryPlan plan;
    plan.offsets.assign(bytes.size(), 0);
    std::vector<size_t> placed;
    for (const size_t value : order) {
        STIPPLE_REQUIRE(bytes[value] >= 0, "memory plan: {} bytes", bytes[value]);
        if (bytes[value] == 0) continue;
        std::vector<std::pair<int64_t, int64_t>> taken;
        for (const size_t other : placed)
            if (overlap(lifetimes[value], lifetimes[other]))
                taken.emplace_back(plan.offsets[other], plan.offsets[other] + aligned(bytes[other]));
        plan.offsets[value] = best_offset(std::move(taken), aligned(bytes[value]));
        plan.bytes = std::max(plan.bytes, plan.offsets[value] + aligned(bytes[value]));
        placed.push_back(value);
    }
    return plan;
}

}  // namespace stipple::engine
