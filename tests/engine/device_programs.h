#pragma once
// Programs run on any device, against the plain loops of reference_program.h.

#include "tests/engine/programs.h"

namespace stipple::test {

/// All outputs of a program, for inputs in the order of its bindings, on one device. Run `times` times in one context:
/// the second finds used memory, the third replays what the second recorded.
std::vector<std::vector<float>> run_on(Device device, const engine::Program& program, const ops::Batch& batch,
                                       const std::vector<std::vector<float>>& inputs, int times = 3);

/// The same outputs by the plain loops of reference_program.h, rounded to float32 at the end.
std::vector<std::vector<float>> expected_outputs(const engine::Program& program, const ops::Batch& batch,
                                                 const std::vector<std::vector<float>>& inputs);

struct Tolerance {
    engine::Precision precision;
    double difference;  // of the largest number of an output
};

/// Expects what the reference gives, on one batch or on every batch of test_batches, in every precision named; on the
/// CPU with 1 and with 3 threads, and the same bits from both.
void expect_on(Device device, const engine::Program& program, const ops::Batch& batch,
               const std::vector<Tolerance>& tolerances);
void expect_on(Device device, const engine::Program& program, int64_t least_points,
               const std::vector<Tolerance>& tolerances);

/// The largest difference over the largest number of `expected`.
double difference_of(const std::vector<float>& found, const std::vector<float>& expected);

/// The same program with every product of more than four inputs in that precision.
engine::Program in_precision(engine::Program program, engine::Precision precision);

}  // namespace stipple::test
