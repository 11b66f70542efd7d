#include "stipple/metrics/noise_floor.h"

#include "stipple/geometry/sample_surface.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/random_sample.h"

namespace stipple::metrics {

PointCloud resampled(const Mesh& mesh, int64_t n, FloorSampling sampling, uint64_t seed) {
    constexpr int64_t kOversampling = 5;
    STIPPLE_REQUIRE(n > 0, "resampled: {} points", n);
    PointCloud cloud;
    cloud.origin = mesh.vertices.origin;
    if (sampling == FloorSampling::uniform) {
        cloud.positions = geometry::sample_surface(mesh, n, seed).points;
        return cloud;
    }
    cloud.positions = geometry::sample_surface(mesh, checked_mul(kOversampling, n), seed).points;
    Array<int32_t, 1> chosen({n});
    ops::farthest_point_sample(cloud.positions.view(), ops::Batch::single(n), chosen.view());
    return select(cloud, chosen.view());
}

Halves halves_of(const PointCloud& cloud, uint64_t seed) {
    const int64_t half = cloud.size() / 2;
    STIPPLE_REQUIRE(half > 0, "halves_of: a cloud of {} points", cloud.size());
    Array<int32_t, 1> order({2 * half});
    ops::RandomSampleOptions options;
    options.order = ops::SampleOrder::random;
    ops::random_sample(ops::Batch::single(cloud.size()), ops::Batch::single(2 * half), seed, order.view(), options);
    return {select(cloud, order.view().slice(0, half)), select(cloud, order.view().slice(half, 2 * half))};
}

}  // namespace stipple::metrics
