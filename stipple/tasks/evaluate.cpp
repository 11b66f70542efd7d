#include "stipple/tasks/evaluate.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/io/text.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kBatchPoints = int64_t{1} << 20;  // unless one cloud alone has more
constexpr int64_t kMostDraws = 1000;

/// The first stored points of an item.
PointCloud stored_points(const data::Clouds& clouds, int64_t item, int64_t of) {
    const int64_t stored = clouds.size_of(item);
    PointCloud cloud(of > 0 ? std::min(of, stored) : stored);
    std::copy_n(clouds.of(item).data(), 3 * cloud.size(), cloud.positions.data());
    return cloud;
}

int64_t available(const data::Clouds& clouds, int64_t item, const EvaluateOptions& options) {
    return options.of > 0 ? std::min(options.of, clouds.size_of(item)) : clouds.size_of(item);
}

/// The likeliest class of each item in one draw.
std::vector<int32_t> answers_of_draw(Classifier& classifier, const data::Clouds& clouds, ClassScores& scores,
                                     int64_t draw, const EvaluateOptions& options,
                                     const std::function<void(int64_t clouds)>& advance) {
    const NetworkRunner& runner = classifier.runner();
    const int64_t most = std::min(kBatchPoints, runner.max_points());
    std::vector<int32_t> answers;
    CloudBatch batch;
    const auto flush = [&] {
        if (batch.clouds() == 0) return;
        check_interrupted();
        const std::vector<float> logits = classifier.run(batch);
        for (int64_t i = 0; i < batch.clouds(); ++i) {
            const auto row = logits.begin() + i * classifier.classes();
            answers.push_back(static_cast<int32_t>(std::max_element(row, row + classifier.classes()) - row));
        }
        if (advance) advance(batch.clouds());
        batch.clear();
    };
    for (int64_t item = 0; item < clouds.size(); ++item) {
        const Array<float, 2> points = seen_points(clouds, item, scores.points, draw, options);
        const int64_t n = points.size(0);
        scores.fewest = item == 0 && draw == 0 ? n : std::min(scores.fewest, n);
        scores.most = std::max(scores.most, n);
        if (batch.clouds() == runner.max_batch() || batch.points() + n > most) flush();
        batch.add(points);
    }
    flush();
    return answers;
}

/// In any case; -1 where there is none.
int32_t class_named(const std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& known) {
        return io::lower_case(known) == io::lower_case(name);
    });
    return found == names.end() ? -1 : static_cast<int32_t>(found - names.begin());
}

}  // namespace

void require_valid(const EvaluateOptions& options) {
    STIPPLE_REQUIRE(!options.points.empty(), "no number of points");
    STIPPLE_REQUIRE(options.of >= 0, "points of the first {} stored ones", options.of);
    STIPPLE_REQUIRE(options.draws >= 1 && options.draws <= kMostDraws, "{} draws: 1 to {} are possible", options.draws,
                    kMostDraws);
    for (const int64_t n : options.points) {
        require_valid(CloudOptions{.points = n, .sample = options.sample});
        STIPPLE_REQUIRE(options.of == 0 || n <= options.of, "{} points of the first {} stored ones", n, options.of);
    }
}

int64_t draws_of(const data::Clouds& clouds, int64_t n, const EvaluateOptions& options) {
    if (options.sample != "random" || n == 0) return 1;
    for (int64_t item = 0; item < clouds.size(); ++item)
        if (available(clouds, item, options) > n) return options.draws;
    return 1;
}

Array<float, 2> seen_points(const data::Clouds& clouds, int64_t item, int64_t n, int64_t draw,
                            const EvaluateOptions& options, std::vector<int32_t>* chosen) {
    constexpr uint64_t kPurpose = 0x4556414C;  // keeps apart from other uses of the seed
    const RandomBlock bits =
        Rng(options.seed, kPurpose << 32 | static_cast<uint64_t>(draw)).block(static_cast<uint64_t>(item));
    return network_points(stored_points(clouds, item, options.of),
                          {.points = n,
                           .sample = options.sample,
                           .normalise = options.normalise,
                           .seed = uint64_t{bits.word[0]} << 32 | bits.word[1]},
                          chosen);
}

Spread spread_of(std::span<const double> values) {
    Spread spread;
    if (values.empty()) return spread;
    const auto count = static_cast<double>(values.size());
    for (const double value : values) spread.mean += value / count;
    if (values.size() == 1) return spread;
    for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean) / (count - 1);
    spread.deviation = std::sqrt(spread.deviation);
    return spread;
}

