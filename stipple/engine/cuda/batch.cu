#include <algorithm>

#include "stipple/engine/cuda/batch.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kBatchThreads = 128;

/// A block a cloud: where each of its tiles begins.
__global__ void fill_table(const int32_t* first_tiles, int2* table) {
    const int32_t cloud = static_cast<int32_t>(blockIdx.x), first = first_tiles[cloud], end = first_tiles[cloud + 1];
    for (int32_t i = threadIdx.x; first + i < end; i += kBatchThreads)
        table[first + i] = make_int2(cloud, i * kTileRows);
}

int64_t tiles_of(int64_t rows) {
    return (rows + kTileRows - 1) / kTileRows;
}

int64_t most_tiles(const std::vector<int32_t>& widths, int64_t max_clouds, int64_t max_rows) {
    const int64_t widest = widths.empty() ? 1 : *std::max_element(widths.begin(), widths.end());
    return tiles_of(max_rows * widest) + max_clouds;
}

/// Numbers of int32: offsets and first tiles.
int64_t list_numbers(const std::vector<int32_t>& widths, int64_t max_clouds) {
    return (static_cast<int64_t>(widths.size()) + 1) * (max_clouds + 1);
}

}  // namespace

int64_t DeviceBatch::bytes(const std::vector<int32_t>& widths, int64_t max_clouds, int64_t max_rows) {
    const int64_t lists = (list_numbers(widths, max_clouds) * 4 + 255) / 256 * 256;
    return lists + static_cast<int64_t>(widths.size()) * most_tiles(widths, max_clouds, max_rows) * 8;
}

DeviceBatch::DeviceBatch(std::vector<int32_t> widths, int64_t max_clouds, int64_t max_rows, Device device)
    : widths_(std::move(widths)),
      max_clouds_(max_clouds),
      max_tiles_(most_tiles(widths_, max_clouds, max_rows)),
      device_(bytes(widths_, max_clouds, max_rows), device),
      first_tiles_(widths_.size()) {
    const auto staging_bytes = static_cast<size_t>(list_numbers(widths_, max_clouds) * 4);
    STIPPLE_CHECK_CUDA(cudaMallocHost(&staging_, staging_bytes));
    try {
        STIPPLE_CHECK_CUDA(cudaEventCreateWithFlags(&staged_, cudaEventDisableTiming));
    } catch (...) {
        cudaFreeHost(staging_);
        throw;
    }
}

DeviceBatch::~DeviceBatch() {
    cudaEventSynchronize(staged_);
    cudaEventDestroy(staged_);
    cudaFreeHost(staging_);
}

int64_t DeviceBatch::table_of(int32_t width) const {
    const auto found = std::find(widths_.begin(), widths_.end(), width);
    STIPPLE_ASSERT(found != widths_.end());
    return found - widths_.begin();
}

void DeviceBatch::set(const ops::Batch& batch, cudaStream_t stream) {
    if (batch.is_dense()) {
        batch_ = batch;
        is_uploaded_ = false;
        return;
    }
    if (is_uploaded_ && batch_.offsets() == batch.offsets()) return;
    is_uploaded_ = false;
    STIPPLE_CHECK_CUDA(cudaEventSynchronize(staged_));
    batch_ = batch;
    const auto clouds = static_cast<size_t>(batch.clouds());
    int32_t* to = staging_;
    for (int64_t offset : batch.offsets()) *to++ = static_cast<int32_t>(offset);
    for (size_t i = 0; i < widths_.size(); ++i) {
        std::vector<int32_t>& first = first_tiles_[i];
        first.assign(clouds + 1, 0);
        for (size_t c = 0; c < clouds; ++c)
            first[c + 1] = first[c] + static_cast<int32_t>(tiles_of(batch.size(static_cast<int64_t>(c)) * widths_[i]));
        to = std::copy(first.begin(), first.end(), to);
    }
    auto* lists = reinterpret_cast<int32_t*>(device_.data());
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(lists, staging_, static_cast<size_t>(to - staging_) * 4, cudaMemcpyHostToDevice, stream));
    STIPPLE_CHECK_CUDA(cudaEventRecord(staged_, stream));
    for (size_t i = 0; i < widths_.size() && clouds > 0; ++i) {
        const int32_t* first = lists + (i + 1) * (clouds + 1);
        fill_table<<<static_cast<unsigned>(clouds), kBatchThreads, 0, stream>>>(
            first, const_cast<int2*>(span(widths_[i]).table));
        STIPPLE_CHECK_LAUNCH(fill_table);
    }
    is_uploaded_ = true;
}

BatchView DeviceBatch::view() const {
    BatchView view;
    view.offsets = batch_.is_dense() ? nullptr : reinterpret_cast<const int32_t*>(device_.data());
    view.clouds = static_cast<int32_t>(batch_.clouds());
    view.size = static_cast<int32_t>(batch_.largest());
    view.rows = static_cast<int32_t>(batch_.rows());
    return view;
}

Span DeviceBatch::span(int32_t width) const {
    const int64_t place = table_of(width);
    Span span;
    span.width = width;
    if (batch_.is_dense()) {
        span.rows_of_cloud = static_cast<int32_t>(batch_.largest() * width);
        span.tiles_of_cloud = static_cast<int32_t>(tiles_of(span.rows_of_cloud));
        span.tiles = span.tiles_of_cloud * static_cast<int32_t>(batch_.clouds());
        return span;
    }
    const int64_t lists = (list_numbers(widths_, max_clouds_) * 4 + 255) / 256 * 256;
    span.table = reinterpret_cast<const int2*>(device_.data() + lists) + place * max_tiles_;
    span.offsets = view().offsets;
    span.tiles = first_tiles_[place].back();
    return span;
}

int64_t DeviceBatch::row_of_tile(int32_t width, int32_t tile) const {
    if (batch_.is_dense()) {
        const int64_t rows = batch_.largest() * width, tiles = tiles_of(rows);
        return tile / tiles * rows + tile % tiles * kTileRows;
    }
    const std::vector<int32_t>& first = first_tiles_[table_of(width)];
    if (tile >= first.back()) return batch_.rows() * width;
    const auto cloud = std::upper_bound(first.begin(), first.end(), tile) - first.begin() - 1;
    return batch_.begin(cloud) * width + static_cast<int64_t>(tile - first[cloud]) * kTileRows;
}

}  // namespace stipple::engine::cuda
