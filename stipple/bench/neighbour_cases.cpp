#include "stipple/bench/prepare.h"
#include "stipple/ops/ball_query.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/nearest_pairs.h"
#include "stipple/ops/radius_search.h"

namespace stipple::bench {
namespace {

using ops::PointIndex;

/// Every point asks for its neighbours, itself among them; the index is built anew each time.
Case knn_case(int64_t clouds, int64_t n, int64_t k) {
    const int64_t rows = clouds * n;
    return {.op = "knn",
            .shape = fmt::format("{}, k {}", shape_of(clouds, n), k),
            .points = rows,
            .bytes = rows * (12 + 8 * k),
            .prepare = [=](Device device) {
                const auto points = keep(wavy_tori(clouds, n, 1).to(device));
                const auto indices = room<int32_t, 2>({rows, k}, device);
                const auto distances_sq = room_for_rows(rows, k, device);
                return [=] {
                    const PointIndex index(points->view());
                    ops::knn(index, points->view(), indices->view(), distances_sq->view());
                };
            }};
}

/// Neighbours in feature space, as a network that builds its graph anew in each layer asks for.
Case feature_knn_case(int64_t clouds, int64_t n, int64_t channels, int64_t k) {
    const int64_t rows = clouds * n;
    return {.op = "knn",
            .shape = fmt::format("{}, k {}, {} channels", shape_of(clouds, n), k, channels),
            .points = rows,
            .bytes = rows * (4 * channels + 8 * k),
            .prepare = [=](Device device) {
                const auto features = keep(uniform_rows(rows, channels, 1).to(device));
                const auto indices = room<int32_t, 2>({rows, k}, device);
                const auto distances_sq = room_for_rows(rows, k, device);
                return [=] {
                    const ops::Clouds all(features->view(), ops::Batch::dense(clouds, n));
                    const PointIndex index(all);
                    ops::knn(index, all, indices->view(), distances_sq->view());
                };
            }};
}

Case nearest_pairs_case(int64_t clouds, int64_t n) {
    const int64_t rows = clouds * n;
    return {.op = "nearest_pairs",
            .shape = shape_of(clouds, n),
            .points = 2 * rows,
            .bytes = 2 * rows * (12 + 8),
            .prepare = [=](Device device) {
                const auto a = keep(wavy_tori(clouds, n, 1).to(device)), b = keep(wavy_tori(clouds, n, 2).to(device));
                const auto b_of_a = room_for_indices(rows, device), a_of_b = room_for_indices(rows, device);
                const auto sq_of_a = room_for_floats(rows, device), sq_of_b = room_for_floats(rows, device);
                return [=] {
                    ops::nearest_pairs(a->view(), b->view(), b_of_a->view(), sq_of_a->view(), a_of_b->view(),
                                       sq_of_b->view());
                };
            }};
}

/// Index, counts, offsets, neighbours: all that a caller needs.
Case radius_case(int64_t n, float radius, int64_t about) {
    return {.op = "radius_search",
            .shape = fmt::format("{}, r {}", shape_of(1, n), radius),
            .points = n,
            .bytes = n * (12 + 12 + 8 * about),
            .prepare = [=](Device device) {
                const auto points = keep(wavy_torus(n, 1).to(device));
                const auto counts = room_for_indices(n, device);
                const auto offsets = room<int64_t, 1>({n + 1}, device);
                const auto indices = keep(Array<int32_t, 1>());
                const auto distances_sq = keep(Array<float, 1>());
                return [=] {
                    const PointIndex index(points->view());
                    ops::radius_count(index, points->view(), radius, counts->view());
                    const int64_t total = ops::radius_offsets(std::as_const(*counts).view(), offsets->view());
                    if (indices->size(0) != total) {  // the first call, which is not timed
                        *indices = Array<int32_t, 1>({total}, device);
                        *distances_sq = Array<float, 1>({total}, device);
                    }
                    ops::radius_search(index, points->view(), radius, std::as_const(*offsets).view(), indices->view(),
                                       distances_sq->view());
                };
            }};
}

/// As in the first layer of a PointNet++: groups around a quarter of the points.
Case ball_query_case(int64_t clouds, int64_t n, float radius, int64_t size) {
    const int64_t m = n / 4;
    return {.op = "ball_query",
            .shape = fmt::format("{} -> {}, r {}, {} points", shape_of(clouds, n), m, radius, size),
            .points = clouds * m,
            .bytes = clouds * (12 * n + m * (12 + 4 * size + 4)),
            .prepare = [=](Device device) {
                const auto points = keep(wavy_tori(clouds, n, 1).to(device));
                const auto queries = keep(wavy_tori(clouds, m, 2).to(device));
                const auto indices = room<int32_t, 2>({clouds * m, size}, device);
                const auto counts = room_for_indices(clouds * m, device);
                return [=] {
                    const PointIndex index(points->view());
                    ops::ball_query(index, queries->view(), radius, indices->view(), counts->view());
                };
            }};
}

}  // namespace

std::vector<Case> neighbour_cases(Size size) {
    if (size == Size::tiny)
        return {knn_case(2, 40, 4), feature_knn_case(2, 24, 5, 4), nearest_pairs_case(2, 40), radius_case(60, 0.5f, 20),
                ball_query_case(2, 64, 0.5f, 8)};
    return {knn_case(1, 1'000'000, 16),         knn_case(1, 100'000, 16),           knn_case(32, 2048, 16),
            feature_knn_case(32, 1024, 32, 20), nearest_pairs_case(1, 100'000),     nearest_pairs_case(32, 2048),
            radius_case(100'000, 0.03f, 20),    ball_query_case(32, 2048, 0.2f, 32)};
}

}  // namespace stipple::bench
