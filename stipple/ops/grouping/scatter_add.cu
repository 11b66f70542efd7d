#include "stipple/ops/grouping/scatter_kernel.h"
#include "stipple/ops/scatter_add.h"

namespace stipple::ops::cuda {

void scatter_add(View<const float, 2> values, const InvertedIndex& inverse, View<float, 2> out, Stream stream) {
    const CurrentDevice current(values.device());
    scatter(inverse, CopiedRows{values.data(), values.size(1)}, out, raw(stream));
}

}  // namespace stipple::ops::cuda