std::vector<int32_t> match_classes(const data::DataSet& set, const std::vector<std::string>& names, int64_t classes) {
    STIPPLE_REQUIRE(!set.labels.empty(), "the data set ({}) has no classes to compare with", set.layout);
    std::vector<int64_t> items(set.classes.size(), 0);
    for (const int32_t label : set.labels) ++items[static_cast<size_t>(label)];
    std::vector<int32_t> matches;
    if (names.empty()) {
        STIPPLE_REQUIRE(static_cast<int64_t>(set.classes.size()) == classes,
                        "the data set has {} classes, the network {}, and no names tell which are which",
                        set.classes.size(), classes);
        for (int64_t i = 0; i < classes; ++i) matches.push_back(static_cast<int32_t>(i));
        return matches;
    }
    STIPPLE_REQUIRE(static_cast<int64_t>(names.size()) == classes, "{} names for {} classes", names.size(), classes);
    for (size_t i = 0; i < set.classes.size(); ++i) {
        matches.push_back(class_named(names, set.classes[i]));
        STIPPLE_REQUIRE(matches.back() >= 0 || items[i] == 0, "the network does not know the class {} of the data set",
                        set.classes[i]);
    }
    return matches;
}

std::vector<int32_t> known_classes(const std::vector<data::CloudEntry>& entries, const std::vector<std::string>& names,
                                   io::Warnings& warnings) {
    std::vector<int32_t> known;
    std::string told;
    for (const data::CloudEntry& entry : entries) {
        const std::optional<int64_t> label = entry.label();
        const bool is_number = label && entry.set->classes.empty();
        if (!is_number) {
            known.push_back(class_named(names, entry.class_name()));
            continue;
        }
        if (told != entry.path)
            warnings.push_back(fmt::format(
                "{}: nothing names its classes, labels are taken for numbers of the network's", entry.path));
        told = entry.path;
        known.push_back(*label >= 0 && *label < static_cast<int64_t>(names.size()) ? static_cast<int32_t>(*label) : -1);
    }
    return known;
}

ClassScores scores_of(std::span<const int32_t> answers, std::span<const int32_t> truth,
                      const std::vector<std::string>& names) {
    STIPPLE_REQUIRE(answers.size() == truth.size(), "{} answers for {} labels", answers.size(), truth.size());
    std::vector<int32_t> given, right;
    for (size_t i = 0; i < truth.size(); ++i) {
        if (truth[i] < 0) continue;
        given.push_back(answers[i]);
        right.push_back(truth[i]);
    }
    ClassScores scores;
    scores.confusion = metrics::confusion(given, right, names);
    scores.accuracy.mean = metrics::overall_accuracy(scores.confusion);
    scores.class_accuracy.mean = metrics::mean_accuracy(scores.confusion);
    return scores;
}

std::vector<ClassScores> evaluate(Classifier& classifier, const data::DataSet& set,
                                  const std::vector<std::string>& names, const EvaluateOptions& options,
                                  const std::function<void(int64_t clouds)>& advance) {
    require_valid(options);
    const std::vector<int32_t> matches = match_classes(set, names, classifier.classes());
    std::vector<int32_t> truth;
    for (const int32_t label : set.labels) truth.push_back(matches[static_cast<size_t>(label)]);
    std::vector<ClassScores> all;
    for (const int64_t n : options.points) {
        ClassScores scores;
        scores.points = n;
        scores.draws = draws_of(set.clouds, n, options);
        std::vector<double> overall, by_class;
        for (int64_t draw = 0; draw < scores.draws; ++draw) {
            metrics::Confusion counts =
                metrics::confusion(answers_of_draw(classifier, set.clouds, scores, draw, options, advance), truth,
                                   names.empty() ? set.classes : names);
            overall.push_back(metrics::overall_accuracy(counts));
            by_class.push_back(metrics::mean_accuracy(counts));
            if (draw == 0) {
                scores.confusion = std::move(counts);
                continue;
            }
            for (size_t i = 0; i < counts.counts.span().size(); ++i)
                scores.confusion.counts.span()[i] += counts.counts.span()[i];
        }
        scores.accuracy = spread_of(overall);
        scores.class_accuracy = spread_of(by_class);
        all.push_back(std::move(scores));
    }
    return all;
}

}  // namespace stipple::tasks
