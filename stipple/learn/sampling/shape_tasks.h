#pragma once
// What a cloud is for: tasks as losses and scores of points, by a network that is frozen or the one that is trained.

#include <memory>

#include "stipple/learn/functions.h"
#include "stipple/learn/sampling/shape_objective.h"
#include "stipple/models/samplenet.h"

namespace stipple::learn {

struct TaskTerms {
    torch::Tensor loss;   // one number, float64
    torch::Tensor score;  // of each cloud: degrees, chamfer distance. Without gradient
};

/// A task and its frozen network.
class ShapeTask {
public:
    virtual ~ShapeTask() = default;

    virtual const char* score_name() const = 0;  // "accuracy"
    virtual bool is_better_larger() const = 0;
    virtual void prepare(torch::Device device) = 0;
    /// The clouds that are sampled: those of the batch; for registration [source, template].
    virtual std::vector<torch::Tensor> looks(const ShapeBatch& batch) const = 0;
    /// Of sampled [looks * count * size, 3], look after look: the mean, and the score of each cloud.
    virtual torch::Tensor loss(const ShapeBatch& batch, const torch::Tensor& sampled, int64_t size) const = 0;
    virtual torch::Tensor score(const ShapeBatch& batch, const torch::Tensor& sampled, int64_t size) const = 0;
};

/// Loads the frozen network that the recipe names, for samples of `smallest` points or more. Throws Error{bad_config}
/// for one that does not fit task, data or samples.
std::unique_ptr<ShapeTask> make_shape_task(const Recipe& recipe, const LabelData& data, SamplingTask task,
                                           int64_t smallest);

/// The task that the options name, else that of the samplenet's shape.
SamplingTask task_for(const SamplingOptions& options, models::SamplerShape shape);

/// Throws Error{bad_config} unless a sampler of `count` points is trained on clouds that have them, all of one size.
void require_sizes(int64_t count, int64_t model_points, int64_t data_points);

/// All that is sampled of a batch, look after look.
Clouds looked_at(const ShapeTask& task, const ShapeBatch& batch);

/// The first `size` points of every cloud of rows [clouds * count, 3].
torch::Tensor first_points(const torch::Tensor& rows, int64_t count, int64_t size);

/// A pcrnet on the batch and its clouds turned; scores are angles in degrees.
TaskTerms registration_terms(Module& module, const ShapeBatch& batch, const Recipe& recipe, const RunOptions& options);

/// An autoencoder on the batch; scores are chamfer distances, squared, both ways.
TaskTerms reconstruction_terms(Module& module, const ShapeBatch& batch, const Recipe& recipe,
                               const RunOptions& options);

}  // namespace stipple::learn
