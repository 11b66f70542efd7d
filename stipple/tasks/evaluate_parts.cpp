#include "stipple/tasks/evaluate_parts.h"

#include <algorithm>
#include <numeric>

#include "stipple/core/interrupt.h"
#include "stipple/io/text.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kLogitPoints = int64_t{1} << 17;  // logits are many

/// Parts of one draw, shape by shape, in the network's numbers.
struct DrawnParts {
    std::vector<std::vector<int32_t>> found, truth;
};

metrics::PartCategory shifted(const data::PartCategory& category, int64_t shift) {
    metrics::PartCategory parts{category.name,
                                std::vector<int32_t>(static_cast<size_t>(category.end - category.begin))};
    std::iota(parts.parts.begin(), parts.parts.end(), static_cast<int32_t>(category.begin + shift));
    return parts;
}

std::vector<int64_t> items_by_class(const data::DataSet& set) {
    std::vector<int64_t> items(set.categories.size(), 0);
    for (const int32_t label : set.labels) ++items[static_cast<size_t>(label)];
    return items;
}

/// Whether the metadata of a model tells its categories by name: else they are numbered, and each has all parts.
bool has_named_categories(const Segmenter& segmenter) {
    const auto& categories = segmenter.categories();
    return std::any_of(categories.begin(), categories.end(),
                       [&](const data::PartCategory& category) {
                           return category.begin != 0 || category.end != segmenter.parts();
                       }) ||
           (categories.size() == 1 && segmenter.runner().source().metadata().contains("stipple.categories"));
}

PartMatch match_by_name(const data::PartCategory& wanted, int64_t items, const Segmenter& segmenter) {
    const auto& known = segmenter.categories();
    const auto found = std::find_if(known.begin(), known.end(), [&](const data::PartCategory& category) {
        return io::lower_case(category.name) == io::lower_case(wanted.name);
    });
    if (found == known.end()) {
        STIPPLE_REQUIRE(items == 0, "the network does not know the category {} of the data set", wanted.name);
        return {0, 0, {wanted.name, {}}};
    }
    STIPPLE_REQUIRE(found->end - found->begin == wanted.end - wanted.begin,
                    "{} has {} parts in the data set, {} for the network", wanted.name, wanted.end - wanted.begin,
                    found->end - found->begin);
    const int64_t shift = found->begin - wanted.begin;
    return {static_cast<size_t>(found - known.begin()), shift, shifted(wanted, shift)};
}

DrawnParts parts_of_draw(Segmenter& segmenter, const data::DataSet& set, const std::vector<PartMatch>& matches,
                         PartScores& scores, int64_t draw, const EvaluateOptions& options,
                         const std::function<void(int64_t clouds)>& advance) {
    const NetworkRunner& runner = segmenter.runner();
    const int64_t most = std::min(kLogitPoints, runner.max_points());
    DrawnParts drawn;
    CloudBatch batch;
    std::vector<size_t> categories;
    const auto flush = [&] {
        if (batch.clouds() == 0) return;
        check_interrupted();
        const Array<float, 2> logits = segmenter.logits(batch, categories);
        for (int64_t i = 0; i < batch.clouds(); ++i) {
            const int64_t begin = batch.offsets[static_cast<size_t>(i)],
                          count = batch.offsets[static_cast<size_t>(i + 1)] - begin;
            const auto label = static_cast<size_t>(set.labels[drawn.found.size()]);
            drawn.found.push_back(metrics::best_parts(
                {logits.data() + begin * segmenter.parts(), {count, segmenter.parts()}}, matches[label].parts));
        }
        if (advance) advance(batch.clouds());
        batch.clear();
        categories.clear();
    };
    std::vector<int32_t> chosen;
    for (int64_t item = 0; item < set.size(); ++item) {
        const Array<float, 2> points = seen_points(set.clouds, item, scores.points, draw, options, &chosen);
        const int64_t n = points.size(0);
        scores.fewest = item == 0 && draw == 0 ? n : std::min(scores.fewest, n);
        scores.most = std::max(scores.most, n);
        if (batch.clouds() == runner.max_batch() || batch.points() + n > most) flush();
        const PartMatch& match = matches[static_cast<size_t>(set.labels[static_cast<size_t>(item)])];
        batch.add(points);
        categories.push_back(match.category);
        std::vector<int32_t>& truth = drawn.truth.emplace_back();
        for (const int32_t index : chosen)
            truth.push_back(static_cast<int32_t>(
                set.parts[static_cast<size_t>(set.clouds.offsets[static_cast<size_t>(item)] + index)] + match.shift));
    }
    flush();
    return drawn;
}

}  // namespace

