#pragma once
// Networks that stay as they are, made cheaper to run.

#include "stipple/models/registry.h"

namespace stipple::learn {

/// Batch norms with their running statistics become part of the layers before them: the same function up to rounding.
/// Those of layers that share parameters stay.
void fold_norms(models::Model& model);

}  // namespace stipple::learn
