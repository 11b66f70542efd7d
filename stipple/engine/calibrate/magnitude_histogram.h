#pragma once
// MagnitudeHistogram: how often magnitudes of a size were seen, and the range that a low precision should represent.

#include <cstdint>
#include <vector>

#include "stipple/engine/precision.h"

namespace stipple::engine {

class MagnitudeHistogram {
public:
    /// Counts values; the range grows as needed, by doubling. The same counts for any order and any number of threads.
    /// Throws Error{not_finite} for a value that is not finite.
    void add(const float* values, int64_t count);

    int64_t count() const { return count_; }    // of all values, zeros too
    float largest() const { return largest_; }  // magnitude
    /// The magnitude that `percent` of all values do not exceed, to the width of a bin: the upper edge of its bin, and
    /// never above largest(). 0 when all values are 0.
    float percentile(double percent) const;
    /// The range whose rounding to the precision (int8 or fp8) loses least information: the smallest Kullback-Leibler
    /// divergence of the values' distribution from that of the rounded ones, those beyond the range at its end
    /// [Migacz 2017]. Zeros are left out, every range represents them. 0 when all values are 0.
    float entropy_range(Precision precision) const;

private:
    void grow(float magnitude);

    static constexpr int64_t kBins = 4096;  // at least 2048 of them below the largest value
    std::vector<int64_t> bins_;
    float top_ = 0;  // upper edge of the last bin: a power of 2 above the largest value
    float largest_ = 0;
    int64_t count_ = 0, zeros_ = 0;
};

}  // namespace stipple::engine
