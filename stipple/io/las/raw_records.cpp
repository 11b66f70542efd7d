#include "stipple/io/las/raw_records.h"

#include <atomic>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/io/las.h"

namespace stipple::io::las {

const Attribute* records_of(const PointCloud& cloud) {
    const Attribute* records = find(cloud.attributes, kLasRecord);
    const FileFacts& facts = cloud.facts;
    const bool counts = records && facts.las && facts.grid && records->dtype() == DType::u8 &&
                        records->components() == record_of(*facts.las);
    return counts ? records : nullptr;
}

void require_records_of(const PointCloud& cloud, const Attribute& records) {
    const Grid& grid = *cloud.facts.grid;
    std::atomic<int64_t> wrong{-1};
    parallel_for(cloud.size(), int64_t{1} << 14, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                const auto a = static_cast<size_t>(axis);
                const auto value = number_at<int32_t>(records.data() + i * records.components(), 4 * axis);
                const double stored = value * grid.scale[a] + grid.offset[a];
                const double slack = std::abs(grid.scale[a]) + std::abs(cloud.positions.data()[3 * i + axis]) * 0x1p-22;
                if (!(std::abs(stored - cloud.world(i, axis)) <= slack)) wrong.store(i, std::memory_order_relaxed);
            }
    });
    STIPPLE_REQUIRE(wrong < 0, "point {} is not where its LAS record says: {} must not outlive a move", wrong.load(),
                    kLasRecord);
}

Grid target_grid(const FileFacts& facts, const WriteOptions& options) {
    Grid grid = *facts.grid;
    if (options.scale) grid.scale = *options.scale;
    if (options.offset) grid.offset = *options.offset;
    return grid;
}

}  // namespace stipple::io::las
