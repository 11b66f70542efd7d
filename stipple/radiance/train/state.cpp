#include "stipple/radiance/train/state.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "stipple/core/error.h"

namespace stipple::radiance {
namespace {

std::string grid_fault_of(const GridShape& grid) {
    for (int axis = 0; axis < 3; ++axis) {
        const int32_t size = grid.size[static_cast<size_t>(axis)];
        if (size < 2 || size > kMostNodes) return fmt::format("size: {} nodes along an axis", size);
        const float low = grid.box.low[axis], high = grid.box.high[axis];
        if (!std::isfinite(low) || !std::isfinite(high) || !(low < high))
            return fmt::format("box: {} to {} along an axis", low, high);
    }
    if (grid.nodes() > kMostGridNodes) return fmt::format("size: {} nodes", grid.nodes());
    if (!std::isfinite(grid.voxel) || !(grid.voxel > 0)) return fmt::format("voxel: {} is no length", grid.voxel);
    return {};
}

std::string size_fault(const char* name, const MovedNumbers& numbers, size_t size) {
    for (const std::vector<float>* part : {&numbers.value, &numbers.mean, &numbers.square})
        if (part->size() != size) return fmt::format("{}: {} numbers, not {}", name, part->size(), size);
    return {};
}

bool is_finite(const std::vector<float>& values) {
    for (const float v : values)
        if (!std::isfinite(v)) return false;
    return true;
}

}  // namespace

std::string fault_of(const TrainState& state, int64_t pixels) {
    if (std::string fault = grid_fault_of(state.grid); !fault.empty()) return fault;
    if (!std::isfinite(state.shift)) return "shift: not finite";
    if (state.step.step < 0 || state.step.since < 0 || state.step.since > state.step.step || state.step.rays < 0)
        return fmt::format("step: {}, {} since the rates began", state.step.step, state.step.since);
    const std::array<int32_t, 3> count = state.grid.bricks();
    const int64_t bricks = int64_t{count[0]} * count[1] * count[2];
    int64_t last = -1;
    for (const int32_t place : state.place) {
        if (place <= last || place >= bricks) return fmt::format("place: {} after {} of {}", place, last, bricks);
        last = place;
    }
    const size_t stored = state.place.size();
    if (stored == 0 || (!state.is_fine && static_cast<int64_t>(stored) != bricks))
        return fmt::format("place: {} bricks are stored of {}", stored, bricks);
    if (state.occupied.size() != stored)
        return fmt::format("occupied: {} bricks, not {}", state.occupied.size(), stored);
    const size_t nodes = stored * kBrickNodes, channels = state.is_fine ? kFeatures : 3;
    if (std::string fault = size_fault("density", state.density, nodes); !fault.empty()) return fault;
    if (std::string fault = size_fault("features", state.features, nodes * channels); !fault.empty()) return fault;
    if (std::string fault = size_fault("network", state.network, state.is_fine ? kNetworkNumbers : 0); !fault.empty())
        return fault;
    if (state.built.size() != (state.is_fine ? stored : 0)) return fmt::format("built: {} bricks", state.built.size());
    if (std::string fault = size_fault("environment", state.environment, state.environment.value.size());
        !fault.empty())
        return fault;
    if (state.density_rate.size() != (state.is_fine ? 0 : nodes))
        return fmt::format("density_rate: {} numbers", state.density_rate.size());
    if (state.pixels.empty()) return state.is_fine ? "pixels: none" : "";
    if (static_cast<int64_t>(state.pixels.size()) != (pixels + 7) / 8 ||
        (pixels % 8 != 0 && state.pixels.back() >> (pixels % 8) != 0))
        return fmt::format("pixels: {} bytes for {} pixels", state.pixels.size(), pixels);
    for (const uint8_t byte : state.pixels)
        if (byte) return {};
    return "pixels: none";
}

void require_environment(const TrainState& state, const StepConstants& constants) {
    const size_t side = static_cast<size_t>(constants.environment_side), texels = state.environment.value.size() / 3;
    if (state.environment.value.size() != 3 * side * side)
        throw Error(ErrorCode::bad_file, fmt::format("environment: {} texels, not {} x {}", texels, side, side));
}

std::string not_finite_in(const TrainState& state) {
    const std::pair<const char*, const MovedNumbers*> all[] = {{"density", &state.density},
                                                               {"features", &state.features},
                                                               {"network", &state.network},
                                                               {"environment", &state.environment}};
    for (const auto& [name, numbers] : all)
        if (!is_finite(numbers->value) || !is_finite(numbers->mean) || !is_finite(numbers->square)) return name;
    return std::isfinite(state.step.squared_error) ? "" : "squared_error";
}

std::vector<uint8_t> pixel_bits(std::span<const uint32_t> list, int64_t pixels) {
    std::vector<uint8_t> bits(static_cast<size_t>((pixels + 7) / 8));
    for (const uint32_t pixel : list) bits[pixel / 8] = static_cast<uint8_t>(bits[pixel / 8] | 1u << pixel % 8);
    return bits;
}

std::vector<uint32_t> pixel_list(std::span<const uint8_t> bits) {
    size_t count = 0;
    for (const uint8_t byte : bits) count += static_cast<size_t>(std::popcount(byte));
    std::vector<uint32_t> list;
    list.reserve(count);
    for (size_t i = 0; i < bits.size(); ++i)
        for (uint32_t bit = 0; bit < 8; ++bit)
            if (bits[i] >> bit & 1) list.push_back(static_cast<uint32_t>(i) * 8 + bit);
    return list;
}

}  // namespace stipple::radiance
