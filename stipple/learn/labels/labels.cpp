#include "stipple/learn/labels/labels.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/core/json_writer.h"
#include "stipple/data/data_set.h"
#include "stipple/learn/labels/device_batches.h"
#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/metrics/classification.h"
#include "stipple/metrics/segmentation.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

using data::DataSet;
using data::LoadedBatch;
using data::LoaderSlot;
using torch::Tensor;

constexpr uint64_t kViewSeed = 0x56494557;          // so that the second view draws numbers of its own
constexpr int64_t kEvaluatedPoints = 1 << 18;       // at a time
constexpr int64_t kDeviceBytes = int64_t{8} << 30;  // of a data set that is kept on a GPU

class LabelObjective : public Objective {
public:
    LabelObjective(const Recipe& recipe, const LabelData& data);

    int64_t items() const override { return static_cast<int64_t>(data_.train.size()); }
    network::Network network() const override { return network_; }
    std::map<std::string, std::string> metadata() const override;
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override;
    void make(int64_t epoch, int64_t item, const LoaderSlot& slot) override;
    StepOutput step(Module& module, const LoadedBatch& batch, const RunOptions& options) override;
    bool has_device_batches() const override { return device_batches_ != nullptr; }
    void set_order(std::span<const int64_t> order) override;
    StepOutput step_on_device(Module& module, const StepClock& clock, const RunOptions& options) override {
        return step(module, device_batches_->make(clock), options);
    }
    std::vector<std::string> sums() const override { return {"loss", "right", "rows"}; }
    Scores scores(std::span<const double> sums) const override {
        return {{"loss", sums[0]}, {"accuracy", sums[1] / std::max(sums[2], 1.0)}};
    }
    bool has_validation() const override { return !data_.held_out.empty(); }
    Scores evaluate(Module& module) override;
    std::string describe(std::span<const int64_t> items) const override;

private:
    bool is_segmentation() const { return recipe_.task == TrainingTask::segmentation; }
    int64_t label_of(const DataSet& set, int64_t item) const { return set.labels.empty() ? 0 : set.labels[item]; }
    /// Of a cloud, counted from its first one: all, or data.points.
    int64_t used_points(const DataSet& set, int64_t item) const {
        const int64_t size = set.clouds.size_of(item);
        return recipe_.data.subset == PointSubset::first ? std::min(size, recipe_.data.points) : size;
    }
    void build();
    StepOutput step(Module& module, const BatchTensors& batch, const RunOptions& options) const;
    /// The labels of a batch's rows as the network counts them.
    Tensor logits_of(Module& module, const ops::Batch& batch, const Tensor& points, const Tensor& categories,
                     const RunOptions& options, Tensor* transform = nullptr) const;
    CrossEntropyOptions entropy(const ops::Batch& batch, const Tensor& categories) const;

    Recipe recipe_;
    const LabelData& data_;
    const DataSet& set_;  // that is trained on
    network::Network network_;
    std::vector<BatchView> views_;
    int64_t part_begin_ = 0, part_end_ = 0;  // of the parts that are learned
    bool has_category_ = false;
    Tensor allowed_;  // bool [categories, parts]

    int64_t batch_ = 0;
    torch::Device device_ = torch::kCPU;
    std::vector<BatchTensors> buffers_;
    std::unique_ptr<DeviceBatches> device_batches_;
    struct Scratch {
        data::AugmentScratch augment;
        std::vector<float> points;
        std::vector<int32_t> parts;
    };
    std::vector<Scratch> scratch_;
};

LabelObjective::LabelObjective(const Recipe& recipe, const LabelData& data)
    : recipe_(recipe), data_(data), set_(data.set) {
    build();
    views_.push_back({recipe.data.points, recipe.augment, 1, recipe.run.seed});
    if (recipe.view.weight > 0)
        views_.push_back({recipe.view.points, recipe.view.augment, recipe.view.weight, recipe.run.seed ^ kViewSeed});
    for (BatchView& view : views_)
        if (view.augment.choose == 0 && recipe.data.subset == PointSubset::random)
            view.augment.choose = recipe.data.points;
}

