#pragma once
// Places near a surface, for a network that moves them onto it.

#include "stipple/tasks/upsample/candidates.h"

namespace stipple::tasks {

/// About half as many again as the ratio asks for, for each wanted point of a region at least the ratio, spread evenly
/// between it and its neighbours and beyond rims, as sparse as the cloud is there; the wanted points themselves among
/// them where inputs are asked for. O(n ratio^2).
Queries make_queries(const CandidateRequest& request);

}  // namespace stipple::tasks
