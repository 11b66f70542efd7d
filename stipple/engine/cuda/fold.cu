// fold_matrix: the product of a layer's weights with every cloud's own matrix, W T^T.

#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

/// A thread an output. Small matrices, or none to multiply with: T^T alone.
__global__ void fold_small(RowSource t, const float* weight, int32_t out, int32_t k, ValueView y) {
    STIPPLE_GRID_LOOP(i, y.rows * out * k) {
        const int64_t cloud = i / (out * k);
        const auto place = static_cast<int32_t>(i - cloud * out * k), o = place / k, column = place - o * k;
        const float* matrix = t.data + cloud * t.stride;
        float sum = 0;
        if (weight == nullptr)
            sum = matrix[column * k + o];
        else
            for (int j = 0; j < k; ++j) sum = fmaf(weight[o * k + j], matrix[column * k + j], sum);
        y.data[cloud * y.stride + place] = sum;
    }
}

void run_fold_step(const StepCall& call) {
    const ValueView& y = call.out;
    const RowSource& t = call.inputs[0];
    int32_t k = 1;
    while (k * k < t.channels) ++k;
    const int32_t out = y.channels / k;
    const bool is_dense = t.stride == t.channels && y.stride == y.channels;
    if (call.weight == nullptr || k < 16 || !is_dense) {
        fold_small<<<grid_for(y.rows * y.channels), kThreads, 0, call.stream>>>(t, call.weight, out, k, y);
        STIPPLE_CHECK_LAUNCH(fold_small);
        return;
    }
    // As a dense layer: the weights' rows are x, the cloud's matrix is its weights, [out, k] of each cloud its result.
    DenseArguments a;
    a.span.rows_of_cloud = out;
    a.span.tiles_of_cloud = (out + kTileRows - 1) / kTileRows;
    a.span.tiles = a.span.tiles_of_cloud * static_cast<int32_t>(y.rows);
    a.shares_rows = 1;
    a.part_count = 1;
    a.parts[0].data = call.weight;
    a.parts[0].stride = a.parts[0].channels = k;
    a.parts[0].vectors = k % 4 == 0;
    a.matrix = t.data;
    a.in = a.out = k;
    a.packed_in = (k + 31) / 32 * 32;
    a.bias = call.weight + static_cast<int64_t>(out) * k;  // zeros behind the weights
    a.y = y.data;
    a.y_stride = k;
    a.y_vectors = k % 4 == 0 && reinterpret_cast<uintptr_t>(y.data) % 16 == 0;
    if (call.precision == Precision::fp32 || call.capability < 80)
        launch_dense_tiles_fp32(a, call.stream);
    else
        launch_fold_tiles_mma(a, call.precision == Precision::tf32, call.stream);
}

constexpr StepLauncher kFoldSteps[] = {{StepKind::fold_matrix, run_fold_step}};

}  // namespace

std::span<const StepLauncher> fold_steps() {
    return kFoldSteps;
}

}  // namespace stipple::engine::cuda
