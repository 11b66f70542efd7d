#include "stipple/tasks/segment.h"

#include <algorithm>

#include "stipple/engine/program.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks {
namespace {

RunnerOptions one_cloud(RunnerOptions options) {
    options.batch = 1;
    return options;
}

/// Each point of the cloud gets the label of the nearest one that the network saw.
std::vector<int32_t> spread_labels(const PointCloud& cloud, const std::vector<int32_t>& chosen,
                                   const std::vector<int32_t>& labels) {
    const auto seen = static_cast<int64_t>(chosen.size());
    Array<float, 2> few({seen, 3});
    for (int64_t i = 0; i < seen; ++i)
        std::copy_n(cloud.positions.data() + 3 * int64_t{chosen[i]}, 3, few.data() + 3 * i);
    Array<int32_t, 2> nearest({cloud.size(), 1});
    const ops::PointIndex index{ops::Clouds(few.view())};
    ops::knn(index, cloud.positions.view(), nearest.view(), {});
    std::vector<int32_t> all(static_cast<size_t>(cloud.size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = labels[static_cast<size_t>(std::max(0, nearest.data()[i]))];
    return all;
}

}  // namespace

Segmenter::Segmenter(ModelOrEngine source, RunnerOptions options)
    : runner_(std::move(source), one_cloud(std::move(options))) {
    const engine::Program& program = runner_.program();
    const network::TensorType* logits = find_type(program, program.outputs, "logits");
    const network::TensorType* points = find_type(program, program.inputs, "points");
    const network::TensorType* category = find_type(program, program.inputs, "category");
    const bool inputs = points && *points == network::points_of(3) && program.inputs.size() == (category ? 2u : 1u) &&
                        (!category || category->level == network::Level::cloud);
    if (!inputs || !logits || *logits != network::points_of(logits->channels))
        throw Error(ErrorCode::bad_argument, Place{runner_.source().path},
                    fmt::format("{} does not segment clouds: it needs points [B, N, 3] and logits [B, N, parts]",
                                runner_.source().name()),
                    "stipple engine inspect shows what it does");
    parts_ = logits->channels;
    if (category) categories_ = data::part_categories(runner_.source().metadata(), category->channels, parts_);
}

std::vector<int32_t> Segmenter::run(const Array<float, 2>& points, size_t category) {
    STIPPLE_REQUIRE(category < std::max<size_t>(1, categories_.size()), "category {} of {}", category,
                    categories_.size());
    const int64_t n = points.size(0);
    engine::Context& context = runner_.reserve(n);
    const Device device = runner_.device();
    const Array<float, 2> there = points.to(device);
    Array<float, 2> logits({n, parts_}, device), one_hot;
    std::vector<engine::Input> inputs = {{"points", there.view()}};
    int64_t begin = 0, end = parts_;
    if (!categories_.empty()) {
        Array<float, 2> host({1, static_cast<int64_t>(categories_.size())});
        std::fill_n(host.data(), host.elements(), 0.0f);
        host.data()[category] = 1;
        one_hot = host.to(device);
        inputs.push_back({"category", one_hot.view()});
        begin = categories_[category].begin;
        end = categories_[category].end;
    }
    context.run(ops::Batch::single(n), inputs, {{"logits", logits.view()}});
    const Array<float, 2> host = logits.to(Device{});
    std::vector<int32_t> labels(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
        const float* row = host.data() + i * parts_;
        labels[i] = static_cast<int32_t>(std::max_element(row + begin, row + end) - row);
    }
    return labels;
}

std::vector<int32_t> segment(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options,
                             size_t category) {
    std::vector<int32_t> chosen;
    const Array<float, 2> points = network_points(cloud, options, &chosen);
    std::vector<int32_t> labels = segmenter.run(points, category);
    if (points.size(0) < cloud.size()) labels = spread_labels(cloud, chosen, labels);
    return labels;
}

void put_labels(PointCloud& cloud, const std::vector<int32_t>& labels) {
    Attribute column("label", DType::i32, cloud.size(), 1);
    std::copy(labels.begin(), labels.end(), column.as<int32_t>().data());
    if (Attribute* old = find(cloud.attributes, "label"))
        *old = std::move(column);
    else
        cloud.attributes.push_back(std::move(column));
}

}  // namespace stipple::tasks
