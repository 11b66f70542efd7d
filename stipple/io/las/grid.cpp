#include "stipple/io/las/grid.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <mutex>

#include "stipple/core/parallel.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kScanGrain = int64_t{1} << 15;

double power_of_ten(int exponent) {
    // By its decimal text: the double nearest to it, which products of doubles are not.
    const std::string text = fmt::format("1e{}", exponent);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

int32_t nearest(double value, double scale) {
    return static_cast<int32_t>(std::nearbyint(std::clamp(value / scale, -kLargest, kLargest)));
}

/// The largest difference between a position of the axis and what is read back; stops at the first with `only_exact`.
double rounding(const float* axis, int64_t n, double scale, bool only_exact) {
    double worst = 0;
    std::mutex mutex;
    std::atomic<bool> stop{false};
    parallel_for(n, kScanGrain, [&](int64_t begin, int64_t end) {
        double error = 0;
        for (int64_t i = begin; i < end && !stop.load(std::memory_order_relaxed); ++i) {
            const float value = axis[3 * i], back = static_cast<float>(nearest(value, scale) * scale);
            if (value == back) continue;
            error = std::max(error, std::abs(static_cast<double>(value) - back));
            if (only_exact) stop.store(true, std::memory_order_relaxed);
        }
        const std::lock_guard lock(mutex);
        worst = std::max(worst, error);
    });
    return worst;
}

/// The exponent of the finest bit set in any position of the axis.
int finest_bit(const float* axis, int64_t n) {
    int finest = std::numeric_limits<int>::max();
    for (int64_t i = 0; i < n; ++i) {
        if (axis[3 * i] == 0) continue;
        int exponent = 0;
        const auto mantissa = static_cast<int32_t>(std::ldexp(std::frexp(axis[3 * i], &exponent), 24));
        finest = std::min(finest, exponent - 24 + __builtin_ctz(static_cast<uint32_t>(std::abs(mantissa))));
    }
    return finest;
}

double choose_scale(const float* axis, int64_t n, double largest, double& worst) {
    worst = 0;
    if (largest == 0) return 0.001;
    // Data that came from decimals are exact in decimals: the coarsest power of ten that tells them apart.
    const int coarsest = std::min(0, static_cast<int>(std::floor(std::log10(largest))));
    for (int exponent = coarsest; largest / power_of_ten(exponent) <= kLargest; --exponent)
        if (rounding(axis, n, power_of_ten(exponent), true) == 0) return power_of_ten(exponent);
    const int bit = finest_bit(axis, n);
    if (largest / std::ldexp(1.0, bit) <= kLargest) return std::ldexp(1.0, bit);
    const double fine = power_of_ten(static_cast<int>(std::floor(std::log10(largest * 0x1p-24))));
    const double scale = fine > 0.001 && largest / 0.001 <= kLargest ? 0.001 : fine;
    worst = rounding(axis, n, scale, false);
    return scale;
}

struct Range {
    float low = 0, high = 0;
};

Range range_of(const PointCloud& cloud, size_t axis) {
    const float* p = cloud.positions.data() + axis;
    Range range{p[0], p[0]};
    for (int64_t i = 0; i < cloud.size(); ++i) {
        range.low = std::min(range.low, p[3 * i]);
        range.high = std::max(range.high, p[3 * i]);
    }
    return range;
}

/// Whether the integers of an axis hold its range.
bool fits(const Range& range, double shift, double scale) {
    return std::abs((range.low + shift) / scale) <= kLargest && std::abs((range.high + shift) / scale) <= kLargest;
}

/// How far positions of the axis move beyond what float32 tells apart.
double off_grid(const PointCloud& cloud, size_t axis, double shift, double scale) {
    double worst = 0;
    std::mutex mutex;
    const float* p = cloud.positions.data() + axis;
    parallel_for(cloud.size(), kScanGrain, [&](int64_t begin, int64_t end) {
        double part = 0;
        for (int64_t i = begin; i < end; ++i) {
            const double value = p[3 * i] + shift, error = std::abs(nearest(value, scale) * scale - value);
            if (error > std::abs(p[3 * i]) * 0x1p-23 + std::abs(shift) * 0x1p-50) part = std::max(part, error);
        }
        const std::lock_guard lock(mutex);
        worst = std::max(worst, part);
    });
    return worst;
}

[[noreturn]] void fail_range(const PointCloud& cloud, size_t axis, const Range& range, double scale, double offset) {
    throw Error(
        ErrorCode::bad_argument,
        fmt::format("{} from {:.10g} to {:.10g} does not fit the integers of LAS with scale {} and offset {}",
                    "xyz"[axis], cloud.origin[axis] + range.low, cloud.origin[axis] + range.high, scale, offset),
        "a coarser --scale, or an --offset near the points");
}

}  // namespace

