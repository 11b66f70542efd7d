#include "stipple/ops/common/require.h"
#include "stipple/ops/products/row_norm_number.h"
#include "stipple/ops/row_norm.h"

namespace stipple::ops {

void norm_columns(View<const float, 1> mean, View<const float, 1> variance, double count,
                  const NormParameters& parameters, View<float, 1> running_mean, View<float, 1> running_variance,
                  View<float, 1> inverse, View<float, 1> scale, View<float, 1> shift, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "norm_columns";
    const int64_t c = mean.size(0);
    const Device device = mean.device();
    require_output<const float, 1>(kOp, "mean", mean, {c}, device);
    require_output<const float, 1>(kOp, "variance", variance, {c}, device);
    require_output<const float, 1>(kOp, "gamma", parameters.gamma, {c}, device);
    require_output<const float, 1>(kOp, "beta", parameters.beta, {c}, device);
    if (parameters.offset.elements() > 0) require_output<const float, 1>(kOp, "offset", parameters.offset, {c}, device);
    require_output<float, 1>(kOp, "running_mean", running_mean, {c}, device);
    require_output<float, 1>(kOp, "running_variance", running_variance, {c}, device);
    require_output<float, 1>(kOp, "inverse", inverse, {c}, device);
    require_output<float, 1>(kOp, "scale", scale, {c}, device);
    require_output<float, 1>(kOp, "shift", shift, {c}, device);
    STIPPLE_REQUIRE(count >= 2, "{}: the variance of {} rows is not known", kOp, count);
    if (c == 0) return;
    if (device.type == DeviceType::cuda) {
        STIPPLE_CUDA_CALL(cuda::norm_columns, mean, variance, count, parameters, running_mean, running_variance,
                          inverse, scale, shift, stream);
        return;
    }
    const bool has_offset = parameters.offset.elements() > 0;
    for (int64_t i = 0; i < c; ++i) {
        const ColumnNumbers column =
            column_numbers(mean(i), variance(i), count, parameters.gamma(i), parameters.beta(i),
                           has_offset ? parameters.offset(i) : 0.0f, parameters.eps, parameters.momentum,
                           running_mean(i), running_variance(i));
        inverse(i) = column.inverse, scale(i) = column.scale, shift(i) = column.shift;
        running_mean(i) = column.running_mean, running_variance(i) = column.running_variance;
    }
}

}  // namespace stipple::ops