void LabelObjective::build() {
    std::map<std::string, std::string> options = recipe_.options;
    const std::string& model = recipe_.model;
    part_end_ = static_cast<int64_t>(set_.classes.size());
    if (is_segmentation()) {
        part_end_ = 0;
        for (const data::PartCategory& category : set_.categories) part_end_ = std::max(part_end_, category.end);
        if (model == "pointnet-segmenter") {  // of one category: its parts are counted from 0
            const int64_t label = label_of(set_, data_.train.front());
            for (const int64_t item : data_.train)
                if (label_of(set_, item) != label)
                    throw Error(ErrorCode::bad_config,
                                "pointnet-segmenter is of one category: name it with data.classes");
            part_begin_ = set_.categories[static_cast<size_t>(label)].begin;
            part_end_ = set_.categories[static_cast<size_t>(label)].end;
        }
    }
    options["classes"] = std::to_string(part_end_ - part_begin_);
    if (model == "pointnet-part-segmenter") options["categories"] = std::to_string(set_.categories.size());
    network_ = models::build_model(model, options);
    for (const network::Layer& layer : network_.layers)
        if (layer.kind == network::Kind::input && layer.name == "category") has_category_ = true;
    if (!has_category_ || !recipe_.loss.own_parts) return;
    allowed_ = torch::zeros({static_cast<int64_t>(set_.categories.size()), part_end_}, torch::kBool);
    for (size_t c = 0; c < set_.categories.size(); ++c)
        allowed_[static_cast<int64_t>(c)].slice(0, set_.categories[c].begin, set_.categories[c].end).fill_(true);
}

std::map<std::string, std::string> LabelObjective::metadata() const {
    std::map<std::string, std::string> metadata = {{"stipple.trained", "true"}, {"stipple.up", recipe_.data.up}};
    const auto list = [](const auto& names) {
        JsonWriter json;
        json.begin_array();
        for (const std::string& name : names) json.value(std::string_view(name));
        return json.end_array().text();
    };
    if (!is_segmentation()) {
        metadata["stipple.classes"] = list(set_.classes);
        return metadata;
    }
    metadata["stipple.points"] = std::to_string(recipe_.data.points);  // local features depend on the density
    if (has_category_) {
        JsonWriter json;
        json.begin_object();
        for (const data::PartCategory& category : set_.categories)
            json.key(category.name).begin_array().value(category.begin).value(category.end).end_array();
        metadata["stipple.categories"] = json.end_object().text();
    }
    if (!set_.part_names.empty())
        metadata["stipple.parts"] =
            list(std::vector<std::string>(set_.part_names.begin() + part_begin_, set_.part_names.begin() + part_end_));
    return metadata;
}

void LabelObjective::prepare(int64_t batch, int buffers, int threads, torch::Device device) {
    batch_ = batch;
    device_ = device;
    if (allowed_.defined()) allowed_ = allowed_.to(device);
    scratch_.resize(static_cast<size_t>(std::max(threads, 1)));
    int64_t rows = 0;
    for (const BatchView& view : views_) rows += batch * view.points;
    const auto pinned = [&](torch::Dtype type) { return torch::TensorOptions(type).pinned_memory(device.is_cuda()); };
    for (int i = 0; i < buffers; ++i)
        buffers_.push_back({torch::zeros({rows, 3}, pinned(torch::kFloat32)),
                            torch::zeros({batch}, pinned(torch::kInt64)),
                            torch::zeros({is_segmentation() ? rows : 0}, pinned(torch::kInt64))});
    const DeviceBatchOptions on_device = {.views = views_,
                                          .batch = batch,
                                          .used = recipe_.data.subset == PointSubset::first ? recipe_.data.points : 0,
                                          .has_parts = is_segmentation(),
                                          .first_part = part_begin_};
    if (device.is_cuda() && recipe_.run.graph && DeviceBatches::can_hold(set_, on_device, kDeviceBytes))
        device_batches_ = std::make_unique<DeviceBatches>(set_, on_device, device);
}