std::vector<PartMatch> match_parts(const data::DataSet& set, const Segmenter& segmenter) {
    STIPPLE_REQUIRE(!set.parts.empty(), "the data set ({}) has no parts to compare with", set.layout);
    const std::vector<int64_t> items = items_by_class(set);
    std::vector<PartMatch> matches;
    if (!segmenter.categories().empty() && has_named_categories(segmenter)) {
        for (size_t c = 0; c < set.categories.size(); ++c)
            matches.push_back(match_by_name(set.categories[c], items[c], segmenter));
        return matches;
    }
    STIPPLE_REQUIRE(segmenter.categories().empty() || segmenter.categories().size() == set.categories.size(),
                    "the data set has {} categories, the network {}, and no names tell which are which",
                    set.categories.size(), segmenter.categories().size());
    int64_t parts = 0;
    for (const data::PartCategory& category : set.categories) parts = std::max(parts, category.end);
    if (segmenter.parts() == parts) {
        for (size_t c = 0; c < set.categories.size(); ++c) matches.push_back({c, 0, shifted(set.categories[c], 0)});
        return matches;
    }
    const auto with_items = std::count_if(items.begin(), items.end(), [](int64_t count) { return count > 0; });
    STIPPLE_REQUIRE(segmenter.categories().empty() && with_items == 1,
                    "the data set has {} parts in {} categories, the network {} parts", parts, with_items,
                    segmenter.parts());
    for (size_t c = 0; c < set.categories.size(); ++c) {
        const data::PartCategory& category = set.categories[c];
        STIPPLE_REQUIRE(items[c] == 0 || category.end - category.begin == segmenter.parts(),
                        "{} has {} parts, the network {}", category.name, category.end - category.begin,
                        segmenter.parts());
        matches.push_back({0, -category.begin, shifted(category, -category.begin)});
    }
    return matches;
}

data::DataSet items_of_category(const data::DataSet& set, const std::string& name) {
    STIPPLE_REQUIRE(!set.categories.empty(), "the data set ({}) has no categories", set.layout);
    const auto label = static_cast<int32_t>(data::find_category(set.categories, name));
    data::DataSet chosen = set;
    chosen.clouds = {};
    chosen.normals.clear();
    chosen.labels.clear();
    chosen.parts.clear();
    chosen.names.clear();
    for (int64_t item = 0; item < set.size(); ++item) {
        const auto at = static_cast<size_t>(item);
        if (set.labels[at] != label) continue;
        const int64_t first = set.clouds.offsets[at], behind = set.clouds.offsets[at + 1];
        chosen.clouds.points.insert(chosen.clouds.points.end(), set.clouds.points.begin() + 3 * first,
                                    set.clouds.points.begin() + 3 * behind);
        chosen.clouds.offsets.push_back(chosen.clouds.offsets.back() + behind - first);
        if (!set.parts.empty())
            chosen.parts.insert(chosen.parts.end(), set.parts.begin() + first, set.parts.begin() + behind);
        chosen.labels.push_back(label);
        if (!set.names.empty()) chosen.names.push_back(set.names[at]);
    }
    STIPPLE_REQUIRE(chosen.size() > 0, "the split {} has no items of {}", set.split, name);
    return chosen;
}

