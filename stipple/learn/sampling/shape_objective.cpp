#include "stipple/learn/sampling/shape_objective.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/distributed/process_group.h"
#include "stipple/learn/profiler.h"

namespace stipple::learn {

using data::DataSet;
using torch::Tensor;

namespace {

constexpr int64_t kShapeBytes = int64_t{8} << 30;  // of a data set that is kept on a GPU
constexpr int64_t kValidationPoints = 1 << 17;     // at a time

/// Of the clouds of a step, `count` on each rank: 0 .. count - 1, and those of the steps and ranks before.
Tensor numbers_from(const Tensor& step, int64_t count, const ProcessGroup* group) {
    const int64_t ranks = group ? group->size() : 1, rank = group ? group->rank() : 0;
    return (step * ranks + rank) * count +
           torch::arange(count, torch::TensorOptions(torch::kInt64).device(step.device()));
}

}  // namespace

ShapeObjective::ShapeObjective(const Recipe& recipe, const LabelData& data) : recipe_(recipe), data_(data) {
    view_ = {recipe.data.points, recipe.augment, 1, recipe.run.seed};
    if (view_.augment.choose == 0 && recipe.data.subset == PointSubset::random)
        view_.augment.choose = recipe.data.points;
}

int64_t ShapeObjective::used_points(const DataSet& set, int64_t item) const {
    const int64_t size = set.clouds.size_of(item);
    return recipe_.data.subset == PointSubset::first ? std::min(size, recipe_.data.points) : size;
}

data::AugmentCloud ShapeObjective::load(const DataSet& set, int64_t item, Scratch& scratch) const {
    const int64_t size = used_points(set, item), first = set.clouds.offsets[static_cast<size_t>(item)];
    scratch.points.assign(set.clouds.points.data() + 3 * first, set.clouds.points.data() + 3 * (first + size));
    data::AugmentCloud cloud{{scratch.points.data(), {size, 3}}};
    if (has_parts()) {
        scratch.parts.assign(set.parts.begin() + first, set.parts.begin() + first + size);
        cloud.labels = {scratch.parts.data(), {size}};
    }
    return cloud;
}

void ShapeObjective::prepare(int64_t batch, int buffers, int threads, torch::Device device) {
    batch_ = batch;
    device_ = device;
    scratch_.resize(static_cast<size_t>(std::max(threads, 1)));
    const auto pinned = [&](torch::Dtype type) { return torch::TensorOptions(type).pinned_memory(device.is_cuda()); };
    for (int i = 0; i < buffers; ++i)
        buffers_.push_back({torch::zeros({batch * view_.points, 3}, pinned(torch::kFloat32)),
                            torch::zeros({batch}, pinned(torch::kInt64)),
                            torch::zeros({has_parts() ? batch * view_.points : 0}, pinned(torch::kInt64))});
    const DeviceBatchOptions on_device = {.views = {view_},
                                          .batch = batch,
                                          .used = recipe_.data.subset == PointSubset::first ? recipe_.data.points : 0,
                                          .has_parts = has_parts()};
    if (device.is_cuda() && recipe_.run.graph && !data_.set.labels.empty() &&
        DeviceBatches::can_hold(data_.set, on_device, kShapeBytes))
        device_batches_ = std::make_unique<DeviceBatches>(data_.set, on_device, device);
}

void ShapeObjective::make(int64_t epoch, int64_t number, const data::LoaderSlot& slot) {
    const DataSet& set = data_.set;
    const int64_t item = data_.train[static_cast<size_t>(number)];
    Scratch& scratch = scratch_[static_cast<size_t>(slot.thread)];
    BatchTensors& buffer = buffers_[static_cast<size_t>(slot.buffer)];
    const data::AugmentCloud cloud = load(set, item, scratch);
    data::AugmentOptions augment = view_.augment;
    if (augment.choose >= cloud.points.size(0)) augment.choose = 0;
    const int64_t rows = data::augment(cloud, augment, view_.seed, epoch, item, scratch.augment);
    // Where there are fewer points than a batch wants, they come again.
    float* points = buffer.points.data_ptr<float>() + 3 * slot.place * view_.points;
    for (int64_t i = 0; i < view_.points; ++i) std::copy_n(scratch.points.data() + 3 * (i % rows), 3, points + 3 * i);
    if (has_parts()) {
        int64_t* parts = buffer.parts.data_ptr<int64_t>() + slot.place * view_.points;
        for (int64_t i = 0; i < view_.points; ++i) parts[i] = scratch.parts[static_cast<size_t>(i % rows)];
    }
    buffer.labels.data_ptr<int64_t>()[slot.place] = set.labels.empty() ? 0 : set.labels[item];
}

StepOutput ShapeObjective::step(Module& module, const data::LoadedBatch& loaded, const RunOptions& options) {
    STIPPLE_REQUIRE(static_cast<int64_t>(loaded.items.size()) == batch_, "a batch of {} items, not {}",
                    loaded.items.size(), batch_);
    const BatchTensors& buffer = buffers_[static_cast<size_t>(loaded.buffer)];
    ProfileMark copy(options.profiler, "copy to device");
    const Tensor now = torch::tensor({options.step}, torch::kInt64).to(device_);
    const ShapeBatch batch = {buffer.points.to(device_, /*non_blocking=*/true),
                              buffer.labels.to(device_, true),
                              numbers_from(now, batch_, options.group),
                              batch_,
                              view_.points,
                              now,
                              buffer.parts.to(device_, true)};
    copy.end();
    return step_of(module, batch, options);
}

StepOutput ShapeObjective::step_on_device(Module& module, const StepClock& clock, const RunOptions& options) {
    const BatchTensors made = device_batches_->make(clock);
    return step_of(module,
                   {made.points, made.labels, numbers_from(clock.step, batch_, nullptr), batch_, view_.points,
                    clock.step, made.parts},
                   options);
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
    Scratch scratch;
    for (int64_t begin = 0; begin < all; begin += most) {
        const int64_t count = std::min(most, all - begin);
        Tensor rows = torch::zeros({count * n, 3}), labels = torch::zeros({count}, torch::kInt64),
               parts = torch::zeros({has_parts() ? count * n : 0}, torch::kInt64);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t item = data_.held_out[static_cast<size_t>(begin + i)];
            const data::AugmentCloud cloud = load(set, item, scratch);
            int64_t used = cloud.points.size(0);
            if (used > n) {  // the same choice each time
                data::AugmentOptions choose;
                choose.choose = n;
                used = data::augment(cloud, choose, 0, 0, item, scratch.augment);
            }
            for (int64_t p = 0; p < n; ++p)
                std::copy_n(scratch.points.data() + 3 * (p % used), 3, rows.data_ptr<float>() + 3 * (i * n + p));
            for (int64_t p = 0; has_parts() && p < n; ++p)
                parts.data_ptr<int64_t>()[i * n + p] = scratch.parts[static_cast<size_t>(p % used)];
            labels.data_ptr<int64_t>()[i] = set.labels.empty() ? 0 : set.labels[item];
        }
        visit({rows.to(device_),
               labels.to(device_),
               torch::arange(begin, begin + count, torch::kInt64).to(device_),
               count,
               n,
               {},
               parts.to(device_)});
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
