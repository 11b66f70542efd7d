#include "stipple/learn/sampling/shape_tasks.h"

#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/sampling/frozen_task.h"
#include "stipple/learn/sampling/pose_terms.h"
#include "stipple/learn/sampling/segmentation_task.h"
#include "stipple/learn/sampling/thin_clouds.h"
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

class ClassificationTask : public FrozenTask {
public:
    ClassificationTask(models::Model model, const std::string& path, const LabelData& data, double teacher)
        : FrozenTask(std::move(model), path), teacher_(teacher) {
        const int64_t classes = logits_at(network::Level::cloud);
        const auto wanted = static_cast<int64_t>(data.set.classes.size());
        if (classes == 0)
            misfit(fmt::format("{} classifies no clouds", network().name),
                   logits_at(network::Level::point) > 0 ? "it labels points: --task seg" : "");
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
                         poses_of(batch, recipe_), recipe_.pose, how({ops::Batch::dense(batch.count, size)}));
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

std::unique_ptr<ShapeTask> make_shape_task(const Recipe& recipe, const LabelData& data, SamplingTask task,
                                           int64_t smallest) {
    constexpr const char* kNames[] = {tasks::kClassifierWeights, tasks::kPartsWeights, "pcrnet",
                                      "autoencoder"};  // by task
    std::string path = recipe.sampling.network;
    if (path.empty()) {
        path = kNames[static_cast<size_t>(task)];
        if (tasks::find_weights(path) == path)
            throw Error(ErrorCode::bad_config,
                        fmt::format("sampling.network is missing, and no weights {} are installed", path),
                        "name the frozen network with --network");
    }
    path = tasks::find_weights(path);
    models::Model model = models::load_model(path);
    std::unique_ptr<FrozenTask> made;
    switch (task) {
        case SamplingTask::classification:
            made = std::make_unique<ClassificationTask>(std::move(model), path, data, recipe.sampling.teacher);
            break;
        case SamplingTask::segmentation: made = make_segmentation_task(std::move(model), path, recipe, data); break;
        case SamplingTask::registration:
            made = std::make_unique<RegistrationTask>(std::move(model), path, recipe);
            break;
        case SamplingTask::reconstruction: made = std::make_unique<ReconstructionTask>(std::move(model), path); break;
    }
    made->require_points(smallest);
    return made;
}

SamplingTask task_for(const SamplingOptions& options, models::SamplerShape shape) {
    if (const std::optional<SamplingTask> task = sampling_task(options)) return *task;
    switch (shape) {
        case models::SamplerShape::classification: break;
        case models::SamplerShape::registration: return SamplingTask::registration;
        case models::SamplerShape::reconstruction: return SamplingTask::reconstruction;
    }
    return SamplingTask::classification;
}

void require_sizes(int64_t count, int64_t model_points, int64_t data_points) {
    if (model_points != data_points)
        throw Error(ErrorCode::bad_config,
                    fmt::format("model.points is {}, data.points {}: the sampler is trained on clouds of one size",
                                model_points, data_points));
    if (count > model_points)
        throw Error(ErrorCode::bad_config, fmt::format("clouds of {} points cannot give {}", model_points, count));
}

Clouds looked_at(const ShapeTask& task, const ShapeBatch& batch) {
    const std::vector<Tensor> looks = task.looks(batch);
    const auto clouds = static_cast<int64_t>(looks.size()) * batch.count;
    return {looks.size() == 1 ? looks[0] : torch::cat(looks), ops::Batch::dense(clouds, batch.size)};
}

Tensor first_points(const Tensor& rows, int64_t count, int64_t size) {
    if (size == count) return rows;
    return rows.reshape({-1, count, 3}).slice(1, 0, size).reshape({-1, 3}).contiguous();
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
