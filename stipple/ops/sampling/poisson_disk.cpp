#include "stipple/ops/poisson_disk.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/sampling/poisson_weight.h"

namespace stipple::ops {
namespace {

double largest_extent(const FiniteBox& box) {
    double extent = 0;
    for (int axis = 0; axis < 3 && !box.empty(); ++axis)
        extent = std::max(extent, static_cast<double>(box.high[axis]) - box.low[axis]);
    return extent;
}

}  // namespace

float poisson_cell_size(const FiniteBox& box, float reach) {
    // 2^20 cells a side keep the keys within 60 bits.
    const float size = std::max(reach, static_cast<float>(largest_extent(box) * 0x1p-20));
    return size > 0 && std::isfinite(size) ? size : 1;
}

std::array<double, 3> poisson_cell_origin(const FiniteBox& box) {
    return {box.low[0], box.low[1], box.low[2]};
}

float solve_poisson_reach(const FiniteBox& box, int64_t finite, int64_t m,
                          const std::function<uint64_t(float)>& inverse_counts) {
    const double extent = largest_extent(box);
    if (!(extent > 0) || finite == 0 || m == 0) return 0;
    double side[3];
    for (int axis = 0; axis < 3; ++axis) side[axis] = static_cast<double>(box.high[axis]) - box.low[axis];
    const double box_area = side[0] * side[1] + side[1] * side[2] + side[2] * side[0];
    const double count = static_cast<double>(m), wanted = count / kPoissonNeighbours;
    const double scale = static_cast<double>(finite) / static_cast<double>(std::min(finite, kPoissonQueries));
    double reach = std::max(2 * std::sqrt(box_area / (2 * std::sqrt(3.0) * count)), extent / count);
    // On surfaces the sum falls as 1 / reach^2 and one step hits; on curves and solids each step halves the error.
    for (int step = 0; step < 16; ++step) {
        const double sum = scale * static_cast<double>(inverse_counts(static_cast<float>(reach))) * 0x1p-32;
        const double factor = std::clamp(std::sqrt(sum / wanted), 0.05, 4.0);
        reach = std::min(reach * factor, 2 * extent);
        if (factor > 0.8 && factor < 1.25) break;
    }
    return static_cast<float>(reach);
}

float poisson_disk_radius_of_area(double area, int64_t m) {
    STIPPLE_REQUIRE(area >= 0 && std::isfinite(area), "poisson_disk_radius_of_area: area {}", area);
    STIPPLE_REQUIRE(m > 0, "poisson_disk_radius_of_area: {} samples", m);
    return static_cast<float>(std::sqrt(area / (2 * std::sqrt(3.0) * static_cast<double>(m))));
}

float poisson_disk_radius(View<const float, 2> points, int64_t m, [[maybe_unused]] Stream stream) {
    require_clouds("poisson_disk_radius", "points", points);
    STIPPLE_REQUIRE(m > 0, "poisson_disk_radius: {} samples", m);
    if (points.size(0) == 0) return 0;
    switch (points.device().type) {
        case DeviceType::cpu: return cpu::poisson_reach(points, m) / 2;
        case DeviceType::cuda: {
            float reach = 0;
            STIPPLE_CUDA_CALL(cuda::poisson_reach, points, m, reach, stream);
            return reach / 2;
        }
    }
    return 0;
}

namespace {

/// What the device could not do in rounds, and the order of its samples: the CPU gives the same.
void finish_on_cpu(View<const float, 2> points, bool chosen, const PoissonDiskOptions& options, View<int32_t, 1> out) {
    Array<float, 2> host({points.size(0), 3});
    if (points.stride(0) == 3) {
        copy_bytes(host.data(), {}, points.data(), points.device(), host.elements() * sizeof(float));
    } else {
        Array<float, 1> all({(points.size(0) - 1) * points.stride(0) + 3});
        copy_bytes(all.data(), {}, points.data(), points.device(), all.elements() * sizeof(float));
        for (int64_t i = 0; i < points.size(0); ++i)
            std::copy_n(all.data() + i * points.stride(0), 3, host.data() + 3 * i);
    }
    Array<int32_t, 1> samples(out.shape());
    if (chosen) {
        copy_bytes(samples.data(), {}, out.data(), out.device(), out.elements() * sizeof(int32_t));
        cpu::progressive_order(host.view(), options, samples.data(), out.size(0));
    } else {
        cpu::poisson_disk(host.view(), samples.data(), out.size(0), options);
    }
    copy_bytes(out.data(), out.device(), samples.data(), {}, out.elements() * sizeof(int32_t));
}

void on_cuda(const Clouds& points, const Batch& samples, View<int32_t, 1> indices, const PoissonDiskOptions& options,
             [[maybe_unused]] Stream stream) {
    for (int64_t cloud = 0; cloud < points.batch.clouds(); ++cloud) {
        const View<int32_t, 1> out = indices.slice(samples.begin(cloud), samples.end(cloud));
        if (out.size(0) == 0) continue;
        bool chosen = false;
        STIPPLE_CUDA_CALL(cuda::poisson_disk, points.cloud(cloud), out.data(), out.size(0), options.radius, chosen,
                          stream);
        if (!chosen || options.progressive) finish_on_cpu(points.cloud(cloud), chosen, options, out);
    }
}

}  // namespace

void poisson_disk_of_part(View<const float, 2> points, View<const uint8_t, 1> roles, View<const uint8_t, 1> factors,
                          float radius, View<int32_t, 1> indices) {
    require_clouds("poisson_disk_of_part", "points", points);
    const int64_t n = points.size(0);
    STIPPLE_REQUIRE(points.device().type == DeviceType::cpu, "poisson_disk_of_part: points are on {}, not the CPU",
                    to_string(points.device()));
    STIPPLE_REQUIRE(roles.size(0) == n && roles.stride(0) == 1, "poisson_disk_of_part: {} roles of {} points",
                    roles.size(0), n);
    STIPPLE_REQUIRE(factors.size(0) == 0 || (factors.size(0) == n && factors.stride(0) == 1),
                    "poisson_disk_of_part: {} factors of {} points", factors.size(0), n);
    require_output<int32_t, 1>("poisson_disk_of_part", "indices", indices, {indices.size(0)}, points.device());
    STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius), "poisson_disk_of_part: radius {}", radius);
    for (int64_t i = 0; i < n; ++i) {
        STIPPLE_REQUIRE(roles(i) <= static_cast<uint8_t>(SampleRole::fixed), "poisson_disk_of_part: role {} at {}",
                        roles(i), i);
        STIPPLE_REQUIRE(factors.size(0) == 0 || factors(i) > 0, "poisson_disk_of_part: factor 0 at {}", i);
    }
    cpu::poisson_disk_of_part(points, roles, factors, radius, indices);
}

void poisson_disk(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                  const PoissonDiskOptions& options, Stream stream) {
    require_clouds("poisson_disk", "points", points);
    require_same_batch("poisson_disk", points.batch, samples);
    require_output<int32_t, 1>("poisson_disk", "indices", indices, {samples.rows()}, points.device());
    STIPPLE_REQUIRE(options.radius >= 0 && std::isfinite(options.radius), "poisson_disk: radius {}", options.radius);
    const int64_t clouds = points.batch.clouds();
    for (int64_t cloud = 0; cloud < clouds; ++cloud)
        STIPPLE_REQUIRE(samples.size(cloud) <= points.batch.size(cloud),
                        "poisson_disk: asked for {} of the {} points of cloud {}", samples.size(cloud),
                        points.batch.size(cloud), cloud);
    switch (points.device().type) {
        case DeviceType::cpu:
            return parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
                for (int64_t cloud = begin; cloud < end; ++cloud)
                    if (samples.size(cloud) > 0)
                        cpu::poisson_disk(points.cloud(cloud), indices.data() + samples.begin(cloud),
                                          samples.size(cloud), options);
            });
        case DeviceType::cuda: return on_cuda(points, samples, indices, options, stream);
    }
}

}  // namespace stipple::ops
