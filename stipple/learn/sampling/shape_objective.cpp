#include "stipple/learn/sampling/shape_objective.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/profiler.h"

namespace stipple::learn {

using data::DataSet;
using torch::Tensor;

namespace {

constexpr int64_t kShapeBytes = int64_t{8} << 30;  // of a data set that is kept on a GPU
constexpr int64_t kValidationPoints = 1 << 17;     // at a time

/// 0 .. count - 1, and `first` of them before.
Tensor numbers_from(const Tensor& first, int64_t count) {
    return first * count + torch::arange(count, torch::TensorOptions(torch::kInt64).device(first.device()));
}

}  // namespace

ShapeObjective::ShapeObjective(const Recipe& recipe, const LabelData& data) : recipe_(recipe), data_(data) {
    view_ = {recipe.data.points, recipe.augment, 1, recipe.run.seed};
    if (view_.augment.choose == 0 && recipe.data.subset == "random") view_.augment.choose = recipe.data.points;
}

int64_t ShapeObjective::used_points(const DataSet& set, int64_t item) const {
    const int64_t size = set.clouds.size_of(item);
    return recipe_.data.subset == "first" ? std::min(size, recipe_.data.points) : size;
}

void ShapeObjective::prepare(int64_t batch, int buffers, int threads, torch::Device device) {
    batch_ = batch;
    device_ = device;
    scratch_.resize(static_cast<size_t>(std::max(threads, 1)));
    const auto pinned = [&](torch::Dtype type) { return torch::TensorOptions(type).pinned_memory(device.is_cuda()); };
    for (int i = 0; i < buffers; ++i)
        buffers_.push_back({torch::zeros({batch * view_.points, 3}, pinned(torch::kFloat32)),
                            torch::zeros({batch}, pinned(torch::kInt64)),
                            {}});
    const DeviceBatchOptions on_device = {
        .views = {view_}, .batch = batch, .used = recipe_.data.subset == "first" ? recipe_.data.points : 0};
    if (device.is_cuda() && recipe_.run.graph && !data_.set.labels.empty() &&
        DeviceBatches::can_hold(data_.set, on_device, kShapeBytes))
        device_batches_ = std::make_unique<DeviceBatches>(data_.set, on_device, device);
}

void ShapeObjective::make(int64_t epoch, int64_t number, const data::LoaderSlot& slot) {
    const DataSet& set = data_.set;
    const int64_t item = data_.train[static_cast<size_t>(number)];
    Scratch& scratch = scratch_[static_cast<size_t>(slot.thread)];
    BatchTensors& buffer = buffers_[static_cast<size_t>(slot.buffer)];
    const int64_t size = used_points(set, item), first = set.clouds.offsets[static_cast<size_t>(item)];
    scratch.points.assign(set.clouds.points.data() + 3 * first, set.clouds.points.data() + 3 * (first + size));
    data::AugmentOptions augment = view_.augment;
    if (augment.choose >= size) augment.choose = 0;
    const int64_t rows =
        data::augment({{scratch.points.data(), {size, 3}}}, augment, view_.seed, epoch, item, scratch.augment);
    // Where there are fewer points than a batch wants, they come again.
    float* points = buffer.points.data_ptr<float>() + 3 * slot.place * view_.points;
    for (int64_t i = 0; i < view_.points; ++i) std::copy_n(scratch.points.data() + 3 * (i % rows), 3, points + 3 * i);
    buffer.labels.data_ptr<int64_t>()[slot.place] = set.labels.empty() ? 0 : set.labels[item];
}

StepOutput ShapeObjective::step(Module& module, const data::LoadedBatch& loaded, const RunOptions& options) {
    STIPPLE_REQUIRE(static_cast<int64_t>(loaded.items.size()) == batch_, "a batch of {} items, not {}",
                    loaded.items.size(), batch_);
    const BatchTensors& buffer = buffers_[static_cast<size_t>(loaded.buffer)];
    ProfileMark copy(options.profiler, "copy to device");
    const ShapeBatch batch = {buffer.points.to(device_, /*non_blocking=*/true), buffer.labels.to(device_, true),
                              numbers_from(torch::tensor({options.step}, torch::kInt64).to(device_), batch_), batch_,
                              view_.points};
    copy.end();
    return step_of(module, batch, options);
}

StepOutput ShapeObjective::step_on_device(Module& module, const StepClock& clock, const RunOptions& options) {
    const BatchTensors made = device_batches_->make(clock);
    return step_of(module, {made.points, made.labels, numbers_from(clock.step, batch_), batch_, view_.points}, options);
}

void ShapeObjective::set_order(std::span<const int64_t> order) {
    std::vector<int64_t> clouds;
    for (const int64_t number : order) clouds.push_back(data_.train[static_cast<size_t>(number)]);
    device_batches_->set_order(clouds);
}

void ShapeObjective::for_each_validation_batch(const std::function<void(const ShapeBatch& batch)>& visit) const {
    const DataSet& set = data_.evaluated();
    const int64_t n = view_.points, most = std::max<int64_t>(1, kValidationPoints / n);
    const auto all = static_cast<int64_t>(data_.held_out.size());
    data::AugmentScratch scratch;
    std::vector<float> points;
    for (int64_t begin = 0; begin < all; begin += most) {
        const int64_t count = std::min(most, all - begin);
        Tensor rows = torch::zeros({count * n, 3}), labels = torch::zeros({count}, torch::kInt64);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t item = data_.held_out[static_cast<size_t>(begin + i)], size = used_points(set, item),
                          first = set.clouds.offsets[static_cast<size_t>(item)];
            points.assign(set.clouds.points.data() + 3 * first, set.clouds.points.data() + 3 * (first + size));
            int64_t used = size;
            if (size > n) {  // the same choice each time
                data::AugmentOptions choose;
                choose.choose = n;
                used = data::augment({{points.data(), {size, 3}}}, choose, 0, 0, item, scratch);
            }
            for (int64_t p = 0; p < n; ++p)
                std::copy_n(points.data() + 3 * (p % used), 3, rows.data_ptr<float>() + 3 * (i * n + p));
            labels.data_ptr<int64_t>()[i] = set.labels.empty() ? 0 : set.labels[item];
        }
        visit({rows.to(device_), labels.to(device_), torch::arange(begin, begin + count, torch::kInt64).to(device_),
               count, n});
    }
}

std::string ShapeObjective::describe(std::span<const int64_t> numbers) const {
    std::string text;
    for (size_t i = 0; i < numbers.size() && i < 4; ++i) {
        const int64_t item = data_.train[static_cast<size_t>(numbers[i])];
        const std::vector<std::string>& names = data_.set.names;
        text += (i > 0 ? ", " : "") + (names.empty() ? std::to_string(item) : names[static_cast<size_t>(item)]);
    }
    return numbers.size() > 4 ? text + fmt::format(" and {} more", numbers.size() - 4) : text;
}

}  // namespace stipple::learn
