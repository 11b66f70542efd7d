#include <array>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/engine/kinds/kind.h"

namespace stipple::engine {
namespace {

constexpr size_t kMostKinds = 128;

struct Tables {
    std::array<const StepType*, kMostKinds> steps{};
    std::array<const lowering::LayerLowering*, kMostKinds> layers{};
    std::vector<const StepType*> all;

    Tables() {
        for (const KindGroup& group :
             {dense_group(), matrix_group(), reduction_group(), channel_group(), neighbour_group(), attention_group(),
              arithmetic_group(), flow_group(), flow_step_group()}) {
            for (const StepType& step : group.steps) steps[static_cast<size_t>(step.kind)] = &step;
            for (const lowering::LayerLowering& layer : group.layers) layers[static_cast<size_t>(layer.kind)] = &layer;
        }
        for (const StepType* step : steps)
            if (step) all.push_back(step);
    }
};

const Tables& tables() {
    static const Tables all;
    return all;
}

}  // namespace

const StepType* find_step_type(StepKind kind) {
    const auto index = static_cast<size_t>(kind);
    return index < kMostKinds ? tables().steps[index] : nullptr;
}

const StepType& step_type(StepKind kind) {
    const StepType* found = find_step_type(kind);
    STIPPLE_ASSERT(found);
    return *found;
}

std::span<const StepType* const> step_types() {
    return tables().all;
}

const lowering::LayerLowering* find_lowering(network::Kind kind) {
    const auto index = static_cast<size_t>(kind);
    return index < kMostKinds ? tables().layers[index] : nullptr;
}

}  // namespace stipple::engine
