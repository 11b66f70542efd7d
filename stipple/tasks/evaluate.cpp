#include "stipple/tasks/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/io/text.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kBatchPoints = int64_t{1} << 20;  // unless one cloud alone has more
constexpr int64_t kMostDraws = 1000;
constexpr const char* kSampleWords[] = {"random", "fps", "first"};

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

const Fields& evaluate_fields() {
    using Options = EvaluateOptions;
    static const Fields fields = {
        field<&Options::points>("points", "Points of a cloud that the network sees; 0: all [1024; parts: all]")
            .from(0)
            .shown("N,M,...")
            .no_default(),
        field<&Options::sample>("sample", "Which, when a cloud has more").words(kSampleWords),
        field<&Options::of>("of", "Choose of the first N stored points; 0: all [1024 or more; parts: 0]")
            .from(0)
            .no_default(),
        field<&Options::draws>("draws", "Of random points; mean and deviation are told").between(1, kMostDraws),
        field<&Options::normalise>("normalise", "Bring clouds into the unit sphere first")};
    return fields;
}

void require_valid(const EvaluateOptions& options) {
    STIPPLE_REQUIRE(!options.points.empty(), "no number of points");
    check_fields(evaluate_fields(), &options);
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

int64_t evaluation_work(const data::Clouds& clouds, const EvaluateOptions& options) {
    int64_t draws = 0;
    for (const int64_t n : options.points) draws += draws_of(clouds, n, options);
    return draws * clouds.size();
}

const Fields& evaluation_facts_fields() {
    using Facts = EvaluationFacts;
    static const Fields fields = {
        field<&Facts::model>("model", "Name of the network"),
        field<&Facts::precision>("precision", "Numbers that it computes with"),
        field<&Facts::split>("split", "Split of the data set"),
        field<&Facts::clouds>("clouds", "Clouds of the split"),
        field<&Facts::sample>("sample", "How points of larger clouds are chosen"),
        field<&Facts::of>("of", "They are chosen of the first so many; 0: of all"),
        field<&Facts::normalise>("normalise", "Clouds are brought into the unit sphere first")};
    return fields;
}

EvaluationFacts evaluation_facts(const NetworkRunner& runner, const data::DataSet& set,
                                 const EvaluateOptions& options) {
    return {.model = runner.source().name(),
            .precision = std::string(name_of(runner.precision())),
            .split = set.split,
            .clouds = set.size(),
            .sample = options.sample,
            .of = options.of,
            .normalise = options.normalise};
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

const Fields& class_scores_fields() {
    using Scores = ClassScores;
    static const Fields fields = {
        field<&Scores::points>("points", "Points of a cloud, as they were asked for"),
        field<&Scores::fewest>("fewest_points", "Points that the network saw of the smallest cloud"),
        field<&Scores::most>("most_points", "Points that the network saw of the largest cloud"),
        field<&Scores::draws>("draws", "Draws of random points"),
        field<&Scores::accuracy, &Spread::mean>("accuracy", "Share of clouds that are right, mean over draws"),
        field<&Scores::accuracy, &Spread::deviation>("accuracy_deviation", "Its deviation over draws"),
        field<&Scores::class_accuracy, &Spread::mean>("mean_class_accuracy", "Mean of the accuracies of classes"),
        field<&Scores::class_accuracy, &Spread::deviation>("mean_class_accuracy_deviation", "Its deviation over draws"),
        computed_field<Scores>("classes", "Classes that occur", [](const Scores& scores) {
            Json classes = Json::array();
            for (const ClassAccuracy& one : class_accuracies(scores))
                classes.push_back(to_json(class_accuracy_fields(), &one));
            return classes;
        })};
    return fields;
}

const Fields& class_accuracy_fields() {
    static const Fields fields = {
        field<&ClassAccuracy::name>("class", "Name of the class"),
        field<&ClassAccuracy::clouds>("clouds", "Clouds of the class"),
        field<&ClassAccuracy::accuracy>("accuracy", "Share of them that is right, over all draws")};
    return fields;
}

int64_t clouds_of_class(const metrics::Confusion& confusion, int64_t label) {
    const int64_t n = confusion.counts.size(0);
    const auto row = confusion.counts.span().subspan(static_cast<size_t>(label * n), static_cast<size_t>(n));
    return std::accumulate(row.begin(), row.end(), int64_t{0});
}

std::vector<ClassAccuracy> class_accuracies(const ClassScores& scores) {
    const std::vector<double> accuracies = metrics::class_accuracies(scores.confusion);
    std::vector<ClassAccuracy> classes;
    for (size_t i = 0; i < accuracies.size(); ++i)
        if (const int64_t clouds = clouds_of_class(scores.confusion, static_cast<int64_t>(i)); clouds > 0)
            classes.push_back({scores.confusion.classes[i], clouds / scores.draws, accuracies[i]});
    return classes;
}

}  // namespace stipple::tasks
