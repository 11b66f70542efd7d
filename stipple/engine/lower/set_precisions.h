#pragma once
// Which product of a program gets which precision: the one rule book, for every device.

#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"

namespace stipple::engine {

/// Sets Dense::precision, and for int8 and fp8 Dense::input_range, of every layer from options.precision and
/// options.calibration:
///   - products with at most 4 inputs, and those with at most 8 inputs and 8 outputs, are fp32: there is nothing to
///     gain, and coordinates must not be rounded;
///   - tf32, fp16 and bf16: all others;
///   - int8 and fp8: products with a row a point whose range is known (> 0) and whose layer is not kept back; all
///     others get fp16 on CUDA, bf16 on the CPU: heads and T-nets, which have one row a cloud, and layers whose rows
///     are an output always. A layer that is kept back gets fp16 on CUDA, fp32 on the CPU.
/// Throws Error{bad_argument} for int8 or fp8 without a calibration. Ranges of one serve the other.
void set_precisions(Program& program, const Options& options);

}  // namespace stipple::engine
