#include "stipple/bench/prepare.h"
#include "stipple/ops/argmax_points.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/inverse_density.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/ops/random_sample.h"
#include "stipple/ops/simplification.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::bench {
namespace {

using ops::Batch;

Case farthest_case(int64_t clouds, int64_t n, int64_t m) {
    return {.op = "farthest_point_sample",
            .shape = fmt::format("{} -> {}", shape_of(clouds, n), m),
            .points = clouds * n,
            .bytes = clouds * (12 * n + 8 * m),
            .prepare = [=](Device device) {
                const auto points = keep(wavy_tori(clouds, n, 1).to(device));
                const auto indices = room_for_indices(clouds * m, device);
                const auto distances_sq = room_for_floats(clouds * m, device);
                return [=] {
                    ops::farthest_point_sample(points->view(), Batch::dense(clouds, m), indices->view(),
                                               distances_sq->view());
                };
            }};
}

Case random_case(int64_t clouds, int64_t n, int64_t m) {
    return {.op = "random_sample",
            .shape = fmt::format("{} -> {}", shape_of(clouds, n), m),
            .points = clouds * n,
            .bytes = clouds * 4 * m,
            .prepare = [=](Device device) {
                const auto indices = room_for_indices(clouds * m, device);
                return
                    [=] { ops::random_sample(Batch::dense(clouds, n), Batch::dense(clouds, m), 1, indices->view()); };
            }};
}

Case argmax_case(int64_t clouds, int64_t n, int64_t channels) {
    return {.op = "argmax_points",
            .shape = fmt::format("{}, {} channels", shape_of(clouds, n), channels),
            .points = clouds * n,
            .bytes = 4 * clouds * (n + 1) * channels,
            .prepare = [=](Device device) {
                const auto scores = keep(uniform_rows(clouds * n, channels, 1).to(device));
                const auto winners = keep(Array<int32_t, 2>({clouds, channels}, device));
                return
                    [=] { ops::argmax_points(ops::Clouds(scores->view(), Batch::dense(clouds, n)), winners->view()); };
            }};
}

Case simplification_case(int64_t clouds, int64_t n, int64_t m) {
    return {.op = "simplification",
            .shape = fmt::format("{} -> {}", shape_of(clouds, n), m),
            .points = clouds * n,
            .bytes = clouds * (16 * n + 16 * m),
            .prepare = [=](Device device) {
                const auto points = keep(uniform_rows(clouds * n, 3, 1).to(device));
                const auto queries = keep(uniform_rows(clouds * m, 3, 2).to(device));
                const auto nearest = keep(Array<int32_t, 2>({clouds * m, 1}, device));
                const auto owners = keep(Array<int32_t, 2>({1, clouds * n}, device));
                const auto farthest = keep(Array<int32_t, 2>({clouds, 1}, device));
                const auto terms = keep(Array<double, 3>({clouds, 1, 3}, device));
                const ops::Clouds all(points->view(), Batch::dense(clouds, n)),
                    few(queries->view(), Batch::dense(clouds, m));
                ops::knn(all, few, nearest->view(), {});
                return [=] {
                    ops::simplification({points->view(), Batch::dense(clouds, n)},
                                        {queries->view(), Batch::dense(clouds, m)}, std::vector<int64_t>{m},
                                        View<const int32_t, 1>(nearest->data(), {clouds * m}, device),
                                        {owners->view(), farthest->view()}, terms->view());
                };
            }};
}

Case density_case(int64_t n, int64_t m) {
    return {.op = "inverse_density",
            .shape = fmt::format("{} -> {}", shape_of(1, n), m),
            .points = n,
            .bytes = 12 * n + 4 * m,
            .prepare = [=](Device device) {
                const auto points = keep(wavy_torus(n, 1).to(device));
                const auto indices = room_for_indices(m, device);
                return [=] { ops::inverse_density_sample(points->view(), Batch::single(m), 1, indices->view()); };
            }};
}

Case poisson_case(int64_t n, int64_t m) {
    return {.op = "poisson_disk",
            .shape = fmt::format("{} -> {}", shape_of(1, n), m),
            .points = n,
            .bytes = 12 * n + 4 * m,
            .prepare = [=](Device device) {
                const auto points = keep(wavy_torus(n, 1).to(device));
                const auto indices = room_for_indices(m, device);
                return [=] { ops::poisson_disk(points->view(), Batch::single(m), indices->view()); };
            }};
}

/// The grid and the mean of each cell, which is what downsampling needs.
Case voxel_case(int64_t n, float size) {
    return {.op = "voxel_grid",
            .shape = fmt::format("{}, edge {}", shape_of(1, n), size),
            .points = n,
            .bytes = n * (12 + 4 + 4 + 12),
            .prepare = [=](Device device) {
                const auto points = keep(wavy_torus(n, 3).to(device));
                const auto centroids = keep(Array<float, 2>());
                return [=] {
                    const ops::VoxelGrid grid = ops::voxel_grid(points->view(), size);
                    const int64_t cells = grid.cells.rows();
                    if (centroids->size(0) != cells) *centroids = Array<float, 2>({cells, 3}, device);
                    ops::voxel_centroids(grid, points->view(), centroids->view());
                };
            }};
}

}  // namespace

std::vector<Case> sampling_cases(Size size) {
    if (size == Size::tiny)
        return {farthest_case(2, 40, 10), random_case(2, 40, 10), density_case(60, 10),         voxel_case(60, 0.5f),
                poisson_case(60, 12),     argmax_case(2, 40, 5),  simplification_case(2, 40, 6)};
    return {farthest_case(32, 2048, 512),     farthest_case(1, 100'000, 4096), farthest_case(1, 1'000'000, 16384),
            random_case(1, 1'000'000, 16384), density_case(100'000, 4096),     voxel_case(1'000'000, 0.02f),
            poisson_case(40960, 8192),        argmax_case(32, 1024, 64),       simplification_case(32, 1024, 64)};
}

}  // namespace stipple::bench
