#pragma once
// Small programs for the tests of backends, and how to run them.

#include <string>
#include <vector>

#include "stipple/engine/run/backend.h"

namespace stipple::test {

/// n numbers around zero that are not round, from a seed.
std::vector<float> random_numbers(int64_t n, uint64_t seed, float spread = 1);

/// Writes a program step by step: values get their types from the caller.
struct ProgramWriter {
    engine::Program program;

    engine::Value value(const std::string& name, engine::TensorType type);
    engine::Value input(const std::string& name, engine::TensorType type);
    void output(const std::string& name, engine::Value value);
    /// Adds the step and gives its output.
    engine::Value step(engine::Step step, engine::TensorType type);
};

/// A layer with random weights.
engine::Dense random_dense(const std::string& name, int64_t in, int64_t out, engine::Activation activation,
                           uint64_t seed);

/// All outputs of a program on the CPU, for inputs in the order of its bindings.
std::vector<std::vector<float>> run_on_cpu(const engine::Program& program, const ops::Batch& batch,
                                           const std::vector<std::vector<float>>& inputs);

/// One input for each binding of the program.
std::vector<std::vector<float>> random_inputs(const engine::Program& program, const ops::Batch& batch, uint64_t seed);

/// Dense and ragged batches, one point, one cloud, more points than one tile, all clouds of at least `least` points.
std::vector<ops::Batch> test_batches(int64_t least);

/// Runs the program on the CPU with 1 and 3 threads on every batch, expects the same bits and what the reference gives,
/// within `tolerance` of the largest number of each output.
void expect_like_reference(const engine::Program& program, int64_t least_points, double tolerance);

}  // namespace stipple::test
