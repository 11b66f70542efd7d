#pragma once
// What clouds show: the classes of a network, by probability.

#include <span>

#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::tasks {

/// A network that classifies clouds.
class Classifier {
public:
    /// Throws Error{bad_argument} unless the network takes points [B, N, 3] alone and gives logits [B, classes], and as
    /// NetworkRunner does.
    Classifier(ModelOrEngine source, const RunnerOptions& options);

    const NetworkRunner& runner() const { return runner_; }
    int64_t classes() const { return classes_; }

    /// Logits, [clouds, classes]. At most runner().max_batch() clouds.
    std::vector<float> run(const CloudBatch& batch);

private:
    NetworkRunner runner_;
    int64_t classes_ = 0;
};

struct Guess {
    int64_t index = 0;
    double probability = 0;
};
/// The classes by probability (softmax of their logits), the likeliest first, ties to the lower index.
std::vector<Guess> ranked(std::span<const float> logits);

/// The answer about one cloud: all classes in order, or why there is none.
struct Classified {
    int64_t points = 0;  // that the network saw
    std::vector<Guess> guesses;
    std::optional<Error> error;
};
/// One answer for each entry, in their order. Clouds are read one after the other and run in batches of at most a
/// million points. A file that cannot be read (Error{bad_file}) is an answer with its error; anything else is thrown.
/// `advance`, where given, is called after each entry.
std::vector<Classified> classify(Classifier& classifier, const std::vector<data::CloudEntry>& entries,
                                 const CloudOptions& options, const data::ReadClouds& how, io::Warnings& warnings,
                                 const std::function<void()>& advance = {});

}  // namespace stipple::tasks
