#pragma once
// Rows of a launch on the GPU, cut into tiles that never cross a cloud: so a tile has one cloud's matrix, one row of
// each value that belongs to clouds, and one maximum to raise.

#include <cuda_runtime.h>

#include <cstdint>

#include "stipple/ops/common/device_batch.h"

namespace stipple::engine::cuda {

constexpr int kTileRows = 128;

/// A batch as kernels see it: points of clouds, which are never empty (the engine refuses those); rows of a value with
/// `width` rows a point are that many times more.
using BatchView = ops::cuda::DeviceBatchOf<int32_t>;

struct Span {
    const int2* table = nullptr;       // ragged: cloud and row in it where each tile begins
    const int32_t* offsets = nullptr;  // ragged: of the clouds, in points
    int32_t first = 0, tiles = 0;      // of this launch
    int32_t tiles_of_cloud = 1;        // dense
    int32_t rows_of_cloud = 0;         // dense
    int32_t width = 1;                 // rows of a point
};

struct Tile {
    int32_t cloud = 0, rows = 0;
    int32_t row_in_cloud = 0;
    int64_t row = 0;    // its first, of all rows
    int64_t point = 0;  // the first of its cloud, of all points
};

__device__ inline Tile tile_of(const Span& span, int32_t index) {
    index += span.first;
    Tile tile;
    int64_t rows_of_cloud;
    if (span.table != nullptr) {
        const int2 entry = span.table[index];
        tile.cloud = entry.x;
        tile.row_in_cloud = entry.y;
        tile.point = span.offsets[tile.cloud];
        rows_of_cloud = (span.offsets[tile.cloud + 1] - tile.point) * span.width;
    } else {
        tile.cloud = index / span.tiles_of_cloud;
        tile.row_in_cloud = (index - tile.cloud * span.tiles_of_cloud) * kTileRows;
        rows_of_cloud = span.rows_of_cloud;
        tile.point = tile.cloud * (rows_of_cloud / span.width);
    }
    tile.row = tile.point * span.width + tile.row_in_cloud;
    const int64_t left = rows_of_cloud - tile.row_in_cloud;
    tile.rows = static_cast<int32_t>(left < kTileRows ? left : kTileRows);
    return tile;
}

}  // namespace stipple::engine::cuda
