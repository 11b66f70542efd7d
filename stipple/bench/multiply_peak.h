#pragma once
// The most float32 multiply-adds that this CPU does: a loop of nothing but those instructions, on registers.

#include <string>

namespace stipple::bench {

struct MultiplyPeak {
    double operations_per_second = 0;  // two for each multiply-add, by all threads()
    std::string instruction;           // "fmla", "vfmadd zmm"
};

/// Runs for a few hundredths of a second.
MultiplyPeak multiply_peak();

}  // namespace stipple::bench
