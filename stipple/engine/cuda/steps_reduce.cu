// Steps that make one row of a cloud from all of its rows. Sums are float64 and in a fixed order.

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kColumns = 32;
constexpr int kGroups = kThreads / kColumns;

/// One tile of rows x 32 columns a block, raised into keys.
__global__ void max_of_tiles(Span span, RowSource x, int column_tiles, int* keys) {
    __shared__ float partial[kGroups][kColumns];
    const Tile tile = tile_of(span, blockIdx.x / column_tiles);
    const int lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
    const int c = blockIdx.x % column_tiles * kColumns + lane;
    float best = -INFINITY;
    for (int r = group; c < x.channels && r < tile.rows; r += kGroups)
        best = fmaxf(best, x.data[(tile.row + r) * x.stride + c]);
    partial[group][lane] = best;
    __syncthreads();
    if (group != 0 || c >= x.channels) return;
    for (int g = 1; g < kGroups; ++g) best = fmaxf(best, partial[g][lane]);
    atomicMax(keys + static_cast<int64_t>(tile.cloud) * x.channels + c, order_key(best));
}

/// A block a cloud and 32 columns.
__global__ void sum_of_points(RowSource x, BatchView batch, int32_t width, int column_tiles, ValueView out) {
    __shared__ double partial[kGroups][kColumns];
    const int cloud = blockIdx.x / column_tiles;
    const int lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
    const int c = blockIdx.x % column_tiles * kColumns + lane;
    const int64_t end = static_cast<int64_t>(batch.end(cloud)) * width;
    double sum = 0;
    for (int64_t row = static_cast<int64_t>(batch.begin(cloud)) * width + group; c < x.channels && row < end;
         row += kGroups)
        sum += x.data[row * x.stride + c];
    partial[group][lane] = sum;
    __syncthreads();
    if (group != 0 || c >= x.channels) return;
    for (int g = 1; g < kGroups; ++g) sum += partial[g][lane];
    out.data[cloud * out.stride + c] = static_cast<float>(sum);
}

__global__ void sum_of_channels(RowSource x, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(row, out.rows) {
        const float* from = source_row(x, space, row);
        double sum = 0;
        for (int c = 0; c < x.channels; ++c) sum += from[c];
        out.data[row * out.stride] = static_cast<float>(sum);
    }
}

__global__ void log_det(BatchView batch, float factor, ValueView out) {
    STIPPLE_GRID_LOOP(cloud, out.rows) {
        const auto i = static_cast<int32_t>(cloud);
        out.data[cloud * out.stride] = factor * static_cast<float>(batch.end(i) - batch.begin(i));
    }
}

/// A block a cloud.
__global__ void gaussian_log_density(RowSource z, BatchView batch, int32_t width, ValueView out) {
    __shared__ double partial[kThreads];
    const int cloud = blockIdx.x;
    const int64_t begin = static_cast<int64_t>(batch.begin(cloud)) * width;
    const int64_t count = (static_cast<int64_t>(batch.end(cloud)) * width - begin) * z.channels;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
        const int64_t row = i / z.channels;
        const double x = z.data[(begin + row) * z.stride + i - row * z.channels];
        sum -= 0.5 * (x * x + 1.8378770664093453);  // ln 2 pi
    }
    partial[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out.data[cloud * out.stride] = static_cast<float>(partial[0]);
}

int column_tiles_of(const StepCall& call) {
    return (call.inputs[0].channels + kColumns - 1) / kColumns;
}

void run_max_points(const StepCall& call) {
    const ValueView& out = call.out;
    const int column_tiles = column_tiles_of(call);
    STIPPLE_ASSERT(out.stride == out.channels);
    begin_max(out.data, out.rows * out.channels, call.stream);
    max_of_tiles<<<static_cast<unsigned>(call.span.tiles * column_tiles), kThreads, 0, call.stream>>>(
        call.span, call.inputs[0], column_tiles, reinterpret_cast<int*>(out.data));
    STIPPLE_CHECK_LAUNCH(max_of_tiles);
    finish_max(out.data, out.rows, out.channels, nullptr, {}, call.stream);
}

void run_sum_points(const StepCall& call) {
    const int column_tiles = column_tiles_of(call);
    sum_of_points<<<static_cast<unsigned>(call.out.rows * column_tiles), kThreads, 0, call.stream>>>(
        call.inputs[0], call.batch, call.values[0].width, column_tiles, call.out);
    STIPPLE_CHECK_LAUNCH(sum_of_points);
}

void run_sum_channels(const StepCall& call) {
    sum_of_channels<<<grid_for(call.out.rows), kThreads, 0, call.stream>>>(call.inputs[0], space_of(call, call.out),
                                                                           call.out);
    STIPPLE_CHECK_LAUNCH(sum_of_channels);
}

void run_log_det(const StepCall& call) {
    log_det<<<grid_for(call.out.rows), kThreads, 0, call.stream>>>(call.batch, call.step->factor, call.out);
    STIPPLE_CHECK_LAUNCH(log_det);
}

void run_gaussian_log_density(const StepCall& call) {
    gaussian_log_density<<<static_cast<unsigned>(call.out.rows), kThreads, 0, call.stream>>>(
        call.inputs[0], call.batch, call.values[0].width, call.out);
    STIPPLE_CHECK_LAUNCH(gaussian_log_density);
}

constexpr StepLauncher kReduceSteps[] = {
    {StepKind::max_points, run_max_points},
    {StepKind::sum_points, run_sum_points},
    {StepKind::sum_channels, run_sum_channels},
    {StepKind::log_det, run_log_det},
    {StepKind::gaussian_log_density, run_gaussian_log_density},
};

}  // namespace

std::span<const StepLauncher> reduce_steps() {
    return kReduceSteps;
}

}  // namespace stipple::engine::cuda
