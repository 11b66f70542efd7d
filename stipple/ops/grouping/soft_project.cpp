#include "stipple/ops/soft_project.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/grouping_cpu.h"
#include "stipple/ops/grouping/soft_project_row.h"

namespace stipple::ops {
namespace cpu {
namespace {

SoftRow row_of(const Clouds& points, const Clouds& queries, const Neighbours& neighbours, const Neighbourhood& near,
               double sigma) {
    return {points.rows.data() + near.first * points.rows.stride(0),
            points.rows.stride(0),
            near.n,
            queries.rows.data() + near.row * queries.rows.stride(0),
            near.indices,
            neighbours.k(),
            sigma};
}

void soft_project(const Clouds& points, const Clouds& queries, const Neighbours& neighbours, double sigma,
                  float* weights, float* projected) {
    const int64_t k = neighbours.k();
    for_each_neighbourhood(neighbours, points.batch, 64 * k, [&](const Neighbourhood& near) {
        row_of(points, queries, neighbours, near, sigma).forward(weights + near.row * k, projected + 3 * near.row);
    });
}

/// Returns dL/dsigma.
double soft_project_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours, double sigma,
                             const float* dL_dprojected, const float* dL_dweights, float* dL_dqueries) {
    const int64_t m = neighbours.rows(), k = neighbours.k();
    std::vector<double> partial(static_cast<size_t>((m + kQueriesPerChunk - 1) / kQueriesPerChunk));
    // Chunks of exactly one partial sum each, so that no two threads meet in one.
    for_each_neighbourhood(neighbours, points.batch, 32768 / kQueriesPerChunk, [&](const Neighbourhood& near) {
        partial[near.row / kQueriesPerChunk] +=
            row_of(points, queries, neighbours, near, sigma)
                .backward(dL_dprojected == nullptr ? nullptr : dL_dprojected + 3 * near.row,
                          dL_dweights == nullptr ? nullptr : dL_dweights + near.row * k, dL_dqueries + 3 * near.row);
    });
    double sum = 0;
    for (double part : partial) sum += part;
    return sum;
}

}  // namespace
}  // namespace cpu

namespace {

void require_arguments(const char* op, const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                       View<const float, 1> temperature, float min_sigma) {
    require_clouds(op, "points", points);
    require_clouds(op, "queries", queries);
    require_same_batch(op, queries.batch, points.batch);
    require_device(op, "queries", points.device(), queries.device());
    require_neighbours(op, neighbours, points.batch, points.device());
    STIPPLE_REQUIRE(neighbours.rows() == queries.rows.size(0), "{}: {} rows of indices for {} queries", op,
                    neighbours.rows(), queries.rows.size(0));
    require_output<const float, 1>(op, "temperature", temperature, {1}, points.device());
    STIPPLE_REQUIRE(min_sigma >= 0 && min_sigma <= std::numeric_limits<float>::max(),
                    "{}: min_sigma must be finite and not negative, got {}", op, min_sigma);
}

}  // namespace

void soft_project(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                  View<const float, 1> temperature, float min_sigma, View<float, 2> weights, View<float, 2> projected,
                  [[maybe_unused]] Stream stream) {
    const int64_t m = neighbours.rows();
    require_arguments("soft_project", points, queries, neighbours, temperature, min_sigma);
    require_output<float, 2>("soft_project", "weights", weights, {m, neighbours.k()}, points.device());
    require_output<float, 2>("soft_project", "projected", projected, {m, 3}, points.device());
    if (m == 0) return;
    switch (points.device().type) {
        case DeviceType::cpu:
            return cpu::soft_project(points, queries, neighbours, SoftSigma(temperature(0), min_sigma).value,
                                     weights.data(), projected.data());
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::soft_project, points, queries, neighbours, temperature, min_sigma, weights,
                              projected, stream);
    }
}

void soft_project_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                           View<const float, 1> temperature, float min_sigma, View<const float, 2> dL_dprojected,
                           View<const float, 2> dL_dweights, View<float, 2> dL_dqueries, View<float, 1> dL_dtemperature,
                           [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "soft_project_backward";
    const int64_t m = neighbours.rows();
    const Device device = points.device();
    require_arguments(kOp, points, queries, neighbours, temperature, min_sigma);
    const bool of_projected = dL_dprojected.elements() > 0, of_weights = dL_dweights.elements() > 0;
    if (of_projected) require_output<const float, 2>(kOp, "dL_dprojected", dL_dprojected, {m, 3}, device);
    if (of_weights) require_output<const float, 2>(kOp, "dL_dweights", dL_dweights, {m, neighbours.k()}, device);
    require_output<float, 2>(kOp, "dL_dqueries", dL_dqueries, {m, 3}, device);
    require_output<float, 1>(kOp, "dL_dtemperature", dL_dtemperature, {1}, device);
    const float* projected = of_projected ? dL_dprojected.data() : nullptr;
    const float* weights = of_weights ? dL_dweights.data() : nullptr;
    switch (device.type) {
        case DeviceType::cpu: {
            const SoftSigma sigma(temperature(0), min_sigma);
            const double dL_dsigma = cpu::soft_project_backward(points, queries, neighbours, sigma.value, projected,
                                                                weights, dL_dqueries.data());
            dL_dtemperature(0) = static_cast<float>(sigma.slope == 0 ? 0 : dL_dsigma * sigma.slope);
            return;
        }
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::soft_project_backward, points, queries, neighbours, temperature, min_sigma,
                              projected, weights, dL_dqueries, dL_dtemperature, stream);
    }
}

}  // namespace stipple::ops
