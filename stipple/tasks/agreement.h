#pragma once
// How far an engine's answers are from another's: what a lower precision costs.

#include <optional>

#include "stipple/engine/engine.h"
#include "stipple/tasks/network_clouds.h"

namespace stipple::tasks {

/// The answers of an engine to many clouds: rows of its output `logits`, or its first.
struct Answers {
    int64_t channels = 0;
    std::vector<float> rows;
};
Answers answers_of(const engine::Engine& engine, const CloudBatch& clouds);

struct Agreement {
    double error = 0;      // root mean square of the differences, relative to the spread of the reference
    double max_error = 0;  // largest difference, absolute
    double winners = 0;    // share of rows whose largest number is at the same place
};
Agreement compare(const Answers& answers, const Answers& reference);

/// Share of clouds whose largest number is their label.
double accuracy_of(const Answers& answers, const std::vector<int64_t>& labels);

/// The program's inputs beside `points`, filled in: one-hot rows for clouds, zeros for points.
std::vector<std::pair<std::string, Array<float, 2>>> other_inputs(const engine::Program& program,
                                                                  const ops::Batch& batch);

}  // namespace stipple::tasks
