#pragma once
// A chain as the GPU runs it: fused (cuda/chain.h) where that fits, layer by layer otherwise, in slabs of rows whose
// intermediate results stay in the second-level cache. Included by .cu files only.

#include "stipple/engine/cuda/batch.h"
#include "stipple/engine/cuda/chain.h"
#include "stipple/engine/cuda/dense.h"
#include "stipple/engine/cuda/steps.h"

namespace stipple::engine::cuda {

struct ChainCall {
    std::span<const ValueView> values;  // of the program
    const DeviceBatch* batch = nullptr;
    std::byte* scratch = nullptr;
    int64_t scratch_bytes = 0;
    const WeightBlock* weights = nullptr;
    cudaStream_t stream = nullptr;
};

class ChainPlan {
public:
    ChainPlan(const Program& program, const Step& step, Device device, int capability, WeightBlock& weights);

    int64_t weight_bytes() const { return fused_ ? fused_->weight_bytes() : 0; }  // beyond the block's
    int64_t scratch_bytes(int64_t max_batch, int64_t max_points) const;
    void run(const Step& step, const ChainCall& call) const;
    std::string describe() const;

private:
    void run_fused(const Step& step, const ChainCall& call) const;
    void run_layers(const Step& step, const ChainCall& call) const;
    int64_t slab_rows(int64_t rows) const;

    std::unique_ptr<FusedChain> fused_;
    std::vector<DenseLayer> layers_;
    bool is_cloud_ = false;    // a row for each cloud
    int32_t width_ = 1;        // rows of a point
    int64_t between_[2] = {};  // widest result of even and of odd layers but the last
};

}  // namespace stipple::engine::cuda
