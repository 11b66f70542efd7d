#pragma once
// The timed cases of the ops: what `stipple bench ops` runs. Every op of the registry has at least one.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/device.h"

namespace stipple::bench {

struct Case {
    std::string op;     // of the registry
    std::string shape;  // "32 x 2048, k 16"
    int64_t points;     // processed by one call
    int64_t bytes;      // that no implementation can avoid to move: inputs read once, outputs written once
    bool on_cpu = true, on_cuda = true;
    /// Makes the data on the device; the result is what is timed, once or many times.
    std::function<std::function<void()>(Device)> prepare;
};

/// timed: the sizes that are worth a time. tiny: one of each op, for tests that call it thousands of times.
enum class Size { timed, tiny };

/// All of them, in the order of the registry.
std::span<const Case> op_cases(Size size = Size::timed);

// One file for each group of ops.
std::vector<Case> neighbour_cases(Size size);
std::vector<Case> sampling_cases(Size size);
std::vector<Case> grouping_cases(Size size);
std::vector<Case> interpolation_cases(Size size);
std::vector<Case> distance_cases(Size size);
std::vector<Case> product_cases(Size size);
std::vector<Case> training_cases(Size size);

}  // namespace stipple::bench
