#include "stipple/learn/upsampling/surface_objective.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/learn/losses.h"
#include "stipple/learn/profiler.h"
#include "stipple/learn/upsampling/pair_patches.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr uint64_t kScoredSeed = 0x56414C49;  // the same patches whatever the seed of a run
constexpr double kDiscRadius = 2;             // spacings of the dense points of a pair
constexpr int64_t kScoredPatches = 16;        // at a time

}  // namespace

PatchTensors PatchTensors::to(torch::Device device) const {
    return {points.to(device, /*non_blocking=*/true),
            queries.to(device, true),
            truth.to(device, true),
            frames.to(device, true),
            surface.to(device, true),
            normals.to(device, true)};
}

PatchTensors PatchTensors::slice(int64_t begin, int64_t end) const {
    const auto rows = [&](const Tensor& tensor) {
        const int64_t each = tensor.size(0) / patches();
        return tensor.narrow(0, begin * each, (end - begin) * each);
    };
    return {rows(points), rows(queries), rows(truth), rows(frames), rows(surface), rows(normals)};
}

bool has_output(const network::Network& network, const std::string& name) {
    return std::any_of(network.outputs.begin(), network.outputs.end(),
                       [&](const network::Output& output) { return output.name == name; });
}

SurfaceObjective::SurfaceObjective(const Recipe& recipe, const SurfaceSet& set, network::Network network,
                                   int64_t queries)
    : recipe_(recipe), set_(set), network_(std::move(network)) {
    validate(recipe.patch, recipe.data.points);
    recipe_.patch.queries = queries;
    for (const SurfaceShape& shape : set.shapes)
        for (const SurfacePool& pool : shape.pools)
            if (static_cast<int64_t>(shape.pools.size()) != recipe.patch.pools ||
                pool.points.size(0) != recipe.patch.samples)
                throw Error(ErrorCode::bad_config, "the meshes were sampled with other options than those of [patch]");
    if (!set.is_pairs()) return;
    const int64_t sparse = set.pairs.sparse.common_size(), dense = set.pairs.dense.common_size();
    if (recipe.data.points != sparse || recipe.patch.truth != dense)
        throw Error(ErrorCode::bad_config,
                    fmt::format("patches of {} and {} points: data.points is {} and patch.truth is {}", sparse, dense,
                                recipe.data.points, recipe.patch.truth),
                    fmt::format("--set data.points={} --set patch.truth={}", sparse, dense));
}

PatchTensors SurfaceObjective::new_tensors(int64_t patches, bool is_pinned) const {
    const auto options = torch::TensorOptions(torch::kFloat32).pinned_memory(is_pinned);
    const int64_t surface = set_.is_pairs() ? recipe_.patch.truth : 0;
    return {torch::zeros({patches * recipe_.data.points, 3}, options),
            torch::zeros({patches * recipe_.patch.queries, 3}, options),
            torch::zeros({patches * recipe_.patch.truth, 3}, options),
            torch::zeros({patches, kFrameNumbers}, options),
            torch::zeros({patches * surface, 3}, options),
            torch::zeros({patches * surface, 3}, options)};
}

void SurfaceObjective::prepare(int64_t batch, int buffers, int threads, torch::Device device) {
    batch_ = batch;
    device_ = device;
    if (!set_.is_pairs()) index_ = std::make_shared<SurfaceIndex>(set_, device);
    scratch_.resize(static_cast<size_t>(std::max(threads, 1)));
    buffers_.clear();
    for (int i = 0; i < buffers; ++i) buffers_.push_back(new_tensors(batch, device.is_cuda()));
    staged_ = device.is_cuda() && recipe_.run.graph ? new_tensors(batch, false).to(device) : PatchTensors();
}

void SurfaceObjective::write_patch(const PatchOptions& options, const PatchPlan& plan, const PatchKey& key,
                                   int64_t place, const PatchTensors& to, PatchScratch& scratch) const {
    const auto rows = [&](const Tensor& tensor, int64_t count) {
        return View<float, 2>(tensor.data_ptr<float>() + 3 * place * count, {count, 3});
    };
    PatchArrays arrays = {.points = rows(to.points, recipe_.data.points),
                          .queries = rows(to.queries, recipe_.patch.queries),
                          .truth = rows(to.truth, recipe_.patch.truth)};
    if (set_.is_pairs()) {
        arrays.surface = rows(to.surface, recipe_.patch.truth);
        arrays.normals = rows(to.normals, recipe_.patch.truth);
        make_pair_patch(set_.pairs, options, plan, key, arrays, scratch);
        return;
    }
    const PatchFrame frame =
        make_patch(set_.shapes[static_cast<size_t>(plan.shape)], options, plan, key, arrays, scratch);
    index_->write_frame(plan.shape, frame, to.frames.data_ptr<float>() + kFrameNumbers * place);
}

void SurfaceObjective::make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) {
    const PatchKey key = {recipe_.run.seed, epoch, item};
    write_patch(recipe_.patch, plan_patch(set_.train, recipe_.patch, key), key, slot.place,
                buffers_[static_cast<size_t>(slot.buffer)], scratch_[static_cast<size_t>(slot.thread)]);
}

