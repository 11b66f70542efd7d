#include "stipple/learn/sampling/shape_tasks.h"

#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/sampling/fold_norms.h"
#include "stipple/learn/sampling/pose_terms.h"
#include "stipple/learn/sampling/thin_clouds.h"
#include "stipple/models/registry.h"
#include "stipple/tasks/weights.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr uint64_t kPoseSeed = 0x504F5345, kSourceSeed = 0x534F5552, kTemplateSeed = 0x54454D50;  // uses of the seed

/// [clouds]: squared distances, mean both ways, summed.
Tensor chamfer_of(const Clouds& a, const Clouds& b) {
    const ChamferMeans means = chamfer(a, b, ops::DistanceNorm::squared);
    return (means.a_to_b + means.b_to_a).to(torch::kFloat64);
}

PoseTensors poses_of(const ShapeBatch& batch, const Recipe& recipe) {
    return draw_poses(batch.number, recipe.pose, recipe.run.seed ^ kPoseSeed);
}

/// What a pcrnet makes of sources and templates of `size` points each.
TaskTerms pose_loss(Module& module, const Tensor& source, const Tensor& target, int64_t count, int64_t size,
                    const PoseTensors& truth, const PoseOptions& weights, const RunOptions& options) {
    const ops::Batch batch = ops::Batch::dense(count, size);
    const std::map<std::string, Tensor> found =
        module.run(std::vector<ops::Batch>{batch, batch}, {{"source", source}, {"template", target}}, options);
    const PoseTensors pose = {found.at("rotation").reshape({count, 3, 3}), found.at("translation")};
    const PoseTerms terms = pose_terms(pose, truth);
    const Tensor loss = weights.rotation_weight * terms.rotation + weights.translation_weight * terms.translation +
                        weights.chamfer_weight * chamfer_of({found.at("moved"), batch}, {target, batch}).mean();
    return {loss, rotation_angles(pose.rotation.detach(), truth.rotation)};
}

/// A network whose weights are given and stay.
class FrozenTask : public ShapeTask {
public:
    FrozenTask(models::Model model, std::string path) : model_(std::move(model)), path_(std::move(path)) {}

    void prepare(torch::Device device) override {
        fold_norms(model_);
        module_ = std::make_unique<Module>(model_.network, model_.weights, device);
        for (const Tensor& parameter : module_->trained()) Tensor(parameter).requires_grad_(false);
    }

protected:
    /// In evaluation mode: batch norms use their running statistics, and nothing changes them.
    std::map<std::string, Tensor> run(const std::vector<ops::Batch>& batches,
                                      const std::map<std::string, Tensor>& inputs) const {
        return module_->run(batches, inputs, {});
    }
    const network::Network& network() const { return model_.network; }
    Module& module() const { return *module_; }
    [[noreturn]] void misfit(const std::string& message) const {
        throw Error(ErrorCode::bad_config, fmt::format("sampling.network {}: {}", path_, message));
    }

private:
    models::Model model_;
    std::string path_;
    std::unique_ptr<Module> module_;
};

