#pragma once
// What the steps of a training depend on, as plain arrays that every device fills alike: one file holds them all
// (checkpoint.h).

#include <span>
#include <string>

#include "stipple/radiance/train/adam.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance {

/// Numbers that Adam moves, with their moments.
struct MovedNumbers {
    std::vector<float> value, mean, square;  // of one size
};

/// Between two steps of a stage. Gradients are 0 then.
struct TrainState {
    bool is_fine = false;
    GridShape grid;
    float shift = 0;                  // of densities
    StepState step;                   // how far the stage is
    SampleCounts counts;              // of the last step; no step depends on them
    std::vector<int32_t> place;       // [stored bricks] in the table of all bricks, ascending
    std::vector<uint64_t> occupied;   // [stored bricks] a bit per node
    std::vector<uint64_t> built;      // [stored bricks] as occupied, when the grid was built; empty in the coarse stage
    MovedNumbers density;             // [stored nodes]
    MovedNumbers features;            // [stored nodes, 3] colours in the coarse stage, [stored nodes, kFeatures] later
    MovedNumbers network;             // [kNetworkNumbers]; empty in the coarse stage
    MovedNumbers environment;         // [side, side, 3] of the map of the background; empty where none is learned
    std::vector<float> density_rate;  // [stored nodes] in the coarse stage, else empty
    std::vector<uint8_t> pixels;      // a bit for each pixel that is drawn, in the row of all, lowest first; empty: all
};

/// What is wrong with a state of photographs with so many pixels, in words that name the array; empty where nothing is.
/// Sizes and bricks, so that nothing is read beyond an array; values may be anything.
std::string fault_of(const TrainState& state, int64_t pixels);

/// Throws Error{bad_file} for a map of the background that is not as large as the steps' constants say.
void require_environment(const TrainState& state, const StepConstants& constants);

/// The name of an array with a value that is not finite; empty where there is none.
std::string not_finite_in(const TrainState& state);

/// list: ascending, below `pixels`.
std::vector<uint8_t> pixel_bits(std::span<const uint32_t> list, int64_t pixels);
std::vector<uint32_t> pixel_list(std::span<const uint8_t> bits);

}  // namespace stipple::radiance
