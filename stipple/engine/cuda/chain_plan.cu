#include <algorithm>

#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/chain_plan.h"

namespace stipple::engine::cuda {
namespace {

// Intermediate results of a slab: half of an H200's second-level cache, and tiles enough for all multiprocessors.
constexpr int64_t kSlabBytes = int64_t{24} << 20;
constexpr int64_t kFewestRows = 160 * kTileRows;

const ValueView& at(const ChainCall& call, Value value) {
    return call.values[static_cast<size_t>(value)];
}

bool may_be_fused(const Program& program, const Step& step) {
    const Dense& first = step.layers.front();
    if (step.reduce != Reduce::max_points || step.width != 1 || first.parts.size() != 1) return false;
    return first.addends.empty() && program.values[static_cast<size_t>(first.parts[0].value)].type.channels == 3;
}

}  // namespace

ChainPlan::ChainPlan(const Program& program, const Step& step, Device device, int capability, WeightBlock& weights) {
    is_cloud_ = step.level == Level::cloud;
    width_ = static_cast<int32_t>(step.width);
    if (may_be_fused(program, step)) fused_ = make_fused_chain(step.layers, step.reduce, device);
    if (fused_) return;
    for (size_t i = 0; i < step.layers.size(); ++i) {
        const Dense& layer = step.layers[i];
        std::vector<int64_t> channels;
        for (const Source& part : layer.parts)
            channels.push_back(program.values[static_cast<size_t>(part.value)].type.channels);
        if (i > 0) channels = {layer.in};
        layers_.emplace_back(layer, std::move(channels), capability, weights);
        if (i + 1 < step.layers.size()) between_[i % 2] = std::max(between_[i % 2], layer.out);
    }
}

int64_t ChainPlan::slab_rows(int64_t rows) const {
    const int64_t row_bytes = (between_[0] + between_[1]) * 4;
    if (is_cloud_ || row_bytes == 0) return rows;
    const int64_t fit = std::max(kSlabBytes / row_bytes / kTileRows * kTileRows, kFewestRows);
    return std::min(fit, (rows + kTileRows - 1) / kTileRows * kTileRows);
}

int64_t ChainPlan::scratch_bytes(int64_t max_batch, int64_t max_points) const {
    if (fused_)  // a whole batch as it usually comes, and one cloud of any size: run_fused can always cut a batch
        return std::max(fused_->scratch_bytes(max_batch, max_points), fused_->scratch_bytes(1, max_batch * max_points));
    const int64_t rows = is_cloud_ ? max_batch : max_batch * max_points * width_;
    return slab_rows(rows) * (between_[0] + between_[1]) * 4 + 512;
}

void ChainPlan::run(const Step& step, const ChainCall& call) const {
    if (fused_)
        run_fused(step, call);
    else
        run_layers(step, call);
}

void ChainPlan::run_fused(const Step& step, const ChainCall& call) const {
    const ops::Batch& batch = call.batch->host();
    const ValueView& x = at(call, step.layers[0].parts[0].value);
    const ValueView& out = at(call, step.output);
    FusedChainTask task;
    task.clouds = batch.clouds();
    task.points = batch.largest();
    task.offsets = call.batch->view().offsets;
    task.x = x.data;
    task.x_stride = x.stride;
    for (const Dense& layer : step.layers)
        task.matrices.push_back(layer.matrix >= 0 ? at(call, layer.matrix).data : nullptr);
    task.out = out.data;
    task.scratch = call.scratch;
    const Stream stream{call.stream};
    if (fused_->scratch_bytes(task.clouds, task.points) <= call.scratch_bytes) return fused_->run(task, stream);
    // Clouds of very different sizes: one by one.
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        FusedChainTask one = task;
        one.clouds = 1;
        one.points = batch.size(cloud);
        one.offsets = nullptr;
        one.x += batch.begin(cloud) * x.stride;
        for (size_t i = 0; i < step.layers.size(); ++i)
            if (one.matrices[i] != nullptr) one.matrices[i] += cloud * step.layers[i].in * step.layers[i].out;
        one.out += cloud * out.channels;
        fused_->run(one, stream);
    }
}

