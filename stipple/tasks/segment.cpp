#include "stipple/tasks/segment.h"

#include <algorithm>

#include "stipple/engine/program.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks {
namespace {

RunnerOptions with_batch(RunnerOptions options, int64_t batch) {
    options.batch = batch;
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

Segmenter::Segmenter(ModelOrEngine source, RunnerOptions options, int64_t batch)
    : runner_(std::move(source), with_batch(std::move(options), batch)) {
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

Array<float, 2> Segmenter::logits(const CloudBatch& batch, std::span<const size_t> categories) {
    engine::Context& context = runner_.reserve(batch.points());
    const Device device = runner_.device();
    const Array<float, 2> points = batch.points_on(device);
    Array<float, 2> logits({batch.points(), parts_}, device), one_hot;
    std::vector<engine::Input> inputs = {{"points", points.view()}};
    if (!categories_.empty()) {
        STIPPLE_REQUIRE(static_cast<int64_t>(categories.size()) == batch.clouds(), "{} categories for {} clouds",
                        categories.size(), batch.clouds());
        const auto columns = static_cast<int64_t>(categories_.size());
        Array<float, 2> host({batch.clouds(), columns});
        std::fill_n(host.data(), host.elements(), 0.0f);
        for (int64_t i = 0; i < batch.clouds(); ++i) {
            const size_t category = categories[static_cast<size_t>(i)];
            STIPPLE_REQUIRE(category < categories_.size(), "category {} of {}", category, categories_.size());
            host.data()[i * columns + static_cast<int64_t>(category)] = 1;
        }
        one_hot = host.to(device);
        inputs.push_back({"category", one_hot.view()});
    }
    context.run(batch.batch(), inputs, {{"logits", logits.view()}});
    return logits.to(Device{});
}

std::vector<int32_t> Segmenter::run(const Array<float, 2>& points, size_t category) {
    STIPPLE_REQUIRE(category < std::max<size_t>(1, categories_.size()), "category {} of {}", category,
                    categories_.size());
    CloudBatch one;
    one.add(points);
    const Array<float, 2> host = logits(one, {&category, 1});
    const int64_t begin = categories_.empty() ? 0 : categories_[category].begin,
                  end = categories_.empty() ? parts_ : categories_[category].end;
    std::vector<int32_t> labels(static_cast<size_t>(points.size(0)));
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* row = host.data() + i * parts_;
        labels[static_cast<size_t>(i)] = static_cast<int32_t>(std::max_element(row + begin, row + end) - row);
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
