#pragma once
// Attributes of points that are made of others.

#include <span>

#include "stipple/core/attribute.h"

namespace stipple::tasks {

/// Of n points, each made of up to `width` rows of the given attributes.
///
/// sources  [n, width] rows; -1: none. Every point has one
/// weights  [n, width], their sum above 0
///
/// Floats, colours and intensities: the weighted mean, of whole numbers the nearest one. Normals: the mean at length 1,
/// or that of the heaviest source where it vanishes. Other whole numbers, labels above all: that of the heaviest
/// source, the first of equals.
Attributes blend_attributes(const Attributes& attributes, int64_t n, int64_t width, std::span<const int32_t> sources,
                            std::span<const float> weights);

}  // namespace stipple::tasks
