#pragma once

namespace stipple::ops {

/// The cost of a pair of points in chamfer, emd, emd_exact, emd_transport and sinkhorn: their distance or its square.
enum class DistanceNorm { squared, euclidean };

}  // namespace stipple::ops
