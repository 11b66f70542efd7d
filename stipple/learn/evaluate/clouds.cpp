#include "stipple/learn/evaluate/clouds.h"

#include "stipple/learn/stream.h"
#include "stipple/ops/knn.h"

namespace stipple::learn {
namespace {

constexpr int64_t kIndexChannels = 32;  // what ops::PointIndex takes

/// f(rows [clouds, points * width, c], first cloud) for each run of clouds of one size; the answers one below the
/// other. Dense: one call for all.
template <class F>
torch::Tensor for_clouds(const torch::Tensor& rows, const ops::Batch& batch, int64_t width, const F& f) {
    std::vector<int64_t> firsts, counts;  // of the runs: first cloud, rows
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        if (firsts.empty() || batch.size(cloud) != batch.size(firsts.back()))
            firsts.push_back(cloud), counts.push_back(0);
        counts.back() += batch.size(cloud) * width;
    }
    // Split, not narrowed: the gradients of the parts then are put together in one pass.
    const std::vector<torch::Tensor> runs =
        firsts.size() == 1 ? std::vector<torch::Tensor>{rows} : rows.split_with_sizes(counts);
    std::vector<torch::Tensor> answers;
    for (size_t run = 0; run < firsts.size(); ++run) {
        const int64_t last = run + 1 < firsts.size() ? firsts[run + 1] : batch.clouds();
        answers.push_back(
            f(runs[run].reshape({last - firsts[run], batch.size(firsts[run]) * width, rows.size(1)}), firsts[run]));
    }
    return answers.size() == 1 ? answers[0] : torch::cat(answers);
}

/// Where the cloud of each point begins, [points]. Of dense batches nothing comes from the host.
torch::Tensor firsts_of(const ops::Batch& of_queries, const ops::Batch& of_points, const torch::Tensor& like) {
    if (of_queries.is_dense() && of_points.is_dense())
        return torch::arange(of_queries.clouds(), like.options().dtype(torch::kInt64))
            .mul_(of_points.largest())
            .unsqueeze(1)
            .expand({of_queries.clouds(), of_queries.largest()})
            .reshape({-1});
    std::vector<int64_t> firsts(static_cast<size_t>(of_queries.rows()));
    for (int64_t cloud = 0; cloud < of_queries.clouds(); ++cloud)
        std::fill(firsts.begin() + of_queries.begin(cloud), firsts.begin() + of_queries.end(cloud),
                  of_points.begin(cloud));
    return torch::tensor(firsts, torch::kInt64).to(like.device());
}

/// By all distances: ties to the lowest index, since the sort is stable. Not finite: never found.
torch::Tensor nearest_of_all(const torch::Tensor& queries, const torch::Tensor& points, int64_t width) {
    torch::Tensor distances = torch::zeros({queries.size(0), points.size(0)}, queries.options());
    for (int64_t c = 0; c < points.size(1); ++c) {  // summed in this order, as ops::knn does
        const torch::Tensor d = queries.select(1, c).unsqueeze(1) - points.select(1, c).unsqueeze(0);
        distances = distances + d * d;
    }
    distances = torch::where(torch::isfinite(distances), distances, torch::full_like(distances, INFINITY));
    // All four arguments: with three, the stable one is taken for the dimension, and 1 for descending.
    const auto [sorted, order] = torch::sort(distances, /*stable=*/true, /*dim=*/1, /*descending=*/false);
    return torch::where(torch::isfinite(sorted), order, torch::full_like(order, -1)).narrow(1, 0, width);
}

}  // namespace

torch::Tensor max_of_clouds(const torch::Tensor& rows, const ops::Batch& batch, int64_t width) {
    return for_clouds(rows, batch, width, [](const torch::Tensor& x, int64_t) { return std::get<0>(x.max(1)); });
}

torch::Tensor sum_of_clouds(const torch::Tensor& rows, const ops::Batch& batch, int64_t width) {
    return for_clouds(rows, batch, width, [](const torch::Tensor& x, int64_t) { return x.sum(1); });
}

torch::Tensor repeat_for_points(const torch::Tensor& clouds, const ops::Batch& batch) {
    const int64_t channels = clouds.size(1);
    if (batch.is_dense())
        return clouds.unsqueeze(1).expand({batch.clouds(), batch.largest(), channels}).reshape({-1, channels});
    std::vector<torch::Tensor> rows;
    for (int64_t first = 0, last = 0; first < batch.clouds(); first = last) {
        const int64_t size = batch.size(first);
        while (last < batch.clouds() && batch.size(last) == size) ++last;
        rows.push_back(clouds.narrow(0, first, last - first)
                           .unsqueeze(1)
                           .expand({last - first, size, channels})
                           .reshape({-1, channels}));
    }
    return torch::cat(rows);
}

torch::Tensor transform_rows(const torch::Tensor& rows, const torch::Tensor& matrices, const ops::Batch& batch,
                             int64_t width) {
    return for_clouds(rows, batch, width, [&](const torch::Tensor& x, int64_t first) {
        return torch::bmm(x, matrices.narrow(0, first, x.size(0))).reshape({-1, rows.size(1)});
    });
}

torch::Tensor sizes_of_clouds(const ops::Batch& batch, const torch::Tensor& like) {
    if (batch.is_dense()) return torch::full({batch.clouds(), 1}, static_cast<double>(batch.largest()), like.options());
    std::vector<double> sizes;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) sizes.push_back(static_cast<double>(batch.size(cloud)));
    return torch::tensor(sizes, torch::kFloat64).to(like.options()).unsqueeze(1);
}

torch::Tensor nearest(const torch::Tensor& queries, const ops::Batch& of_queries, const torch::Tensor& points,
                      const ops::Batch& of_points, int64_t width, bool is_own) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor from = queries.detach().to(torch::kFloat32).contiguous(),
                        to = points.detach().to(torch::kFloat32).contiguous();
    torch::Tensor found;
    if (from.size(1) <= kIndexChannels) {
        const Device device = ops_device(from);
        const Stream stream = current_stream(from);
        const auto rows = [&](const torch::Tensor& x) {
            return View<const float, 2>(x.data_ptr<float>(), {x.size(0), x.size(1)}, device);
        };
        torch::Tensor indices = torch::empty({from.size(0), width}, from.options().dtype(torch::kInt32));
        const ops::PointIndex index(ops::Clouds(rows(to), of_points), stream);
        ops::knn(index, ops::Clouds(rows(from), of_queries),
                 View<int32_t, 2>(indices.data_ptr<int32_t>(), {indices.size(0), width}, device), {}, stream);
        found = indices.to(torch::kInt64);
    } else {
        std::vector<torch::Tensor> answers;
        for (int64_t cloud = 0; cloud < of_queries.clouds(); ++cloud)
            answers.push_back(nearest_of_all(from.narrow(0, of_queries.begin(cloud), of_queries.size(cloud)),
                                             to.narrow(0, of_points.begin(cloud), of_points.size(cloud)), width));
        found = torch::cat(answers);
    }
    torch::Tensor instead = torch::zeros({found.size(0), 1}, found.options());
    if (is_own)
        instead =
            (torch::arange(found.size(0), found.options()) - firsts_of(of_queries, of_points, found)).unsqueeze(1);
    return torch::where(found >= 0, found, instead.expand_as(found));
}

torch::Tensor rows_of_indices(const torch::Tensor& indices, const ops::Batch& of_queries, const ops::Batch& of_points) {
    return (indices + firsts_of(of_queries, of_points, indices).unsqueeze(1)).flatten();
}

}  // namespace stipple::learn
