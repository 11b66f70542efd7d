#pragma once
// What clouds show: the classes of a network, by probability.

#include <span>

#include "stipple/tasks/confidence.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"
#include "stipple/tasks/pose.h"

namespace stipple::tasks {

/// A network that classifies clouds.
class Classifier {
public:
    /// Throws Error{bad_argument} unless the network takes points [B, N, 3] alone and gives logits [B, classes],
    /// Error{bad_file} for metadata that do not fit it, and as NetworkRunner does.
    Classifier(ModelOrEngine source, const RunnerOptions& options);

    const NetworkRunner& runner() const { return runner_; }
    int64_t classes() const { return classes_; }
    /// What makes its answers mean something; nothing where the weights do not tell.
    const std::optional<Confidence>& confidence() const { return confidence_; }
    /// The upward axis of the clouds that it was trained on.
    Axis up() const { return up_; }

    /// Logits, [clouds, classes]. At most runner().max_batch() clouds.
    std::vector<float> run(const CloudBatch& batch);

private:
    NetworkRunner runner_;
    int64_t classes_ = 0;
    std::optional<Confidence> confidence_;
    Axis up_;
};

struct Guess {
    int64_t index = 0;
    double probability = 0;
};
/// The classes by probability, the likeliest first, ties to the lower index.
std::vector<Guess> ranked(std::span<const double> probabilities);

/// The answer about one cloud: all classes in order, or why there is none.
struct Classified {
    int64_t points = 0;     // that the network saw
    int64_t nonfinite = 0;  // that were left out, of a cloud in memory; of a file a warning tells
    std::vector<Guess> guesses;
    std::optional<double> distance;  // from the training clouds, above 1 for one unlike anything (confidence.h)
    size_t pose = 0;                 // of those that were tried
    std::optional<Error> error;

    bool is_unlike() const { return distance && *distance > 1; }
};
/// What a command or a request asks of a classifier.
struct ClassifyOptions {
    std::string model;  // weights by path or name, or an engine; "": the shipped ones
    std::string names;  // a file with names of the classes; "": those in the model
    int64_t top = 1;    // the likeliest classes that are told
    PoseChoice pose;
    CloudOptions clouds;
    RunnerOptions runner;
};
const Fields& classify_fields();
/// The network of the options, which are checked. Throws as Classifier does, and Error{bad_argument}.
Classifier load_classifier(const ClassifyOptions& options);

/// What is said about one cloud.
struct NamedGuess {
    std::string name;
    int64_t index = 0;
    double probability = 0;
};
struct ClassifiedCloud {
    int64_t points = 0;
    std::vector<NamedGuess> top;
    std::optional<std::string> truth;  // where its class is known
    std::optional<bool> unlike;        // where the model tells what is unlike its training clouds
    std::optional<double> distance;
};
const Fields& classified_fields();
/// The `top` likeliest classes of an answer without error, by their names.
ClassifiedCloud described(const Classified& answer, const std::vector<std::string>& names, int64_t top);

/// One answer for each entry, in their order. Clouds are read one after the other and run in batches of at most a
/// million points. A file that cannot be read (Error{bad_file}) is an answer with its error; anything else is thrown.
/// `advance`, where given, is called after each entry; `look` sees each as it was read. Of several poses the answer is
/// that with the most evidence (confidence.h), ties to the earlier one. The result does not depend on the number of
/// threads.
std::vector<Classified> classify(Classifier& classifier, const std::vector<data::CloudEntry>& entries,
                                 const CloudOptions& options, const data::ReadClouds& how, io::Warnings& warnings,
                                 const std::function<void()>& advance = {}, const std::vector<Pose>& poses = {Pose{}},
                                 const std::function<void(size_t entry, const Mesh&)>& look = {});

/// The same of clouds in memory; points that are not finite do not count. A cloud without any is an answer with its
/// error.
std::vector<Classified> classify(Classifier& classifier, std::span<const PointCloud* const> clouds,
                                 const CloudOptions& options, const std::vector<Pose>& poses = {Pose{}});

}  // namespace stipple::tasks
