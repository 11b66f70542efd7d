#pragma once
// The promises of a Program, checked: what backends rely on, and what an engine file from anywhere must keep.

#include "stipple/engine/program.h"

namespace stipple::engine {

/// Values exist, have sane types, and are made once, before they are read; every step has the inputs, shapes and sizes
/// of weights that its kind needs; numbers are finite; inputs and outputs are named once. Throws Error{bad_argument}
/// that names the step.
void validate(const Program& program);

}  // namespace stipple::engine