const PatchTensors& SurfaceObjective::patches_of(const data::LoadedBatch& loaded) const {
    STIPPLE_REQUIRE(static_cast<int64_t>(loaded.items.size()) == batch_, "a batch of {} items, not {}",
                    loaded.items.size(), batch_);
    return buffers_[static_cast<size_t>(loaded.buffer)];
}

void SurfaceObjective::stage(const data::LoadedBatch& loaded) {
    const PatchTensors& from = patches_of(loaded);
    staged_.points.copy_(from.points, /*non_blocking=*/true);
    staged_.queries.copy_(from.queries, true);
    staged_.truth.copy_(from.truth, true);
    staged_.frames.copy_(from.frames, true);
    staged_.surface.copy_(from.surface, true);
    staged_.normals.copy_(from.normals, true);
}

StepOutput SurfaceObjective::step(Module& module, const data::LoadedBatch& loaded, const RunOptions& options) {
    ProfileMark copy(options.profiler, "copy to device");
    const PatchTensors patches = patches_of(loaded).to(device_);
    copy.end();
    return step_of(module, patches, options);
}

const PatchTensors& SurfaceObjective::scored_patches() {
    if (scored_.frames.defined()) return scored_;
    const int64_t count = recipe_.data.validation_items;
    PatchOptions options = recipe_.patch;
    options.query_noise_share = 0;
    options.midpoint_share = 1;
    options.input_share = 0;  // whose distance is none without noise
    options.scale_min = options.scale_max = 1;
    const PatchTensors made = new_tensors(count, false);
    PatchScratch scratch;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t kind = i % kScoredKindCount;
        const PatchKey key = {kScoredSeed, 0, i / kScoredKindCount};  // the kinds show the same places of shapes
        PatchPlan plan = plan_patch(set_.held_out, options, key);
        plan.sampling = kind == 1 ? PatchSampling::random : PatchSampling::uniform;
        plan.noise = 0;
        if (kind == 2)  // from a quarter of the noise to all of it
            plan.noise = options.noise_max * (1 + static_cast<double>(i / kScoredKindCount % 4)) / 4;
        write_patch(options, plan, key, i, made, scratch);
    }
    scored_ = made.to(device_);
    return scored_;
}

std::shared_ptr<const SurfaceTruth> SurfaceObjective::truth_of(const PatchTensors& patches) const {
    if (index_) return index_;
    // A patch's unit is about the spacing of its sparse points.
    const double spacing =
        std::sqrt(static_cast<double>(recipe_.data.points) / static_cast<double>(recipe_.patch.truth));
    return std::make_shared<DiscTruth>(patches.surface, patches.normals, kDiscRadius * spacing);
}

Tensor SurfaceObjective::mean_distances(const Tensor& positions, const PatchTensors& patches) const {
    const Tensor rows = positions.reshape({patches.patches(), -1, 3});
    return (rows - truth_of(patches)->closest(rows, patches.frames)).square().sum(2).sqrt().to(torch::kFloat64).mean(1);
}

Scores SurfaceObjective::score_moved(const std::function<Tensor(const PatchTensors& patches)>& move) {
    const torch::NoGradGuard no_gradients;
    const PatchTensors& scored = scored_patches();
    std::vector<Tensor> before, after, coverage;
    for (int64_t begin = 0; begin < scored.patches(); begin += kScoredPatches) {
        const int64_t end = std::min(scored.patches(), begin + kScoredPatches);
        const PatchTensors patches = scored.slice(begin, end);
        const Tensor moved = move(patches);
        before.push_back(mean_distances(patches.queries, patches));
        after.push_back(mean_distances(moved, patches));
        coverage.push_back(chamfer({moved, ops::Batch::dense(end - begin, recipe_.patch.queries)},
                                   {patches.truth, ops::Batch::dense(end - begin, recipe_.patch.truth)},
                                   ops::DistanceNorm::euclidean)
                               .b_to_a);
    }
    const Tensor all_before = torch::cat(before).cpu(), all_after = torch::cat(after).cpu();
    const auto gain = [](const Tensor& from, const Tensor& to) {
        return 1 - to.sum().item<double>() / from.sum().item<double>();
    };
    Scores scores = {{"validation_gain", gain(all_before, all_after)}};
    for (int64_t kind = 0; kind < kScoredKindCount; ++kind) {
        const Tensor of_this = of_kind(all_after, kind);
        scores.emplace_back(fmt::format("validation_distance_{}", kScoredKinds[kind]), of_this.mean().item<double>());
        scores.emplace_back(fmt::format("validation_gain_{}", kScoredKinds[kind]),
                            gain(of_kind(all_before, kind), of_this));
    }
    scores.emplace_back("validation_coverage", torch::cat(coverage).to(torch::kFloat64).mean().item<double>());
    return scores;
}

std::string SurfaceObjective::describe(std::span<const int64_t> numbers) const {
    std::string text;
    for (size_t i = 0; i < numbers.size() && i < 4; ++i) {
        const int64_t shape = set_.train[static_cast<size_t>(numbers[i]) % set_.train.size()];
        const std::string name =
            set_.is_pairs() ? fmt::format("pair {}", shape) : set_.shapes[static_cast<size_t>(shape)].name;
        text += (i > 0 ? ", " : "") + fmt::format("{} of {}", numbers[i], name);
    }
    return numbers.size() > 4 ? text + fmt::format(" and {} more", numbers.size() - 4) : text;
}

}  // namespace stipple::learn
