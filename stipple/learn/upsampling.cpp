#include "stipple/learn/upsampling.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/models/registry.h"

namespace stipple::learn {
namespace {

using data::LoadedBatch;
using data::LoaderSlot;
using torch::Tensor;

constexpr double kSmooth = 0.02;  // spacings; below it a distance counts by its square
constexpr double kLeastUncertainty = 1e-3;
constexpr uint64_t kValidationSeed = 0x56414C49;  // the same patches whatever the seed of a run
constexpr int64_t kEvaluatedPatches = 16;         // at a time
constexpr const char* kKinds[] = {"uniform", "random", "noisy"};
constexpr int64_t kKindCount = 3;

[[noreturn]] void misfit(const std::string& message) {
    throw Error(ErrorCode::bad_config, message);
}

Tensor mean_of(const Tensor& rows) {
    return rows.to(torch::kFloat64).mean();
}

Tensor smooth_distance(const Tensor& a, const Tensor& b) {
    return mean_of(((a - b).square().sum(1) + kSmooth * kSmooth).sqrt() - kSmooth);
}

Tensor distance_of(const Tensor& a, const Tensor& b) {
    return (a - b).square().sum(1).sqrt();
}

/// The buffers of a batch.
struct PatchTensors {
    Tensor points, queries, truth, frames;

    PatchTensors to(torch::Device device) const {
        return {points.to(device, /*non_blocking=*/true), queries.to(device, true), truth.to(device, true),
                frames.to(device, true)};
    }
    PatchTensors slice(int64_t begin, int64_t end) const {
        const auto rows = [&](const Tensor& tensor) {
            const int64_t each = tensor.size(0) / frames.size(0);
            return tensor.narrow(0, begin * each, (end - begin) * each);
        };
        return {rows(points), rows(queries), rows(truth), rows(frames)};
    }
};

class UpsamplingObjective : public Objective {
public:
    UpsamplingObjective(const Recipe& recipe, const SurfaceSet& set);

    int64_t items() const override { return recipe_.data.items; }
    network::Network network() const override { return network_; }
    std::map<std::string, std::string> metadata() const override {
        return {{"stipple.trained", "true"}, {"stipple.task", "upsampling"}, {"stipple.unit", "spacing"}};
    }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override;
    void make(int64_t epoch, int64_t item, const LoaderSlot& slot) override;
    StepOutput step(Module& module, const LoadedBatch& batch, const RunOptions& options) override;
    std::vector<std::string> sums() const override {
        return {"loss", "vector", "distance", "coverage", "uncertainty", "before", "after", "batches"};
    }
    Scores scores(std::span<const double> sums) const override;
    bool has_validation() const override { return !set_.held_out.empty(); }
    Scores evaluate(Module& module) override;
    std::string describe(std::span<const int64_t> items) const override;

private:
    PatchTensors new_tensors(int64_t patches, bool is_pinned) const;
    void write_patch(const PatchOptions& options, const PatchPlan& plan, const PatchKey& key, int64_t place,
                     const PatchTensors& to, PatchScratch& scratch) const;
    /// All but the truth.
    UpsampledBatch run(Module& module, const PatchTensors& patches, const RunOptions& options) const;
    void make_validation();

    Recipe recipe_;
    const SurfaceSet& set_;
    network::Network network_;
    std::vector<std::string> moved_;  // outputs, of each step

