#pragma once
// What calibration looks at: a program with nothing fused, so that the input of every dense layer is a value of its
// own.

#include <string>
#include <vector>

#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"

namespace stipple::engine {

struct ObservedLayer {
    std::string name;
    int64_t step = 0;               // of the unfused program; the only layer of its chain
    std::vector<std::string> from;  // names of inputs or outputs of the program that, side by side, are its input
    std::string matrix;             // likewise, of a layer with the cloud's own weights
};

/// The same computation with every layer in a chain of its own. Values that the observed layers read are outputs,
/// beside the program's own; no name in ObservedLayer is that of both an input and an output.
struct Unfused {
    Program program;
    std::vector<ObservedLayer> layers;  // those that may have the precision (set_precisions.h)
};
Unfused unfuse(const Program& program, Precision precision);

/// The unfused program with one layer's input, and its matrix if it has one, given by the caller under these names,
/// and its weight replaced.
inline constexpr const char* kGivenInput = "given.input";
inline constexpr const char* kGivenMatrix = "given.matrix";
Program with_given_input(const Unfused& unfused, const ObservedLayer& layer, std::vector<float> weight);

}  // namespace stipple::engine
