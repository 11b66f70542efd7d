// A thread for each column: so little work that its launch is all it costs, which eight operations of torch would cost
// eight times.

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/products/row_norm_number.h"
#include "stipple/ops/row_norm.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kColumnThreads = 128;

struct ColumnArguments {
    const float *mean, *variance, *gamma, *beta, *offset;  // offset: or null
    float *running_mean, *running_variance, *inverse, *scale, *shift;
    double count, eps, momentum;
    int64_t columns;
};

__global__ void __launch_bounds__(kColumnThreads) number_columns(const __grid_constant__ ColumnArguments a) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
    if (i >= a.columns) return;
    const ColumnNumbers column =
        column_numbers(a.mean[i], a.variance[i], a.count, a.gamma[i], a.beta[i], a.offset ? a.offset[i] : 0.0f, a.eps,
                       a.momentum, a.running_mean[i], a.running_variance[i]);
    a.inverse[i] = column.inverse, a.scale[i] = column.scale, a.shift[i] = column.shift;
    a.running_mean[i] = column.running_mean, a.running_variance[i] = column.running_variance;
}

}  // namespace

void norm_columns(View<const float, 1> mean, View<const float, 1> variance, double count,
                  const NormParameters& parameters, View<float, 1> running_mean, View<float, 1> running_variance,
                  View<float, 1> inverse, View<float, 1> scale, View<float, 1> shift, Stream stream) {
    const CurrentDevice current(mean.device());
    const bool has_offset = parameters.offset.elements() > 0;
    const ColumnArguments a = {mean.data(),
                               variance.data(),
                               parameters.gamma.data(),
                               parameters.beta.data(),
                               has_offset ? parameters.offset.data() : nullptr,
                               running_mean.data(),
                               running_variance.data(),
                               inverse.data(),
                               scale.data(),
                               shift.data(),
                               count,
                               parameters.eps,
                               parameters.momentum,
                               mean.size(0)};
    number_columns<<<blocks_for(a.columns, kColumnThreads), kColumnThreads, 0, raw(stream)>>>(a);
    STIPPLE_CHECK_LAUNCH(number_columns);
}

}  // namespace stipple::ops::cuda
