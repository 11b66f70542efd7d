#pragma once
// Small programs for the tests of backends, and batches to run them on (device_programs.h runs them).

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

/// One input for each binding of the program.
std::vector<std::vector<float>> random_inputs(const engine::Program& program, const ops::Batch& batch, uint64_t seed);

/// Dense and ragged batches, one point, one cloud, more points than one tile, all clouds of at least `least` points.
std::vector<ops::Batch> test_batches(int64_t least);

/// Rows of a value in a batch.
int64_t rows_in(const engine::TensorType& type, const ops::Batch& batch);

}  // namespace stipple::test
