#include "stipple/metrics/jsd.h"

#include <cmath>
#include <vector>

#include "stipple/ops/knn.h"

namespace stipple::metrics {
namespace {

/// The lattice, x slowest, in float64 rounded to float32: distances to it decide where a point counts.
Array<float, 2> lattice(const JsdOptions& options) {
    const double step = 2 * options.half_extent / (options.resolution - 1);
    // Points of the lattice that lie on the sphere must not be lost to rounding.
    const double most = options.half_extent * options.half_extent * (1 + 1e-9);
    std::vector<float> places;
    for (int x = 0; x < options.resolution; ++x)
        for (int y = 0; y < options.resolution; ++y)
            for (int z = 0; z < options.resolution; ++z) {
                const double p[3] = {x * step - options.half_extent, y * step - options.half_extent,
                                     z * step - options.half_extent};
                if (options.within_sphere && p[0] * p[0] + p[1] * p[1] + p[2] * p[2] > most) continue;
                for (const double c : p) places.push_back(static_cast<float>(c));
            }
    Array<float, 2> result({static_cast<int64_t>(places.size()) / 3, 3});
    std::copy(places.begin(), places.end(), result.data());
    return result;
}

std::vector<int64_t> histogram(const ops::PointIndex& index, int64_t cells, const Points& points) {
    Array<int32_t, 2> nearest({points.size(), 1});
    ops::knn(index, points.rounded.view(), nearest.view(), {});
    std::vector<int64_t> counts(static_cast<size_t>(cells));
    for (const int32_t cell : nearest.span())
        if (cell >= 0) ++counts[cell];
    return counts;
}

double plogp(double p) {
    return p > 0 ? p * std::log2(p) : 0;
}

int64_t outside_of(const Points& points, const JsdOptions& options) {
    // A cloud in its unit sphere touches it: rounding puts no point outside.
    const double most = options.half_extent * (1 + 1e-6);
    int64_t count = 0;
    for (int64_t i = 0; i < points.size(); ++i) {
        const double* p = points.exact.data() + 3 * i;
        const double far = options.within_sphere ? std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
                                                 : std::max({std::abs(p[0]), std::abs(p[1]), std::abs(p[2])});
        count += far > most && std::isfinite(far);
    }
    return count;
}

}  // namespace

Jsd jensen_shannon(const Points& prediction, const Points& truth, const JsdOptions& options) {
    STIPPLE_REQUIRE(options.resolution >= 2 && options.resolution <= 256,
                    "jensen_shannon: a resolution of 2 to 256, got {}", options.resolution);
    STIPPLE_REQUIRE(options.half_extent > 0 && std::isfinite(options.half_extent),
                    "jensen_shannon: the half extent must be above 0, got {}", options.half_extent);
    STIPPLE_REQUIRE(prediction.finite > 0 && truth.finite > 0, "jensen_shannon: a cloud has no finite points");
    const Array<float, 2> places = lattice(options);
    STIPPLE_REQUIRE(places.size(0) > 0, "jensen_shannon: no point of the lattice lies within the sphere");
    const ops::PointIndex index(places.view());
    const std::vector<int64_t> p = histogram(index, places.size(0), prediction),
                               q = histogram(index, places.size(0), truth);
    double mixed = 0, own = 0;
    for (size_t i = 0; i < p.size(); ++i) {
        const double a = static_cast<double>(p[i]) / static_cast<double>(prediction.finite),
                     b = static_cast<double>(q[i]) / static_cast<double>(truth.finite);
        mixed -= plogp((a + b) / 2);
        own -= (plogp(a) + plogp(b)) / 2;
    }
    return {std::max(0.0, mixed - own), outside_of(prediction, options) + outside_of(truth, options)};
}

}  // namespace stipple::metrics