class ClassificationTask : public FrozenTask {
public:
    ClassificationTask(models::Model model, const std::string& path, const LabelData& data, double teacher)
        : FrozenTask(std::move(model), path), teacher_(teacher) {
        int64_t classes = 0;
        for (const network::Output& output : network().outputs)
            if (output.name == "logits" && network()[output.tensor].type.level == network::Level::cloud)
                classes = network()[output.tensor].type.channels;
        const auto wanted = static_cast<int64_t>(data.set.classes.size());
        if (classes == 0) misfit(fmt::format("{} classifies no clouds", network().name));
        if (classes != wanted) misfit(fmt::format("it tells {} classes, the data have {}", classes, wanted));
    }
    const char* score_name() const override { return "accuracy"; }
    bool is_better_larger() const override { return true; }
    std::vector<Tensor> looks(const ShapeBatch& batch) const override { return {batch.points}; }
    Tensor loss(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        const Tensor found = logits(batch, sampled, size);
        if (teacher_ == 0) return cross_entropy(found, batch.labels);
        const Tensor taught = distillation(found, whole(batch), 1);
        return teacher_ == 1 ? taught : teacher_ * taught + (1 - teacher_) * cross_entropy(found, batch.labels);
    }
    Tensor score(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        return logits(batch, sampled, size).argmax(1).eq(batch.labels);
    }

private:
    Tensor logits(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const {
        return run({ops::Batch::dense(batch.count, size)}, {{"points", sampled}}).at("logits");
    }
    Tensor whole(const ShapeBatch& batch) const {
        const torch::NoGradGuard no_gradients;
        return logits(batch, batch.points, batch.size);
    }

    const double teacher_;
};

class RegistrationTask : public FrozenTask {
public:
    RegistrationTask(models::Model model, const std::string& path, const Recipe& recipe)
        : FrozenTask(std::move(model), path), recipe_(recipe) {
        if (network().name != "pcrnet")
            misfit(fmt::format("registration needs a pcrnet, the weights are of {}", network().name));
    }
    const char* score_name() const override { return "rotation_error"; }
    bool is_better_larger() const override { return false; }
    std::vector<Tensor> looks(const ShapeBatch& batch) const override {
        return {batch.points, moved_by(poses_of(batch, recipe_), batch.points)};
    }
    Tensor loss(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        return terms(batch, sampled, size).loss;
    }
    Tensor score(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        return terms(batch, sampled, size).score;
    }

private:
    TaskTerms terms(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const {
        const int64_t rows = batch.count * size;
        return pose_loss(module(), sampled.narrow(0, 0, rows), sampled.narrow(0, rows, rows), batch.count, size,
                         poses_of(batch, recipe_), recipe_.pose, {});
    }

    const Recipe recipe_;
};

class ReconstructionTask : public FrozenTask {
public:
    ReconstructionTask(models::Model model, const std::string& path) : FrozenTask(std::move(model), path) {
        if (network().name != "autoencoder")
            misfit(fmt::format("reconstruction needs an autoencoder, the weights are of {}", network().name));
    }
    const char* score_name() const override { return "nre"; }
    bool is_better_larger() const override { return false; }
    std::vector<Tensor> looks(const ShapeBatch& batch) const override { return {batch.points}; }
    Tensor loss(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        return error_of(batch, {sampled, ops::Batch::dense(batch.count, size)}).mean();
    }
    Tensor score(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        return error_of(batch, {sampled, ops::Batch::dense(batch.count, size)}) / error_of(batch, batch.clouds());
    }

private:
    /// [clouds]: the chamfer distance between the batch and what is made of `from`.
    Tensor error_of(const ShapeBatch& batch, const Clouds& from) const {
        const Tensor made = run({from.batch}, {{"points", from.rows}}).at("reconstructed");
        return chamfer_of({made, ops::Batch::dense(batch.count, made.size(0) / batch.count)}, batch.clouds());
    }
};

}  // namespace

std::unique_ptr<ShapeTask> make_shape_task(const Recipe& recipe, const LabelData& data, models::SamplerShape shape) {
    constexpr const char* kNames[] = {tasks::kClassifierWeights, "pcrnet", "autoencoder"};  // by shape
    std::string path = recipe.sampling.network;
    if (path.empty()) {
        path = kNames[static_cast<size_t>(shape)];
        if (tasks::find_weights(path) == path)
            throw Error(ErrorCode::bad_config,
                        fmt::format("sampling.network is missing, and no weights {} are installed", path),
                        "name the frozen network with --network");
    }
    path = tasks::find_weights(path);
    models::Model model = models::load_model(path);
    switch (shape) {
        case models::SamplerShape::classification:
            return std::make_unique<ClassificationTask>(std::move(model), path, data, recipe.sampling.teacher);
        case models::SamplerShape::registration:
            return std::make_unique<RegistrationTask>(std::move(model), path, recipe);
        case models::SamplerShape::reconstruction: return std::make_unique<ReconstructionTask>(std::move(model), path);
    }
    STIPPLE_ASSERT(false);
}

TaskTerms registration_terms(Module& module, const ShapeBatch& batch, const Recipe& recipe, const RunOptions& options) {
    const PoseTensors truth = poses_of(batch, recipe);
    const bool thins = options.is_training && recipe.thin.share > 0;
    const auto look = [&](uint64_t salt) {
        return thins ? thinned(batch.clouds(), batch.number, recipe.thin, recipe.run.seed ^ salt) : batch.points;
    };
    return pose_loss(module, look(kSourceSeed), moved_by(truth, look(kTemplateSeed)), batch.count, batch.size, truth,
                     recipe.pose, options);
}

TaskTerms reconstruction_terms(Module& module, const ShapeBatch& batch, const Recipe& recipe,
                               const RunOptions& options) {
    const Tensor input = options.is_training && recipe.thin.share > 0
                             ? thinned(batch.clouds(), batch.number, recipe.thin, recipe.run.seed ^ kSourceSeed)
                             : batch.points;
    const Tensor made = module.run(batch.batch(), {{"points", input}}, options).at("reconstructed");
    const Tensor errors =
        chamfer_of({made, ops::Batch::dense(batch.count, made.size(0) / batch.count)}, batch.clouds());
    return {errors.mean(), errors.detach()};
}

}  // namespace stipple::learn