void require_finite(const PointCloud& cloud) {
    const float* positions = cloud.positions.data();
    for (int64_t i = 0; i < 3 * cloud.size(); ++i)
        if (!std::isfinite(positions[i]))
            throw Error(ErrorCode::bad_argument,
                        fmt::format("LAS cannot hold the non-finite coordinates of point {}", i / 3),
                        "leave such points out with --drop-nonfinite");
    for (const double value : cloud.origin)
        STIPPLE_REQUIRE(std::isfinite(value), "LAS cannot hold a non-finite origin");
}

void require_fits(const PointCloud& cloud, const Grid& grid) {
    for (size_t a = 0; a < 3 && cloud.size() > 0; ++a) {
        const Range range = range_of(cloud, a);
        if (!fits(range, cloud.origin[a] - grid.offset[a], grid.scale[a]))
            fail_range(cloud, a, range, grid.scale[a], grid.offset[a]);
    }
}

Grid choose_grid(const PointCloud& cloud, const WriteOptions& options, IntBounds& bounds, Warnings& warnings) {
    require_finite(cloud);
    const int64_t n = cloud.size();
    std::array<Range, 3> ranges;
    if (n > 0)
        for (size_t a = 0; a < 3; ++a) ranges[a] = range_of(cloud, a);
    Grid grid{{}, options.offset.value_or(cloud.origin)};
    bool kept = cloud.facts.grid && !options.scale && !options.offset;
    for (size_t a = 0; kept && a < 3; ++a)
        kept = fits(ranges[a], cloud.origin[a] - cloud.facts.grid->offset[a], cloud.facts.grid->scale[a]);
    if (kept) grid = *cloud.facts.grid;
    double worst = 0;
    for (size_t a = 0; a < 3; ++a) {
        const double shift = cloud.origin[a] - grid.offset[a];
        const Range& range = ranges[a];
        if (options.scale) {
            grid.scale[a] = (*options.scale)[a];
        } else if (!kept && n == 0) {
            grid.scale[a] = cloud.facts.grid ? cloud.facts.grid->scale[a] : 0.001;
        } else if (!kept && shift != 0) {
            grid.scale[a] = cloud.facts.grid ? cloud.facts.grid->scale[a] : 0.001;
        } else if (!kept) {
            double error = 0;
            const double largest = std::max(std::abs(range.low), std::abs(range.high));
            grid.scale[a] = choose_scale(cloud.positions.data() + a, n, largest, error);
            worst = std::max(worst, error);
        }
        if (n == 0) {
            bounds.min[a] = bounds.max[a] = 0;
            continue;
        }
        if (!fits(range, shift, grid.scale[a]) && (options.scale || options.offset))
            fail_range(cloud, a, range, grid.scale[a], grid.offset[a]);
        if (kept || options.scale || shift != 0) worst = std::max(worst, off_grid(cloud, a, shift, grid.scale[a]));
        const int32_t one = nearest(range.low + shift, grid.scale[a]), two = nearest(range.high + shift, grid.scale[a]);
        bounds.min[a] = std::min(one, two);
        bounds.max[a] = std::max(one, two);
    }
    if (worst > 0)
        warnings.push_back(
            fmt::format("LAS holds integers: positions are rounded by up to {:.3g} (scale {:.3g} {:.3g} {:.3g})", worst,
                        grid.scale[0], grid.scale[1], grid.scale[2]));
    return grid;
}

void quantise(const PointCloud& cloud, const Grid& grid, int64_t first, int64_t count, std::byte* to, int64_t stride) {
    std::array<double, 3> shift;
    for (size_t a = 0; a < 3; ++a) shift[a] = cloud.origin[a] - grid.offset[a];
    for (int64_t i = 0; i < count; ++i) {
        int32_t xyz[3];
        for (size_t a = 0; a < 3; ++a)
            xyz[a] =
                nearest(cloud.positions.data()[3 * (first + i) + static_cast<int64_t>(a)] + shift[a], grid.scale[a]);
        std::memcpy(to + i * stride, xyz, 12);
    }
}

void requantise(const Grid& from, const Grid& to, std::byte* records, int64_t stride, int64_t count) {
    std::atomic<bool> overflow{false};
    parallel_for(count, kScanGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int32_t xyz[3];
            std::memcpy(xyz, records + i * stride, 12);
            for (size_t a = 0; a < 3; ++a) {
                const double value = (xyz[a] * from.scale[a] + (from.offset[a] - to.offset[a])) / to.scale[a];
                if (!(std::abs(value) <= kLargest)) overflow.store(true, std::memory_order_relaxed);
                xyz[a] = static_cast<int32_t>(std::nearbyint(std::clamp(value, -kLargest, kLargest)));
            }
            std::memcpy(records + i * stride, xyz, 12);
        }
    });
    if (overflow)
        throw Error(ErrorCode::bad_argument,
                    fmt::format("points do not fit the integers of LAS with scale {} {} {} and offset {} {} {}",
                                to.scale[0], to.scale[1], to.scale[2], to.offset[0], to.offset[1], to.offset[2]),
                    "a coarser --scale, or an --offset near the points");
}

}  // namespace stipple::io::las
