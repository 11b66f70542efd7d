#pragma once
// Objectives over whole clouds of a data set: batches of equal clouds, on the CPU or made on the GPU where the data
// stay.

#include <memory>

#include "stipple/learn/functions.h"
#include "stipple/learn/labels/device_batches.h"
#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// Clouds of equal sizes, and what belongs to them.
struct ShapeBatch {
    torch::Tensor points;  // [count * size, 3]
    torch::Tensor labels;  // int64 [count], of classes; 0 where there are none
    torch::Tensor number;  // int64 [count]: another for every cloud of every step, for what is drawn
    int64_t count = 0, size = 0;
    torch::Tensor step = {};   // int64 [1] of the run
    torch::Tensor parts = {};  // int64 [count * size], labels of points, where ShapeObjective::has_parts()

    ops::Batch batch() const { return ops::Batch::dense(count, size); }
    Clouds clouds() const { return {points, batch()}; }
};

class ShapeObjective : public Objective {
public:
    ShapeObjective(const Recipe& recipe, const LabelData& data);

    int64_t items() const override { return static_cast<int64_t>(data_.train.size()); }
    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.up", recipe_.data.up}};
    }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override;
    void make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) override;
    StepOutput step(Module& module, const data::LoadedBatch& batch, const RunOptions& options) final;
    bool has_device_batches() const override { return device_batches_ != nullptr; }
    void set_order(std::span<const int64_t> order) override;
    StepOutput step_on_device(Module& module, const StepClock& clock, const RunOptions& options) final;
    bool has_validation() const override { return !data_.held_out.empty(); }
    std::string describe(std::span<const int64_t> items) const override;

protected:
    /// The loss of a batch, and what an epoch adds up.
    virtual StepOutput step_of(Module& module, const ShapeBatch& batch, const RunOptions& options) = 0;

    const Recipe& recipe() const { return recipe_; }
    /// Samplers for segmenters: batches have the labels of their points.
    bool has_parts() const { return recipe_.task == TrainingTask::sampling && recipe_.sampling.task == "segmentation"; }
    const LabelData& data() const { return data_; }
    torch::Device device() const { return device_; }
    /// The validation clouds, some at a time, in order; the same points and numbers each time.
    void for_each_validation_batch(const std::function<void(const ShapeBatch& batch)>& visit) const;

private:
    int64_t used_points(const data::DataSet& set, int64_t item) const;

    Recipe recipe_;
    const LabelData& data_;
    BatchView view_;
    int64_t batch_ = 0;
    torch::Device device_ = torch::kCPU;
    std::vector<BatchTensors> buffers_;
    std::unique_ptr<DeviceBatches> device_batches_;
    struct Scratch {
        data::AugmentScratch augment;
        std::vector<float> points;
        std::vector<int32_t> parts;
    };
    /// The points of an item, and its labels where batches have them, as the scratch for augment().
    data::AugmentCloud load(const data::DataSet& set, int64_t item, Scratch& scratch) const;
    std::vector<Scratch> scratch_;
};

}  // namespace stipple::learn
