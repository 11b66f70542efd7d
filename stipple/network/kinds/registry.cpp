#include <array>

#include "stipple/network/kinds/kind.h"

namespace stipple::network {
namespace {

constexpr size_t kMostKinds = 128;

std::array<const LayerKind*, kMostKinds> collect() {
    std::array<const LayerKind*, kMostKinds> by_kind{};
    for (const std::span<const LayerKind> group :
         {input_kinds(), linear_kinds(), activation_kinds(), matrix_kinds(), reduction_kinds(), channel_kinds(),
          neighbour_kinds(), attention_kinds(), arithmetic_kinds(), flow_kinds(), flow_step_kinds()})
        for (const LayerKind& kind : group) by_kind[static_cast<size_t>(kind.kind)] = &kind;
    return by_kind;
}

}  // namespace

const LayerKind* find_kind(Kind kind) {
    static const std::array<const LayerKind*, kMostKinds> by_kind = collect();
    const auto index = static_cast<size_t>(kind);
    return index < by_kind.size() ? by_kind[index] : nullptr;
}

const LayerKind& kind_of(const Layer& layer) {
    const LayerKind* kind = find_kind(layer.kind);
    STIPPLE_REQUIRE(kind, "layer '{}': unknown kind {}", layer.name, static_cast<int>(layer.kind));
    return *kind;
}

std::string_view name_of(Kind kind) {
    const LayerKind* found = find_kind(kind);
    return found ? found->name : "unknown";
}

}  // namespace stipple::network
