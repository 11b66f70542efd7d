#include "stipple/ops/sinkhorn.h"

#include <cmath>

#include "stipple/ops/common/require.h"

namespace stipple::ops {
namespace {

void require_measures(const char* op, const Clouds& a, const Clouds& b, View<const float, 1> weights_a,
                      View<const float, 1> weights_b) {
    require_pair(op, a, b);
    if (weights_a.size(0) > 0) require_output(op, "weights_a", weights_a, {a.batch.rows()}, a.device());
    if (weights_b.size(0) > 0) require_output(op, "weights_b", weights_b, {b.batch.rows()}, a.device());
}

void require_epsilon(const char* op, const SinkhornOptions& options) {
    // Costs of its size and their quotients must be normal floats.
    STIPPLE_REQUIRE(options.epsilon >= 1e-30f && options.epsilon <= 1e37f, "{}: epsilon {} is not in 1e-30..1e37", op,
                    options.epsilon);
}

bool is_left_out(const View<float, 2>& gradient) {
    return gradient.data() == nullptr && gradient.elements() == 0;
}

}  // namespace

void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result, [[maybe_unused]] Stream stream) {
    const char* op = "sinkhorn";
    require_measures(op, a, b, weights_a, weights_b);
    require_epsilon(op, options);
    STIPPLE_REQUIRE(options.epsilon_start >= 0 && options.epsilon_start <= 1e37f,
                    "{}: epsilon_start {} is not in 0..1e37", op, options.epsilon_start);
    STIPPLE_REQUIRE(options.epsilon_ratio > 0 && options.epsilon_ratio < 1, "{}: epsilon_ratio {} is not in (0, 1)", op,
                    options.epsilon_ratio);
    STIPPLE_REQUIRE(options.max_iterations >= 1, "{}: max_iterations is {}", op, options.max_iterations);
    STIPPLE_REQUIRE(options.tolerance >= 0 && std::isfinite(options.tolerance), "{}: tolerance {}", op,
                    options.tolerance);
    STIPPLE_REQUIRE(options.check_every >= 1, "{}: check_every is {}", op, options.check_every);
    const int64_t clouds = a.batch.clouds();
    const Device device = a.device();
    require_output(op, "cost", result.cost, {clouds}, device);
    require_output(op, "dual", result.dual, {clouds}, device);
    require_output(op, "error", result.error, {clouds}, device);
    require_output(op, "iterations", result.iterations, {clouds}, device);
    require_output(op, "converged", result.converged, {clouds}, device);
    require_output(op, "f", result.f, {a.batch.rows()}, device);
    require_output(op, "g", result.g, {b.batch.rows()}, device);
    if (clouds == 0) return;
    switch (device.type) {
        case DeviceType::cpu: return cpu::sinkhorn(a, b, weights_a, weights_b, options, result);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::sinkhorn, a, b, weights_a, weights_b, options, result, stream);
            return;
    }
}

void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db,
                       [[maybe_unused]] Stream stream) {
    const char* op = "sinkhorn_backward";
    require_measures(op, a, b, weights_a, weights_b);
    require_epsilon(op, options);
    const Device device = a.device();
    require_output(op, "f", f, {a.batch.rows()}, device);
    require_output(op, "g", g, {b.batch.rows()}, device);
    require_output(op, "dL_ddual", dL_ddual, {a.batch.clouds()}, device);
    if (!is_left_out(dL_da)) require_output(op, "dL_da", dL_da, {a.batch.rows(), 3}, device);
    if (!is_left_out(dL_db)) require_output(op, "dL_db", dL_db, {b.batch.rows(), 3}, device);
    if (a.batch.clouds() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            return cpu::sinkhorn_backward(a, b, weights_a, weights_b, options, f, g, dL_ddual, dL_da, dL_db);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::sinkhorn_backward, a, b, weights_a, weights_b, options, f, g, dL_ddual, dL_da,
                              dL_db, stream);
            return;
    }
}

}  // namespace stipple::ops
