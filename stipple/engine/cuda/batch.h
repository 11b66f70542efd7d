#pragma once
// The batch of a run on the device: offsets of a ragged batch and its tiles, for every number of rows a point that the
// program has. Dense batches need nothing there. Included by .cu files only.

#include "stipple/core/buffer.h"
#include "stipple/engine/cuda/span.cuh"
#include "stipple/engine/program.h"
#include "stipple/ops/clouds.h"

namespace stipple::engine::cuda {

class DeviceBatch {
public:
    DeviceBatch(std::vector<int32_t> widths, int64_t max_clouds, int64_t max_rows, Device device);
    ~DeviceBatch();
    DeviceBatch(const DeviceBatch&) = delete;
    DeviceBatch& operator=(const DeviceBatch&) = delete;

    /// Bytes on the device.
    static int64_t bytes(const std::vector<int32_t>& widths, int64_t max_clouds, int64_t max_rows);

    /// Queues the upload of a ragged batch, unless it is there.
    void set(const ops::Batch& batch, cudaStream_t stream);

    const ops::Batch& host() const { return batch_; }
    BatchView view() const;
    /// All tiles of values with `width` rows a point.
    Span span(int32_t width) const;
    /// The row where a tile of that span begins; the number of rows for the tile after the last.
    int64_t row_of_tile(int32_t width, int32_t tile) const;

private:
    int64_t table_of(int32_t width) const;  // place among widths_

    std::vector<int32_t> widths_;
    int64_t max_clouds_ = 0, max_tiles_ = 0;
    Buffer device_;
    int32_t* staging_ = nullptr;    // pinned: offsets, then the first tile of each cloud, width by width
    cudaEvent_t staged_ = nullptr;  // the last upload has been read
    ops::Batch batch_;
    bool is_uploaded_ = false;                       // batch_ is ragged and its tables are on the device
    std::vector<std::vector<int32_t>> first_tiles_;  // [width][cloud + 1] of a ragged batch
};

}  // namespace stipple::engine::cuda
