#include "stipple/ops/gather.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/group.h"

namespace stipple::ops {

void gather(const Clouds& rows, const Neighbours& indices, View<float, 2> out, Stream stream) {
    require_neighbours("gather", indices, rows.batch, rows.device());
    STIPPLE_REQUIRE(indices.k() == 1, "gather: indices must be [m], got [m, {}]", indices.k());
    require_output<float, 2>("gather", "out", out, {indices.rows(), rows.dimension()}, rows.device());
    group(rows, indices, View<float, 3>(out.data(), {out.size(0), 1, out.size(1)}, out.device()), stream);
}

}  // namespace stipple::ops
