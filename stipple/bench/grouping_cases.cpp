#include "stipple/bench/prepare.h"
#include "stipple/ops/gather.h"
#include "stipple/ops/group.h"
#include "stipple/ops/invert_index.h"
#include "stipple/ops/scatter_add.h"

namespace stipple::bench {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

Case gather_case(int64_t clouds, int64_t n, int64_t channels, int64_t m) {
    return {.op = "gather",
            .shape = fmt::format("{} x {} of {}, {} channels", clouds, m, n, channels),
            .points = clouds * m,
            .bytes = clouds * m * (4 + 8 * channels),
            .prepare = [=](Device device) {
                const auto rows = keep(uniform_rows(clouds * n, channels, 1).to(device));
                const auto indices = random_neighbours(clouds, n, m, 1, device);
                const auto out = room_for_rows(clouds * m, channels, device);
                return [=] {
                    ops::gather(Clouds(rows->view(), Batch::dense(clouds, n)),
                                Neighbours(indices->view(), Batch::dense(clouds, m)), out->view());
                };
            }};
}

Case group_case(int64_t clouds, int64_t n, int64_t channels, int64_t m, int64_t k) {
    return {.op = "group",
            .shape = fmt::format("{} x {} of {}, k {}, {} channels", clouds, m, n, k, channels),
            .points = clouds * m * k,
            .bytes = clouds * (4 * n * channels + m * k * (4 + 4 * channels)),
            .prepare = [=](Device device) {
                const auto rows = keep(uniform_rows(clouds * n, channels, 1).to(device));
                const auto indices = random_neighbours(clouds, n, m, k, device);
                const auto out = room<float, 3>({clouds * m, k, channels}, device);
                return [=] {
                    ops::group(Clouds(rows->view(), Batch::dense(clouds, n)),
                               Neighbours(indices->view(), Batch::dense(clouds, m)), out->view());
                };
            }};
}

Case invert_case(int64_t clouds, int64_t n, int64_t m, int64_t k) {
    return {.op = "invert_index",
            .shape = fmt::format("{} x {} of {}, k {}", clouds, m, n, k),
            .points = clouds * m * k,
            .bytes = clouds * (8 * m * k + 8 * n),
            .prepare = [=](Device device) {
                const auto indices = random_neighbours(clouds, n, m, k, device);
                const auto ranges = room<int32_t, 2>({clouds * n, 2}, device);
                const auto positions = room_for_indices(clouds * m * k, device);
                return [=] {
                    ops::invert_index(Neighbours(indices->view(), Batch::dense(clouds, m)), Batch::dense(clouds, n),
                                      ranges->view(), positions->view());
                };
            }};
}

/// With the index inverted beforehand, as a network whose neighbours stay the same has it.
Case scatter_case(int64_t clouds, int64_t n, int64_t channels, int64_t m) {
    return {.op = "scatter_add",
            .shape = fmt::format("{} x {} to {}, {} channels", clouds, m, n, channels),
            .points = clouds * m,
            .bytes = clouds * (m * (4 + 4 * channels) + n * (8 + 4 * channels)),
            .prepare = [=](Device device) {
                const auto indices = random_neighbours(clouds, n, m, 1, device);
                const auto ranges = room<int32_t, 2>({clouds * n, 2}, device);
                const auto positions = room_for_indices(clouds * m, device);
                ops::invert_index(Neighbours(indices->view(), Batch::dense(clouds, m)), Batch::dense(clouds, n),
                                  ranges->view(), positions->view());
                const auto values = keep(uniform_rows(clouds * m, channels, 1).to(device));
                const auto out = room_for_rows(clouds * n, channels, device);
                return [=] {
                    ops::scatter_add(std::as_const(*values).view(),
                                     {std::as_const(*ranges).view(), std::as_const(*positions).view()}, out->view());
                };
            }};
}

}  // namespace

std::vector<Case> grouping_cases(Size size) {
    if (size == Size::tiny)
        return {gather_case(2, 40, 3, 20), group_case(2, 40, 3, 10, 4), invert_case(2, 40, 10, 4),
                scatter_case(2, 40, 3, 30)};
    return {gather_case(32, 8192, 128, 4096), group_case(32, 2048, 64, 512, 32), invert_case(32, 2048, 512, 32),
            scatter_case(32, 2048, 64, 16384)};
}

}  // namespace stipple::bench