void LabelObjective::make(int64_t epoch, int64_t number, const LoaderSlot& slot) {
    const int64_t item = data_.train[static_cast<size_t>(number)];
    Scratch& scratch = scratch_[static_cast<size_t>(slot.thread)];
    BatchTensors& buffer = buffers_[static_cast<size_t>(slot.buffer)];
    const int64_t size = used_points(set_, item), first = set_.clouds.offsets[static_cast<size_t>(item)];
    int64_t begin = 0;  // of the view in the batch
    for (const BatchView& view : views_) {
        const float* stored = set_.clouds.points.data() + 3 * first;
        scratch.points.assign(stored, stored + 3 * size);
        data::AugmentCloud cloud{{scratch.points.data(), {size, 3}}};
        if (is_segmentation()) {
            scratch.parts.assign(set_.parts.begin() + first, set_.parts.begin() + first + size);
            cloud.labels = {scratch.parts.data(), {size}};
        }
        data::AugmentOptions augment = view.augment;
        if (augment.choose >= size) augment.choose = 0;
        const int64_t rows = data::augment(cloud, augment, view.seed, epoch, item, scratch.augment);
        // Where there are fewer points than a batch wants, they come again.
        float* points = buffer.points.data_ptr<float>() + 3 * (begin + slot.place * view.points);
        for (int64_t i = 0; i < view.points; ++i)
            std::copy_n(scratch.points.data() + 3 * (i % rows), 3, points + 3 * i);
        if (is_segmentation()) {
            int64_t* parts = buffer.parts.data_ptr<int64_t>() + begin + slot.place * view.points;
            for (int64_t i = 0; i < view.points; ++i)
                parts[i] = scratch.parts[static_cast<size_t>(i % rows)] - part_begin_;
        }
        begin += batch_ * view.points;
    }
    buffer.labels.data_ptr<int64_t>()[slot.place] = label_of(set_, item);
}

Tensor LabelObjective::logits_of(Module& module, const ops::Batch& batch, const Tensor& points,
                                 const Tensor& categories, const RunOptions& options, Tensor* transform) const {
    std::map<std::string, Tensor> inputs = {{"points", points}};
    if (has_category_)
        inputs["category"] =  // not by one_hot(), which waits to see whether all numbers are categories
            categories.unsqueeze(1)
                .eq(torch::arange(static_cast<int64_t>(set_.categories.size()), categories.options()))
                .to(points.scalar_type());
    std::map<std::string, Tensor> outputs = module.run(batch, inputs, options);
    if (const auto found = outputs.find("feature_transform"); transform && found != outputs.end())
        *transform = found->second;
    return outputs.at("logits");
}

CrossEntropyOptions LabelObjective::entropy(const ops::Batch& batch, const Tensor& categories) const {
    CrossEntropyOptions options;
    options.label_smoothing = recipe_.loss.label_smoothing;
    if (allowed_.defined()) options.allowed = allowed_parts(batch, categories, allowed_);
    return options;
}

void LabelObjective::set_order(std::span<const int64_t> order) {
    std::vector<int64_t> clouds;
    for (const int64_t number : order) clouds.push_back(data_.train[static_cast<size_t>(number)]);
    device_batches_->set_order(clouds);
}

StepOutput LabelObjective::step(Module& module, const LoadedBatch& loaded, const RunOptions& options) {
    STIPPLE_REQUIRE(static_cast<int64_t>(loaded.items.size()) == batch_, "a batch of {} items, not {}",
                    loaded.items.size(), batch_);
    const BatchTensors& buffer = buffers_[static_cast<size_t>(loaded.buffer)];
    ProfileMark copy(options.profiler, "copy to device");
    const BatchTensors batch = {buffer.points.to(device_, /*non_blocking=*/true), buffer.labels.to(device_, true),
                                buffer.parts.to(device_, true)};
    copy.end();
    return step(module, batch, options);
}

