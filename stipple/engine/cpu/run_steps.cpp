#include <array>
#include <cmath>
#include <limits>

#include "stipple/engine/cpu/context.h"

namespace stipple::engine::cpu {
namespace {

// A piece of a cheap step, in numbers: below this a thread costs more than it brings.
constexpr int64_t kPieceNumbers = 4096;

// Larger clouds are searched by a tree: it allocates, but comparing all points with all would take seconds.
constexpr int64_t kMostComparedPoints = 4096;

int64_t rows_for(int64_t numbers_of_row) {
    return std::max<int64_t>(1, kPieceNumbers / std::max<int64_t>(1, numbers_of_row));
}

}  // namespace

void Context::run_step(size_t s, const Task& task) {
    const Step& step = program_.steps[s];
    switch (step.kind) {
        case StepKind::chain: {
            const StepPlan& plan = plan_.steps[s];
            if (!plan.head.empty()) return run_head(step, plan);
            return step.reduce == Reduce::max_points ? run_chain_max(step, *plan.chain, task)
                                                     : run_chain(step, *plan.chain, task);
        }
        case StepKind::knn: return run_knn(step, task);
        case StepKind::fold_matrix:
        case StepKind::max_points:
        case StepKind::sum_points:
        case StepKind::gaussian_log_density:
        case StepKind::log_det: return run_clouds(step, task);
        case StepKind::max_rows:
        case StepKind::softmax_rows:
        case StepKind::interpolate: return run_points(step, task);
        default: return run_rows(step, task);
    }
}

void Context::run_rows(const Step& step, const Task& task) {
    const Value output = step.output;
    const int64_t width = width_of(output), out_channels = channels_of(output);
    const auto run = [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
        const Rows out{at(output, cloud, slot), places_[static_cast<size_t>(output)].stride};
        const auto input = [&](size_t i) { return source(step.inputs[i], width, cloud, slot); };
        const auto channels = [&](size_t i) { return channels_of(step.inputs[i].value); };
        const auto indices = [&] { return reinterpret_cast<const int32_t*>(at(step.inputs[1].value, cloud, slot)); };
        switch (step.kind) {
            case StepKind::copy: {
                Rows part = out;
                for (size_t i = 0; i < step.inputs.size(); part.data += channels(i++))
                    copy_rows(input(i), channels(i), part, begin, end);
                break;
            }
            case StepKind::slice: {
                RowSource x = input(0);
                x.data += step.begin;
                copy_rows(x, out_channels, out, begin, end);
                break;
            }
            case StepKind::gather: {
                RowSource x = input(0);
                x.access = Access::neighbour;
                x.neighbours = indices();
                copy_rows(x, out_channels, out, begin, end);
                break;
            }
            case StepKind::edge_distance: {
                RowSource xi = input(0), xj = xi;
                xi.access = Access::point;
                xj.access = Access::neighbour;
                xj.neighbours = indices();
                edge_distance(xi, xj, channels(0), out, begin, end);
                break;
            }
            case StepKind::reverse: reverse(input(0), out_channels, out, begin, end); break;
            case StepKind::activation: activate(input(0), out_channels, step.activation, out, begin, end); break;
            case StepKind::add: add(input(0), input(1), step.factor, out_channels, out, begin, end); break;
            case StepKind::couple:
                couple(input(0), input(1), step.factor, step.begin, out_channels, out, begin, end);
                break;
            case StepKind::inject:
                inject(input(0), input(1), input(2), step.inverse, out_channels, out, begin, end);
                break;
            case StepKind::sum_channels: sum_channels(input(0), channels(0), out, begin, end); break;
            case StepKind::log_softmax: log_softmax(input(0), out_channels, out, begin, end); break;
            default: STIPPLE_ASSERT(false);
        }
    };
    if (plan_.homes[static_cast<size_t>(output)].per_cloud)
        return for_items(task.end - task.begin, task.worker,
                         [&](int64_t slot, int64_t item) { run(task.begin + item, slot, 0, 1); });
    for_pieces(task, width, piece_rows(task, width, rows_for(out_channels)), run);
}

void Context::run_points(const Step& step, const Task& task) {
    const int64_t rows = width_of(step.inputs[0].value);  // of a point
    const int64_t channels = channels_of(step.inputs[0].value);
    for_pieces(task, 1, piece_rows(task, 1, rows_for(rows * channels)),
               [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
                   const Rows out{at(step.output, cloud, slot), places_[static_cast<size_t>(step.output)].stride};
                   const RowSource x = source(step.inputs[0], rows, cloud, slot);
                   if (step.kind == StepKind::max_rows) max_rows(x, rows, channels, out, begin, end);
                   if (step.kind == StepKind::softmax_rows) softmax_rows(x, rows, channels, out, begin, end);
                   if (step.kind == StepKind::interpolate)
                       interpolate(x, source(step.inputs[1], rows, cloud, slot), rows, channels,
                                   channels_of(step.output), out, begin, end);
               });
}

void Context::run_clouds(const Step& step, const Task& task) {
    const int64_t in = step.inputs.empty() ? 0 : channels_of(step.inputs[0].value);
    const int64_t out_channels = channels_of(step.output);
    int64_t pieces = 1, count = out_channels;  // of a cloud: channels, or rows of a matrix
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(in))));
    if (step.kind == StepKind::fold_matrix) count = out_channels / std::max<int64_t>(1, k);
    if (step.kind == StepKind::log_det || step.kind == StepKind::gaussian_log_density) count = 1;
    constexpr int64_t kPiece = 32;
    if (!task.worker.alone) pieces = (count + kPiece - 1) / kPiece;
    for_items((task.end - task.begin) * pieces, task.worker, [&](int64_t slot, int64_t item) {
        const int64_t cloud = task.begin + item / pieces, begin = pieces == 1 ? 0 : item % pieces * kPiece;
        const int64_t end = pieces == 1 ? count : std::min(begin + kPiece, count);
        float* out = at(step.output, cloud, slot);
        if (step.kind == StepKind::log_det) {
            *out = static_cast<float>(static_cast<double>(step.factor) * static_cast<double>(batch_->size(cloud)));
            return;
        }
        const RowSource x = source(step.inputs[0], 1, cloud, slot);
        const int64_t rows = rows_of(step.inputs[0].value, cloud);
        if (step.kind == StepKind::fold_matrix)
            fold_matrix(step.weight.empty() ? nullptr : step.weight.data(), x.data, k, out, begin, end);
        if (step.kind == StepKind::max_points) max_points(x, rows, out, begin, end);
        if (step.kind == StepKind::sum_points) sum_points(x, rows, out, begin, end);
        if (step.kind == StepKind::gaussian_log_density) *out = gaussian_log_density(x, rows, in);
    });
}

void Context::run_knn(const Step& step, const Task& task) {
    const Value points = step.inputs[0].value;
    const int64_t k = channels_of(step.output), channels = channels_of(points);
    const int64_t stride = places_[static_cast<size_t>(points)].stride;
    const auto is_large = [&](int64_t cloud) {
        return batch_->size(cloud) > kMostComparedPoints && channels <= 3 && k <= 128;
    };
    for_pieces(task, 1, piece_rows(task, 1, 64), [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
        if (is_large(cloud)) return;
        knn_all(at(points, cloud, slot), stride, batch_->size(cloud), channels, k,
                reinterpret_cast<int32_t*>(at(step.output, cloud, slot)), begin, end,
                scratch_.data() + slot * (scratch_.bytes() / slots_));
    });
    for (int64_t cloud = task.begin; cloud < task.end; ++cloud)  // parallel in itself
        if (is_large(cloud))
            knn_tree(at(points, cloud, task.worker.slot), stride, batch_->size(cloud), channels, k,
                     reinterpret_cast<int32_t*>(at(step.output, cloud, task.worker.slot)));
}

}  // namespace stipple::engine::cpu
