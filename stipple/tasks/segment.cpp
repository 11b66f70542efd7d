#include "stipple/tasks/segment.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/core/interrupt.h"
#include "stipple/core/quoted.h"
#include "stipple/data/class_names.h"
#include "stipple/engine/program.h"
#include "stipple/io/text.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {
namespace {

RunnerOptions with_batch(RunnerOptions options, int64_t batch) {
    options.batch = batch;
    return options;
}

/// Each point of the cloud gets the label of the nearest one that the network saw.
Segments spread(const PointCloud& cloud, const std::vector<int32_t>& chosen, const Segments& seen_segments) {
    const auto seen = static_cast<int64_t>(chosen.size());
    Array<float, 2> few({seen, 3});
    for (int64_t i = 0; i < seen; ++i)
        std::copy_n(cloud.positions.data() + 3 * int64_t{chosen[i]}, 3, few.data() + 3 * i);
    Array<int32_t, 2> nearest({cloud.size(), 1});
    const ops::PointIndex index{ops::Clouds(few.view())};
    ops::knn(index, cloud.positions.view(), nearest.view(), {});
    Segments all;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const auto from = static_cast<size_t>(std::max(0, nearest.data()[i]));
        all.labels.push_back(seen_segments.labels[from]);
        all.probabilities.push_back(seen_segments.probabilities[from]);
    }
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
    const std::map<std::string, std::string>& metadata = runner_.source().metadata();
    up_ = up_of(metadata);
    if (const auto told = metadata.find("stipple.points"); told != metadata.end())
        if (!io::parse_number(told->second, points_) || points_ < 1)
            throw Error(ErrorCode::bad_file, Place{runner_.source().path},
                        fmt::format("stipple.points of the metadata: {}", in_quotes(told->second)));
}

data::PartCategory Segmenter::parts_of(size_t category) const {
    return categories_.empty() ? data::PartCategory{"", 0, parts_} : categories_[category];
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

Segments Segmenter::run(const Array<float, 2>& points, size_t category) {
    STIPPLE_REQUIRE(category < std::max<size_t>(1, categories_.size()), "category {} of {}", category,
                    categories_.size());
    CloudBatch one;
    one.add(points);
    const Array<float, 2> host = logits(one, {&category, 1});
    const data::PartCategory parts = parts_of(category);
    Segments segments;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* row = host.data() + i * parts_;
        const float* best = std::max_element(row + parts.begin, row + parts.end);
        float sum = 0;
        for (const float* x = row + parts.begin; x != row + parts.end; ++x) sum += std::exp(*x - *best);
        segments.labels.push_back(static_cast<int32_t>(best - row));
        segments.probabilities.push_back(1 / sum);
    }
    return segments;
}

Segments segment(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options, size_t category,
                 const Pose& pose) {
    std::vector<int32_t> chosen;
    CloudOptions seen = options;
    if (seen.points == 0) seen.points = segmenter.points();
    Array<float, 2> points = network_points(cloud, seen, &chosen);
    turn_points(points, pose);
    Segments segments = segmenter.run(points, category);
    if (points.size(0) < cloud.size()) segments = spread(cloud, chosen, segments);
    return segments;
}

PartsView choose_view(Segmenter& segmenter, const PointCloud& cloud, const CloudOptions& options,
                      const std::vector<size_t>& categories, const std::vector<Pose>& poses) {
    STIPPLE_REQUIRE(!categories.empty() && !poses.empty(), "choose_view: nothing to choose from");
    const int64_t enough = segmenter.points() > 0 ? segmenter.points() : 512;
    CloudOptions few = options;
    if (few.points == 0 || few.points > enough) few.points = enough;
    const Array<float, 2> points = network_points(cloud, few);
    PartsView best{categories[0], 0, -1};
    for (const size_t category : categories)
        for (size_t pose = 0; pose < poses.size(); ++pose) {
            check_interrupted();
            Array<float, 2> turned = points.clone();
            turn_points(turned, poses[pose]);
            const Segments segments = segmenter.run(turned, category);
            double mean = 0;
            for (const float p : segments.probabilities) mean += p / static_cast<double>(segments.probabilities.size());
            const data::PartCategory parts = segmenter.parts_of(category);
            const double chance = 1.0 / static_cast<double>(parts.end - parts.begin);
            const double confidence = chance < 1 ? (mean - chance) / (1 - chance) : 0;
            if (confidence > best.confidence) best = {category, pose, confidence};
        }
    return best;
}

