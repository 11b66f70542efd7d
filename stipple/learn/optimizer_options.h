#pragma once
// What an optimiser is told; recipes hold it, so torch is not seen here.

#include "stipple/ops/optimizer_update.h"

namespace stipple::learn {

using OptimizerKind = ops::UpdateKind;
using OptimizerOptions = ops::UpdateOptions;
using ops::update_fields;

}  // namespace stipple::learn
