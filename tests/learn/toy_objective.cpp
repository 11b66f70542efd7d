#include "tests/learn/toy_objective.h"

#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/network/builder.h"
#include "tests/support/margin.h"
#include "tests/support/reference_classifier.h"

namespace stipple::test {
namespace {

constexpr int64_t kToyPoints = 32;

}  // namespace

ToyObjective::ToyObjective(int64_t items) : items_(items) {
    ShapeClouds clouds = shape_clouds(items, kToyPoints, 7 + trial());
    points_.assign(clouds.points.data(), clouds.points.data() + items * kToyPoints * 3);
    labels_.assign(clouds.labels.begin(), clouds.labels.end());
}

network::Network ToyObjective::network() const {
    network::Builder build("toy-classifier");
    network::Tensor x = build.input("points", network::points_of(3));
    x = build.linear("conv1", x, 32, {.norm = true, .activation = network::relu()});
    x = build.linear("conv2", x, 64, {.norm = true, .activation = network::relu()});
    x = build.max_points("pool", x);
    x = build.linear("fc1", x, 32, {.norm = true, .activation = network::relu()});
    x = build.dropout("dropout", x, 0.2f);
    build.output("logits", build.linear("fc2", x, kShapes));
    return build.finish();
}

void ToyObjective::prepare(int64_t batch, int buffers, int, torch::Device device) {
    batch_ = batch;
    device_ = device;
    for (int i = 0; i < buffers; ++i) {
        point_buffers_.push_back(torch::zeros({batch * kToyPoints, 3}));
        label_buffers_.push_back(torch::zeros({batch}, torch::kInt64));
    }
}

void ToyObjective::make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) {
    float* to = point_buffers_[slot.buffer].data_ptr<float>() + slot.place * kToyPoints * 3;
    for (int64_t i = 0; i < kToyPoints * 3; ++i)
        to[i] = points_[item * kToyPoints * 3 + i] * (1 + 0.01f * static_cast<float>((epoch * 7 + item) % 5));
    label_buffers_[slot.buffer].data_ptr<int64_t>()[slot.place] = labels_[item];
}

learn::StepOutput ToyObjective::step(learn::Module& module, const data::LoadedBatch& batch,
                                     const learn::RunOptions& options) {
    torch::Tensor points = point_buffers_[batch.buffer].clone().to(device_);
    if (before_step) before_step(options.step, points);
    if (!options.watch) ++steps_run;
    const torch::Tensor labels = label_buffers_[batch.buffer].to(device_);
    const torch::Tensor logits =
        module.run(ops::Batch::dense(batch_, kToyPoints), {{"points", points}}, options).at("logits");
    const torch::Tensor loss = learn::cross_entropy(logits, labels);
    const torch::Tensor right = logits.argmax(1).eq(labels).sum().to(torch::kFloat64);
    losses.push_back(loss.item<double>());
    return {loss, torch::stack({loss.detach(), right, torch::full_like(right, static_cast<double>(batch_))})};
}

learn::Scores ToyObjective::evaluate(learn::Module& module) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor points = torch::from_blob(points_.data(), {items_ * kToyPoints, 3}).to(device_);
    const torch::Tensor labels = torch::tensor(std::vector<int64_t>(labels_.begin(), labels_.end())).to(device_);
    const torch::Tensor logits = module.run(ops::Batch::dense(items_, kToyPoints), {{"points", points}}).at("logits");
    return {{"validation_accuracy", logits.argmax(1).eq(labels).to(torch::kFloat64).mean().item<double>()}};
}

learn::Recipe toy_recipe() {
    learn::Recipe recipe;
    recipe.name = "toy";
    recipe.schedule = {.kind = learn::ScheduleKind::cosine, .rate = 5e-3, .warmup = 0.5};
    recipe.schedule.norm_momentum = 0.2;
    recipe.schedule.norm_momentum_factor = 0.5;
    recipe.schedule.every = 2;
    recipe.optimizer.weight_decay = 0.01;
    recipe.run.epochs = 4;
    recipe.run.batch = 16;
    recipe.run.average_decay = 0.9;
    recipe.run.log_every = 1;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.loader_threads = 1;
    recipe.run.seed = trial();
    return recipe;
}

}  // namespace stipple::test