StepOutput LabelObjective::step(Module& module, const BatchTensors& made, const RunOptions& options) const {
    const int64_t n = batch_;
    std::vector<int64_t> offsets = {0};
    for (const BatchView& view : views_)
        for (int64_t i = 0; i < n; ++i) offsets.push_back(offsets.back() + view.points);
    const ops::Batch batch =
        views_.size() == 1 ? ops::Batch::dense(n, views_[0].points) : ops::Batch::ragged(std::move(offsets));
    const Tensor labels = views_.size() == 1 ? made.labels : made.labels.repeat({static_cast<int64_t>(views_.size())});
    const Tensor truth = is_segmentation() ? made.parts : labels;
    Tensor transform;
    RunOptions with_views = options;
    with_views.views = static_cast<int64_t>(views_.size());
    const Tensor logits = logits_of(module, batch, made.points, labels, with_views, &transform);
    const ProfileMark of_loss(options.profiler, "loss");

    Tensor loss, first_allowed;
    double weights = 0;
    int64_t begin = 0;
    for (const BatchView& view : views_) {
        const int64_t rows = is_segmentation() ? n * view.points : n;
        const CrossEntropyOptions how = entropy(ops::Batch::dense(n, view.points), labels.narrow(0, 0, n));
        if (begin == 0) first_allowed = how.allowed;
        const Tensor term = cross_entropy(logits.narrow(0, begin, rows), truth.narrow(0, begin, rows), how);
        loss = loss.defined() ? loss + view.weight * term : view.weight * term;
        weights += view.weight;
        begin += rows;
    }
    loss = loss / weights;
    if (transform.defined() && recipe_.loss.transform_weight > 0)
        loss =
            loss + recipe_.loss.transform_weight * transform_regulariser(transform, recipe_.loss.transform_convention);
    const torch::NoGradGuard no_gradients;
    const int64_t rows = is_segmentation() ? n * views_[0].points : n;
    Tensor first = logits.narrow(0, 0, rows);  // scored as evaluate() does
    if (first_allowed.defined()) first = first.masked_fill(first_allowed.logical_not(), -INFINITY);
    const Tensor right = first.argmax(1).eq(truth.narrow(0, 0, rows)).sum().to(torch::kFloat64);
    return {loss, torch::stack({loss.detach().to(torch::kFloat64), right,
                                torch::full({}, static_cast<double>(rows), right.options())})};
}

