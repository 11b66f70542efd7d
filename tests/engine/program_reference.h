#pragma once
// A program run by the plainest loops that do what program.h says: one row at a time, sums in double. The oracle of
// every backend's steps.

#include <vector>

#include "stipple/engine/program.h"
#include "stipple/ops/clouds.h"

namespace stipple::test {

/// Numbers of every value; indices as numbers too. inputs: in the order of the program's bindings.
std::vector<std::vector<float>> run_program_reference(const engine::Program& program, const ops::Batch& batch,
                                                      const std::vector<std::vector<float>>& inputs);

/// Rows of a value in a batch.
int64_t rows_in(const engine::TensorType& type, const ops::Batch& batch);

}  // namespace stipple::test
