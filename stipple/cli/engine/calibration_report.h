#pragma once
// What a calibration found, for people and for --json.

#include "stipple/cli/command.h"
#include "stipple/engine/calibration.h"

namespace stipple::cli {

Json calibration_fields(const engine::Calibration& calibration);

/// A table of layers (style as format_table's), then which are kept back.
std::string calibration_text(const engine::Calibration& calibration, const std::string& style);

}  // namespace stipple::cli
