#pragma once
// Maps of what lies behind the box, between stages of training.

#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// The map on other texels: each has what is interpolated at the direction of its middle. `map` has a side.
Environment resampled(const Environment& map, int32_t side);

}  // namespace stipple::radiance