const Fields& segment_fields() {
    using Options = SegmentOptions;
    static const std::string model_help = fmt::format("Weights by path or name, or an engine; else {}", kPartsWeights);
    static const Fields fields = {
        field<&Options::model>("model", model_help.c_str()),
        field<&Options::category>("category", "What the clouds show: chair; else what fits best"),
        object_field<&Options::pose>("", pose_fields),
        field<&Options::names>("names", "Names of the parts, one a line; else those in the model").shown("FILE"),
        object_field<&Options::clouds>("", cloud_fields),
        object_field<&Options::runner>("", precision_fields)};
    return fields;
}

namespace {

const Fields& part_fields() {
    static const Fields fields = {field<&PartSummary::label>("label", "Number of the part"),
                                  field<&PartSummary::name>("name", "Its name"),
                                  field<&PartSummary::points>("points", "Points of the part"),
                                  field<&PartSummary::confidence>("confidence", "Mean probability of the label")};
    return fields;
}

/// The categories that clouds may be of: the one that is named, else all.
std::vector<size_t> categories_of(const Segmenter& segmenter, const std::string& text) {
    const size_t count = segmenter.categories().size();
    STIPPLE_REQUIRE(count > 0 || text.empty(), "--category: {} takes none", segmenter.runner().source().name());
    if (text.empty()) {
        std::vector<size_t> all(std::max<size_t>(1, count));
        for (size_t i = 0; i < all.size(); ++i) all[i] = i;
        return all;
    }
    try {
        return {data::find_category(segmenter.categories(), text)};
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_argument, fmt::format("--category {}", error.message()), error.hint());
    }
}

Segmenter load_segmenter(const SegmentOptions& options) {
    require_valid(options.clouds);
    RunnerOptions runner = options.runner;
    runner.points = options.clouds.points > 0 ? options.clouds.points : 2048;
    return {load_model_or_engine(options.model.empty() ? shipped_weights(kPartsWeights) : options.model), runner};
}

}  // namespace

const Fields& segmented_fields() {
    static const Fields fields = {
        field<&SegmentedCloud::points>("points", "Points of the cloud"),
        objects_field<&SegmentedCloud::parts>("parts", part_fields, "Parts that it has, by label"),
        field<&SegmentedCloud::category>("category", "What it shows, where the network asks that"),
        field<&SegmentedCloud::category_guessed>("category_guessed", "Whether the category was chosen by what fits")};
    return fields;
}

CloudSegmenter::CloudSegmenter(const SegmentOptions& options)
    : options_(options),
      segmenter_(load_segmenter(options)),
      categories_(categories_of(segmenter_, options.category)),
      poses_(poses_of(options.pose, segmenter_.up())),
      names_(data::part_names(segmenter_.runner().source().metadata(), options.names, segmenter_.parts())) {}

SegmentedCloud CloudSegmenter::segment(PointCloud& cloud) {
    PartsView view{categories_[0], 0, 0};
    if (categories_.size() * poses_.size() > 1)
        view = choose_view(segmenter_, cloud, options_.clouds, categories_, poses_);
    const Segments segments = tasks::segment(segmenter_, cloud, options_.clouds, view.category, poses_[view.pose]);
    put_labels(cloud, segments.labels);
    std::map<int32_t, PartSummary> parts;
    for (size_t i = 0; i < segments.labels.size(); ++i) {
        PartSummary& part = parts[segments.labels[i]];
        ++part.points;
        part.confidence += segments.probabilities[i];
    }
    SegmentedCloud made;
    made.points = cloud.size(), made.index_of_category = view.category, made.pose = view.pose;
    for (auto& [label, part] : parts) {
        part.label = label;
        part.name = names_[static_cast<size_t>(label)];
        part.confidence /= static_cast<double>(part.points);
        made.parts.push_back(part);
    }
    if (const data::PartCategory category = segmenter_.parts_of(view.category); !category.name.empty()) {
        made.category = category.name;
        made.category_guessed = options_.category.empty();
    }
    return made;
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
