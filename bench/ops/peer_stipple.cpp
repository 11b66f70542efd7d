// Ours, as the peers are: allocations of results that a caller makes once are
// made once.

#include <cmath>
#include <memory>

#include "naive.h"
#include "peer.h"
#include "stipple/core/array.h"
#include "stipple/ops/chamfer.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd_exact.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/radius_search.h"
#include "stipple/ops/sinkhorn.h"
#include "stipple/ops/voxel_grid.h"

namespace peer {
namespace {

using namespace stipple;

View<const float, 2> first(const Job& job) {
    return {job.a, {job.n, 3}};
}
View<const float, 2> second(const Job& job) {
    return {job.b, {job.m, 3}};
}

template <class T, int Rank>
std::shared_ptr<Array<T, Rank>> room(std::array<int64_t, Rank> shape) {
    return std::make_shared<Array<T, Rank>>(shape);
}

Run knn(const Job& job) {
    const auto indices = room<int32_t, 2>({job.n, job.count});
    const auto distances_sq = room<float, 2>({job.n, job.count});
    return [=](int) {
        const ops::PointIndex index(first(job));
        ops::knn(index, first(job), indices->view(), distances_sq->view());
        double sum = 0;
        for (int64_t i = 0; i < job.n; ++i) sum += distances_sq->data()[i * job.count + job.count - 1];
        return sum / static_cast<double>(job.n);
    };
}

/// The answer's size is not known before: its memory is part of the time, as it
/// is for the peers.
Run radius(const Job& job) {
    return [=](int) {
        const ops::PointIndex index(first(job));
        Array<int32_t, 1> counts({job.n});
        Array<int64_t, 1> offsets({job.n + 1});
        ops::radius_count(index, first(job), job.length, counts.view());
        const int64_t total = ops::radius_offsets(counts.view(), offsets.view());
        Array<int32_t, 1> indices({total});
        Array<float, 1> distances_sq({total});
        ops::radius_search(index, first(job), job.length, offsets.view(), indices.view(), distances_sq.view());
        return static_cast<double>(total);
    };
}

Run fps(const Job& job) {
    const auto indices = room<int32_t, 1>({job.count});
    return [=](int) {
        ops::farthest_point_sample(first(job), ops::Batch::single(job.count), indices->view());
        return static_cast<double>(job.count);
    };
}

Run voxel(const Job& job) {
    return [=](int) {
        const ops::VoxelGrid grid = ops::voxel_grid(first(job), job.length);
        Array<float, 2> centroids({grid.cells.rows(), 3});
        ops::voxel_centroids(grid, first(job), centroids.view());
        return static_cast<double>(grid.cells.rows());
    };
}

Run chamfer(const Job& job) {
    struct Side {
        Array<int32_t, 1> nearest, used;
        Array<float, 1> distances_sq, mean;
        explicit Side(int64_t n) : nearest({n}), used({1}), distances_sq({n}), mean({1}) {}
        ops::ChamferSide out() { return {nearest.view(), distances_sq.view(), mean.view(), used.view()}; }
    };
    const auto of_a = std::make_shared<Side>(job.n), of_b = std::make_shared<Side>(job.m);
    return [=](int) {
        ops::chamfer(first(job), second(job), ops::DistanceNorm::squared, of_a->out(), of_b->out());
        return static_cast<double>(of_a->mean.data()[0]) + of_b->mean.data()[0];
    };
}

Run emd_exact(const Job& job) {
    const auto matching = room<int32_t, 1>({job.n});
    return [=](int) {
        Array<double, 1> cost({1});
        ops::emd_exact(first(job), second(job), {cost.view(), matching->view(), {}, {}});
        return cost.data()[0];
    };
}

/// To a gap of 1 %.
Run emd_auction(const Job& job) {
    const auto matching = room<int32_t, 1>({job.n});
    return [=](int) {
        Array<float, 1> cost({1}), bound({1});
        ops::emd(first(job), second(job), {cost.view(), bound.view(), matching->view()});
        return static_cast<double>(cost.data()[0]);
    };
}

Run sinkhorn(const Job& job) {
    const auto f = room<float, 1>({job.n}), g = room<float, 1>({job.m});
    ops::SinkhornOptions options;
    options.epsilon = job.length;
    options.max_iterations = static_cast<int>(job.count);
    options.tolerance = 0;  // all of the iterations, as the peers do
    return [=](int) {
        Array<float, 1> cost({1}), dual({1}), error({1});
        Array<int32_t, 1> iterations({1}), converged({1});
        ops::sinkhorn(
            first(job), second(job), {}, {}, options,
            {cost.view(), dual.view(), error.view(), iterations.view(), converged.view(), f->view(), g->view()});
        return static_cast<double>(cost.data()[0]);
    };
}

}  // namespace

std::vector<int32_t> stipple_fps(const Job& job) {
    std::vector<int32_t> indices(static_cast<size_t>(job.count));
    ops::farthest_point_sample(first(job), ops::Batch::single(job.count), {indices.data(), {job.count}});
    return indices;
}

std::vector<Peer> stipple_peers() {
    return {{"stipple", "knn", true, knn},
            {"stipple", "radius", true, radius},
            {"stipple", "fps", true, fps},
            {"stipple", "voxel", true, voxel},
            {"stipple", "chamfer", true, chamfer},
            {"stipple, exact", "emd", true, emd_exact},
            {"stipple, auction, gap 1 %", "emd", true, emd_auction},
            {"stipple", "sinkhorn", true, sinkhorn}};
}

}  // namespace peer