std::vector<PartScores> evaluate(Segmenter& segmenter, const data::DataSet& set, const EvaluateOptions& options,
                                 const std::function<void(int64_t clouds)>& advance) {
    require_valid(options);
    const std::vector<PartMatch> matches = match_parts(set, segmenter);
    std::vector<metrics::PartCategory> categories;
    for (const PartMatch& match : matches) categories.push_back(match.parts);
    std::vector<PartScores> all;
    for (const int64_t n : options.points) {
        PartScores scores;
        scores.points = n;
        scores.draws = draws_of(set.clouds, n, options);
        std::vector<double> instance, by_class, accuracy;
        for (int64_t draw = 0; draw < scores.draws; ++draw) {
            const DrawnParts drawn = parts_of_draw(segmenter, set, matches, scores, draw, options, advance);
            std::vector<metrics::SegmentedShape> shapes;
            for (size_t i = 0; i < drawn.found.size(); ++i)
                shapes.push_back({set.labels[i], drawn.found[i], drawn.truth[i]});
            const metrics::PartIou iou = metrics::part_iou(shapes, categories);
            instance.push_back(iou.instance);
            by_class.push_back(iou.category);
            accuracy.push_back(iou.accuracy);
            size_t row = 0;
            for (size_t c = 0; c < categories.size(); ++c) {
                if (iou.shape_count[c] == 0) continue;
                if (draw == 0) {
                    scores.categories.push_back(categories[c]);
                    scores.shapes.push_back(iou.shape_count[c]);
                    scores.category_iou.push_back(0);
                }
                scores.category_iou[row++] += iou.categories[c] / static_cast<double>(scores.draws);
            }
        }
        scores.instance_iou = spread_of(instance);
        scores.class_iou = spread_of(by_class);
        scores.accuracy = spread_of(accuracy);
        all.push_back(std::move(scores));
    }
    return all;
}

const Fields& part_scores_fields() {
    using Scores = PartScores;
    static const Fields fields = {
        field<&Scores::points>("points", "Points of a cloud, as they were asked for"),
        field<&Scores::fewest>("fewest_points", "Points that the network saw of the smallest cloud"),
        field<&Scores::most>("most_points", "Points that the network saw of the largest cloud"),
        field<&Scores::draws>("draws", "Draws of random points"),
        field<&Scores::instance_iou, &Spread::mean>("instance_iou", "Mean IoU over clouds"),
        field<&Scores::instance_iou, &Spread::deviation>("instance_iou_deviation", "Its deviation over draws"),
        field<&Scores::class_iou, &Spread::mean>("class_iou", "Mean over categories of their mean IoU"),
        field<&Scores::class_iou, &Spread::deviation>("class_iou_deviation", "Its deviation over draws"),
        field<&Scores::accuracy, &Spread::mean>("point_accuracy", "Share of points with the right part"),
        field<&Scores::accuracy, &Spread::deviation>("point_accuracy_deviation", "Its deviation over draws"),
        computed_field<Scores>("categories", "Categories that have clouds", [](const Scores& scores) {
            Json categories = Json::array();
            for (const CategoryScore& one : category_scores(scores))
                categories.push_back(to_json(category_score_fields(), &one));
            return categories;
        })};
    return fields;
}

const Fields& category_score_fields() {
    static const Fields fields = {field<&CategoryScore::name>("category", "Name of the category"),
                                  field<&CategoryScore::clouds>("clouds", "Clouds of the category"),
                                  field<&CategoryScore::parts>("parts", "Parts that it has"),
                                  field<&CategoryScore::iou>("iou", "Mean IoU over its clouds, and over draws")};
    return fields;
}

std::vector<CategoryScore> category_scores(const PartScores& scores) {
    std::vector<CategoryScore> list;
    for (size_t c = 0; c < scores.categories.size(); ++c)
        list.push_back({scores.categories[c].name, scores.shapes[c],
                        static_cast<int64_t>(scores.categories[c].parts.size()), scores.category_iou[c]});
    return list;
}

}  // namespace stipple::tasks