Scores LabelObjective::evaluate(Module& module) {
    const torch::NoGradGuard no_gradients;
    const DataSet& set = data_.evaluated();
    std::vector<int32_t> found, truth;
    std::vector<int64_t> sizes;
    std::vector<float> points;
    std::vector<int64_t> categories;
    Scratch scratch;
    double loss = 0;
    const auto flush = [&] {
        if (sizes.empty()) return;
        std::vector<int64_t> offsets = {0};
        for (const int64_t size : sizes) offsets.push_back(offsets.back() + size);
        const ops::Batch batch = ops::Batch::ragged(std::move(offsets));
        const Tensor input = torch::from_blob(points.data(), {batch.rows(), 3}).to(device_);
        const Tensor labels = torch::tensor(categories, torch::kInt64).to(device_);
        Tensor logits = logits_of(module, batch, input, labels, {});
        CrossEntropyOptions how = entropy(batch, labels);
        how.label_smoothing = 0;
        const auto n = logits.size(0);
        const std::vector<int64_t> right(truth.end() - n, truth.end());
        const double mean = cross_entropy(logits, torch::tensor(right, torch::kInt64).to(device_), how).item<double>();
        loss += mean * static_cast<double>(n);
        if (how.allowed.defined()) logits = logits.masked_fill(how.allowed.logical_not(), -INFINITY);
        const Tensor best = logits.argmax(1).to(torch::kInt32).cpu().contiguous();
        found.insert(found.end(), best.data_ptr<int32_t>(), best.data_ptr<int32_t>() + n);
        sizes.clear(), points.clear(), categories.clear();
    };
    std::vector<int64_t> shape_sizes;
    for (const int64_t item : data_.held_out) {
        const int64_t size = used_points(set, item), first = set.clouds.offsets[static_cast<size_t>(item)];
        scratch.points.assign(set.clouds.points.data() + 3 * first, set.clouds.points.data() + 3 * (first + size));
        int64_t rows = size;
        if (!is_segmentation() && size > recipe_.data.points) {  // the same choice each time
            data::AugmentOptions choose;
            choose.choose = recipe_.data.points;
            rows = data::augment({{scratch.points.data(), {size, 3}}}, choose, 0, 0, item, scratch.augment);
        }
        if (!sizes.empty() && static_cast<int64_t>(points.size()) / 3 + rows > kEvaluatedPoints) flush();
        points.insert(points.end(), scratch.points.begin(), scratch.points.begin() + 3 * rows);
        sizes.push_back(rows);
        shape_sizes.push_back(rows);
        categories.push_back(label_of(set, item));
        if (is_segmentation())
            for (int64_t i = 0; i < size; ++i)
                truth.push_back(set.parts[static_cast<size_t>(first + i)] - static_cast<int32_t>(part_begin_));
        else
            truth.push_back(set.labels[static_cast<size_t>(item)]);
    }
    flush();
    loss /= static_cast<double>(truth.size());
    if (!is_segmentation()) {
        const metrics::Confusion confusion = metrics::confusion(found, truth, set.classes);
        return {{"validation_accuracy", metrics::overall_accuracy(confusion)},
                {"validation_mean_class_accuracy", metrics::mean_accuracy(confusion)},
                {"validation_loss", loss}};
    }
    std::vector<metrics::PartCategory> parts;
    for (const data::PartCategory& category : set.categories) {
        metrics::PartCategory& of = parts.emplace_back(metrics::PartCategory{category.name, {}});
        for (int64_t part = category.begin; part < category.end; ++part)
            of.parts.push_back(static_cast<int32_t>(part - part_begin_));
    }
    std::vector<metrics::SegmentedShape> shapes;
    int64_t begin = 0;
    for (size_t i = 0; i < data_.held_out.size(); begin += shape_sizes[i++])
        shapes.push_back({static_cast<int32_t>(label_of(set, data_.held_out[i])),
                          std::span(found).subspan(static_cast<size_t>(begin), static_cast<size_t>(shape_sizes[i])),
                          std::span(truth).subspan(static_cast<size_t>(begin), static_cast<size_t>(shape_sizes[i]))});
    const metrics::PartIou iou = metrics::part_iou(shapes, parts);
    return {{"validation_instance_miou", iou.instance},
            {"validation_category_miou", iou.category},
            {"validation_accuracy", iou.accuracy},
            {"validation_loss", loss}};
}

std::string LabelObjective::describe(std::span<const int64_t> numbers) const {
    std::string text;
    for (size_t i = 0; i < numbers.size() && i < 4; ++i) {
        const int64_t item = data_.train[static_cast<size_t>(numbers[i])];
        text +=
            (i > 0 ? ", " : "") + (set_.names.empty() ? std::to_string(item) : set_.names[static_cast<size_t>(item)]);
    }
    return numbers.size() > 4 ? text + fmt::format(" and {} more", numbers.size() - 4) : text;
}

}  // namespace

std::unique_ptr<Objective> make_label_objective(const Recipe& recipe, const LabelData& data) {
    return std::make_unique<LabelObjective>(recipe, data);
}

}  // namespace stipple::learn
