#include "stipple/metrics/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/nearest_pairs.h"

namespace stipple::metrics {
namespace {

/// One direction of a search on a device; `wanted` false leaves it out.
struct Found {
    Array<int32_t, 1> index;
    Array<float, 1> squared;

    Found(bool wanted, int64_t n, Device device) {
        if (!wanted) return;
        index = Array<int32_t, 1>({n}, device);
        squared = Array<float, 1>({n}, device);
    }
};

Nearest exactly(Found found, const Points& from, const Points& to) {
    const int64_t n = from.size();
    Nearest nearest{found.index.device() == Device{} ? std::move(found.index) : found.index.to(Device{}),
                    Array<double, 1>({n})};
    constexpr int64_t kGrain = 8192;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t j = nearest.index.data()[i];
            double square = std::numeric_limits<double>::infinity();
            if (j >= 0) {
                const double *a = from.exact.data() + 3 * i, *b = to.exact.data() + 3 * int64_t{j};
                const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
                square = x * x + y * y + z * z;
            }
            nearest.squared.data()[i] = square;
        }
    });
    return nearest;
}

NearestBoth search(const Points& a, const Points& b, Device device, bool both) {
    Found of_a(true, a.size(), device), of_b(both, b.size(), device);
    // These copies must outlive the search; the copies back in exactly() wait for it.
    const Array<float, 2> there_a = device == Device{} ? Array<float, 2>() : a.rounded.to(device);
    const Array<float, 2> there_b = device == Device{} ? Array<float, 2>() : b.rounded.to(device);
    ops::nearest_pairs(device == Device{} ? a.rounded.view() : there_a.view(),
                       device == Device{} ? b.rounded.view() : there_b.view(), of_a.index.view(), of_a.squared.view(),
                       of_b.index.view(), of_b.squared.view());
    return {exactly(std::move(of_a), a, b), both ? exactly(std::move(of_b), b, a) : Nearest{}};
}

}  // namespace

NearestBoth nearest_between(const Points& a, const Points& b, Device device) {
    return search(a, b, device, true);
}

Nearest nearest_of(const Points& a, const Points& b, Device device) {
    return std::move(search(a, b, device, false).of_a);
}

double Distances::deviation() const {
    return std::sqrt(std::max(0.0, mean_squared - mean * mean));
}

namespace {

template <class ToDistance>
Distances summary(std::span<const double> values, const ToDistance& to_distance) {
    Distances result;
    double sum = 0, sum_squared = 0;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        const double distance = to_distance(value);
        ++result.count;
        sum += distance;
        sum_squared += distance * distance;
        result.max = std::max(result.max, distance);
    }
    if (result.count == 0) result.max = std::numeric_limits<double>::quiet_NaN();
    result.mean = sum / static_cast<double>(result.count);  // 0 / 0: NaN
    result.mean_squared = sum_squared / static_cast<double>(result.count);
    return result;
}

}  // namespace

Distances distances_of_squared(std::span<const double> squared) {
    return summary(squared, [](double value) { return std::sqrt(value); });
}

Distances distances_of(std::span<const double> distances) {
    return summary(distances, [](double value) { return value; });
}

Distances pooled(const Distances& a, const Distances& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double share = static_cast<double>(b.count) / static_cast<double>(a.count + b.count);
    return {a.count + b.count, a.mean + (b.mean - a.mean) * share,
            a.mean_squared + (b.mean_squared - a.mean_squared) * share, std::max(a.max, b.max)};
}

}  // namespace stipple::metrics