    int64_t batch_ = 0;
    torch::Device device_ = torch::kCPU;
    std::unique_ptr<SurfaceIndex> index_;
    std::vector<PatchTensors> buffers_;
    std::vector<PatchScratch> scratch_;
    PatchTensors validation_;  // patch i is of kind i % kKindCount; undefined at first
};

UpsamplingObjective::UpsamplingObjective(const Recipe& recipe, const SurfaceSet& set) : recipe_(recipe), set_(set) {
    validate(recipe.patch, recipe.data.points);
    for (const SurfaceShape& shape : set.shapes)
        for (const SurfacePool& pool : shape.pools)
            if (static_cast<int64_t>(shape.pools.size()) != recipe.patch.pools ||
                pool.points.size(0) != recipe.patch.samples)
                misfit("the meshes were sampled with other options than those of [patch]");
    network_ = models::build_model(recipe.model, recipe.options);
    const auto has_output = [&](const std::string& name) {
        return std::any_of(network_.outputs.begin(), network_.outputs.end(),
                           [&](const network::Output& output) { return output.name == name; });
    };
    for (std::string name = "moved_1"; has_output(name); name = fmt::format("moved_{}", moved_.size() + 1))
        moved_.push_back(name);
    if (moved_.empty() || !has_output("uncertainty"))
        misfit(fmt::format("{} does not move queries: upsampling is for flow-upsampler", recipe.model));
}

PatchTensors UpsamplingObjective::new_tensors(int64_t patches, bool is_pinned) const {
    const auto options = torch::TensorOptions(torch::kFloat32).pinned_memory(is_pinned);
    return {torch::zeros({patches * recipe_.data.points, 3}, options),
            torch::zeros({patches * recipe_.patch.queries, 3}, options),
            torch::zeros({patches * recipe_.patch.truth, 3}, options), torch::zeros({patches, kFrameNumbers}, options)};
}

void UpsamplingObjective::prepare(int64_t batch, int buffers, int threads, torch::Device device) {
    batch_ = batch;
    device_ = device;
    index_ = std::make_unique<SurfaceIndex>(set_, device);
    scratch_.resize(static_cast<size_t>(std::max(threads, 1)));
    buffers_.clear();
    for (int i = 0; i < buffers; ++i) buffers_.push_back(new_tensors(batch, device.is_cuda()));
}

void UpsamplingObjective::write_patch(const PatchOptions& options, const PatchPlan& plan, const PatchKey& key,
                                      int64_t place, const PatchTensors& to, PatchScratch& scratch) const {
    const auto rows = [&](const Tensor& tensor, int64_t count) {
        return View<float, 2>(tensor.data_ptr<float>() + 3 * place * count, {count, 3});
    };
    const PatchFrame frame = make_patch(set_.shapes[static_cast<size_t>(plan.shape)], options, plan, key,
                                        {.points = rows(to.points, recipe_.data.points),
                                         .queries = rows(to.queries, recipe_.patch.queries),
                                         .truth = rows(to.truth, recipe_.patch.truth)},
                                        scratch);
    index_->write_frame(plan.shape, frame, to.frames.data_ptr<float>() + kFrameNumbers * place);
}

void UpsamplingObjective::make(int64_t epoch, int64_t item, const LoaderSlot& slot) {
    const PatchKey key = {recipe_.run.seed, epoch, item};
    write_patch(recipe_.patch, plan_patch(set_.train, recipe_.patch, key), key, slot.place,
                buffers_[static_cast<size_t>(slot.buffer)], scratch_[static_cast<size_t>(slot.thread)]);
}

UpsampledBatch UpsamplingObjective::run(Module& module, const PatchTensors& patches, const RunOptions& options) const {
    const int64_t count = patches.frames.size(0);
    const std::map<std::string, Tensor> outputs =
        module.run({ops::Batch::dense(count, recipe_.data.points), ops::Batch::dense(count, recipe_.patch.queries)},
                   {{"points", patches.points}, {"queries", patches.queries}}, options);
    UpsampledBatch batch = {patches.frames, patches.queries, {}, outputs.at("uncertainty"), patches.truth};
    for (const std::string& name : moved_) batch.moved.push_back(outputs.at(name));
    return batch;
}

StepOutput UpsamplingObjective::step(Module& module, const LoadedBatch& loaded, const RunOptions& options) {
    STIPPLE_REQUIRE(static_cast<int64_t>(loaded.items.size()) == batch_, "a batch of {} items, not {}",
                    loaded.items.size(), batch_);
    ProfileMark copy(options.profiler, "copy to device");
    const PatchTensors patches = buffers_[static_cast<size_t>(loaded.buffer)].to(device_);
    copy.end();
    const UpsampledBatch batch = run(module, patches, options);
    const ProfileMark of_loss(options.profiler, "loss");
    const UpsamplingTerms terms = upsampling_terms(*index_, batch);
    const LossRecipe& weights = recipe_.loss;
    const Tensor loss = weights.vector_weight * terms.vector + weights.distance_weight * terms.distance +
                        weights.coverage_weight * terms.coverage + weights.uncertainty_weight * terms.uncertainty;
    const torch::NoGradGuard no_gradients;
    return {loss,
            torch::stack({loss.detach(), terms.vector.detach(), terms.distance.detach(), terms.coverage.detach(),
                          terms.uncertainty.detach(), terms.before, terms.after, torch::ones_like(terms.before)})};
}

Scores UpsamplingObjective::scores(std::span<const double> sums) const {
    const double batches = std::max(sums[7], 1.0);
    return {{"loss", sums[0]},
            {"vector", sums[1] / batches},
            {"distance", sums[2] / batches},
            {"coverage", sums[3] / batches},
            {"uncertainty", sums[4] / batches},
            {"distance_before", sums[5] / batches},
            {"distance_after", sums[6] / batches}};
}

void UpsamplingObjective::make_validation() {
    const int64_t count = recipe_.data.validation_items;
    PatchOptions options = recipe_.patch;
    options.query_noise_share = 0;  // as in use
    options.midpoint_share = 1;
    options.input_share = 0;  // whose distance is none without noise
    options.scale_min = options.scale_max = 1;
    const PatchTensors made = new_tensors(count, false);
    PatchScratch scratch;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t kind = i % kKindCount;
        const PatchKey key = {kValidationSeed, 0, i / kKindCount};  // the kinds show the same places of shapes
        PatchPlan plan = plan_patch(set_.held_out, options, key);
        plan.sampling = kind == 1 ? PatchSampling::random : PatchSampling::uniform;
        plan.noise = 0;
        if (kind == 2)  // from a quarter of the noise to all of it
            plan.noise = options.noise_max * (1 + static_cast<double>(i / kKindCount % 4)) / 4;
        write_patch(options, plan, key, i, made, scratch);
    }
    validation_ = made.to(device_);
}

Scores UpsamplingObjective::evaluate(Module& module) {
    const torch::NoGradGuard no_gradients;
    if (!validation_.frames.defined()) make_validation();
    const int64_t count = recipe_.data.validation_items;
    const auto mean_distances = [&](const Tensor& positions, const Tensor& frames) {  // [patches]
        const Tensor rows = positions.reshape({-1, recipe_.patch.queries, 3});
        return (rows - index_->closest(rows, frames)).square().sum(2).sqrt().to(torch::kFloat64).mean(1);
    };
    std::vector<Tensor> before, after, coverage;
    for (int64_t begin = 0; begin < count; begin += kEvaluatedPatches) {
        const int64_t end = std::min(count, begin + kEvaluatedPatches);
        const UpsampledBatch batch = run(module, validation_.slice(begin, end), {});
        before.push_back(mean_distances(batch.queries, batch.frames));
        after.push_back(mean_distances(batch.moved.back(), batch.frames));
        coverage.push_back(chamfer({batch.moved.back(), ops::Batch::dense(end - begin, recipe_.patch.queries)},
                                   {batch.truth, ops::Batch::dense(end - begin, recipe_.patch.truth)},
                                   ops::DistanceNorm::euclidean)
                               .b_to_a);
    }
    const Tensor all_before = torch::cat(before).cpu(), all_after = torch::cat(after).cpu();
    const auto gain = [](const Tensor& from, const Tensor& to) {
        return 1 - to.sum().item<double>() / from.sum().item<double>();
    };
    Scores scores = {{"validation_gain", gain(all_before, all_after)}};
    for (int64_t kind = 0; kind < kKindCount; ++kind) {
        const Tensor of_kind = all_after.slice(0, kind, count, kKindCount);
        scores.emplace_back(fmt::format("validation_distance_{}", kKinds[kind]), of_kind.mean().item<double>());
        scores.emplace_back(fmt::format("validation_gain_{}", kKinds[kind]),
                            gain(all_before.slice(0, kind, count, kKindCount), of_kind));
    }
    scores.emplace_back("validation_coverage", mean_of(torch::cat(coverage)).item<double>());
    return scores;
}

std::string UpsamplingObjective::describe(std::span<const int64_t> numbers) const {
    std::string text;
    for (size_t i = 0; i < numbers.size() && i < 4; ++i) {
        const int64_t shape = set_.train[static_cast<size_t>(numbers[i]) % set_.train.size()];
        text += (i > 0 ? ", " : "") + fmt::format("{} of {}", numbers[i], set_.shapes[static_cast<size_t>(shape)].name);
    }
    return numbers.size() > 4 ? text + fmt::format(" and {} more", numbers.size() - 4) : text;
}

}  // namespace

