#pragma once
// Attributes from one element type to another, where nothing is lost.

#include "stipple/core/attribute.h"

namespace stipple::io {

/// The same values as another type; false, and `to` untouched, when one does not fit exactly. Not to 16-bit floats.
bool convert_exactly(const Attribute& from, DType dtype, Attribute& to);

}  // namespace stipple::io
