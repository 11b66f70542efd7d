#include "stipple/io/common/world.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "stipple/core/parallel.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;

}  // namespace

PointCloud cloud_from_world(const double* xyz, int64_t n, int64_t stride) {
    PointCloud cloud(n);
    std::atomic<bool> all_float{true};
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        bool same = true;
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                // A NaN is as good in float32; a finite value that overflows there is not equal.
                const double value = xyz[i * stride + axis];
                same &= std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value;
            }
        if (!same) all_float.store(false, std::memory_order_relaxed);
    });
    if (!all_float) {
        std::vector<double> sample;
        for (int64_t i = 0, step = std::max<int64_t>(1, n / kOriginSample); i < n; i += step) {
            const double* p = xyz + i * stride;
            if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]))
                sample.insert(sample.end(), p, p + 3);
        }
        cloud.origin = choose_origin(sample);
    }
    const std::array<double, 3> origin = cloud.origin;
    float* positions = cloud.positions.data();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis)
                positions[3 * i + axis] = static_cast<float>(xyz[i * stride + axis] - origin[axis]);
    });
    return cloud;
}

FloatWorld::FloatWorld(const PointCloud& cloud, std::string_view format, Warnings& warnings)
    : data_(cloud.positions.data()) {
    const std::array<double, 3> origin = cloud.origin;
    if (origin == std::array<double, 3>{}) return;
    own_ = Array<float, 2>({cloud.size(), 3});
    float* to = own_.data();
    double worst = 0;
    std::mutex mutex;
    parallel_for(cloud.size(), kGrain, [&](int64_t begin, int64_t end) {
        double error = 0;
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                const double world = cloud.world(i, axis);
                to[3 * i + axis] = static_cast<float>(world);
                if (std::isfinite(world)) error = std::max(error, std::abs(to[3 * i + axis] - world));
            }
        const std::lock_guard lock(mutex);
        worst = std::max(worst, error);
    });
    data_ = to;
    if (worst > 0)
        warnings.push_back(
            fmt::format("{} holds world coordinates in float32: rounded by up to {:.3g}", format, worst));
}

}  // namespace stipple::io
