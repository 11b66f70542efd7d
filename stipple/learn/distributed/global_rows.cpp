#include "stipple/learn/distributed/global_rows.h"

#include "stipple/learn/distributed/process_group.h"

namespace stipple::learn {

std::vector<RowRun> global_rows(const LayerContext& context, const network::TensorType& type, int64_t rows) {
    const ProcessGroup* group = context.options.group;
    if (!group) return {{0, rows, 0}};
    const bool is_of_clouds = type.level == network::Level::cloud;
    const ops::Batch& batch = context.batches[is_of_clouds ? 0 : static_cast<size_t>(type.set)];
    const int64_t views = context.options.views, clouds = batch.clouds() / views;
    STIPPLE_REQUIRE(batch.clouds() % views == 0, "{} clouds are not {} views", batch.clouds(), views);
    const auto row_of = [&](int64_t cloud) {
        if (is_of_clouds) return cloud;
        return (cloud < batch.clouds() ? batch.begin(cloud) : batch.rows()) * type.width;
    };
    std::vector<RowRun> runs;
    int64_t all = 0;  // rows of all ranks, in the views before
    for (int64_t view = 0; view < views; ++view) {
        const int64_t begin = row_of(view * clouds), of_view = row_of((view + 1) * clouds) - begin;
        runs.push_back({begin, of_view, all + group->rank() * of_view});
        all += group->size() * of_view;
    }
    STIPPLE_REQUIRE(row_of(batch.clouds()) == rows, "{} rows of a layer that has {}", rows, row_of(batch.clouds()));
    return runs;
}

}  // namespace stipple::learn
