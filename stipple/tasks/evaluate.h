#pragma once
// How well a classifier does on a data set whose classes are known, with clouds of one size or of several.

#include "stipple/data/data_set.h"
#include "stipple/metrics/classification.h"
#include "stipple/tasks/classify.h"

namespace stipple::tasks {

/// What the network sees of each stored cloud.
struct EvaluateOptions {
    std::vector<int64_t> points = {1024};  // numbers of points, each evaluated by itself; 0: all that `of` leaves
    std::string sample = "random";         // which of them, when there are more: "random", "fps" or "first"
    int64_t of = 0;                        // they are chosen of the first so many stored points; 0: of all
    int64_t draws = 10;                    // of "random", where some cloud has more points than are chosen
    bool normalise = false;                // into the unit sphere, before points are chosen
    uint64_t seed = 0;
};
const Fields& evaluate_fields();
/// Throws Error{bad_argument} for values out of range, for no numbers of points, and for one above `of`.
void require_valid(const EvaluateOptions& options);

/// Draws that differ: options.draws where points are chosen at random of a cloud that has more than n, else 1.
int64_t draws_of(const data::Clouds& clouds, int64_t n, const EvaluateOptions& options);

/// Clouds that evaluate() runs in all: what its advance() adds up to.
int64_t evaluation_work(const data::Clouds& clouds, const EvaluateOptions& options);

/// What was evaluated, and how.
struct EvaluationFacts {
    std::string model, precision, split;
    int64_t clouds = 0;
    std::string sample;
    int64_t of = 0;
    bool normalise = false;
};
const Fields& evaluation_facts_fields();
EvaluationFacts evaluation_facts(const NetworkRunner& runner, const data::DataSet& set, const EvaluateOptions& options);

/// What the network sees of an item in one draw, [m, 3] with m = n or what there is; `chosen` receives which of its
/// stored points, in this order. Random points are those of ops::random_sample with the seed that is in the words 0
/// (high) and 1 of Rng(seed, 0x4556414C << 32 | draw).block(item); farthest ones begin with the first.
Array<float, 2> seen_points(const data::Clouds& clouds, int64_t item, int64_t n, int64_t draw,
                            const EvaluateOptions& options, std::vector<int32_t>* chosen = nullptr);

/// Over draws: mean, and standard deviation (of a sample: divided by draws - 1), 0 for one draw.
struct Spread {
    double mean = 0, deviation = 0;
};
Spread spread_of(std::span<const double> values);

struct ClassScores {
    int64_t points = 0;            // as they were asked for
    int64_t fewest = 0, most = 0;  // that the network saw of a cloud
    int64_t draws = 1;
    Spread accuracy;               // overall: right / clouds
    Spread class_accuracy;         // mean of the accuracies of the classes that occur: rare ones count alike
    metrics::Confusion confusion;  // of all draws together
};
const Fields& class_scores_fields();

/// One class that occurs.
struct ClassAccuracy {
    std::string name;
    int64_t clouds = 0;   // of one draw
    double accuracy = 0;  // over all draws
};
const Fields& class_accuracy_fields();
std::vector<ClassAccuracy> class_accuracies(const ClassScores& scores);
/// Clouds of a class, in all draws.
int64_t clouds_of_class(const metrics::Confusion& confusion, int64_t label);

/// Which class of a network each class of the set is. By name, in any case, where the network has names; without
/// (`names` empty) by number, and there must be as many. -1 for a class that has no items and that the network does not
/// know. Throws Error{bad_argument} for a set without labels, a class with items that the network does not know
/// (named), and numbers of classes that differ.
std::vector<int32_t> match_classes(const data::DataSet& set, const std::vector<std::string>& names, int64_t classes);

/// The class of each entry among those of a network, -1 where nothing tells it or the network does not know it: by
/// name, in any case (data::CloudEntry::class_name), and of a set that has labels without names by number, which
/// `warnings` tells, once for a file.
std::vector<int32_t> known_classes(const std::vector<data::CloudEntry>& entries, const std::vector<std::string>& names,
                                   io::Warnings& warnings);

/// Of answers that were given once. Labels of -1 in the truth do not count. Throws as metrics::confusion.
ClassScores scores_of(std::span<const int32_t> answers, std::span<const int32_t> truth,
                      const std::vector<std::string>& names);

/// Scores for each of options.points, in their order. `names` are the network's classes, empty where it does not tell:
/// then those of the set. Clouds run in batches of at most a million points. `advance`, where given, is called with
/// numbers of clouds as they are done, in all set.size() times the sum of draws_of(). Throws as match_classes does, and
/// Error{bad_argument} for clouds that are larger than an engine file was built for.
std::vector<ClassScores> evaluate(Classifier& classifier, const data::DataSet& set,
                                  const std::vector<std::string>& names, const EvaluateOptions& options,
                                  const std::function<void(int64_t clouds)>& advance = {});

}  // namespace stipple::tasks
