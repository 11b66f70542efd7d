#pragma once
// Places near a surface, and a network that moves them onto it.

#include "stipple/tasks/upsample/candidates.h"

namespace stipple::tasks {

struct Queries {
    std::vector<float> points;     // [n, 3], in the coordinates of the cloud
    std::vector<int32_t> parents;  // [n] input points

    int64_t size() const { return static_cast<int64_t>(parents.size()); }
};

/// About half as many again as `ratio` asks for, for each wanted point of a region at least `ratio`, spread evenly
/// between it and its neighbours and beyond rims, as sparse as the cloud is there; the wanted points themselves among
/// them where `has_inputs`. O(n ratio^2).
Queries make_queries(const Region& region, double ratio, bool has_inputs);

/// Appends the queries to the candidates, moved by the network, with what it says about them. Those that are not finite
/// then are left out. Of the region the points count, and whether sources are asked for. `is_rough`: they will
/// be moved again, so that the network's first step is enough; it does not say how uncertain they are.
void move_queries(Upsampler& upsampler, const Region& region, const Queries& queries, bool is_rough,
                  Candidates& candidates);

}  // namespace stipple::tasks
