#include "stipple/bench/prepare.h"
#include "stipple/ops/interpolate.h"
#include "stipple/ops/three_interpolate.h"

namespace stipple::bench {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

/// A dense batch of rows, as ops take them.
Clouds batch_of(const Array<float, 2>& rows, int64_t clouds) {
    return {rows.view(), Batch::dense(clouds, rows.size(0) / clouds)};
}

Neighbours batch_of(const Array<int32_t, 2>& indices, int64_t clouds) {
    return {indices.view(), Batch::dense(clouds, indices.size(0) / clouds)};
}

/// [m, k] weights as [m, 1, k].
View<const float, 3> one_child(const Array<float, 2>& weights) {
    return {weights.data(), {weights.size(0), 1, weights.size(1)}, weights.device()};
}

/// As a layer that makes q points of each does.
Case interpolate_case(int64_t clouds, int64_t n, int64_t channels, int64_t q, int64_t k) {
    const int64_t m = clouds * n;
    return {.op = "interpolate",
            .shape = fmt::format("{}, {} children, k {}, {} channels", shape_of(clouds, n), q, k, channels),
            .points = m * q,
            .bytes = m * (4 * channels + 4 * k + 4 * q * k + 4 * q * channels),
            .prepare = [=](Device device) {
                const auto rows = keep(uniform_rows(m, channels, 1).to(device));
                const auto indices = random_neighbours(clouds, n, n, k, device);
                const auto weights = keep(uniform_array<3>({m, q, k}, 2).to(device));
                const auto out = room<float, 3>({m, q, channels}, device);
                return [=] {
                    ops::interpolate(batch_of(*rows, clouds), batch_of(*indices, clouds),
                                     std::as_const(*weights).view(), out->view());
                };
            }};
}

/// Weights and features; the neighbours are there.
Case three_case(int64_t clouds, int64_t known, int64_t n, int64_t channels) {
    const int64_t m = clouds * n, k = 3;
    return {.op = "three_interpolate",
            .shape = fmt::format("{} of {}, {} channels", shape_of(clouds, n), known, channels),
            .points = m,
            .bytes = clouds * known * channels * 4 + m * (8 * k + 4 * channels),
            .prepare = [=](Device device) {
                const auto features = keep(uniform_rows(clouds * known, channels, 1).to(device));
                const auto indices = random_neighbours(clouds, known, n, k, device);
                const auto distances_sq = keep(uniform_rows(m, k, 2).to(device));
                const auto weights = room_for_rows(m, k, device);
                const auto out = room<float, 3>({m, 1, channels}, device);
                return [=] {
                    ops::three_weights(std::as_const(*distances_sq).view(), {}, weights->view());
                    ops::interpolate(batch_of(*features, clouds), batch_of(*indices, clouds), one_child(*weights),
                                     out->view());
                };
            }};
}

}  // namespace

std::vector<Case> interpolation_cases() {
    return {interpolate_case(32, 1024, 64, 4, 16), three_case(32, 512, 2048, 128)};
}

}  // namespace stipple::bench
