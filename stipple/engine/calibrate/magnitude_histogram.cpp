#include "stipple/engine/calibrate/magnitude_histogram.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/program/round_fp8.h"

namespace stipple::engine {
namespace {

constexpr int64_t kGrain = 1 << 16;

/// Which of its numbers a precision gives to `magnitude` when it represents `range`: a count from 0, ascending.
int level_of(Precision precision, double magnitude, double range) {
    if (precision == Precision::int8) return static_cast<int>(std::lround(std::min(magnitude / range, 1.0) * 127));
    const float rounded = round_e4m3(static_cast<float>(magnitude / range * kLargestE4m3));
    if (rounded < 0x1p-6f) return static_cast<int>(rounded * 0x1p9f);
    int exponent = 0;
    const float fraction = std::frexp(rounded, &exponent);  // in [0.5, 1)
    return (exponent + 6) * 8 + static_cast<int>(fraction * 16) - 8;
}

}  // namespace

void MagnitudeHistogram::grow(float magnitude) {
    if (bins_.empty()) {
        int exponent = 0;
        std::frexp(magnitude, &exponent);
        top_ = std::ldexp(1.0f, std::max(exponent, -100));
        bins_.assign(kBins, 0);
    }
    while (magnitude >= top_) {
        for (int64_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
        std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
        STIPPLE_REQUIRE(std::isfinite(2 * top_), "magnitudes up to {} are beyond any histogram", magnitude);
        top_ *= 2;
    }
}

void MagnitudeHistogram::add(const float* values, int64_t count) {
    std::mutex mutex;
    float largest = 0;
    bool finite = true;
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        float own = 0;
        bool own_finite = true;
        for (int64_t i = begin; i < end; ++i) {
            own = std::max(own, std::abs(values[i]));
            own_finite &= std::isfinite(values[i]);
        }
        const std::lock_guard lock(mutex);
        largest = std::max(largest, own);
        finite &= own_finite;
    });
    if (!finite) throw Error(ErrorCode::not_finite, "a value is not finite");
    largest_ = std::max(largest_, largest);
    count_ += count;
    if (largest == 0) {
        zeros_ += count;
        return;
    }
    grow(largest);
    const float to_bin = static_cast<float>(kBins) / top_;
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<int64_t> own(kBins, 0);
        int64_t own_zeros = 0;
        for (int64_t i = begin; i < end; ++i) {
            if (values[i] == 0)
                ++own_zeros;
            else
                ++own[static_cast<size_t>(std::abs(values[i]) * to_bin)];
        }
        const std::lock_guard lock(mutex);
        for (int64_t i = 0; i < kBins; ++i) bins_[i] += own[i];
        zeros_ += own_zeros;
    });
}

float MagnitudeHistogram::percentile(double percent) const {
    if (largest_ == 0) return 0;
    const double wanted = percent / 100 * static_cast<double>(count_);
    int64_t below = zeros_;
    for (int64_t i = 0; i < kBins; ++i) {
        below += bins_[i];
        if (static_cast<double>(below) >= wanted && below > zeros_)
            return std::min(largest_, top_ * static_cast<float>(i + 1) / static_cast<float>(kBins));
    }
    return largest_;
}

float MagnitudeHistogram::entropy_range(Precision precision) const {
    if (largest_ == 0) return 0;
    const int64_t used = std::min<int64_t>(kBins, static_cast<int64_t>(largest_ / top_ * kBins) + 1);
    const double total = static_cast<double>(count_ - zeros_);
    constexpr int64_t kLevels = 128;  // numbers that each precision has from 0 up
    const int64_t first = std::min(used, kLevels), stride = std::max<int64_t>(1, used / 512);
    std::vector<double> mass(kLevels + 1);
    std::vector<int64_t> filled(kLevels + 1);
    std::vector<int> levels(static_cast<size_t>(used));
    int64_t inside = 0, counted = 0, best = used;
    double least = HUGE_VAL;
    for (int64_t length = first; length <= used; length += stride) {
        for (; counted < length; ++counted) inside += bins_[counted];
        // The rounded distribution: what falls on one number is spread evenly over its bins that are not empty.
        std::fill(mass.begin(), mass.end(), 0);
        std::fill(filled.begin(), filled.end(), 0);
        for (int64_t i = 0; i < length; ++i) {
            levels[i] = level_of(precision, static_cast<double>(i) + 0.5, static_cast<double>(length));
            mass[levels[i]] += static_cast<double>(bins_[i]);
            filled[levels[i]] += bins_[i] > 0;
        }
        const double outside = total - static_cast<double>(inside);
        if (inside == 0) continue;
        double divergence = 0;
        for (int64_t i = 0; i < length; ++i) {
            double p = static_cast<double>(bins_[i]);
            if (i == length - 1) p += outside;
            if (p == 0) continue;
            // The last bin may be empty but for what lies beyond the range: half a value stands for none.
            const double q = bins_[i] > 0 ? mass[levels[i]] / static_cast<double>(filled[levels[i]]) : 0.5;
            divergence += p / total * std::log((p / total) / (q / static_cast<double>(inside)));
        }
        if (divergence < least) {
            least = divergence;
            best = length;
        }
    }
    return std::min(largest_, top_ * static_cast<float>(best) / static_cast<float>(kBins));
}

}  // namespace stipple::engine
