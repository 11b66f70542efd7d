#include "stipple/learn/functions/largest_products.h"

#include <torch/torch.h>

#include "stipple/learn/functions/tensors.h"
#include "stipple/learn/short_numbers.h"
#include "stipple/ops/linear_max.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

/// What ops::linear_max computes as it is: float32 on the CPU; on a GPU short numbers, and float32 where a product may
/// round to tf32. For the others, which are float64 and float32 of checks, torch multiplies some clouds at a time.
bool is_for_ops(const Tensor& rows, int64_t channels) {
    if (rows.is_cpu()) return rows.scalar_type() == torch::kFloat32;
    const bool is_taken =
        is_short(rows) || (rows.scalar_type() == torch::kFloat32 && at::globalContext().allowTF32CuBLAS());
    return rows.is_cuda() && is_taken && ops::can_linear_max_cuda(rows.size(1), channels);
}

/// A run of clouds of one size: as a dense batch a kernel needs nothing of the host for it. On the CPU all clouds.
struct Part {
    ops::Batch batch;
    int64_t first_cloud, first_row;

    Tensor rows(const Tensor& of_all) const { return of_all.narrow(0, first_row, batch.rows()); }
    Tensor clouds(const Tensor& of_all) const { return of_all.narrow(0, first_cloud, batch.clouds()); }
};
std::vector<Part> parts_of(const ops::Batch& batch, bool is_cuda) {
    if (batch.is_dense() || !is_cuda) return {{batch, 0, 0}};
    std::vector<Part> parts;
    for (int64_t first = 0, last = 0; first < batch.clouds(); first = last) {
        while (last < batch.clouds() && batch.size(last) == batch.size(first)) ++last;
        parts.push_back({ops::Batch::dense(last - first, batch.size(first)), first, batch.begin(first)});
    }
    return parts;
}

constexpr int64_t kProducts =
    int64_t{1} << 21;  // in memory at a time, at least those of one cloud: some MB, for caches

/// Clouds of one size that follow each other.
struct CloudRun {
    int64_t first, last, size;
};

/// As many clouds at a time as kProducts allows.
std::vector<CloudRun> runs_of(const ops::Batch& batch, int64_t channels) {
    std::vector<CloudRun> runs;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        const int64_t size = batch.size(cloud);
        if (!runs.empty() && runs.back().size == size &&
            (runs.back().last - runs.back().first + 1) * size * channels <= kProducts)
            ++runs.back().last;
        else
            runs.push_back({cloud, cloud + 1, size});
    }
    return runs;
}

/// Rows of all clouds that the winners name, [clouds, channels] int64. Where a cloud begins is counted on the device:
/// numbers of the host would have to be waited for.
Tensor rows_of_winners(const ops::Batch& batch, const Tensor& winners, int64_t first, int64_t last) {
    std::vector<Tensor> begins;
    for (int64_t from = first, to = first; from < last; from = to) {
        while (to < last && batch.size(to) == batch.size(from)) ++to;
        const auto whole = winners.options().dtype(torch::kInt64);
        begins.push_back(torch::arange(to - from, whole).mul_(batch.size(from)).add_(batch.begin(from)));
    }
    return winners.slice(0, first, last).to(torch::kInt64) + torch::cat(begins).unsqueeze(1);
}

void add_by_ops(const ops::Batch& batch, const Tensor& weight, const Tensor& winners, const Tensor& of_winners,
                const ops::RowsBefore& before, const Tensor& dL_drows) {
    for (const Part& part : parts_of(batch, dL_drows.is_cuda()))
        ops::linear_max_backward_rows(part.batch, matrix_of(weight), view_of<const int32_t, 2>(part.clouds(winners)),
                                      view_of<const float, 2>(part.clouds(of_winners)),
                                      mutable_matrix_of(part.rows(dL_drows)), before, current_stream(dL_drows));
}

}  // namespace

