#include "stipple/bench/prepare.h"
#include "stipple/ops/bilateral_weights.h"
#include "stipple/ops/interpolate.h"
#include "stipple/ops/kernel_interpolate.h"
#include "stipple/ops/soft_project.h"
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

/// Weights on a lattice of 27 kernel points, and features.
Case kernel_case(int64_t clouds, int64_t n, int64_t k, int64_t channels) {
    const int64_t m = clouds * n, q = 27;
    return {.op = "kernel_interpolate",
            .shape = fmt::format("{}, k {}, {} kernel points, {} channels", shape_of(clouds, n), k, q, channels),
            .points = m,
            .bytes = m * (12 + 4 * k + 4 * channels + 8 * q * k + 4 * q * channels),
            .prepare = [=](Device device) {
                const auto points = keep(uniform_rows(m, 3, 1).to(device));
                const auto features = keep(uniform_rows(m, channels, 2).to(device));
                const auto indices = random_neighbours(clouds, n, n, k, device);
                const auto kernel = keep(ops::kernel_lattice(3, 0.3f).to(device));
                const auto weights = room<float, 3>({m, q, k}, device);
                const auto out = room<float, 3>({m, q, channels}, device);
                return [=] {
                    const Clouds all = batch_of(*points, clouds);
                    const Neighbours neighbours = batch_of(*indices, clouds);
                    ops::kernel_weights(all, all, neighbours, std::as_const(*kernel).view(), {.width = 0.3f},
                                        weights->view());
                    ops::interpolate(batch_of(*features, clouds), neighbours, std::as_const(*weights).view(),
                                     out->view());
                };
            }};
}

Case bilateral_case(int64_t clouds, int64_t n, int64_t k, int64_t channels) {
    const int64_t m = clouds * n;
    return {.op = "bilateral_weights",
            .shape = fmt::format("{}, k {}, {} channels", shape_of(clouds, n), k, channels),
            .points = m,
            .bytes = m * (4 * k + 8 * k * channels + 12 * channels),
            .prepare = [=](Device device) {
                const auto rows = keep(uniform_rows(m, channels, 1).to(device));
                const auto indices = random_neighbours(clouds, n, n, k, device);
                const auto th = keep(uniform_array<3>({m, k, channels}, 2).to(device));
                const auto psi = keep(uniform_array<3>({m, k, channels}, 3).to(device));
                const auto out = room_for_rows(m, channels, device), denominator = room_for_rows(m, channels, device);
                return [=] {
                    ops::bilateral_combine(batch_of(*rows, clouds), batch_of(*indices, clouds),
                                           std::as_const(*th).view(), std::as_const(*psi).view(), 1e-6f, out->view(),
                                           denominator->view());
                };
            }};
}

Case project_case(int64_t clouds, int64_t n, int64_t m, int64_t k) {
    return {.op = "soft_project",
            .shape = fmt::format("{} onto {}, k {}", shape_of(clouds, m), n, k),
            .points = clouds * m,
            .bytes = clouds * (12 * n + m * (24 + 8 * k)),
            .prepare = [=](Device device) {
                const auto points = keep(uniform_rows(clouds * n, 3, 1).to(device));
                const auto queries = keep(uniform_rows(clouds * m, 3, 2).to(device));
                const auto indices = random_neighbours(clouds, n, m, k, device);
                Array<float, 1> one({1});
                one.data()[0] = 1;
                const auto temperature = keep(one.to(device));
                const auto weights = room_for_rows(clouds * m, k, device);
                const auto projected = room_for_rows(clouds * m, 3, device);
                return [=] {
                    ops::soft_project(batch_of(*points, clouds), batch_of(*queries, clouds), batch_of(*indices, clouds),
                                      std::as_const(*temperature).view(), 1e-4f, weights->view(), projected->view());
                };
            }};
}

}  // namespace

std::vector<Case> interpolation_cases(Size size) {
    if (size == Size::tiny)
        return {interpolate_case(2, 20, 3, 2, 4), three_case(2, 12, 20, 3), kernel_case(1, 8, 4, 2),
                bilateral_case(2, 12, 4, 3), project_case(2, 40, 10, 4)};
    return {interpolate_case(32, 1024, 64, 4, 16), three_case(32, 512, 2048, 128), kernel_case(8, 1024, 16, 32),
            bilateral_case(32, 512, 16, 64), project_case(32, 2048, 512, 16)};
}

}  // namespace stipple::bench
