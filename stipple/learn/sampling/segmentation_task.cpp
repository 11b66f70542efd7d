#include "stipple/learn/sampling/segmentation_task.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/losses.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// The category of all items; -1 where they have several.
int64_t only_category(const LabelData& data) {
    int64_t only = -1;
    const auto is_of_one = [&](const data::DataSet& set, const std::vector<int64_t>& items) {
        return std::all_of(items.begin(), items.end(), [&](int64_t item) {
            if (only < 0) only = set.labels[static_cast<size_t>(item)];
            return set.labels[static_cast<size_t>(item)] == only;
        });
    };
    return is_of_one(data.set, data.train) && is_of_one(data.evaluated(), data.held_out) ? only : -1;
}

class SegmentationTask : public FrozenTask {
public:
    SegmentationTask(models::Model model, const std::string& path, const Recipe& recipe, const LabelData& data);

    const char* score_name() const override { return "accuracy"; }
    bool is_better_larger() const override { return true; }
    void prepare(torch::Device device) override {
        FrozenTask::prepare(device);
        if (allowed_.defined()) allowed_ = allowed_.to(device);
    }
    std::vector<Tensor> looks(const ShapeBatch& batch) const override { return {batch.points}; }
    Tensor loss(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        const ops::Batch samples = ops::Batch::dense(batch.count, size);
        CrossEntropyOptions options;
        if (allowed_.defined()) options.allowed = allowed_parts(samples, batch.labels, allowed_);
        return cross_entropy(logits(batch, sampled, samples), labels_of(batch, sampled, samples), options);
    }
    Tensor score(const ShapeBatch& batch, const Tensor& sampled, int64_t size) const override {
        const torch::NoGradGuard no_gradients;
        const ops::Batch samples = ops::Batch::dense(batch.count, size);
        Tensor found = logits(batch, sampled, samples);
        if (allowed_.defined())
            found = found.masked_fill(allowed_parts(samples, batch.labels, allowed_).logical_not(), -INFINITY);
        const Tensor right = found.argmax(1).eq(labels_of(batch, sampled, samples));
        return right.to(torch::kFloat64).reshape({batch.count, size}).mean(1);
    }

private:
    Tensor logits(const ShapeBatch& batch, const Tensor& sampled, const ops::Batch& samples) const {
        std::map<std::string, Tensor> inputs = {{"points", sampled}};
        if (categories_ > 0)  // not by one_hot(), which waits to see whether all numbers are categories
            inputs["category"] = batch.labels.unsqueeze(1)
                                     .eq(torch::arange(categories_, batch.labels.options()))
                                     .to(sampled.scalar_type());
        return run({samples}, inputs).at("logits");
    }
    /// int64 [rows of samples].
    Tensor labels_of(const ShapeBatch& batch, const Tensor& sampled, const ops::Batch& samples) const {
        const torch::NoGradGuard no_gradients;
        const Tensor nearest = knn(batch.clouds(), {sampled.detach(), samples}, 1).indices.to(torch::kInt64);
        const Tensor first = torch::arange(batch.count, batch.labels.options()).unsqueeze(1) * batch.size;
        // A point that is not finite has no neighbour; its logits, and so the loss, tell it.
        const Tensor rows = nearest.reshape({batch.count, -1}).clamp_min(0) + first;
        return batch.parts.index_select(0, rows.reshape({-1})) - first_part_;
    }

    int64_t categories_ = 0;  // of the network's input; 0: it has none
    int64_t first_part_ = 0;  // that the network counts as 0
    Tensor allowed_;          // bool [categories, parts], or undefined
};

SegmentationTask::SegmentationTask(models::Model model, const std::string& path, const Recipe& recipe,
                                   const LabelData& data)
    : FrozenTask(std::move(model), path) {
    const std::vector<data::PartCategory>& known = data.set.categories;
    const int64_t parts = logits_at(network::Level::point);
    if (parts == 0)
        misfit(fmt::format("{} has no logits of points", network().name),
               logits_at(network::Level::cloud) > 0 ? "it classifies clouds: --task cls" : "");
    for (const network::Layer& layer : network().layers)
        if (layer.kind == network::Kind::input) {
            if (layer.name == "category") categories_ = layer.type.channels;
            if (layer.name != "category" && layer.name != "points")
                misfit(fmt::format("{} wants {}, which the data do not have", network().name, layer.name));
        }
    int64_t all = 0;
    for (const data::PartCategory& category : known) all = std::max(all, category.end);
    int64_t wanted = all;
    if (const int64_t only = only_category(data); categories_ == 0 && only >= 0 && parts != all) {
        first_part_ = known[static_cast<size_t>(only)].begin;
        wanted = known[static_cast<size_t>(only)].end - first_part_;
    }
    if (parts != wanted) misfit(fmt::format("it tells {} parts, the data have {}", parts, wanted));
    if (categories_ == 0) return;
    if (categories_ != static_cast<int64_t>(known.size()))
        misfit(fmt::format("it knows {} categories, the data have {}", categories_, known.size()));
    if (!recipe.loss.own_parts) return;
    allowed_ = torch::zeros({categories_, parts}, torch::kBool);
    for (int64_t c = 0; c < categories_; ++c)
        allowed_[c].slice(0, known[static_cast<size_t>(c)].begin, known[static_cast<size_t>(c)].end).fill_(true);
}

}  // namespace

std::unique_ptr<FrozenTask> make_segmentation_task(models::Model model, const std::string& path, const Recipe& recipe,
                                                   const LabelData& data) {
    return std::make_unique<SegmentationTask>(std::move(model), path, recipe, data);
}

}  // namespace stipple::learn