void ChainPlan::run_layers(const Step& step, const ChainCall& call) const {
    const ValueView& out = at(call, step.output);
    const int64_t clouds = call.batch->host().clouds();
    std::vector<DensePart> parts;
    std::vector<DenseAddend> addends;
    for (const Source& source : step.layers[0].parts) {
        DensePart part;
        part.data = at(call, source.value).data;
        part.stride = at(call, source.value).stride;
        parts.push_back(part);
    }
    for (const Source& source : step.layers[0].addends) {
        DenseAddend addend;
        addend.data = at(call, source.value).data;
        addend.stride = at(call, source.value).stride;
        addend.access = is_cloud_ ? Access::row : source.access;
        if (source.access == Access::neighbour) addend.indices = at(call, source.indices).indices();
        addends.push_back(addend);
    }

    const bool has_keys = DenseLayer::has_keys(step.reduce, width_);
    if (has_keys) begin_max(out.data, out.rows * out.channels, call.stream);
    // Clouds' rows are the rows of one large cloud, unless a layer has a matrix for each.
    const auto span_of_clouds = [&](const Dense& layer) {
        Span span;
        span.rows_of_cloud = static_cast<int32_t>(layer.matrix >= 0 ? 1 : clouds);
        span.tiles_of_cloud = (span.rows_of_cloud + kTileRows - 1) / kTileRows;
        span.tiles = layer.matrix >= 0 ? static_cast<int32_t>(clouds) : span.tiles_of_cloud;
        return span;
    };
    const Span whole = is_cloud_ ? Span{} : call.batch->span(width_);
    const int64_t rows = is_cloud_ ? clouds : call.batch->host().rows() * width_;
    const int64_t slab = slab_rows(rows);
    const int32_t slab_tiles = is_cloud_ ? 1 : static_cast<int32_t>(std::max<int64_t>(slab / kTileRows, 1));
    auto* even = reinterpret_cast<float*>(call.scratch);
    float* odd = even + (slab * between_[0] + 63) / 64 * 64;
    // Without results between layers there is nothing to keep small.
    const int32_t tiles = is_cloud_ ? 1 : whole.tiles, step_tiles = layers_.size() == 1 ? tiles : slab_tiles;
    for (int32_t first = 0; first < tiles; first += step_tiles) {
        const int64_t origin = is_cloud_ ? 0 : call.batch->row_of_tile(width_, first);
        DensePart before;
        for (size_t i = 0; i < layers_.size(); ++i) {
            const bool is_last = i + 1 == layers_.size();
            const Dense& layer = step.layers[i];
            DenseCall dense;
            dense.span = is_cloud_ ? span_of_clouds(layer) : whole;
            if (!is_cloud_) {
                dense.span.first = first;
                dense.span.tiles = std::min(step_tiles, tiles - first);
            }
            dense.is_flat = is_cloud_;
            dense.rows = rows;
            dense.parts = i == 0 ? std::span<const DensePart>(parts) : std::span<const DensePart>(&before, 1);
            if (i == 0) dense.addends = addends;
            if (layer.matrix >= 0) dense.matrix = at(call, layer.matrix).data;
            dense.reduce = is_last ? step.reduce : Reduce::none;
            dense.y = is_last ? out.data : i % 2 == 0 ? even : odd;
            dense.y_stride = is_last ? out.stride : layers_[i].out();
            dense.y_origin = is_last ? 0 : origin;
            layers_[i].run(*call.weights, dense, call.stream);
            before = {};
            before.data = dense.y;
            before.stride = dense.y_stride;
            before.origin = dense.y_origin;
        }
    }
    if (has_keys)
        finish_max(out.data, out.rows, out.channels, layers_.back().bias(*call.weights), layers_.back().activation(),
                   call.stream);
}

std::string ChainPlan::describe() const {
    if (fused_) return fused_->describe();
    std::string text;
    for (const DenseLayer& layer : layers_) text += (text.empty() ? "" : "; ") + layer.describe();
    return text;
}

}  // namespace stipple::engine::cuda
