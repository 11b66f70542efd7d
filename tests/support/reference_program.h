#pragma once
// The straightforward reading of a Program: every step as its contract says, plain loops in double, all products in
// full precision whatever the program asks for. What lower() is proven with, and backends are compared with.

#include <string_view>
#include <vector>

#include "stipple/engine/program.h"
#include "tests/support/reference_network.h"

namespace stipple::test {

/// One tensor for each value of the program.
std::vector<ReferenceTensor> run_reference(const engine::Program& program, const ops::Batch& batch,
                                           const std::vector<ReferenceInput>& inputs);

/// Of a run: by the name of an output.
const ReferenceTensor& output_of(const engine::Program& program, const std::vector<ReferenceTensor>& values,
                                 std::string_view name);

}  // namespace stipple::test
