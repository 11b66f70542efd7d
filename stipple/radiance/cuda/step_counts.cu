// How much one step has to do, counted between its kernels.

#include <string_view>

#include "stipple/radiance/cuda/memory.cuh"
#include "stipple/radiance/cuda/step_counts.cuh"

namespace stipple::radiance::cuda {
namespace {

struct Totals {
    unsigned long long in_box, in_mask, opaque, kept, touched_bricks, updated_densities, updated_feature_rows;
};

__global__ void count_rays_kernel(Samples samples, int32_t rays, Totals* totals) {
    const int r = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (r >= rays) return;
    const RayRecord& record = samples.rays[r];
    atomicAdd(&totals->in_box, static_cast<unsigned long long>(record.in_box));
    atomicAdd(&totals->in_mask, static_cast<unsigned long long>(record.in_mask));
    atomicAdd(&totals->opaque, static_cast<unsigned long long>(record.samples));
    atomicAdd(&totals->kept, static_cast<unsigned long long>(samples.first_of[r] < 0 ? 0 : samples.kept_of[r]));
}

/// A block takes a brick, a thread a node.
template <class Gradient>
__global__ void __launch_bounds__(kBrickNodes) count_nodes_kernel(Grids grids, Totals* totals) {
    const int brick = static_cast<int>(blockIdx.x);
    if (!grids.touched[brick]) return;
    const int64_t node = int64_t{brick} * kBrickNodes + threadIdx.x;
    const Gradient* features = static_cast<const Gradient*>(grids.features_gradient) + node * kFeatures;
    int rows = 0;
    for (int row = 0; row < kFeatures / 4; ++row) {
        const Gradient* g = features + 4 * row;
        rows += g[0] != 0 || g[1] != 0 || g[2] != 0 || g[3] != 0;
    }
    const int updates = static_cast<const Gradient*>(grids.density_gradient)[node] != 0;
    atomicAdd(&totals->updated_densities, static_cast<unsigned long long>(updates));
    atomicAdd(&totals->updated_feature_rows, static_cast<unsigned long long>(rows));
    if (threadIdx.x == 0) atomicAdd(&totals->touched_bricks, 1ull);
}

}  // namespace

StepCounts count_step(const FineStep& step, bool fixed, bool half_network, int multiprocessors, int device,
                      cudaStream_t stream) {
    MemoryMeter meter;
    meter.device = device;
    DeviceArray<Totals> totals(meter, 1);
    totals.clear(stream);
    launch_fine_step(step, fixed, half_network, multiprocessors, stream, [&](const char* part) {
        if (std::string_view(part) != "scatter features") return;  // Adam clears what is counted
        const int rays = step.constants.rays;
        count_rays_kernel<<<(rays + 255) / 256, 256, 0, stream>>>(step.samples, rays, totals.get());
        (fixed ? count_nodes_kernel<long long>
               : count_nodes_kernel<float>)<<<step.grids.stored, kBrickNodes, 0, stream>>>(step.grids, totals.get());
        STIPPLE_CHECK_CUDA(cudaGetLastError());
    });
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
    const Totals found = totals.download()[0];
    StepCounts counts;
    counts.rays = step.constants.rays;
    counts.in_box = static_cast<int64_t>(found.in_box);
    counts.in_mask = static_cast<int64_t>(found.in_mask);
    counts.opaque = static_cast<int64_t>(found.opaque);
    counts.kept = static_cast<int64_t>(found.kept);
    counts.stored_bricks = step.grids.stored;
    counts.touched_bricks = static_cast<int64_t>(found.touched_bricks);
    counts.updated_densities = static_cast<int64_t>(found.updated_densities);
    counts.updated_feature_rows = static_cast<int64_t>(found.updated_feature_rows);
    counts.forward_blocks = 2 * multiprocessors;
    counts.back_blocks = step.network.blocks;
    counts.gradient_bytes = fixed ? 8 : 4;
    counts.ray_bytes = sizeof(RayRecord);
    counts.camera_bytes = sizeof(CameraView);
    counts.state_bytes = sizeof(StepState);
    return counts;
}

}  // namespace stipple::radiance::cuda
