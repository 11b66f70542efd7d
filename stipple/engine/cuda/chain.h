#pragma once
// The fused chain on the GPU: points go in, the maximum over each cloud comes out, and nothing between them reaches
// memory. Written for chains that begin with coordinates and end in a max over points: PointNet's three. Other chains
// run layer by layer (cuda/dense.h).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stipple/core/device.h"
#include "stipple/engine/program.h"

namespace stipple::engine::cuda {

struct FusedChainTask {
    int64_t clouds = 0;
    int64_t points = 0;                // of every cloud, or of the largest one
    const int32_t* offsets = nullptr;  // on the device, clouds + 1; null: every cloud has `points`
    const float* x = nullptr;          // [rows, 3]
    int64_t x_stride = 3;
    std::vector<const float*> matrices;  // for each layer: [clouds, out * in] on the device, or null
    float* out = nullptr;                // [clouds, out], after bias and activation
    void* scratch = nullptr;             // of scratch_bytes(clouds, points)
};

class FusedChain {
public:
    virtual ~FusedChain() = default;
    virtual int64_t weight_bytes() const = 0;
    virtual int64_t scratch_bytes(int64_t clouds, int64_t points) const = 0;
    virtual std::string describe() const = 0;  // "fp16 wgmma, 512 points a block"
    /// Queues kernels only: may be captured in a graph.
    virtual void run(const FusedChainTask& task, Stream stream) const = 0;
};

/// Products of warpgroups (sm_90 alone) or of single warps (sm_80 and newer).
enum class ChainKernel { fastest, wgmma, mma };

/// Null when no fused kernel fits these layers on this GPU. The precision is the last layer's.
std::unique_ptr<FusedChain> make_fused_chain(const std::vector<Dense>& layers, Reduce reduce, Device device,
                                             ChainKernel kernel = ChainKernel::fastest);

}  // namespace stipple::engine::cuda
