#pragma once
// The most multiply-adds that this CPU does: loops of nothing but those instructions, on registers.

#include <string>

namespace stipple::bench {

enum class Factors { fp32, bf16, int8 };

struct MultiplyPeak {
    double operations_per_second = 0;  // two for each multiply-add, by all threads(); 0: no such instructions
    std::string instruction;           // "fmla 4 x fp32", "bfmmla"
};

/// Runs for a few hundredths of a second. fp32 is always known.
MultiplyPeak multiply_peak(Factors factors);

}  // namespace stipple::bench
