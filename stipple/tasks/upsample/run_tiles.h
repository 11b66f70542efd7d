#pragma once
// Tile by tile: candidates around each, and those of them that stay.

#include "stipple/tasks/upsample/candidates.h"

namespace stipple::tasks {

/// The candidates that stay, `count` of a cloud [n, 3] of distinct finite points; with options.keeps_input that many
/// together with the input points, which are not among them. Of options only tiles, keeps_input and advance count.
/// Tiles are done one after the other, each in view of what the ones before have kept.
/// `has_sources`: with what they are made of, which takes ten times the memory of a point.
Candidates run_tiles(Upsampler& upsampler, View<const float, 2> cloud, int64_t count, bool has_sources,
                     const UpsampleOptions& options);

}  // namespace stipple::tasks