LargestProducts largest_products(const Tensor& short_rows, const ops::Batch& batch, const Tensor& short_weight) {
    const int64_t channels = short_weight.size(0);
    const auto numbers = short_rows.options().dtype(is_short(short_rows) ? torch::kFloat32 : short_rows.scalar_type());
    LargestProducts found = {torch::empty({batch.clouds(), channels}, numbers),
                             torch::empty({batch.clouds(), channels}, numbers.dtype(torch::kInt32))};
    if (is_for_ops(short_rows, channels)) {
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
            STIPPLE_REQUIRE(batch.size(cloud) > 0, "a maximum over no points");
        for (const Part& part : parts_of(batch, short_rows.is_cuda()))
            ops::linear_max(matrix_of(part.rows(short_rows)), part.batch, matrix_of(short_weight),
                            view_of<float, 2>(part.clouds(found.values)),
                            view_of<int32_t, 2>(part.clouds(found.winners)), current_stream(short_rows));
        return found;
    }
    const Tensor rows = at_least_float(short_rows), weight = at_least_float(short_weight);
    const Tensor transposed = weight.t();
    Tensor buffer;
    for (const CloudRun& run : runs_of(batch, channels)) {
        STIPPLE_REQUIRE(run.size > 0, "a maximum over no points");
        const Tensor of_run = rows.slice(0, batch.begin(run.first), batch.begin(run.last));
        if (!buffer.defined() || buffer.size(0) < of_run.size(0))
            buffer = torch::empty({of_run.size(0), channels}, rows.options());
        Tensor products = buffer.slice(0, 0, of_run.size(0));
        torch::mm_out(products, of_run, transposed);
        const auto [values, winners] = products.view({run.last - run.first, run.size, channels}).max(1);
        found.values.slice(0, run.first, run.last).copy_(values);
        found.winners.slice(0, run.first, run.last).copy_(winners);
    }
    return found;
}

Tensor winners_weight(const Tensor& rows, const ops::Batch& batch, const Tensor& winners, const Tensor& of_winners) {
    const int64_t channels = winners.size(1), k = rows.size(1);
    Tensor sum = torch::zeros({channels, k}, of_winners.options());
    if (is_for_ops(rows, channels)) {
        for (const Part& part : parts_of(batch, rows.is_cuda())) {
            Tensor of_part = part.batch.clouds() == batch.clouds() ? sum : torch::empty_like(sum);
            ops::linear_max_backward_weight(
                matrix_of(part.rows(rows)), part.batch, view_of<const int32_t, 2>(part.clouds(winners)),
                view_of<const float, 2>(part.clouds(of_winners)), view_of<float, 2>(of_part), current_stream(rows));
            if (!of_part.is_same(sum)) sum.add_(of_part);
        }
        return sum;
    }
    const int64_t at_a_time = std::max<int64_t>(1, kProducts / (channels * k));
    for (int64_t first = 0; first < batch.clouds(); first += at_a_time) {
        const int64_t last = std::min(batch.clouds(), first + at_a_time);
        const Tensor named = rows_of_winners(batch, winners, first, last);
        const Tensor gathered = rows.index_select(0, named.flatten()).view({last - first, channels, k});
        sum.add_((gathered * of_winners.slice(0, first, last).unsqueeze(2)).sum(0));
    }
    return sum;
}

void add_winners_rows(const ops::Batch& batch, const Tensor& weight, const Tensor& winners, const Tensor& of_winners,
                      Tensor& dL_drows) {
    if (is_for_ops(dL_drows, weight.size(0))) return add_by_ops(batch, weight, winners, of_winners, {}, dL_drows);
    const int64_t channels = winners.size(1), k = weight.size(1);
    const int64_t at_a_time = std::max<int64_t>(1, kProducts / (channels * k));
    for (int64_t first = 0; first < batch.clouds(); first += at_a_time) {
        const int64_t last = std::min(batch.clouds(), first + at_a_time);
        const Tensor named = rows_of_winners(batch, winners, first, last);
        const Tensor parts = of_winners.slice(0, first, last).unsqueeze(2) * weight.unsqueeze(0);
        dL_drows.index_add_(0, named.flatten(), parts.reshape({-1, k}));
    }
}

bool can_add_to_short_rows(const Tensor& weight) {
    return is_for_ops(weight, weight.size(0));
}

void add_winners_to_scaled_rows(const ops::Batch& batch, const Tensor& weight, const Tensor& winners,
                                const Tensor& of_winners, const Tensor& factor, const Tensor& constant,
                                Tensor& dL_drows) {
    add_by_ops(batch, weight, winners, of_winners, {view_of<const float, 1>(factor), view_of<const float, 1>(constant)},
               dL_drows);
}

}  // namespace stipple::learn
