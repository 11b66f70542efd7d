#include "stipple/ops/point_index.h"

#include "stipple/ops/common/require.h"
#include "stipple/ops/search/neighbours_cuda.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::ops {

PointIndex::PointIndex(const Clouds& points, [[maybe_unused]] Stream stream)
    : batch_(points.batch), dimension_(points.dimension()), device_(points.device()) {
    STIPPLE_REQUIRE(dimension_ >= 1 && dimension_ <= 32, "PointIndex: points of 1 to 32 dimensions, got {}",
                    dimension_);
    require_clouds("PointIndex", "points", points, dimension_);
    switch (device_.type) {
        case DeviceType::cpu: cpu_ = cpu::build(points); return;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda_ = cuda::build, points, stream);
    }
}

}  // namespace stipple::ops
