// Steps over the rows of a point, or over the channels of a row.

#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

/// x_i, x_j, x_i - x_j, |x_i - x_j| for every row (i, j).
__global__ void edge_distances(RowSource point, RowSource neighbour, RowSpace space, ValueView out) {
    const int channels = point.channels;
    STIPPLE_GRID_LOOP(row, out.rows) {
        const float* xi = source_row(point, space, row);
        const float* xj = source_row(neighbour, space, row);
        float* y = out.data + row * out.stride;
        float sum = 0;
        for (int c = 0; c < channels; ++c) {
            const float difference = xi[c] - xj[c];
            y[c] = xi[c];
            y[channels + c] = xj[c];
            y[2 * channels + c] = difference;
            sum += difference * difference;
        }
        y[3 * channels] = sqrtf(sum);
    }
}

__global__ void max_of_rows(RowSource x, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t point = i / out.channels, c = i - point * out.channels;
        float best = -INFINITY;
        for (int r = 0; r < space.width; ++r) best = fmaxf(best, source_row(x, space, point * space.width + r)[c]);
        out.data[point * out.stride + c] = best;
    }
}

__global__ void softmax_of_rows(RowSource x, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows / space.width * out.channels) {
        const int64_t point = i / out.channels, c = i - point * out.channels, row = point * space.width;
        float best = -INFINITY, sum = 0;
        for (int r = 0; r < space.width; ++r) best = fmaxf(best, source_row(x, space, row + r)[c]);
        for (int r = 0; r < space.width; ++r) sum += expf(source_row(x, space, row + r)[c] - best);
        for (int r = 0; r < space.width; ++r)
            out.data[(row + r) * out.stride + c] = expf(source_row(x, space, row + r)[c] - best) / sum;
    }
}

/// (weights [.., k, r], values [.., k, c]) -> [.., r, c]; `space` counts k rows a point.
__global__ void interpolate_rows(RowSource weights, RowSource values, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        const int64_t point = row / out.width, child = row - point * out.width;
        float sum = 0;
        for (int j = 0; j < space.width; ++j) {
            const int64_t from = point * space.width + j;
            sum += source_row(weights, space, from)[child] * source_row(values, space, from)[c];
        }
        out.data[row * out.stride + c] = sum;
    }
}

/// A warp a row; lanes add their channels, then each other, in a fixed order.
__global__ void log_softmax_of_channels(RowSource x, RowSpace space, ValueView out) {
    const int lane = threadIdx.x % 32;
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
    for (int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; row < out.rows;
         row += warps) {
        const float* from = source_row(x, space, row);
        float best = -INFINITY, sum = 0;
        for (int c = lane; c < out.channels; c += 32) best = fmaxf(best, from[c]);
        for (int step = 16; step > 0; step /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, step));
        for (int c = lane; c < out.channels; c += 32) sum += expf(from[c] - best);
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        const float shift = best + logf(sum);
        for (int c = lane; c < out.channels; c += 32) out.data[row * out.stride + c] = from[c] - shift;
    }
}

/// A warp a row, as log_softmax; sums in float64.
__global__ void layer_norm_of_channels(RowSource x, RowSpace space, float eps, ValueView out) {
    const int lane = threadIdx.x % 32;
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
    for (int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; row < out.rows;
         row += warps) {
        const float* from = source_row(x, space, row);
        double sum = 0, squares = 0;
        for (int c = lane; c < out.channels; c += 32) sum += from[c];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        const double mean = sum / out.channels;
        for (int c = lane; c < out.channels; c += 32) squares += (from[c] - mean) * (from[c] - mean);
        for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
        const double scale = 1 / sqrt(squares / out.channels + eps);
        for (int c = lane; c < out.channels; c += 32)
            out.data[row * out.stride + c] = static_cast<float>((from[c] - mean) * scale);
    }
}

void run_edge_distance(const StepCall& call) {
    RowSource point = call.inputs[0], neighbour = point;
    point.access = Access::point;
    neighbour.access = Access::neighbour;
    neighbour.indices = call.values[1].indices();
    edge_distances<<<grid_for(call.out.rows), kThreads, 0, call.stream>>>(point, neighbour, space_of(call, call.out),
                                                                          call.out);
    STIPPLE_CHECK_LAUNCH(edge_distances);
}

void run_max_rows(const StepCall& call) {
    max_of_rows<<<grid_for(call.out.rows * call.out.channels), kThreads, 0, call.stream>>>(
        call.inputs[0], space_of(call, call.values[0]), call.out);
    STIPPLE_CHECK_LAUNCH(max_of_rows);
}

void run_softmax_rows(const StepCall& call) {
    const ValueView& out = call.out;
    softmax_of_rows<<<grid_for(out.rows / out.width * out.channels), kThreads, 0, call.stream>>>(
        call.inputs[0], space_of(call, out), out);
    STIPPLE_CHECK_LAUNCH(softmax_of_rows);
}

void run_interpolate(const StepCall& call) {
    interpolate_rows<<<grid_for(call.out.rows * call.out.channels), kThreads, 0, call.stream>>>(
        call.inputs[0], call.inputs[1], space_of(call, call.values[0]), call.out);
    STIPPLE_CHECK_LAUNCH(interpolate_rows);
}

void run_log_softmax(const StepCall& call) {
    log_softmax_of_channels<<<grid_for(call.out.rows * 32), kThreads, 0, call.stream>>>(
        call.inputs[0], space_of(call, call.out), call.out);
    STIPPLE_CHECK_LAUNCH(log_softmax_of_channels);
}

void run_layer_norm(const StepCall& call) {
    layer_norm_of_channels<<<grid_for(call.out.rows * 32), kThreads, 0, call.stream>>>(
        call.inputs[0], space_of(call, call.out), call.step->factor, call.out);
    STIPPLE_CHECK_LAUNCH(layer_norm_of_channels);
}

constexpr StepLauncher kGroupSteps[] = {
    {StepKind::edge_distance, run_edge_distance}, {StepKind::max_rows, run_max_rows},
    {StepKind::softmax_rows, run_softmax_rows},   {StepKind::interpolate, run_interpolate},
    {StepKind::log_softmax, run_log_softmax},     {StepKind::layer_norm, run_layer_norm},
};

}  // namespace

std::span<const StepLauncher> group_steps() {
    return kGroupSteps;
}

}  // namespace stipple::engine::cuda
