#include "stipple/ops/scatter_add.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/grouping/scatter_terms.h"

namespace stipple::ops {

void scatter_add(View<const float, 2> values, const InvertedIndex& inverse, View<float, 2> out,
                 [[maybe_unused]] Stream stream) {
    const int64_t entries = values.size(0), c = values.size(1), n = out.size(0);
    const Device device = values.device();
    require_output<const float, 2>("scatter_add", "values", values, {entries, c}, device);
    require_inverse("scatter_add", inverse, n, entries, device);
    require_output<float, 2>("scatter_add", "out", out, {n, c}, device);
    if (out.elements() == 0) return;
    switch (device.type) {
        case DeviceType::cpu: return cpu::scatter(inverse, CopiedRows{values.data(), c}, out);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::scatter_add, values, inverse, out, stream);
    }
}

}  // namespace stipple::ops