UpsamplingTerms upsampling_terms(const SurfaceIndex& index, const UpsampledBatch& batch) {
    const int64_t patches = batch.frames.size(0), rows = batch.queries.size(0), queries = rows / patches;
    const auto steps = static_cast<int64_t>(batch.moved.size());
    std::vector<Tensor> positions = {batch.queries.detach().reshape({patches, queries, 3})};
    for (const Tensor& moved : batch.moved) positions.push_back(moved.detach().reshape({patches, queries, 3}));
    const Tensor found = index.closest(torch::cat(positions, 1), batch.frames);
    const auto closest = [&](int64_t step) {  // of where it has put the queries; step 0: of the queries
        return found.narrow(1, step * queries, queries).reshape({rows, 3});
    };
    UpsamplingTerms terms;
    for (int64_t step = 1; step <= steps; ++step) {
        const Tensor& moved = batch.moved[static_cast<size_t>(step - 1)];
        const Tensor vector = smooth_distance(moved, closest(step - 1)),
                     distance = smooth_distance(moved, closest(step));
        terms.vector = terms.vector.defined() ? terms.vector + vector : vector;
        terms.distance = terms.distance.defined() ? terms.distance + distance : distance;
    }
    terms.vector = terms.vector / steps;
    terms.distance = terms.distance / steps;
    terms.coverage = mean_of(chamfer({batch.moved.back(), ops::Batch::dense(patches, queries)},
                                     {batch.truth, ops::Batch::dense(patches, batch.truth.size(0) / patches)},
                                     ops::DistanceNorm::euclidean)
                                 .b_to_a);
    const Tensor error = distance_of(batch.moved.back().detach(), closest(steps));
    const Tensor expected = batch.uncertainty.flatten() + kLeastUncertainty;
    terms.uncertainty = mean_of(error / expected + expected.log());
    const torch::NoGradGuard no_gradients;
    terms.before = mean_of(distance_of(batch.queries, closest(0)));
    terms.after = mean_of(error);
    return terms;
}

std::unique_ptr<Objective> make_upsampling_objective(const Recipe& recipe, const SurfaceSet& set) {
    return std::make_unique<UpsamplingObjective>(recipe, set);
}

}  // namespace stipple::learn
