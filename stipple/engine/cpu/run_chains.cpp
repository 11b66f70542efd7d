#include <array>
#include <limits>

#include "stipple/engine/cpu/context.h"

namespace stipple::engine::cpu {

void Context::run_chain_piece(const Step& step, const Chain& chain, int64_t cloud, int64_t slot, int64_t begin,
                              int64_t end, float* out, int64_t out_stride) {
    const Dense& first = step.layers.front();
    std::array<ChainPart, kMostSources> parts;
    std::array<ChainAddend, kMostSources> addends;
    std::array<const float*, kMostSources> matrices;
    for (size_t i = 0; i < first.parts.size(); ++i) {
        const RowSource part = source(first.parts[i], step.width, cloud, slot);
        parts[i] = {part.row(begin), part.stride, channels_of(first.parts[i].value)};
    }
    for (size_t i = 0; i < first.addends.size(); ++i) {
        RowSource addend = source(first.addends[i], step.width, cloud, slot);
        if (addend.access == Access::neighbour)
            addend.neighbours += begin;
        else
            addend.data = addend.row(begin);
        addends[i] = addend;
    }
    for (size_t l = 0; l < step.layers.size(); ++l)
        matrices[l] = step.layers[l].matrix < 0 ? nullptr : at(step.layers[l].matrix, cloud, slot);
    ChainTask task;
    task.rows = end - begin;
    task.parts = {parts.data(), first.parts.size()};
    task.addends = {addends.data(), first.addends.size()};
    task.matrices = {matrices.data(), step.layers.size()};
    task.width = step.width;
    task.out = out;
    task.out_stride = out_stride;
    chain.run(task, scratch_.data() + slot * (scratch_.bytes() / slots_));
}

void Context::run_chain(const Step& step, const Chain& chain, const Task& task) {
    const int64_t stride = places_[static_cast<size_t>(step.output)].stride;
    const auto run = [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
        const int64_t out_row = step.reduce == Reduce::max_rows ? begin / step.width : begin;
        run_chain_piece(step, chain, cloud, slot, begin, end, at(step.output, cloud, slot) + out_row * stride, stride);
    };
    if (step.level == Level::cloud)
        return for_items(task.end - task.begin, task.worker,
                         [&](int64_t slot, int64_t item) { run(task.begin + item, slot, 0, 1); });
    // Points stay whole.
    const int64_t unit = (chain.tile_rows() + step.width - 1) / step.width * step.width;
    for_pieces(step, task, step.width, piece_rows(step, task, step.width, unit), run);
}

void Context::run_chain_max(const Step& step, const Chain& chain, const Task& task) {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    const ops::Batch& points = batch(step.set);
    const int64_t out = step.layers.back().out;
    const int64_t unit = (chain.tile_rows() + step.width - 1) / step.width * step.width;
    const int64_t piece = piece_rows(step, task, step.width, unit);
    const auto pieces_of = [&](int64_t cloud) { return (points.size(cloud) * step.width + piece - 1) / piece; };
    auto* partial = reinterpret_cast<float*>(partial_.data());
    if (!task.worker.alone) {
        int64_t next = 0;
        for (int64_t cloud = task.begin; cloud < task.end; ++cloud) {
            const bool is_cut = pieces_of(cloud) > 1;
            partial_of_cloud_[static_cast<size_t>(cloud)] = is_cut ? next : -1;
            if (is_cut) next += pieces_of(cloud);
        }
    }
    for_pieces(step, task, step.width, piece, [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
        const int64_t row = task.worker.alone ? -1 : partial_of_cloud_[static_cast<size_t>(cloud)];
        float* raw = row < 0 ? at(step.output, cloud, slot) : partial + (row + begin / piece) * out;
        std::fill_n(raw, out, kLowest);
        run_chain_piece(step, chain, cloud, slot, begin, end, raw, out);
        if (row < 0) chain.finish(raw);
    });
    if (task.worker.alone) return;
    for (int64_t cloud = task.begin; cloud < task.end; ++cloud) {
        const int64_t row = partial_of_cloud_[static_cast<size_t>(cloud)];
        if (row < 0) continue;
        float* to = at(step.output, cloud, task.worker.slot);
        std::fill_n(to, out, kLowest);
        for (int64_t p = 0; p < pieces_of(cloud); ++p) {
            const float* from = partial + (row + p) * out;
            for (int64_t o = 0; o < out; ++o) to[o] = from[o] > to[o] ? from[o] : to[o];
        }
        chain.finish(to);
    }
}

void Context::run_head(const Step& step, const StepPlan& plan) {
    constexpr int64_t kRows = 64;  // clouds of a piece
    const int64_t clouds = clouds_, blocks = (clouds + kRows - 1) / kRows;
    const Dense& first = step.layers.front();
    auto* between = reinterpret_cast<float*>(head_.data());
    const int64_t numbers = head_.bytes() / (2 * static_cast<int64_t>(sizeof(float)));
    const Place& output = places_[static_cast<size_t>(step.output)];
    for (size_t l = 0; l < plan.head.size(); ++l) {
        const HeadLayer& layer = plan.head[l];
        const bool is_last = l + 1 == plan.head.size();
        const Rows to = is_last ? Rows{output.data, output.stride}
                                : Rows{between + static_cast<int64_t>(l % 2) * numbers, layer.out};
        const float* from = between + static_cast<int64_t>((l + 1) % 2) * numbers;
        const auto slices = static_cast<int64_t>(layer.slices.size());
        for_items(slices * blocks, {}, [&](int64_t slot, int64_t item) {
            const LayerSlice& slice = layer.slices[static_cast<size_t>(item % slices)];
            const int64_t begin = item / slices * kRows;
            std::array<ChainPart, kMostSources> parts;
            std::array<ChainAddend, kMostSources> addends;
            const float* matrix = nullptr;
            ChainTask task;
            if (l == 0) {
                for (size_t i = 0; i < first.parts.size(); ++i) {
                    const Place& place = places_[static_cast<size_t>(first.parts[i].value)];
                    parts[i] = {place.data + begin * place.stride, place.stride, channels_of(first.parts[i].value)};
                }
                for (size_t i = 0; i < first.addends.size(); ++i) {
                    const Place& place = places_[static_cast<size_t>(first.addends[i].value)];
                    addends[i] = {place.data + begin * place.stride + slice.begin, place.stride, Access::row, 1,
                                  nullptr};
                }
                task.parts = {parts.data(), first.parts.size()};
                task.addends = {addends.data(), first.addends.size()};
            } else {
                parts[0] = {from + begin * layer.in, layer.in, layer.in};
                task.parts = {parts.data(), 1};
            }
            task.rows = std::min(kRows, clouds - begin);
            task.matrices = {&matrix, 1};
            task.out = to.data + begin * to.stride + slice.begin;
            task.out_stride = to.stride;
            slice.chain.run(task, scratch_.data() + slot * (scratch_.bytes() / slots_));
        });
    }
}

}  // namespace stipple::engine::cpu
