#include "stipple/io/common/world.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "stipple/core/parallel.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;

struct Survey {
    std::array<double, 3> min, max;
    bool all_float = true;

    Survey() {
        min.fill(std::numeric_limits<double>::infinity());
        max.fill(-std::numeric_limits<double>::infinity());
    }
    void add(const double* p) {
        for (int axis = 0; axis < 3; ++axis)
            // A NaN is as good in float32; a finite value that overflows there is not equal.
            all_float =
                all_float && (std::isnan(p[axis]) || static_cast<double>(static_cast<float>(p[axis])) == p[axis]);
        if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) return;
        for (int axis = 0; axis < 3; ++axis) {
            min[axis] = std::min(min[axis], p[axis]);
            max[axis] = std::max(max[axis], p[axis]);
        }
    }
    void add(const Survey& other) {
        all_float = all_float && other.all_float;
        for (int axis = 0; axis < 3; ++axis) {
            min[axis] = std::min(min[axis], other.min[axis]);
            max[axis] = std::max(max[axis], other.max[axis]);
        }
    }
};

}  // namespace

PointCloud cloud_from_world(const double* xyz, int64_t n, int64_t stride) {
    PointCloud cloud(n);
    Survey survey;
    std::mutex mutex;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        Survey part;
        for (int64_t i = begin; i < end; ++i) part.add(xyz + i * stride);
        const std::lock_guard lock(mutex);  // minima and maxima do not depend on the order
        survey.add(part);
    });
    if (!survey.all_float && survey.min[0] <= survey.max[0]) cloud.origin = choose_origin(survey.min, survey.max);
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
