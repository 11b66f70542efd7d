#pragma once
// A Program's plan as JSON: values, steps, layers and bindings, without the numbers of its weights, which engine files
// keep as tensors.

#include <string>
#include <string_view>

#include "stipple/engine/program.h"

namespace stipple::engine {

std::string plan_json(const Program& program);

/// The program that plan_json wrote, with empty weights and biases. For hostile text: memory grows with the text that
/// was read, and every key, type and order is checked. Throws Error{bad_file} that names the place ("steps/3/output").
/// What the numbers mean is validate()'s to check, when the weights are there.
Program parse_plan(std::string_view json);

}  // namespace stipple::engine
