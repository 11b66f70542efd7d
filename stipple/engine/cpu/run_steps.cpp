#include <cmath>

#include "stipple/engine/cpu/piece.h"

namespace stipple::engine::cpu {
namespace {

// A piece of a cheap step, in numbers: below this a thread costs more than it brings.
constexpr int64_t kPieceNumbers = 4096;

// Larger clouds are searched by a tree: it allocates, but comparing all points with all would take seconds. Likewise
// where many queries look for neighbours among many points.
constexpr int64_t kMostComparedPoints = 4096, kMostComparisons = int64_t{1} << 19;

int64_t rows_for(int64_t numbers_of_row) {
    return std::max<int64_t>(1, kPieceNumbers / std::max<int64_t>(1, numbers_of_row));
}

}  // namespace

void Context::run_step(size_t s, const Task& task) {
    const Step& step = program_.steps[s];
    const StepPlan& plan = plan_.steps[s];
    switch (plan.type->cut) {
        case Cut::own:
            if (step.kind == StepKind::knn) return run_knn(step, task);
            if (!plan.head.empty()) return run_head(step, plan);
            return step.reduce == Reduce::max_points ? run_chain_max(step, *plan.chain, task)
                                                     : run_chain(step, *plan.chain, task);
        case Cut::rows: return run_rows(step, *plan.type, task);
        case Cut::points: return run_points(step, *plan.type, task);
        case Cut::channels:
        case Cut::matrix:
        case Cut::cloud: return run_clouds(step, *plan.type, task);
    }
}

void Context::run_rows(const Step& step, const StepType& type, const Task& task) {
    const int64_t width = width_of(step.output);
    const auto run = [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
        type.run({*this, step, width, cloud, slot, begin, end});
    };
    if (plan_.homes[static_cast<size_t>(step.output)].per_cloud)
        return for_items(task.end - task.begin, task.worker,
                         [&](int64_t slot, int64_t item) { run(task.begin + item, slot, 0, 1); });
    for_pieces(step, task, width, piece_rows(step, task, width, rows_for(channels_of(step.output))), run);
}

void Context::run_points(const Step& step, const StepType& type, const Task& task) {
    const int64_t width = width_of(step.inputs[0].value);
    for_pieces(step, task, 1, piece_rows(step, task, 1, rows_for(width * channels_of(step.inputs[0].value))),
               [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
                   type.run({*this, step, width, cloud, slot, begin, end});
               });
}

void Context::run_clouds(const Step& step, const StepType& type, const Task& task) {
    int64_t pieces = 1, count = channels_of(step.output);
    if (type.cut == Cut::matrix) {
        const auto size = static_cast<double>(channels_of(step.inputs[0].value));
        count /= std::max<int64_t>(1, static_cast<int64_t>(std::lround(std::sqrt(size))));
    }
    if (type.cut == Cut::cloud) count = 1;
    constexpr int64_t kPiece = 32;
    if (!task.worker.alone) pieces = (count + kPiece - 1) / kPiece;
    for_items((task.end - task.begin) * pieces, task.worker, [&](int64_t slot, int64_t item) {
        const int64_t cloud = task.begin + item / pieces, begin = pieces == 1 ? 0 : item % pieces * kPiece;
        const int64_t end = pieces == 1 ? count : std::min(begin + kPiece, count);
        type.run({*this, step, 1, cloud, slot, begin, end});
    });
}

void Context::run_knn(const Step& step, const Task& task) {
    const Value queries = step.inputs.front().value, points = step.inputs.back().value;
    const bool is_own = step.inputs.size() == 1;
    const int64_t k = channels_of(step.output), channels = channels_of(points);
    const ops::Batch& of_points = batch(plan_.homes[static_cast<size_t>(points)].set);
    const ops::Batch& of_queries = batch(step.set);
    const auto queries_of = [&](int64_t cloud, int64_t slot) {
        return is_own ? KnnQueries{} : KnnQueries{at(queries, cloud, slot), stride_of(queries), of_queries.size(cloud)};
    };
    const auto out_of = [&](int64_t cloud, int64_t slot) {
        return reinterpret_cast<int32_t*>(at(step.output, cloud, slot));
    };
    const auto is_large = [&](int64_t cloud) {
        const int64_t n = of_points.size(cloud), m = of_queries.size(cloud);
        return (is_own ? n > kMostComparedPoints : n * m > kMostComparisons) && channels <= 3 && k <= 128;
    };
    for_pieces(
        step, task, 1, piece_rows(step, task, 1, 64), [&](int64_t cloud, int64_t slot, int64_t begin, int64_t end) {
            if (is_large(cloud)) return;
            knn_all(at(points, cloud, slot), stride_of(points), of_points.size(cloud), channels, k, out_of(cloud, slot),
                    begin, end, scratch_.data() + slot * (scratch_.bytes() / slots_), queries_of(cloud, slot));
        });
    for (int64_t cloud = task.begin; cloud < task.end; ++cloud) {  // parallel in itself
        if (!is_large(cloud)) continue;
        const int64_t slot = task.worker.slot;
        const KnnQueries of_cloud = {at(points, cloud, slot), stride_of(points), of_points.size(cloud)};
        Tree& tree = trees_[static_cast<size_t>(slot)];
        if (!tree.index || tree.value != points || tree.cloud != cloud)
            tree = {
                points, cloud,
                ops::PointIndex(View<const float, 2>(of_cloud.data, {of_cloud.rows, channels}, {of_cloud.stride, 1}))};
        knn_tree(*tree.index, is_own ? of_cloud : queries_of(cloud, slot), is_own, k, out_of(cloud, slot));
    }
}

}  // namespace stipple::engine::cpu
