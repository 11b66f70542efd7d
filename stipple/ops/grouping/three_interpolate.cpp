#include "stipple/ops/three_interpolate.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/grouping_cpu.h"
#include "stipple/ops/grouping/three_interpolate_row.h"

namespace stipple::ops {
namespace {

void require_options(const char* op, const InverseDistance& options) {
    STIPPLE_REQUIRE(options.epsilon > 0, "{}: epsilon must be positive, got {}", op, options.epsilon);
}

}  // namespace

void three_weights(View<const float, 2> distances_sq, const InverseDistance& options, View<float, 2> weights,
                   [[maybe_unused]] Stream stream) {
    const int64_t m = distances_sq.size(0), k = distances_sq.size(1);
    const Device device = distances_sq.device();
    require_options("three_weights", options);
    require_output<const float, 2>("three_weights", "distances_sq", distances_sq, {m, k}, device);
    require_output<float, 2>("three_weights", "weights", weights, {m, k}, device);
    if (weights.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            return parallel_for(m, cpu::grain_for(8 * k), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    three_weights_row(distances_sq.data() + i * k, k, options, weights.data() + i * k);
            });
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::three_weights, distances_sq, options, weights, stream);
    }
}

void three_weights_backward(View<const float, 2> distances_sq, const InverseDistance& options,
                            View<const float, 2> dL_dweights, View<float, 2> dL_ddistances_sq,
                            [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "three_weights_backward";
    const int64_t m = distances_sq.size(0), k = distances_sq.size(1);
    const Device device = distances_sq.device();
    require_options(kOp, options);
    require_output<const float, 2>(kOp, "distances_sq", distances_sq, {m, k}, device);
    require_output<const float, 2>(kOp, "dL_dweights", dL_dweights, {m, k}, device);
    require_output<float, 2>(kOp, "dL_ddistances_sq", dL_ddistances_sq, {m, k}, device);
    if (dL_dweights.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu:
            return parallel_for(m, cpu::grain_for(16 * k), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    three_weights_backward_row(distances_sq.data() + i * k, k, options, dL_dweights.data() + i * k,
                                               dL_ddistances_sq.data() + i * k);
            });
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::three_weights_backward, distances_sq, options, dL_dweights, dL_ddistances_sq,
                              stream);
    }
}

}  // namespace stipple::ops
