#pragma once
// Every step of a Program but chains, on the GPU: kernels that read each number once, sums in a fixed order. Included
// by .cu files only.

#include <span>

#include "stipple/engine/cuda/dense.h"

namespace stipple::engine::cuda {

/// A value while the program runs.
struct ValueView {
    float* data = nullptr;  // int32 where the value is indices
    int64_t stride = 0;     // from row to row
    int64_t rows = 0;
    int32_t channels = 0;
    int32_t width = 1;  // rows of a point
    bool is_cloud = false;
    int32_t set = 0;  // the point set of its rows

    const int32_t* indices() const { return reinterpret_cast<const int32_t*>(data); }
};

/// Where a row of a step finds its row of an input.
struct RowSource {
    const float* data = nullptr;
    int64_t stride = 0;
    const int32_t* indices = nullptr;
    Access access = Access::row;
    int32_t channels = 0;
};

struct StepCall {
    const Step* step = nullptr;
    std::span<const RowSource> inputs;
    std::span<const ValueView> values;  // of the inputs
    ValueView out;
    BatchView batch;                        // of the step's point set
    std::span<const BatchView> batches;     // by point set
    Span span;                              // of the rows of the first input
    const float* weight = nullptr;          // fold_matrix, constant, flow_step
    Precision precision = Precision::fp32;  // of the engine
    int capability = 0;
    cudaStream_t stream = nullptr;
};

/// Any kind but chain. Queues kernels only.
void run_step(const StepCall& call);

struct StepLauncher {
    StepKind kind = StepKind::copy;
    void (*run)(const StepCall& call) = nullptr;
};

/// The kinds of each file; steps.cu knows the files.
std::span<const StepLauncher> row_steps();     // steps_rows.cu
std::span<const StepLauncher> group_steps();   // steps_group.cu
std::span<const StepLauncher> reduce_steps();  // steps_reduce.cu
std::span<const StepLauncher> knn_steps();     // knn.cu
std::span<const StepLauncher> fold_steps();    // fold.cu
std::span<const StepLauncher> flow_steps();    // flow_step.cu
std::span<const StepLauncher> attend_steps();  // attend.cu

/// Of knn.
constexpr int64_t kMaxNeighbours = 128, kMaxNeighbourChannels = 128;

}  // namespace stipple::engine::cuda
