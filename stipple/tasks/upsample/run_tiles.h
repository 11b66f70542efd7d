#pragma once
// The strategy of upsampling: tile by tile, candidates around each, those of them that the input supports, an even
// choice of these, and the chosen ones spread and moved onto the surface again.

#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsample/candidates.h"

namespace stipple::tasks {

struct UpsampledTiles {
    Candidates made;             // new points
    std::vector<uint8_t> stays;  // [n] whether an input point is in the output as it is; else it may be among `made`
    int64_t dropped = 0;         // candidates that the input does not support
};

/// New points and input points that stay, `count` together, of a cloud [n, 3] of distinct finite points. Of options
/// only holes, tiles, keeps_input, temperature, seed and advance count. Tiles are done one after the other, each in
/// view of what the ones before have kept. `has_sources`: with what new points are made of, which takes ten times the
/// memory of a point.
UpsampledTiles run_tiles(CandidateMaker& maker, View<const float, 2> cloud, int64_t count, bool has_sources,
                         const UpsampleOptions& options);

}  // namespace stipple::tasks
