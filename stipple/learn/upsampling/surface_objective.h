#pragma once
// SurfaceObjective: what all networks that upsample train on. Patches of meshes, scans or files, made by the loader's
// threads into buffers, and fixed ones of what is held out to be scored.

#include <functional>
#include <memory>
#include <torch/types.h>

#include "stipple/learn/objective.h"
#include "stipple/learn/recipe.h"
#include "stipple/learn/upsampling/surface_index.h"

namespace stipple::learn {

/// Of some patches, in spacings; rows of one patch follow each other.
struct PatchTensors {
    torch::Tensor points, queries, truth;  // [patches * each, 3]
    torch::Tensor frames;                  // [patches, kFrameNumbers]
    torch::Tensor surface, normals;        // [patches * each, 3] of pairs, else [0, 3]

    PatchTensors to(torch::Device device) const;
    PatchTensors slice(int64_t begin, int64_t end) const;
    int64_t patches() const { return frames.size(0); }
};

/// Kinds of patches that are scored, in turn: patch i is of kind i % 3.
inline constexpr const char* kScoredKinds[] = {"uniform", "random", "noisy"};
inline constexpr int64_t kScoredKindCount = 3;

class SurfaceObjective : public Objective {
public:
    int64_t items() const override { return recipe_.data.items; }
    network::Network network() const override { return network_; }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override;
    void make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) override;
    bool has_device_batches() const override { return staged_.frames.defined(); }
    bool has_staged_batches() const override { return has_device_batches(); }
    void stage(const data::LoadedBatch& loaded) override;
    StepOutput step(Module& module, const data::LoadedBatch& loaded, const RunOptions& options) override;
    StepOutput step_on_device(Module& module, const StepClock&, const RunOptions& options) override {
        return step_of(module, staged_, options);
    }
    bool has_validation() const override { return !set_.held_out.empty(); }
    std::string describe(std::span<const int64_t> items) const override;

protected:
    /// `queries`: of a patch, whatever the recipe says. The set must outlive it. Throws Error{bad_config} where it was
    /// sampled otherwise than the recipe says or its pairs have other sizes, and as validate() of PatchOptions.
    SurfaceObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network, int64_t queries);

    /// The loss of some patches, and what an epoch adds up. Waits for nothing.
    virtual StepOutput step_of(Module& module, const PatchTensors& patches, const RunOptions& options) const = 0;

    const Recipe& recipe() const { return recipe_; }
    /// Where their surfaces are; holds on to the tensors.
    std::shared_ptr<const SurfaceTruth> truth_of(const PatchTensors& patches) const;
    /// recipe.data.validation_items patches of held-out shapes on the device, the same for every run: made when first
    /// asked for, without noise of queries, which are midpoints, and of the scale of use.
    const PatchTensors& scored_patches();
    /// Mean distance of positions [patches * m, 3] to the surface: [patches] float64.
    torch::Tensor mean_distances(const torch::Tensor& positions, const PatchTensors& patches) const;
    /// Of the scored patches, by where `move` puts the queries [patches * m, 3] of some of them: validation_gain, the
    /// share of their distance to the surface that is taken away; gain and distance that is left by kind;
    /// validation_coverage, the distance of the truth to the nearest of them.
    Scores score_moved(const std::function<torch::Tensor(const PatchTensors& patches)>& move);
    /// The part of kind `kind` of numbers [patches] of scored patches.
    static torch::Tensor of_kind(const torch::Tensor& numbers, int64_t kind) {
        return numbers.slice(0, kind, numbers.size(0), kScoredKindCount);
    }

private:
    PatchTensors new_tensors(int64_t patches, bool is_pinned) const;
    /// As the loader has left them. A batch must be whole.
    const PatchTensors& patches_of(const data::LoadedBatch& loaded) const;
    void write_patch(const PatchOptions& options, const PatchPlan& plan, const PatchKey& key, int64_t place,
                     const PatchTensors& to, PatchScratch& scratch) const;

    Recipe recipe_;
    const SurfaceSet& set_;
    network::Network network_;

    int64_t batch_ = 0;
    torch::Device device_ = torch::kCPU;
    std::shared_ptr<SurfaceIndex> index_;  // null: pairs
    std::vector<PatchTensors> buffers_;
    std::vector<PatchScratch> scratch_;
    PatchTensors staged_;  // on a GPU whose steps are recorded, else undefined
    PatchTensors scored_;  // undefined at first
};

/// Whether a network has an output of this name.
bool has_output(const network::Network& network, const std::string& name);

}  // namespace stipple::learn
